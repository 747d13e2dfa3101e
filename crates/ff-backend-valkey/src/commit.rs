//! Sends what was decided to `ff_commit`: which items go with one call, and what became of them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use ff_core::error::EngineError;
use ff_core::id::Home;
use redis::Value;

use crate::keys::Keys;
use crate::log::NUMBERS;
use crate::store::Shared;
use crate::{homes, reply};

/// Items of one call. Everything else waits while a function runs.
pub(crate) const ITEMS_MOST: usize = 64;

/// Bytes after which a call takes no further item.
const CALL_BYTES: usize = 1 << 20;

/// Parts of an execution or document beside its record, by the ends of their keys.
const PARTS: [&str; 6] = ["payload", "results", "attempts", "beside", "streams", "tally"];

/// Items of one home that are written together or not at all.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) home: Home,
    pub(crate) wires: Vec<Wire>,
}

/// What the function is given of an item, behind its home.
#[derive(Debug)]
pub(crate) struct Wire {
    /// The key of its record.
    pub(crate) core: String,
    pub(crate) removes: bool,
    pub(crate) events: usize,
    pub(crate) arguments: Vec<Bytes>,
    pub(crate) changes: Vec<Change>,
}

/// A change of an index: a letter (see `lua/commit.lua`), a key and two arguments.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) letter: u8,
    pub(crate) key: String,
    pub(crate) a: Bytes,
    pub(crate) b: Bytes,
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

impl Wire {
    /// All keys that the item touches. In a cluster they are named, so that the server refuses the
    /// call as a whole while their slot is on its way to another node.
    fn keys(&self, keys: &Keys, home: &Home, touched: &mut BTreeSet<String>) {
        touched.insert(self.core.clone());
        if self.removes {
            let stem = self.core.strip_suffix("core").unwrap_or_default();
            touched.extend(PARTS.iter().map(|part| format!("{stem}{part}")));
        }
        for change in &self.changes {
            touched.insert(change.key.clone());
            match change.letter {
                b'C' => touched.insert(keys.index_of(home, "created")),
                b'V' => touched.insert(keys.index_of(home, "ready")),
                _ => continue,
            };
        }
    }

    fn bytes(&self) -> usize {
        let changes = self.changes.iter().map(|c| c.key.len() + c.a.len() + c.b.len() + 8);
        let arguments: usize = self.arguments.iter().map(Bytes::len).sum();
        self.core.len() + arguments + changes.sum::<usize>()
    }
}

/// Sends groups, each committed on its own. In a cluster all are of one home. `freeing` ones may be
/// written when memory is short.
pub(crate) async fn send(
    shared: &Shared,
    groups: &[Arc<Group>],
    freeing: bool,
) -> Result<Vec<Committed>, EngineError> {
    let Some(first) = groups.first() else { return Ok(Vec::new()) };
    for group in groups {
        homes::enter(shared, &group.home).await?;
    }
    let window = shared.clock.window();
    let mut call = shared.function(if freeing { "ff_commit_freeing" } else { "ff_commit" });
    let mut keys = BTreeSet::from([shared.keys.log(&first.home)]);
    if shared.client.is_cluster() {
        for group in groups {
            group.wires.iter().for_each(|wire| wire.keys(&shared.keys, &group.home, &mut keys));
        }
    }
    call.arg(keys.len()).arg(keys);
    shared.begin(&mut call);
    call.arg(window.behind_ms).arg(window.ahead_ms).arg(sizes(groups));
    for group in groups {
        let home = group.home.to_string();
        for wire in &group.wires {
            call.arg(&home).arg(&wire.core);
            for argument in &wire.arguments {
                call.arg(&argument[..]);
            }
            call.arg(wire.changes.len());
            for Change { letter, key, a, b } in &wire.changes {
                call.arg(&[*letter][..]).arg(key).arg(&a[..]).arg(&b[..]);
            }
        }
    }
    let reply = reply::array(shared.send_home(&first.home, &call).await?)?;
    read_reply(shared, &reply, groups)
}

/// How many items each group has.
fn sizes(groups: &[Arc<Group>]) -> String {
    let mut text = String::new();
    for group in groups {
        let blank = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{blank}{}", group.wires.len());
    }
    text
}

fn read_reply(
    shared: &Shared,
    reply: &[Value],
    groups: &[Arc<Group>],
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
    events: usize,
    bytes: usize,
}

impl Load {
    /// Takes groups on; false, and unchanged, when they are too many for one call.
    pub(crate) fn takes(&mut self, groups: &[Arc<Group>]) -> bool {
        let wires = || groups.iter().flat_map(|group| &group.wires);
        let items = self.items + wires().count();
        let events = self.events + wires().map(|wire| wire.events).sum::<usize>();
        let bytes = self.bytes + wires().map(Wire::bytes).sum::<usize>();
        let fits = items <= ITEMS_MOST && events as u64 <= NUMBERS && bytes <= CALL_BYTES;
        // What is alone goes whatever its size.
        let taken = fits || self.items == 0;
        if taken {
            *self = Self { items, events, bytes };
        }
        taken
    }
}

/// Cuts groups into calls: in a cluster by home, everywhere by number and bytes. Gives the places of
/// each call's groups.
pub(crate) fn calls(
    cluster: bool,
    mut groups: Vec<(usize, Arc<Group>)>,
) -> Vec<Vec<(usize, Arc<Group>)>> {
    if cluster {
        groups.sort_by(|(_, a), (_, b)| a.home.cmp(&b.home));
    }
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
    use super::*;

    fn group(partition: u16, items: usize) -> Arc<Group> {
        let wire = |n| Wire {
            core: format!("{n}:core"),
            removes: false,
            events: 1,
            arguments: Vec::new(),
            changes: Vec::new(),
        };
        let wires = (0..items).map(wire).collect();
        Arc::new(Group { home: Home::partition(partition), wires })
    }

    fn places(cluster: bool, groups: &[Arc<Group>]) -> Vec<Vec<usize>> {
        let groups = groups.iter().cloned().enumerate().collect();
        let calls = calls(cluster, groups).into_iter();
        calls.map(|call| call.into_iter().map(|(at, _)| at).collect()).collect()
    }

    #[test]
    fn a_group_is_never_cut() {
        let groups = [group(0, 60), group(0, 4), group(0, 1), group(0, 130), group(0, 1)];
        assert_eq!(places(false, &groups), [vec![0, 1], vec![2], vec![3], vec![4]]);
        assert_eq!(sizes(&groups), "60 4 1 130 1");
    }

    #[test]
    fn in_a_cluster_a_call_is_of_one_home() {
        let groups = [group(2, 1), group(1, 1), group(2, 1)];
        assert_eq!(places(false, &groups), [vec![0, 1, 2]]);
        assert_eq!(places(true, &groups), [vec![1], vec![0, 2]]);
    }
}
