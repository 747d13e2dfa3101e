//! Sends what was decided to `ff_commit`: which items go with one call, and what became of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ff_core::error::EngineError;
use ff_core::id::{Home, Namespace};
use redis::{Cmd, Value};

use crate::change::Changes;
use crate::crowd::{self, Joint, Which};
use crate::error::without_effect;
use crate::item::Times;
use crate::log::NUMBERS;
use crate::store::{Shared, join_all};
use crate::{homes, reply};

/// Items of one call. Everything else waits while a function runs.
pub(crate) const ITEMS_MOST: usize = 32;

/// Bytes after which a call takes no further item.
const CALL_BYTES: usize = 1 << 20;

/// Arguments after which a call takes no further item: each costs the server time.
const CALL_ARGUMENTS: usize = 1_000;

/// Arguments of each group, item and check beside what is counted apart.
const GROUP_ARGUMENTS: usize = 7;
const ITEM_ARGUMENTS: usize = 5;
const CHECK_ARGUMENTS: usize = 3;

/// Rows that are laid ready by one call.
const STAGED_ROWS: usize = 256;

/// For how long rows lie ready. A commit follows at once; without one they go by themselves.
const STAGED_FOR: Duration = Duration::from_mins(1);

/// Parts of an execution or document beside its record, by the ends of their keys.
const PARTS: [&str; 6] = ["payload", "results", "attempts", "beside", "streams", "tally"];

/// Items of one home that are written together or not at all.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) home: Home,
    pub(crate) times: Times,
    pub(crate) wires: Vec<Wire>,
    /// What must be so beside the records.
    pub(crate) checks: Vec<Check>,
    /// Keys of records that must be absent and stay so.
    pub(crate) absent: Vec<String>,
    /// Namespaces of executions and documents that were not there before.
    pub(crate) begins: Vec<Namespace>,
    /// Index changes of all items.
    pub(crate) changes: Changes,
    /// What is laid ready before the call.
    pub(crate) staged: Vec<Staged>,
}

/// What the function is given of an item.
#[derive(Debug)]
pub(crate) struct Wire {
    /// The key of its record.
    pub(crate) core: String,
    /// How the record began that was read; empty: there was none.
    pub(crate) stand: Bytes,
    /// Empty: it is removed.
    pub(crate) record: Bytes,
    pub(crate) framed: Bytes,
    pub(crate) events: usize,
}

/// Something that must be so: a letter (see `lua/commit.lua`), a key and an argument.
#[derive(Debug)]
pub(crate) struct Check {
    letter: u8,
    key: String,
    argument: Bytes,
}

impl Check {
    /// A hash has no such field.
    pub(crate) fn absent(hash: String, field: Vec<u8>) -> Self {
        Self { letter: b'A', key: hash, argument: field.into() }
    }

    /// An idempotency key stands for what was read; empty: for nothing.
    pub(crate) fn stands(key: String, record: Bytes) -> Self {
        Self { letter: b'G', key, argument: record }
    }

    /// All rows were laid ready.
    pub(crate) fn staged(staged: &Staged) -> Self {
        let count = staged.rows.len().to_string();
        Self { letter: b'S', key: staged.key.clone(), argument: count.into() }
    }
}

/// Rows of a new record that are laid ready under a key of their own.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) key: String,
    rows: Vec<(Vec<u8>, Bytes)>,
}

impl Staged {
    pub(crate) const fn new(key: String, rows: Vec<(Vec<u8>, Bytes)>) -> Self {
        Self { key, rows }
    }

    async fn lay_ready(&self, shared: &Shared, home: &Home) -> Result<(), EngineError> {
        let calls = self.rows.chunks(STAGED_ROWS).map(|rows| async move {
            let mut call = shared.function("ff_stage");
            call.arg(1).arg(&self.key);
            shared.begin(&mut call).arg(STAGED_FOR.as_millis() as u64);
            for (field, bytes) in rows {
                call.arg(&field[..]).arg(&bytes[..]);
            }
            shared.send_home(home, &call).await
        });
        let laid: Result<Vec<_>, _> = join_all(calls).await.into_iter().collect();
        // Nobody sees what lies ready, so nothing has happened whatever became of the call.
        laid.map(drop).map_err(without_effect)
    }
}

/// What became of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Committed {
    /// Written; for each item the number of its last event, 0 without one.
    Done(Vec<u64>),
    /// Something it rests on has changed; nothing was written.
    Changed,
    /// The time it was decided at is too far off; nothing was written.
    TimeOff,
}

impl Group {
    pub(crate) fn new(home: Home, times: Times) -> Self {
        let (wires, checks, staged) = (Vec::new(), Vec::new(), Vec::new());
        let (absent, begins, changes) = (Vec::new(), Vec::new(), Changes::default());
        Self { home, times, wires, checks, absent, begins, changes, staged }
    }

    /// All keys that it touches. In a cluster they are named, so that the server refuses the call as
    /// a whole while their slot is on its way to another node.
    fn keys(&self, touched: &mut BTreeSet<Vec<u8>>) {
        for wire in &self.wires {
            touched.insert(wire.core.clone().into());
            if wire.record.is_empty() {
                let stem = wire.core.strip_suffix("core").unwrap_or_default();
                touched.extend(PARTS.iter().map(|part| format!("{stem}{part}").into()));
            }
        }
        touched.extend(self.checks.iter().map(|check| check.key.clone().into()));
        touched.extend(self.absent.iter().map(|key| key.clone().into()));
        for change in self.changes.iter() {
            touched.insert(change.key.clone().into());
            touched.extend(change.other_key().map(|key| key.to_vec()));
        }
    }

    fn events(&self) -> usize {
        self.wires.iter().map(|wire| wire.events).sum()
    }

    fn arguments(&self) -> usize {
        GROUP_ARGUMENTS
            + ITEM_ARGUMENTS * self.wires.len()
            + CHECK_ARGUMENTS * self.checks.len()
            + self.absent.len()
            + self.changes.arguments()
    }

    fn bytes(&self) -> usize {
        let of_wire = |wire: &Wire| wire.core.len() + wire.record.len() + wire.framed.len() + 32;
        let of_check = |check: &Check| check.key.len() + check.argument.len();
        let wires: usize = self.wires.iter().map(of_wire).sum();
        let absent: usize = self.absent.iter().map(String::len).sum();
        wires + absent + self.checks.iter().map(of_check).sum::<usize>() + self.changes.bytes()
    }

    fn write(&self, call: &mut Cmd) {
        let until = self.times.until.map_or(0, |at| at.0);
        call.arg(self.home.to_string()).arg(self.times.now.0).arg(until);
        call.arg(self.wires.len()).arg(self.checks.len()).arg(self.absent.len());
        call.arg(self.changes.arguments());
        for Wire { core, stand, record, framed, events } in &self.wires {
            call.arg(core).arg(&stand[..]).arg(&record[..]).arg(&framed[..]).arg(*events);
        }
        for Check { letter, key, argument } in &self.checks {
            call.arg(&[*letter][..]).arg(key).arg(&argument[..]);
        }
        self.absent.iter().for_each(|key| {
            call.arg(key);
        });
        self.changes.write(call);
    }
}

/// Groups of one caller that fit into one call, each committed on its own. In a cluster all are of
/// one home.
#[derive(Debug)]
pub(crate) struct Batch {
    groups: Vec<Arc<Group>>,
    /// They may be written when memory is short.
    freeing: bool,
}

impl Joint for Batch {
    type Answer = Vec<Committed>;
    type Load = Load;

    fn home(&self) -> Home {
        self.groups.first().map_or(Home::Global, |group| group.home.clone())
    }

    fn joins(&self, load: &mut Load) -> bool {
        load.takes(&self.groups)
    }

    async fn send(shared: &Shared, all: &[Self]) -> Result<Vec<Vec<Committed>>, EngineError> {
        let groups: Vec<&Group> =
            all.iter().flat_map(|batch| &batch.groups).map(AsRef::as_ref).collect();
        let freeing = all.first().is_some_and(|batch| batch.freeing);
        let mut committed = send_groups(shared, &groups, freeing).await?.into_iter();
        Ok(all.iter().map(|batch| committed.by_ref().take(batch.groups.len()).collect()).collect())
    }
}

/// Sends groups that fit into one call. `freeing` ones may be written when memory is short.
pub(crate) async fn send(
    shared: &Arc<Shared>,
    groups: Vec<Arc<Group>>,
    freeing: bool,
) -> Result<Vec<Committed>, EngineError> {
    prepare(shared, &groups).await?;
    let which: Which<Batch> = if freeing { |it| &it.freeing } else { |it| &it.commits };
    crowd::send(shared, which, Batch { groups, freeing }).await
}

/// What must be there before groups are written. It is done by whoever brings them, so that what hinders
/// one caller hinders nobody who goes with the same call.
async fn prepare(shared: &Shared, groups: &[Arc<Group>]) -> Result<(), EngineError> {
    for group in groups {
        homes::enter(shared, &group.home).await?;
        for namespace in &group.begins {
            homes::enter_namespace(shared, namespace).await?;
        }
    }
    for group in groups {
        for staged in &group.staged {
            staged.lay_ready(shared, &group.home).await?;
        }
    }
    Ok(())
}

async fn send_groups(
    shared: &Shared,
    groups: &[&Group],
    freeing: bool,
) -> Result<Vec<Committed>, EngineError> {
    let Some(first) = groups.first() else { return Ok(Vec::new()) };
    let window = shared.clock.window();
    let mut call = shared.function(if freeing { "ff_commit_freeing" } else { "ff_commit" });
    let mut keys = BTreeSet::from([shared.keys.log(&first.home).into_bytes()]);
    if shared.client.is_cluster() {
        groups.iter().for_each(|group| group.keys(&mut keys));
    }
    call.arg(keys.len()).arg(keys);
    shared.begin(&mut call);
    call.arg(window.behind_ms).arg(window.ahead_ms).arg(groups.len());
    groups.iter().for_each(|group| group.write(&mut call));
    let reply = reply::array(shared.send_home(&first.home, &call).await?)?;
    read_reply(shared, &reply, groups)
}

fn read_reply(
    shared: &Shared,
    reply: &[Value],
    groups: &[&Group],
) -> Result<Vec<Committed>, EngineError> {
    let Some((time, mut numbers)) = reply.split_first() else {
        return Err(EngineError::bug("ff_commit answered nothing"));
    };
    let mut outcomes = Vec::with_capacity(groups.len());
    for group in groups {
        let Some((own, rest)) = numbers.split_at_checked(group.wires.len()) else {
            return Err(EngineError::bug(format!("ff_commit answered {} values", reply.len())));
        };
        numbers = rest;
        outcomes.push(outcome(own)?);
    }
    let (home, time) = (&groups[0].home, reply::instant(time)?);
    if outcomes.contains(&Committed::TimeOff) {
        shared.clock.set(home, time);
        shared.clock.widen();
    } else {
        shared.clock.note(home, time);
    }
    Ok(outcomes)
}

fn outcome(items: &[Value]) -> Result<Committed, EngineError> {
    let mut numbers = Vec::with_capacity(items.len());
    for item in items {
        match reply::number(item)? {
            -1 => return Ok(Committed::Changed),
            -2 => return Ok(Committed::TimeOff),
            number => numbers.push(number.unsigned_abs()),
        }
    }
    Ok(Committed::Done(numbers))
}

/// How much a call holds so far.
#[derive(Debug, Default)]
pub(crate) struct Load {
    items: usize,
    arguments: usize,
    events: usize,
    bytes: usize,
}

impl Load {
    /// Takes groups on; false, and unchanged, when they are too many for one call.
    pub(crate) fn takes(&mut self, groups: &[Arc<Group>]) -> bool {
        let more = |of: fn(&Group) -> usize| groups.iter().map(|group| of(group)).sum::<usize>();
        let load = Self {
            items: self.items + more(|group| group.wires.len()),
            arguments: self.arguments + more(Group::arguments),
            events: self.events + more(Group::events),
            bytes: self.bytes + more(Group::bytes),
        };
        let fits = load.items <= ITEMS_MOST
            && load.arguments <= CALL_ARGUMENTS
            && load.events as u64 <= NUMBERS
            && load.bytes <= CALL_BYTES;
        // What is alone goes whatever its size.
        let taken = fits || self.items == 0;
        if taken {
            *self = load;
        }
        taken
    }
}

/// Cuts groups into calls by number and bytes, in a cluster also by home. Those of a home go together:
/// what they write there is gathered. Gives the places of each call's groups.
pub(crate) fn calls(
    cluster: bool,
    mut groups: Vec<(usize, Arc<Group>)>,
) -> Vec<Vec<(usize, Arc<Group>)>> {
    groups.sort_by(|(_, a), (_, b)| a.home.cmp(&b.home));
    let mut calls: Vec<Vec<(usize, Arc<Group>)>> = Vec::new();
    let mut load = Load::default();
    for (at, group) in groups {
        let last = calls.last_mut().filter(|call| {
            !cluster || call.last().is_some_and(|(_, other)| other.home == group.home)
        });
        match last {
            Some(call) if load.takes(std::slice::from_ref(&group)) => call.push((at, group)),
            _ => {
                load = Load::default();
                load.takes(std::slice::from_ref(&group));
                calls.push(vec![(at, group)]);
            }
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use ff_core::time::TimestampMs;

    use super::*;

    fn group(partition: u16, items: usize) -> Arc<Group> {
        let wire = |n| Wire {
            core: format!("{n}:core"),
            stand: Bytes::new(),
            record: Bytes::new(),
            framed: Bytes::new(),
            events: 1,
        };
        let times = Times { now: TimestampMs(0), until: None };
        let mut group = Group::new(Home::partition(partition), times);
        group.wires = (0..items).map(wire).collect();
        Arc::new(group)
    }

    fn places(cluster: bool, groups: &[Arc<Group>]) -> Vec<Vec<usize>> {
        let groups = groups.iter().cloned().enumerate().collect();
        let calls = calls(cluster, groups).into_iter();
        calls.map(|call| call.into_iter().map(|(at, _)| at).collect()).collect()
    }

    #[test]
    fn a_group_is_never_cut() {
        let groups = [group(0, 28), group(0, 4), group(0, 1), group(0, 130), group(0, 1)];
        assert_eq!(places(false, &groups), [vec![0, 1], vec![2], vec![3], vec![4]]);
    }

    #[test]
    fn in_a_cluster_a_call_is_of_one_home() {
        let groups = [group(2, 1), group(1, 1), group(2, 1)];
        assert_eq!(places(false, &groups), [vec![1, 0, 2]]);
        assert_eq!(places(true, &groups), [vec![1], vec![0, 2]]);
    }
}
