//! How many executions of each lane are in which state: a hash for each partition and namespace, with
//! a number for each state and lane. Steps change them by the difference that they make, a claim by
//! what it leases; whatever is 0 is not there, so lanes without work leave nothing behind.

use std::collections::BTreeMap;

use ff_core::error::EngineError;
use ff_core::id::{Home, LaneId, Namespace};
use ff_core::read::{Audited, LaneSnapshot};
use ff_core::state::{Execution, PublicState};

use crate::keys::LANES;
use crate::keyspace::Keyspace;
use crate::reply;
use crate::store::Shared;

/// Where an execution that has not ended is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted<'a> {
    pub(crate) namespace: &'a Namespace,
    lane: &'a LaneId,
    state: PublicState,
}

impl<'a> Counted<'a> {
    /// None once it has ended.
    fn of(execution: &'a Execution) -> Option<Self> {
        let (namespace, lane) = (&execution.about.namespace, &execution.about.lane);
        let state = LaneSnapshot::depth_state(execution.public_state());
        (!execution.is_terminal()).then_some(Self { namespace, lane, state })
    }

    /// `lua/lib/keys.lua` says the same for the functions.
    pub(crate) fn field(&self) -> String {
        format!("{}:{}", self.state as u8, self.lane)
    }
}

/// State and lane of a field.
pub(crate) fn parse_field(field: &str) -> Option<(u8, LaneId)> {
    let (state, lane) = field.split_once(':')?;
    Some((state.parse().ok()?, LaneId::new(lane).ok()?))
}

/// What a step adds to the counts.
pub(crate) fn changes<'a>(
    before: Option<&'a Execution>,
    after: Option<&'a Execution>,
) -> impl Iterator<Item = (Counted<'a>, i64)> {
    let (before, after) = (before.and_then(Counted::of), after.and_then(Counted::of));
    let differ = before != after;
    let both = before.map(|before| (before, -1)).into_iter().chain(after.map(|after| (after, 1)));
    both.filter(move |_| differ)
}

/// Home and namespace of a hash, and its fields.
pub(crate) type Counts = BTreeMap<(Home, Namespace), BTreeMap<String, i64>>;

/// Counts an execution as a scan meets it.
pub(crate) fn count(counts: &mut Counts, execution: &Execution) {
    let home = Home::partition(execution.id.partition());
    for (counted, delta) in changes(None, Some(execution)) {
        let hash = counts.entry((home.clone(), counted.namespace.clone())).or_default();
        *hash.entry(counted.field()).or_default() += delta;
    }
}

/// Compares what is kept with what a scan counted: what must be added to set it right. What was kept
/// before the scan tells where something happened meanwhile: nothing is said of that.
pub(crate) async fn audit(
    shared: &Shared,
    keyspace: &Keyspace,
    audited: &mut Audited,
    (before, scanned): (&Counts, &Counts),
) -> Result<Counts, EngineError> {
    let mut wrong = scanned.clone();
    for (hash, kept) in stored(shared, keyspace).await? {
        if before.get(&hash) != Some(&kept) {
            wrong.remove(&hash);
            continue;
        }
        let counts = wrong.entry(hash).or_default();
        for (field, count) in kept {
            *counts.entry(field).or_default() -= count;
        }
    }
    for ((home, namespace), hash) in &mut wrong {
        hash.retain(|_, missing| *missing != 0);
        for (field, missing) in &*hash {
            let detail = format!("{home}: {field} of {namespace} lacks {missing} of a scan");
            audited.report("I11", None::<String>, detail);
        }
    }
    wrong.retain(|_, hash| !hash.is_empty());
    Ok(wrong)
}

pub(crate) async fn stored(shared: &Shared, keyspace: &Keyspace) -> Result<Counts, EngineError> {
    let mut counts = Counts::new();
    for (home, name) in keyspace.indexes() {
        let Some(namespace) = name.strip_prefix(LANES).and_then(|ns| Namespace::new(ns).ok())
        else {
            continue;
        };
        let mut all = redis::cmd("HGETALL");
        all.arg(shared.keys.lanes(&home, &namespace));
        let mut items = reply::flat(shared.send_home(&home, &all).await?)?.into_iter();
        let hash = counts.entry((home, namespace)).or_default();
        while let Some(field) = items.next() {
            hash.insert(reply::text(field)?, reply::number(&reply::next(&mut items)?)?);
        }
    }
    Ok(counts)
}

/// Adds what an audit missed.
pub(crate) async fn mend(shared: &Shared, missing: &Counts) -> Result<(), EngineError> {
    for ((home, namespace), hash) in missing {
        add(shared, home, shared.keys.lanes(home, namespace), hash).await?;
    }
    Ok(())
}

/// Adds to the fields of a hash of counts.
pub(crate) async fn add(
    shared: &Shared,
    home: &Home,
    key: String,
    missing: &BTreeMap<String, i64>,
) -> Result<(), EngineError> {
    let mut call = shared.function("ff_recount");
    call.arg(1).arg(key);
    shared.begin(&mut call);
    for (field, delta) in missing {
        call.arg(field).arg(delta);
    }
    shared.send_home(home, &call).await?;
    Ok(())
}
