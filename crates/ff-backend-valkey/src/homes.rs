//! The homes there are: partitions, whose numbers are fixed, and one home for each namespace that has
//! documents of its own.
//!
//! Namespaces are not counted anywhere, and keys are never listed to find them. So a process enters
//! a namespace into a register before it first writes to its home, or an execution or document of it anywhere:
//! whatever stands in a namespace is found by whoever reads the register afterwards. Nothing leaves
//! the register.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ff_core::error::EngineError;
use ff_core::id::{Home, Namespace, PartitionFamily};
use ff_core::partition::PartitionConfig;
use ff_core::read::EventFilter;
use redis::{Cmd, Value};

use crate::client::{Looked, slot_of};
use crate::everywhere::Missing;
use crate::store::Shared;
use crate::{emptied, reply};

#[derive(Debug)]
pub(crate) struct Homes {
    /// All partitions, and what all namespaces share.
    fixed: Vec<Home>,
    /// Namespaces that are known to stand in the register.
    namespaces: Mutex<BTreeSet<Namespace>>,
}

impl Homes {
    pub(crate) fn new(partitions: &PartitionConfig) -> Self {
        let fixed = PartitionFamily::ALL.into_iter().flat_map(|family| partitions.homes(family));
        Self {
            fixed: fixed.chain([Home::Global]).collect(),
            namespaces: Mutex::new(BTreeSet::new()),
        }
    }

    /// All homes that this process knows of.
    pub(crate) fn known(&self) -> Vec<Home> {
        let mut homes = self.fixed.clone();
        homes.extend(self.lock().iter().cloned().map(Home::Namespace));
        homes
    }

    /// Those in which a filter may find events. Namespaces that it does not name are among them if this
    /// process knows of them.
    pub(crate) fn of_events(
        &self,
        filter: &EventFilter,
        partitions: &PartitionConfig,
    ) -> Vec<Home> {
        let mut homes = match &filter.namespace {
            Some(own) => {
                let own = Home::Namespace(own.clone());
                self.fixed.iter().cloned().chain([own]).collect()
            }
            None => self.known(),
        };
        homes.retain(|home| filter.may_match_in(home, partitions));
        homes
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Namespace>> {
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes sure that a home can be found, before the first write to it.
pub(crate) async fn enter(shared: &Shared, home: &Home) -> Result<(), EngineError> {
    match home {
        Home::Namespace(namespace) => enter_namespace(shared, namespace).await,
        _ => Ok(()),
    }
}

/// Makes sure that a namespace can be found, before the first execution or document of it is written.
pub(crate) async fn enter_namespace(
    shared: &Shared,
    namespace: &Namespace,
) -> Result<(), EngineError> {
    if shared.homes.lock().contains(namespace) {
        return Ok(());
    }
    // Looked up first: where memory is short nothing new is entered, and what stands there goes on.
    if !is_registered(shared, namespace).await? {
        add(shared, std::slice::from_ref(namespace)).await?;
    }
    shared.homes.lock().insert(namespace.clone());
    Ok(())
}

async fn is_registered(shared: &Shared, namespace: &Namespace) -> Result<bool, EngineError> {
    let mut look = redis::cmd("SISMEMBER");
    look.arg(shared.keys.homes()).arg(namespace.as_str());
    Ok(reply::number(&send(shared, &look).await?)? == 1)
}

async fn add(shared: &Shared, namespaces: &[Namespace]) -> Result<(), EngineError> {
    let mut add = redis::cmd("SADD");
    add.arg(shared.keys.homes()).arg(namespaces.iter().map(Namespace::as_str).collect::<Vec<_>>());
    send(shared, &add).await.map(|_| ())
}

/// Homes that others have entered since this process last looked. While nothing is new this costs
/// the store a look at a number. Who can do without some homes can do without new ones, where the
/// register does not answer.
pub(crate) async fn learn(shared: &Shared, missing: Missing) -> Result<Vec<Home>, EngineError> {
    let mut count = shared.read_function("ff_homes");
    shared.begin(count.arg(1).arg(shared.keys.homes()));
    let count = match missing {
        Missing::LeaveOut if shared.client.is_cluster() => {
            let slot = slot_of(shared.keys.homes().as_bytes());
            match shared.client.look_at_slot(slot, &count).await {
                Looked::Answer(Ok(count)) => count,
                Looked::Answer(Err(_)) | Looked::Silence => return Ok(Vec::new()),
            }
        }
        _ => send(shared, &count).await?,
    };
    catch_up(shared, reply::number(&count)?).await
}

/// The same, for who has been told how many namespaces stand in the register.
pub(crate) async fn catch_up(shared: &Shared, count: i64) -> Result<Vec<Home>, EngineError> {
    if usize::try_from(count) == Ok(shared.homes.lock().len()) {
        return Ok(Vec::new());
    }
    // Taken first: what is in it was entered before the register is read.
    let before = shared.homes.lock().clone();
    let entered = registered(shared).await?;
    let missing: Vec<_> = before.difference(&entered).cloned().collect();
    if !missing.is_empty() {
        // This process may have written to them since.
        add(shared, &missing).await?;
        emptied::restore(shared).await?;
    }
    shared.homes.lock().extend(entered.iter().cloned());
    Ok(entered.difference(&before).cloned().map(Home::Namespace).collect())
}

/// All homes there are.
pub(crate) async fn all(shared: &Shared) -> Result<Vec<Home>, EngineError> {
    learn(shared, Missing::Wait).await?;
    Ok(shared.homes.known())
}

/// The namespaces that stand in the register.
pub(crate) async fn registered(shared: &Shared) -> Result<BTreeSet<Namespace>, EngineError> {
    let mut members = redis::cmd("SMEMBERS");
    members.arg(shared.keys.homes());
    let members = match send(shared, &members).await? {
        Value::Set(members) => members,
        other => reply::array(other)?,
    };
    let mut namespaces = BTreeSet::new();
    for member in members {
        let text = reply::text(member)?;
        let broken = |_| EngineError::corruption(format!("the register of homes holds {text:?}"));
        namespaces.insert(Namespace::new(text.as_str()).map_err(broken)?);
    }
    Ok(namespaces)
}

async fn send(shared: &Shared, command: &Cmd) -> Result<Value, EngineError> {
    shared.client.send(slot_of(shared.keys.homes().as_bytes()), command).await
}
