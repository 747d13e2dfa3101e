//! Classes: executions of one lane that require the same capabilities share a queue, and the name
//! of the class is a hash of what they require.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ff_core::capability::Capabilities;
use ff_core::error::EngineError;
use ff_core::recent::Recent;

use crate::keys::{NO_CAPABILITIES, REQUIRED, split_queue};
use crate::reply;
use crate::store::{Shared, join_all};

/// Classes of one generation; about twice as many are kept. A look asks for all classes of its lanes, so
/// it is more than lanes have together: what does not fit would be read anew each time.
const GENERATION: usize = 1 << 15;

/// Classes that one command reads.
const PORTION: usize = 256;

/// What classes require. A name is a hash, so what was read stays true.
#[derive(Debug)]
pub(crate) struct Classes(Mutex<Recent<String, Capabilities>>);

impl Classes {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Recent::new(GENERATION)))
    }

    /// What the classes of these queues require; a class is missing whose queues have no entries any
    /// more. What is not known is read together, for each class in one partition after the other.
    pub(crate) async fn required(
        &self,
        shared: &Shared,
        queues: Vec<(u16, Arc<str>)>,
    ) -> Result<HashMap<String, Capabilities>, EngineError> {
        let mut required = HashMap::new();
        let mut unknown: HashMap<String, Vec<(u16, Arc<str>)>> = HashMap::new();
        for (partition, queue) in queues {
            let (_, class) = split_queue(&queue);
            if required.contains_key(class) {
                continue;
            }
            match self.known(class) {
                Some(known) => drop(required.insert(class.to_owned(), known)),
                None => unknown.entry(class.to_owned()).or_default().push((partition, queue)),
            }
        }
        while !unknown.is_empty() {
            let places = unknown.values_mut().filter_map(Vec::pop).collect();
            for (queue, capabilities) in read(shared, places).await? {
                let (_, class) = split_queue(&queue);
                self.lock().keep(class.to_owned(), capabilities.clone());
                required.insert(class.to_owned(), capabilities);
            }
            unknown.retain(|class, left| !required.contains_key(class) && !left.is_empty());
        }
        Ok(required)
    }

    /// What a class requires, if this process knows it.
    pub(crate) fn known(&self, class: &str) -> Option<Capabilities> {
        if class == NO_CAPABILITIES {
            return Some(Capabilities::default());
        }
        self.lock().get(&class.to_owned())
    }

    /// Learns a class that this process has made use of; true when it is new here.
    pub(crate) fn learn(&self, class: &str, required: &Capabilities) -> bool {
        let mut known = self.lock();
        let new = known.get(&class.to_owned()).is_none();
        if new {
            known.keep(class.to_owned(), required.clone());
        }
        new
    }

    /// Names of the known classes that a worker with these capabilities covers.
    pub(crate) fn covered_by(&self, capabilities: &Capabilities) -> Vec<String> {
        let known = self.lock();
        let covered = known.iter().filter(|(_, required)| capabilities.covers(required));
        covered.map(|(class, _)| class.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Recent<String, Capabilities>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Queues, and what they require.
type Required = Vec<(Arc<str>, Capabilities)>;

/// What these queues require, as far as they have entries: one read for each partition and portion.
async fn read(shared: &Shared, places: Vec<(u16, Arc<str>)>) -> Result<Required, EngineError> {
    let mut by_partition: BTreeMap<u16, Vec<Arc<str>>> = BTreeMap::new();
    for (partition, queue) in places {
        by_partition.entry(partition).or_default().push(queue);
    }
    let mut reads = Vec::new();
    for (partition, queues) in by_partition {
        for portion in queues.chunks(PORTION) {
            reads.push(read_portion(shared, partition, portion.to_vec()));
        }
    }
    let found: Result<Vec<_>, _> = join_all(reads).await.into_iter().collect();
    Ok(found?.concat())
}

async fn read_portion(
    shared: &Shared,
    partition: u16,
    queues: Vec<Arc<str>>,
) -> Result<Required, EngineError> {
    let mut command = redis::cmd("HMGET");
    command.arg(shared.keys.index(partition, REQUIRED));
    queues.iter().for_each(|queue| {
        command.arg(&**queue);
    });
    let values = reply::array(shared.send(partition, &command).await?)?;
    let mut found = Vec::with_capacity(queues.len());
    for (queue, csv) in queues.into_iter().zip(values) {
        let Some(csv) = reply::bytes(csv)? else { continue };
        let csv = std::str::from_utf8(&csv).unwrap_or_default();
        found.push((queue, Capabilities::from_csv(csv)?));
    }
    Ok(found)
}
