//! Turns the changes of a step into the arguments of `ff_commit`.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use ff_core::error::EngineError;
use ff_core::id::ExecutionId;
use ff_core::machine::{Changed, Changes, DedupKey, DedupRecord};
use ff_core::state::{Execution, QueuePlace};
use ff_core::time::TimestampMs;
use redis::Value;

use crate::keys::{Keys, class_of, dedup_name, queue_name};
use crate::read::{Known, encode_dedup};
use crate::record::{Entry, NUMBER_BYTES, is_inline, push_uint};
use crate::reply;
use crate::store::Shared;

/// Items of one call. Everything else waits while a function runs.
pub(crate) const ITEMS_MOST: usize = 64;

/// Bytes after which a call takes no further item.
const CALL_BYTES: usize = 1 << 20;

/// An hour of the list of submits.
const HOUR_MS: i64 = 3_600_000;

/// One execution's change, ready to be sent.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) id: ExecutionId,
    /// How it will stand; none when it is removed.
    pub(crate) after: Option<Entry>,
    /// The queue that it enters.
    pub(crate) ready: Option<String>,
    /// When time will change it next, if that is new.
    pub(crate) due: Option<TimestampMs>,
    arguments: Vec<Bytes>,
    index_changes: Vec<(u8, Bytes, Bytes)>,
}

/// What became of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Committed {
    /// Written; the number of its event, 0 without one.
    Done(u64),
    /// Something it rests on has changed; nothing was written.
    Changed,
    /// The time it was decided at is too far off; nothing was written.
    TimeOff,
}

/// The items of a step that was decided at `now`. `until` is the instant from which on it must not happen any more.
pub(crate) fn items(
    changes: &Changes,
    known: &Known,
    now: TimestampMs,
    until: Option<TimestampMs>,
) -> Result<Vec<Item>, EngineError> {
    let dedup = changes.dedup.as_ref();
    let items = changes.executions.iter();
    items.map(|changed| Item::new(changed, known, dedup, (now, until))).collect()
}

impl Item {
    fn new(
        changed: &Changed,
        known: &Known,
        dedup: Option<&(DedupKey, DedupRecord)>,
        (now, until): (TimestampMs, Option<TimestampMs>),
    ) -> Result<Self, EngineError> {
        let before = known.entry(changed.id);
        let mut item = Self {
            id: changed.id,
            after: None,
            ready: None,
            due: None,
            arguments: Vec::new(),
            index_changes: Vec::new(),
        };
        item.after = item.contents(changed, before.map(|entry| &**entry))?;
        item.index(changed.before.as_deref(), changed.after.as_deref());
        let event = changed.event.as_ref().map(crate::log::encode).transpose()?;
        let record = item.after.as_ref().map(Entry::encode).transpose()?.unwrap_or_default();
        // With an event the store puts its number before the rest.
        let left_out = if event.is_some() && !record.is_empty() { NUMBER_BYTES } else { 0 };
        let (key, stored) = match dedup {
            None => (Bytes::new(), Bytes::new()),
            Some((key, record)) => {
                item.change(b'D', dedup_name(key), encode_dedup(record));
                let stored = known.dedups.get(key).and_then(Option::as_ref);
                (dedup_name(key).into(), stored.cloned().unwrap_or_default())
            }
        };
        let id = changed.id;
        item.arguments = vec![
            id.partition().to_string().into(),
            id.uuid().hyphenated().to_string().into(),
            Bytes::copy_from_slice(id.uuid().as_bytes()),
            before.map(|entry| entry.revision()).unwrap_or_default().into(),
            until.map_or(0, |at| at.0).to_string().into(),
            now.0.to_string().into(),
            key,
            stored,
            Bytes::from(record).slice(left_out..),
            event.unwrap_or_default().into(),
        ];
        Ok(item)
    }

    fn change(&mut self, letter: u8, x: impl Into<Bytes>, y: impl Into<Bytes>) {
        self.index_changes.push((letter, x.into(), y.into()));
    }

    /// The record afterwards, and what goes to keys beside it.
    fn contents(
        &mut self,
        changed: &Changed,
        before: Option<&Entry>,
    ) -> Result<Option<Entry>, EngineError> {
        let Some(execution) = &changed.after else { return Ok(None) };
        let mut after = match before {
            Some(before) => Entry { execution: Arc::clone(execution), ..before.clone() },
            None => {
                let payload = changed.payload.clone().unwrap_or_default();
                let inline = is_inline(&payload);
                if !inline {
                    self.change(b'P', payload.clone(), "");
                }
                self.list_created(execution);
                Entry {
                    execution: Arc::clone(execution),
                    payload: inline.then_some(payload),
                    result: None,
                    unlisted: None,
                }
            }
        };
        // Whatever rewrites the record lists the attempt that a noted claim had replaced.
        for attempt in after.unlisted.take().iter().chain(&changed.archived) {
            self.change(b'A', crate::query::encode(attempt)?, "");
        }
        if let (Some(result), Some(attempt)) = (&changed.result, &execution.attempt) {
            if let Some((index, earlier)) = after.result.take() {
                self.change(b'R', index.to_string(), crate::query::encode(&earlier)?);
            }
            if is_inline(&result.bytes) {
                after.result = Some((attempt.index, result.clone()));
            } else {
                self.change(b'R', attempt.index.to_string(), crate::query::encode(result)?);
            }
        }
        Ok(Some(after))
    }

    /// An entry of the list that searches walk.
    fn list_created(&mut self, execution: &Execution) {
        let created = execution.about.created_at.0;
        let mut entry = Vec::with_capacity(22);
        push_uint(&mut entry, created.unsigned_abs(), 6);
        entry.extend_from_slice(execution.id.uuid().as_bytes());
        self.change(b'C', created.div_euclid(HOUR_MS).to_string(), entry);
    }

    /// Queue place, lease and timer, from the difference.
    fn index(&mut self, before: Option<&Execution>, after: Option<&Execution>) {
        let place = |execution: Option<&Execution>| {
            let place = execution.and_then(Execution::queue_place);
            place.map(|place: QueuePlace<'_>| (queue_name(&place), place.score))
        };
        let (old, new) = (place(before), place(after));
        if old != new {
            match (old, &new) {
                // A new score overwrites the old one.
                (Some((old, _)), Some((new, _))) if old == *new => {}
                (Some((old, _)), _) => self.change(b'U', old, ""),
                (None, _) => {}
            }
            if let Some((queue, score)) = new {
                self.change(b'Q', queue.clone(), score.to_string());
                self.ready = Some(queue);
                let class = after.map(|execution| &execution.policy().required_capabilities);
                if let Some(class) = class.filter(|class| !class.is_empty()) {
                    self.change(b'K', class_of(class), class.as_csv().to_owned());
                }
            }
        }
        let lease = |execution: Option<&Execution>| execution.and_then(Execution::lease_due);
        self.timer(lease(before).map(|d| d.at), lease(after).map(|d| d.at), (b'L', b'M'));
        let other = |execution: Option<&Execution>| execution.and_then(Execution::other_due);
        self.timer(other(before).map(|d| d.at), other(after).map(|d| d.at), (b'T', b'S'));
    }

    fn timer(
        &mut self,
        before: Option<TimestampMs>,
        after: Option<TimestampMs>,
        (set, clear): (u8, u8),
    ) {
        if before == after {
            return;
        }
        match after {
            Some(at) => {
                self.change(set, at.to_string(), "");
                self.due = Some(self.due.map_or(at, |due| due.min(at)));
            }
            None => self.change(clear, "", ""),
        }
    }

    /// All keys that the item touches. In a cluster they are named, so that the server refuses the
    /// call as a whole while their slot is on its way to another node.
    fn keys(&self, keys: &Keys, touched: &mut BTreeSet<String>) {
        let (id, partition) = (self.id, self.id.partition());
        touched.extend([keys.partition(partition), keys.events(partition), keys.core(id)]);
        if self.after.is_none() {
            touched.extend([keys.payload(id), keys.results(id), keys.attempts(id)]);
        }
        for (letter, x, _) in &self.index_changes {
            let name = String::from_utf8_lossy(x);
            match letter {
                b'Q' => {
                    touched.insert(keys.index(partition, "ready"));
                    touched.insert(keys.queue(partition, &name));
                }
                b'U' => {
                    touched.insert(keys.queue(partition, &name));
                }
                b'C' => {
                    touched.insert(keys.index(partition, "created"));
                    touched.insert(keys.index(partition, &format!("created:{name}")));
                }
                b'L' | b'M' => {
                    touched.insert(keys.index(partition, "leases"));
                }
                b'T' | b'S' => {
                    touched.insert(keys.index(partition, "timers"));
                }
                b'K' => {
                    touched.insert(keys.index(partition, "classes"));
                }
                b'D' => {
                    touched.insert(keys.dedup_named(partition, &name));
                }
                b'P' => {
                    touched.insert(keys.payload(id));
                }
                b'R' => {
                    touched.insert(keys.results(id));
                }
                _ => {
                    touched.insert(keys.attempts(id));
                }
            }
        }
    }

    fn bytes(&self) -> usize {
        let changes = self.index_changes.iter().map(|(_, x, y)| x.len() + y.len() + 8);
        self.arguments.iter().map(Bytes::len).sum::<usize>() + changes.sum::<usize>()
    }

    /// Takes over the number that the store gave its event.
    pub(crate) fn settle(self, number: u64) -> Option<Entry> {
        let mut after = self.after?;
        if number > 0 {
            Arc::make_mut(&mut after.execution).last_event = number;
        }
        Some(after)
    }
}

/// Sends items, each committed on its own. In a cluster all are of one partition. `freeing` items
/// may be written when memory is short.
pub(crate) async fn send(
    shared: &Shared,
    items: &[&Item],
    freeing: bool,
) -> Result<Vec<Committed>, EngineError> {
    let Some(first) = items.first() else { return Ok(Vec::new()) };
    let partition = first.id.partition();
    let window = shared.clock.window();
    let mut call = shared.function(if freeing { "ff_commit_freeing" } else { "ff_commit" });
    let mut keys = BTreeSet::from([shared.keys.partition(partition)]);
    if shared.client.is_cluster() {
        items.iter().for_each(|item| item.keys(&shared.keys, &mut keys));
    }
    call.arg(keys.len()).arg(keys);
    shared.begin(&mut call);
    call.arg(window.behind_ms).arg(window.ahead_ms);
    call.arg(u8::from(!shared.client.is_cluster())).arg(items.len());
    for item in items {
        for argument in &item.arguments {
            call.arg(&argument[..]);
        }
        call.arg(item.index_changes.len());
        for (letter, x, y) in &item.index_changes {
            call.arg(&[*letter][..]).arg(&x[..]).arg(&y[..]);
        }
    }
    let reply = reply::array(shared.send(partition, &call).await?)?;
    read_reply(shared, partition, &reply, items.len())
}

fn read_reply(
    shared: &Shared,
    partition: u16,
    reply: &[Value],
    items: usize,
) -> Result<Vec<Committed>, EngineError> {
    let Some((time, outcomes)) = reply.split_first() else {
        return Err(EngineError::bug("ff_commit answered nothing"));
    };
    let time = reply::instant(time)?;
    let outcome = |value| {
        Ok(match reply::number(value)? {
            -1 => Committed::Changed,
            -2 => Committed::TimeOff,
            number => Committed::Done(number.unsigned_abs()),
        })
    };
    let outcomes: Vec<_> = outcomes.iter().map(outcome).collect::<Result<_, EngineError>>()?;
    if outcomes.len() != items {
        return Err(EngineError::bug(format!("ff_commit answered {} of {items}", outcomes.len())));
    }
    if outcomes.contains(&Committed::TimeOff) {
        shared.clock.set(partition, time);
    } else {
        shared.clock.note(partition, time);
    }
    Ok(outcomes)
}

/// Cuts items into calls: in a cluster by partition, everywhere by number and bytes.
pub(crate) fn calls(cluster: bool, items: Vec<(usize, &Item)>) -> Vec<Vec<(usize, &Item)>> {
    let mut calls: Vec<Vec<(usize, &Item)>> = Vec::new();
    let mut sorted = items;
    if cluster {
        sorted.sort_by_key(|(_, item)| item.id.partition());
    }
    let mut bytes = 0;
    for (at, item) in sorted {
        let fits = calls.last().is_some_and(|call| {
            let together = !cluster
                || call.last().is_some_and(|(_, l)| l.id.partition() == item.id.partition());
            together && call.len() < ITEMS_MOST && bytes + item.bytes() <= CALL_BYTES
        });
        match calls.last_mut().filter(|_| fits) {
            Some(call) => {
                bytes += item.bytes();
                call.push((at, item));
            }
            None => {
                bytes = item.bytes();
                calls.push(vec![(at, item)]);
            }
        }
    }
    calls
}
