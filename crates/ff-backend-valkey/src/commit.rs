//! Turns the changes of a step into the arguments of `ff_commit`.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use ff_core::content::Content;
use ff_core::error::EngineError;
use ff_core::id::ExecutionId;
use ff_core::machine::{Changed, Changes, DedupKey, DedupRecord, FrameChange, RowChange, RowKey};
use ff_core::state::{Due, Execution, Listing, QueuePlace, Relisted};
use ff_core::time::TimestampMs;
use redis::Value;

use crate::audit::Places;
use crate::keys::{Keys, class_of, queue_name};
use crate::listing::{list_name, member};
use crate::log::NUMBERS;
use crate::read::{Known, encode_dedup};
use crate::record::{Entry, NUMBER_BYTES, is_inline, push_uint};
use crate::store::Shared;
use crate::{frames, reply};

/// Items of one call. Everything else waits while a function runs.
pub(crate) const ITEMS_MOST: usize = 64;

const _: () = assert!(ITEMS_MOST as u64 <= NUMBERS, "events of a call have numbers");

/// Bytes after which a call takes no further item.
const CALL_BYTES: usize = 1 << 20;

/// An hour of the list of submits.
pub(crate) const HOUR_MS: i64 = 3_600_000;

/// The index of executions that have outlived the list of their hour.
pub(crate) const OLD: &str = "old";

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
    pub(crate) wire: Arc<Wire>,
}

/// What the function is given of an item.
#[derive(Debug)]
pub(crate) struct Wire {
    id: ExecutionId,
    removes: bool,
    events: usize,
    arguments: Vec<Bytes>,
    changes: Vec<Change>,
}

/// A change of an index: a letter (see `lua/commit.lua`), a key and two arguments.
#[derive(Debug)]
struct Change {
    letter: u8,
    key: String,
    a: Bytes,
    b: Bytes,
}

/// The field of a row: its family, then its name.
pub(crate) fn row_field(key: &RowKey) -> Vec<u8> {
    let mut field = vec![key.family.code()];
    field.extend_from_slice(&key.name);
    field
}

/// What became of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Committed {
    /// Written; the number of its last event, 0 without one.
    Done(u64),
    /// Something it rests on has changed; nothing was written.
    Changed,
    /// The time it was decided at is too far off; nothing was written.
    TimeOff,
}

/// The items of a step that was decided at `now`. `until` is the instant from which on it must not
/// happen any more.
pub(crate) fn items(
    shared: &Shared,
    changes: &Changes,
    known: &Known,
    now: TimestampMs,
    until: Option<TimestampMs>,
) -> Result<Vec<Item>, EngineError> {
    let item = |changed: &Changed| {
        let mut draft = Draft::new(shared, changed.id);
        draft.finish(changed, known, changes.dedup.as_ref(), (now, until))
    };
    changes.executions.iter().map(item).collect()
}

/// An item that changes no record and lists an execution as its record says, whatever lists say
/// now; without a record, one that removes all that is left of it.
pub(crate) fn relist(
    shared: &Shared,
    id: ExecutionId,
    entry: Option<&Arc<Entry>>,
    places: &Places,
    now: TimestampMs,
) -> Result<Item, EngineError> {
    let mut known = Known::default();
    known.entries.insert(id, entry.cloned());
    let execution = entry.map(|entry| Arc::clone(&entry.execution));
    let mut draft = Draft::new(shared, id);
    draft.relist(execution.as_deref(), places);
    let changed = Changed {
        id,
        before: execution.clone(),
        after: execution,
        events: Vec::new(),
        payload: None,
        result: None,
        archived: None,
        rows: Vec::new(),
        frames: None,
    };
    draft.finish(&changed, &known, None, (now, None))
}

/// An item in the making.
struct Draft<'a> {
    keys: &'a Keys,
    id: ExecutionId,
    /// Whether the function wakes who waits: in a cluster the caller does.
    wakes: bool,
    ready: Option<String>,
    due: Option<TimestampMs>,
    changes: Vec<Change>,
}

impl<'a> Draft<'a> {
    fn new(shared: &'a Shared, id: ExecutionId) -> Self {
        Self {
            keys: &shared.keys,
            id,
            wakes: !shared.client.is_cluster(),
            ready: None,
            due: None,
            changes: Vec::with_capacity(4),
        }
    }

    fn finish(
        &mut self,
        changed: &Changed,
        known: &Known,
        dedup: Option<&(DedupKey, DedupRecord)>,
        (now, until): (TimestampMs, Option<TimestampMs>),
    ) -> Result<Item, EngineError> {
        let id = changed.id;
        let before = known.entry(id);
        let after = self.contents(changed, before.map(|entry| &**entry))?;
        self.index(changed.before.as_deref(), changed.after.as_deref());
        self.rows(changed);
        if let Some(change) = &changed.frames {
            self.frames(change)?;
        }
        let events = crate::log::encode_all(&changed.events)?;
        let record = after.as_ref().map(Entry::encode).transpose()?.unwrap_or_default();
        // With an event the store puts its number before the rest.
        let left_out = if !events.is_empty() && !record.is_empty() { NUMBER_BYTES } else { 0 };
        let (key, stored) = match dedup {
            None => (Bytes::new(), Bytes::new()),
            Some((key, record)) => {
                let name = self.keys.dedup(key);
                self.change(b'D', name.clone(), encode_dedup(record), "");
                let stored = known.dedups.get(key).and_then(Option::as_ref);
                (name.into(), stored.cloned().unwrap_or_default())
            }
        };
        let arguments = vec![
            id.partition().to_string().into(),
            self.keys.core(id).into(),
            Bytes::copy_from_slice(id.uuid().as_bytes()),
            before.map(|entry| entry.revision()).unwrap_or_default().into(),
            until.map_or(0, |at| at.0).to_string().into(),
            now.0.to_string().into(),
            key,
            stored,
            Bytes::from(record).slice(left_out..),
            events.into(),
            changed.events.len().to_string().into(),
        ];
        let (ready, due) = (self.ready.take(), self.due);
        let changes = std::mem::take(&mut self.changes);
        let (removes, events) = (after.is_none(), changed.events.len());
        let wire = Arc::new(Wire { id, removes, events, arguments, changes });
        Ok(Item { id, after, ready, due, wire })
    }

    fn change(&mut self, letter: u8, key: String, a: impl Into<Bytes>, b: impl Into<Bytes>) {
        self.changes.push(Change { letter, key, a: a.into(), b: b.into() });
    }

    fn index_key(&self, name: &str) -> String {
        self.keys.index(self.id.partition(), name)
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
                    self.change(b'P', self.keys.payload(self.id), payload.clone(), "");
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
            self.change(b'R', self.keys.attempts(self.id), crate::query::encode(attempt)?, "");
        }
        if let (Some(result), Some(attempt)) = (&changed.result, &execution.attempt) {
            if let Some((index, earlier)) = after.result.take() {
                self.put_result(index, &earlier)?;
            }
            if is_inline(&result.bytes) {
                after.result = Some((attempt.index, result.clone()));
            } else {
                self.put_result(attempt.index, result)?;
            }
        }
        Ok(Some(after))
    }

    /// Rows beside the record. They go with it.
    fn rows(&mut self, changed: &Changed) {
        for RowChange { key, bytes } in &changed.rows {
            let (hash, field) = (self.keys.beside(self.id), row_field(key));
            match bytes {
                Some(bytes) => self.change(b'H', hash, field, bytes.clone()),
                None => self.change(b'E', hash, field, ""),
            }
        }
    }

    /// Output of an attempt.
    fn frames(&mut self, change: &FrameChange) -> Result<(), EngineError> {
        let (id, attempt) = (self.id, change.attempt_index);
        if change.first {
            self.change(b'R', self.keys.streams(id), attempt.to_string(), "");
        }
        for frame in &change.frames {
            let key = self.keys.frames(id, attempt, frame.mode);
            self.change(b'F', key, frame.id.to_string(), frames::encode(frame)?);
        }
        for shelf in &change.shelves {
            let key = || self.keys.frames(id, attempt, shelf.mode);
            if shelf.drops > 0 {
                self.change(b'K', key(), shelf.kept.to_string(), "");
            }
            if let Some(until) = shelf.until {
                self.change(b'U', key(), until.0.to_string(), "");
            }
        }
        if !change.frames.is_empty() {
            self.change(b'T', self.keys.told(id.partition()), "", "");
        }
        Ok(())
    }

    /// A result beside the record.
    fn put_result(&mut self, index: u32, result: &Content) -> Result<(), EngineError> {
        let content = crate::query::encode(result)?;
        self.change(b'H', self.keys.results(self.id), index.to_string(), content);
        Ok(())
    }

    /// An entry of the list that searches walk.
    fn list_created(&mut self, execution: &Execution) {
        let created = execution.about.created_at.0;
        let mut entry = Vec::with_capacity(22);
        push_uint(&mut entry, created.unsigned_abs(), 6);
        entry.extend_from_slice(execution.id.uuid().as_bytes());
        let bucket = self.index_key(&format!("created:{}", created.div_euclid(HOUR_MS)));
        self.change(b'C', bucket, entry, self.index_key("created"));
    }

    /// Queue place, lease, timer and lists, from the difference.
    fn index(&mut self, before: Option<&Execution>, after: Option<&Execution>) {
        let old = before.and_then(Execution::queue_place);
        let new = after.and_then(Execution::queue_place);
        if old != new {
            self.queue(old.as_ref(), new.as_ref());
        }
        let lease = |execution: Option<&Execution>| execution.and_then(Execution::lease_due);
        self.timer("leases", lease(before), lease(after));
        let other = |execution: Option<&Execution>| execution.and_then(Execution::other_due);
        self.timer("timers", other(before), other(after));
        self.lists(&Relisted::between(before, after));
        if after.is_none() {
            self.change(b'X', self.index_key(OLD), "", "");
        }
    }

    /// All that lists the execution, not only what differs.
    fn relist(&mut self, execution: Option<&Execution>, places: &Places) {
        for queue in &places.queues {
            let key = self.keys.queue(self.id.partition(), queue);
            self.change(b'V', key, self.index_key("ready"), queue.clone());
        }
        let place = execution.and_then(Execution::queue_place);
        self.queue(None, place.as_ref());
        let due = [
            ("leases", execution.and_then(Execution::lease_due)),
            ("timers", execution.and_then(Execution::other_due)),
        ];
        for (index, due) in due {
            match due {
                Some(due) => self.timer(index, None, Some(due)),
                None => self.change(b'X', self.index_key(index), "", ""),
            }
        }
        for (list, name) in &places.lists {
            let member = [*name.as_bytes(), *self.id.uuid().as_bytes()].concat();
            self.change(b'O', self.index_key(list), member, "");
        }
        self.lists(&Relisted::between(None, execution));
    }

    fn lists(&mut self, change: &Relisted<'_>) {
        for listing in &change.into {
            let key = self.index_key(&list_name(listing.list, listing.namespace));
            self.change(b'L', key, listing.at.to_string(), member(self.id, listing));
        }
        for listing in &change.out {
            // An entry of the same name has overwritten it.
            let is_same = |new: &Listing<'_>| Listing { at: new.at, ..*listing } == *new;
            if !change.into.iter().any(is_same) {
                let key = self.index_key(&list_name(listing.list, listing.namespace));
                self.change(b'O', key, member(self.id, listing), "");
            }
        }
    }

    fn queue(&mut self, old: Option<&QueuePlace<'_>>, new: Option<&QueuePlace<'_>>) {
        let partition = self.id.partition();
        let (old, name) = (old.map(queue_name), new.map(queue_name));
        // In the same queue the new score overwrites the old one.
        if let Some(old) = old.filter(|old| Some(old) != name.as_ref()) {
            let queue = self.keys.queue(partition, &old);
            self.change(b'V', queue, self.index_key("ready"), old);
        }
        let (Some(place), Some(name)) = (new, name) else { return };
        let score = place.score.to_string();
        self.change(b'Z', self.keys.queue(partition, &name), score.clone(), "");
        self.change(b'Y', self.index_key("ready"), score, name.clone());
        if !place.class.is_empty() {
            let csv = place.class.as_csv().to_owned();
            self.change(b'N', self.index_key("classes"), class_of(place.class), csv);
        }
        if self.wakes {
            let list = self.keys.wake(place.namespace, &name);
            self.change(b'W', list, partition.to_string(), "");
        }
        self.ready = Some(name);
    }

    fn timer(&mut self, index: &str, before: Option<Due>, after: Option<Due>) {
        let (before, after) = (before.map(|due| due.at), after.map(|due| due.at));
        if before == after {
            return;
        }
        let key = self.index_key(index);
        match after {
            Some(at) => {
                self.change(b'Z', key, at.to_string(), "");
                self.due = Some(self.due.map_or(at, |due| due.min(at)));
            }
            None => self.change(b'X', key, "", ""),
        }
    }
}

impl Item {
    /// Takes over the number that the store gave its event.
    pub(crate) fn settle(self, number: u64) -> Option<Entry> {
        let mut after = self.after?;
        if number > 0 {
            Arc::make_mut(&mut after.execution).last_event = number;
        }
        Some(after)
    }
}

impl Wire {
    /// All keys that the item touches. In a cluster they are named, so that the server refuses the
    /// call as a whole while their slot is on its way to another node.
    fn keys(&self, keys: &Keys, touched: &mut BTreeSet<String>) {
        let (id, partition) = (self.id, self.id.partition());
        touched.extend([keys.events(partition), keys.core(id)]);
        if self.removes {
            touched.extend([keys.payload(id), keys.results(id), keys.attempts(id)]);
            touched.extend([keys.beside(id), keys.streams(id)]);
        }
        for change in &self.changes {
            touched.insert(change.key.clone());
            match change.letter {
                b'C' => touched.insert(keys.index(partition, "created")),
                b'V' => touched.insert(keys.index(partition, "ready")),
                _ => continue,
            };
        }
    }

    fn bytes(&self) -> usize {
        let changes = self.changes.iter().map(|c| c.key.len() + c.a.len() + c.b.len() + 8);
        self.arguments.iter().map(Bytes::len).sum::<usize>() + changes.sum::<usize>()
    }
}

/// Sends items, each committed on its own. In a cluster all are of one partition. `freeing` items
/// may be written when memory is short.
pub(crate) async fn send(
    shared: &Shared,
    items: &[Arc<Wire>],
    freeing: bool,
) -> Result<Vec<Committed>, EngineError> {
    let Some(first) = items.first() else { return Ok(Vec::new()) };
    let partition = first.id.partition();
    let window = shared.clock.window();
    let mut call = shared.function(if freeing { "ff_commit_freeing" } else { "ff_commit" });
    let mut keys = BTreeSet::from([shared.keys.events(partition)]);
    if shared.client.is_cluster() {
        items.iter().for_each(|item| item.keys(&shared.keys, &mut keys));
    }
    call.arg(keys.len()).arg(keys);
    shared.begin(&mut call);
    call.arg(window.behind_ms).arg(window.ahead_ms).arg(items.len());
    for item in items {
        for argument in &item.arguments {
            call.arg(&argument[..]);
        }
        call.arg(item.changes.len());
        for Change { letter, key, a, b } in &item.changes {
            call.arg(&[*letter][..]).arg(key).arg(&a[..]).arg(&b[..]);
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

/// How much a call holds so far.
#[derive(Debug, Default)]
pub(crate) struct Load {
    items: usize,
    events: usize,
    bytes: usize,
}

impl Load {
    /// Takes items on; false, and unchanged, when they are too many for one call.
    pub(crate) fn takes(&mut self, items: &[Arc<Wire>]) -> bool {
        let bytes = self.bytes + items.iter().map(|item| item.bytes()).sum::<usize>();
        let events = self.events + items.iter().map(|item| item.events).sum::<usize>();
        let fits = self.items + items.len() <= ITEMS_MOST
            && events as u64 <= NUMBERS
            && bytes <= CALL_BYTES;
        // What is alone goes whatever its size.
        let taken = fits || self.items == 0;
        if taken {
            self.items += items.len();
            self.events = events;
            self.bytes = bytes;
        }
        taken
    }
}

/// Cuts items into calls: in a cluster by partition, everywhere by number and bytes. Gives the
/// places of each call's items.
pub(crate) fn calls(
    cluster: bool,
    mut items: Vec<(usize, Arc<Wire>)>,
) -> Vec<Vec<(usize, Arc<Wire>)>> {
    if cluster {
        items.sort_by_key(|(_, item)| item.id.partition());
    }
    let mut calls: Vec<Vec<(usize, Arc<Wire>)>> = Vec::new();
    let mut load = Load::default();
    for (at, item) in items {
        let last = calls.last_mut().filter(|call| {
            let of_partition = |(_, other): &(usize, Arc<Wire>)| other.id.partition();
            !cluster || call.last().map(of_partition) == Some(item.id.partition())
        });
        match last {
            Some(call) if load.takes(std::slice::from_ref(&item)) => call.push((at, item)),
            _ => {
                load = Load::default();
                load.takes(std::slice::from_ref(&item));
                calls.push(vec![(at, item)]);
            }
        }
    }
    calls
}
