//! Turns the net changes of steps into items of `ff_commit`.

use std::sync::Arc;

use bytes::Bytes;
use ff_core::content::Content;
use ff_core::error::EngineError;
use ff_core::event::Event;
use ff_core::id::{DocumentId, ExecutionId, Home, Namespace, Subject};
use ff_core::machine::{DedupRecord, FrameChange, RowChange, RowKey};
use ff_core::operation::ClaimNext;
use ff_core::state::{
    Document, Due, Execution, Flow, MemberCounts, QueuePlace, Recounted, Relisted,
};
use ff_core::time::TimestampMs;

use crate::audit::Places;
use crate::change::Kind;
use crate::commit::{Check, Group, Staged, Wire};
use crate::entries::Rows;
use crate::keys::{Keys, REQUIRED, queue_name, requires_some, split_queue};
use crate::listing::{is_same_member, list_name, member};
use crate::log::{self, NUMBERS};
use crate::net::{Net, NetDocument, NetExecution, last_of_each};
use crate::read::{Known, encode_dedup};
use crate::record::{Entry, NUMBER_BYTES, is_inline, push_uint};
use crate::store::Shared;
use crate::wake::Token;
use crate::{document, frames, lane_counts, subject};

/// An hour of the list of submits.
pub(crate) const HOUR_MS: i64 = 3_600_000;

/// Entries of a list of submits stand out of the order of their times by less than this: a commit
/// accepts a decision that is a little old.
pub(crate) const DISORDER_MS: i64 = 1_000;

/// The index of executions that have outlived the list of their hour, or came too late for it.
pub(crate) const OLD: &str = "old";

/// The field beside the counts of a flow's members that keeps them from being claimed.
pub(crate) const STOPPED: &str = "s";

/// The one that says that the flow stands under limits.
pub(crate) const UNDER: &str = "u";

/// Rows of a new record from which on they go before it.
const STAGED_FROM: usize = 256;

/// In place of a record that a step rests on and leaves as it is.
const KEPT: &[u8] = b"=";

/// One execution's or document's change, ready to be sent.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) subject: Subject,
    /// How it will stand; none when it is removed.
    pub(crate) after: Option<After>,
    /// The queue that it enters.
    pub(crate) ready: Option<String>,
    /// When time will change it next, if that is new.
    pub(crate) due: Option<TimestampMs>,
    pub(crate) events: usize,
    /// The revision that it rests on.
    pub(crate) since: Option<u64>,
    /// What becomes of rows beside it.
    pub(crate) rows: Vec<RowChange>,
}

/// How an execution or document stands afterwards.
#[derive(Debug)]
pub(crate) enum After {
    Execution(Arc<Entry>),
    Document(Arc<Document>, Rows),
}

/// Items that are committed together or not at all, in the order of their events' numbers.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub(crate) items: Vec<Item>,
    pub(crate) group: Arc<Group>,
    /// What becomes ready and is left to a caller that claims right afterwards: its number among the
    /// callers, and where the entry stands.
    pub(crate) left_to: Vec<(usize, Token)>,
}

/// A caller that claims in the same call: nobody is woken for what it will find.
#[derive(Debug)]
pub(crate) struct Follower<'a> {
    pub(crate) caller: usize,
    pub(crate) namespace: &'a Namespace,
    pub(crate) next: &'a ClaimNext,
    /// Entries that it may still take.
    pub(crate) wanted: u32,
}

impl Follower<'_> {
    fn takes(&self, place: &QueuePlace<'_>) -> bool {
        self.wanted > 0
            && self.namespace == place.namespace
            && self.next.lanes.iter().any(|share| share.lane == *place.lane)
            && self.next.capabilities.covers(place.class)
    }
}

/// The field of a row: its family, then its name.
pub(crate) fn row_field(key: &RowKey) -> Vec<u8> {
    let mut field = vec![key.family.code()];
    field.extend_from_slice(&key.name);
    field
}

/// When a decision was made, and from which instant on it must not happen any more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) now: TimestampMs,
    pub(crate) until: Option<TimestampMs>,
}

/// What steps change in a home, bound to all that they rest on.
pub(crate) fn bundle(
    shared: &Shared,
    home: &Home,
    net: &Net<'_>,
    known: &Known,
    times: Times,
    mut followers: Vec<Follower<'_>>,
) -> Result<Bundle, EngineError> {
    let mut left_to = Vec::new();
    let mut sheet = Sheet::new(home, times, net.len());
    for (key, record) in &net.dedups {
        sheet.dedup(shared.keys.dedup(key), record, known.dedups.get(key).and_then(Option::as_ref));
    }
    for changed in &net.executions {
        let mut draft = Draft::new(shared, &mut sheet, changed.id.into());
        let taken = leave_to(&mut followers, changed);
        draft.wakes &= taken.is_none();
        left_to.extend(taken);
        draft.execution(changed, known, |flow| net.removes(flow))?;
        draft.push(&changed.events)?;
    }
    for changed in &net.documents {
        let mut draft = Draft::new(shared, &mut sheet, changed.id.into());
        draft.assume(known, changed.before.is_some());
        draft.document(changed, known)?;
        draft.push(&changed.events)?;
    }
    guards(shared, &mut sheet, net, known);
    let (items, group) = sheet.end();
    Ok(Bundle { items, group, left_to })
}

/// Leaves what becomes ready to a caller that will claim, if there is one.
fn leave_to(followers: &mut [Follower<'_>], changed: &NetExecution<'_>) -> Option<(usize, Token)> {
    let place = changed.after.and_then(|after| after.queue_place())?;
    let follower = followers.iter_mut().find(|follower| follower.takes(&place))?;
    if changed.before.and_then(|before| before.queue_place()).as_ref() == Some(&place) {
        return None;
    }
    follower.wanted -= 1;
    let (queue, partition) = (queue_name(&place), changed.id.partition());
    Some((follower.caller, Token { namespace: place.namespace.clone(), queue, partition }))
}

/// What steps have read and left as it is: they rest on it all the same.
fn guards(shared: &Shared, sheet: &mut Sheet, net: &Net<'_>, known: &Known) {
    for (id, entry) in &known.entries {
        if !net.executions.iter().any(|changed| changed.id == *id) {
            let mut draft = Draft::new(shared, sheet, (*id).into());
            draft.stand = entry.as_ref().map(|entry| entry.stand());
            draft.guard();
        }
    }
    for (id, found) in &known.documents {
        if !net.documents.iter().any(|changed| changed.id == id) {
            let mut draft = Draft::new(shared, sheet, id.into());
            draft.assume(known, found.is_some());
            draft.stand = found.as_ref().map(|found| document::stand(found));
            draft.guard();
        }
    }
}

/// An item that changes no record and lists an execution as its record says, whatever lists say
/// now; without a record, one that removes all that is left of it.
pub(crate) fn relist(
    shared: &Shared,
    id: ExecutionId,
    entry: Option<&Arc<Entry>>,
    places: &Places,
    now: TimestampMs,
) -> Result<Bundle, EngineError> {
    let mut known = Known::default();
    known.entries.insert(id, entry.cloned());
    let execution = entry.map(|entry| &entry.execution);
    let subject = Subject::from(id);
    let mut sheet = Sheet::new(&subject.home(), Times { now, until: None }, 1);
    let mut draft = Draft::new(shared, &mut sheet, subject);
    draft.relist(execution.map(|execution| &**execution), places);
    draft.execution(&NetExecution::unchanged(id, execution), &known, |_| false)?;
    draft.push(&[])?;
    Ok(sheet.alone())
}

/// As [`relist`], for a document, and writes down anew how many executions of which state belong to
/// it.
pub(crate) fn relist_document(
    shared: &Shared,
    id: &DocumentId,
    found: Option<&Arc<Document>>,
    places: &Places,
    now: TimestampMs,
) -> Result<Bundle, EngineError> {
    let mut sheet = Sheet::new(&id.home, Times { now, until: None }, 1);
    let mut draft = Draft::new(shared, &mut sheet, id.into());
    draft.relist_document(id, found.map(|found| &**found), places);
    draft.document(&NetDocument::unchanged(id, found), &Known::default())?;
    draft.push(&[])?;
    Ok(sheet.alone())
}

/// A group in the making.
struct Sheet {
    items: Vec<Item>,
    group: Group,
}

impl Sheet {
    fn new(home: &Home, times: Times, items: usize) -> Self {
        let mut group = Group::new(home.clone(), times);
        group.wires.reserve_exact(items);
        Self { items: Vec::with_capacity(items), group }
    }

    /// Remembers a submit under its key.
    fn dedup(&mut self, key: String, record: &DedupRecord, stored: Option<&Bytes>) {
        self.group.checks.push(Check::stands(key.clone(), stored.cloned().unwrap_or_default()));
        self.group.changes.add(Kind::Dedup, key, vec![encode_dedup(record).into()]);
    }

    /// An execution or document of this namespace comes into being.
    fn begins(&mut self, namespace: &Namespace) {
        if self.group.begins.last() != Some(namespace) {
            self.group.begins.push(namespace.clone());
        }
    }

    fn end(self) -> (Vec<Item>, Arc<Group>) {
        (self.items, Arc::new(self.group))
    }

    fn alone(self) -> Bundle {
        let (items, group) = self.end();
        Bundle { items, group, left_to: Vec::new() }
    }
}

/// An item in the making.
struct Draft<'a> {
    keys: &'a Keys,
    sheet: &'a mut Sheet,
    subject: Subject,
    /// Its member in sorted sets.
    raw: Bytes,
    home: Home,
    now: TimestampMs,
    /// Whether the function wakes who waits: in a cluster the caller does.
    wakes: bool,
    /// How the record began that was read; none: there was none.
    stand: Option<Vec<u8>>,
    record: Vec<u8>,
    after: Option<After>,
    ready: Option<String>,
    due: Option<TimestampMs>,
    since: Option<u64>,
    beside: Vec<RowChange>,
}

impl<'a> Draft<'a> {
    fn new(shared: &'a Shared, sheet: &'a mut Sheet, subject: Subject) -> Self {
        Self {
            keys: &shared.keys,
            now: sheet.group.times.now,
            sheet,
            home: subject.home(),
            raw: subject::short(&subject).into(),
            subject,
            wakes: !shared.client.is_cluster(),
            stand: None,
            record: Vec::new(),
            after: None,
            ready: None,
            due: None,
            since: None,
            beside: Vec::new(),
        }
    }

    /// `removes`: a flow goes with all that is counted of it.
    fn execution(
        &mut self,
        changed: &NetExecution<'_>,
        known: &Known,
        removes: impl Fn(&DocumentId) -> bool,
    ) -> Result<(), EngineError> {
        let stored = known.entry(changed.id);
        self.stand = stored.map(|entry| entry.stand());
        self.since = stored.map(|entry| entry.execution.revision);
        self.beside = changed.rows.iter().copied().cloned().collect();
        let entry = self.contents(changed, stored.map(|entry| &**entry))?;
        let (before, after) = (changed.before.map(|e| &**e), changed.after.map(|e| &**e));
        if let (None, Some(after)) = (before, after) {
            self.sheet.begins(&after.about.namespace);
        }
        self.index(before, after);
        if let Some(counted) = Recounted::between(before, after)
            && !removes(&counted.flow)
        {
            let tally = self.keys.tally(&counted.flow);
            for (field, delta) in counted.deltas() {
                self.change_pair(
                    Kind::CountMember,
                    tally.clone(),
                    field.to_string(),
                    delta.to_string(),
                );
            }
        }
        for (counted, delta) in lane_counts::changes(before, after) {
            let lanes = self.keys.lanes(&self.home, counted.namespace);
            self.change_pair(Kind::CountLane, lanes, counted.field(), delta.to_string());
        }
        self.rows(&changed.rows);
        for change in &changed.frames {
            self.frames(changed.id, change)?;
        }
        self.record = entry.as_ref().map(Entry::encode).transpose()?.unwrap_or_default();
        self.after = entry.map(|entry| After::Execution(Arc::new(entry)));
        Ok(())
    }

    /// What is thought to be absent must be so. Without a record there are no rows.
    fn assume(&mut self, known: &Known, is_there: bool) {
        if !is_there {
            return;
        }
        let hash = self.keys.beside_of(&self.subject);
        for key in known.assumed_of(&self.subject) {
            self.sheet.group.checks.push(Check::absent(hash.clone(), row_field(key)));
        }
    }

    fn document(&mut self, changed: &NetDocument<'_>, known: &Known) -> Result<(), EngineError> {
        let (before, after) = (changed.before.map(|d| &**d), changed.after.map(|d| &**d));
        if let (None, Some(after)) = (before, after) {
            self.sheet.begins(after.namespace());
        }
        self.stand = before.map(document::stand);
        self.since = before.map(|before| before.revision);
        self.beside = changed.rows.iter().copied().cloned().collect();
        self.timer("timers", before.and_then(Document::due), after.and_then(Document::due));
        self.lists(&Relisted::of_document(before, after));
        if after.is_some() {
            self.marks(changed.id, before.and_then(Document::flow), after.and_then(Document::flow));
        }
        self.rows(&changed.rows);
        self.record = after.map(document::encode).transpose()?.unwrap_or_default();
        let rows = Rows::known(changed, known);
        self.after = changed.after.map(|document| After::Document(Arc::clone(document), rows));
        Ok(())
    }

    /// What a claim has to know of a flow, where it differs.
    fn marks(&mut self, id: &DocumentId, before: Option<&Flow>, after: Option<&Flow>) {
        let is_under = |flow: &Flow| !flow.attached.is_empty();
        self.mark(
            id,
            STOPPED,
            before.is_some_and(Flow::stops_claims),
            after.is_some_and(Flow::stops_claims),
        );
        self.mark(id, UNDER, before.is_some_and(is_under), after.is_some_and(is_under));
    }

    fn mark(&mut self, id: &DocumentId, field: &'static str, before: bool, after: bool) {
        if before != after {
            let tally = self.keys.tally(id);
            if after {
                self.change_pair(Kind::Set, tally, field, "1");
            } else {
                self.change(Kind::Unset, tally, field);
            }
        }
    }

    /// Ends it: the item, and what the function is given of it.
    fn push(mut self, events: &[&Event]) -> Result<(), EngineError> {
        if events.len() as u64 > NUMBERS {
            let detail = format!("{} events of {:?} in one call", events.len(), self.subject);
            return Err(EngineError::bug(detail));
        }
        let framed = log::encode_all(events)?;
        let record = Bytes::from(std::mem::take(&mut self.record));
        // With an event the store puts its number before the rest.
        let left_out = if !events.is_empty() && !record.is_empty() { NUMBER_BYTES } else { 0 };
        let wire = self.wire(record.slice(left_out..), framed, events.len());
        self.sheet.group.wires.push(wire);
        self.sheet.items.push(Item {
            subject: self.subject,
            after: self.after,
            ready: self.ready,
            due: self.due,
            events: events.len(),
            since: self.since,
            rows: self.beside,
        });
        Ok(())
    }

    /// Only looks whether the record is as it was read, or still absent.
    fn guard(mut self) {
        if self.stand.is_none() {
            self.sheet.group.absent.push(self.keys.core_of(&self.subject));
            return;
        }
        let wire = self.wire(Bytes::from_static(KEPT), Vec::new(), 0);
        self.sheet.group.wires.push(wire);
    }

    fn wire(&mut self, record: Bytes, framed: Vec<u8>, events: usize) -> Wire {
        let core = self.keys.core_of(&self.subject);
        let stand = self.stand.take().unwrap_or_default().into();
        Wire { core, stand, record, framed: framed.into(), events }
    }

    fn change(&mut self, kind: Kind, key: String, argument: impl Into<Bytes>) {
        self.sheet.group.changes.add(kind, key, vec![argument.into()]);
    }

    fn change_pair(&mut self, kind: Kind, key: String, a: impl Into<Bytes>, b: impl Into<Bytes>) {
        self.sheet.group.changes.add(kind, key, vec![a.into(), b.into()]);
    }

    /// Enters a sorted set, as its member.
    fn enter(&mut self, key: String, score: String) {
        self.change_pair(Kind::Enter, key, score, self.raw.clone());
    }

    fn leave(&mut self, key: String) {
        self.change(Kind::Leave, key, self.raw.clone());
    }

    fn leave_queue(&mut self, queue: &str) {
        let key = self.index_key(&Keys::queue_index(queue));
        self.leave(key.clone());
        if requires_some(queue) {
            let required = self.index_key(REQUIRED);
            self.change_pair(Kind::LeftClass, key.clone(), required, queue.to_owned());
        }
        let (ready, class) = self.ready(queue);
        self.change_pair(Kind::LeftQueue, key, ready, class);
    }

    /// What names the classes of a queue's lane that have entries, and its name there.
    fn ready(&self, queue: &str) -> (String, String) {
        (self.index_key(&Keys::ready_index(queue)), split_queue(queue).1.to_owned())
    }

    fn index_key(&self, name: &str) -> String {
        self.keys.index_of(&self.home, name)
    }

    /// The record afterwards, and what goes to keys beside it.
    fn contents(
        &mut self,
        changed: &NetExecution<'_>,
        before: Option<&Entry>,
    ) -> Result<Option<Entry>, EngineError> {
        let Some(execution) = changed.after else { return Ok(None) };
        let id = changed.id;
        let mut after = match before {
            Some(before) => {
                let mut entry = Entry { execution: Arc::clone(execution), ..before.clone() };
                if let Some(payload) = changed.payload {
                    entry.payload = self.place_payload(id, payload);
                }
                entry
            }
            None => {
                let payload = changed.payload.cloned().unwrap_or_default();
                let payload = self.place_payload(id, &payload);
                self.list_created(execution);
                let execution = Arc::clone(execution);
                Entry { execution, payload, result: None, unlisted: None }
            }
        };
        // Whatever rewrites the record lists the attempt that a noted claim had replaced.
        let unlisted = after.unlisted.take();
        for attempt in unlisted.iter().chain(changed.archived.iter().copied()) {
            self.change(Kind::Append, self.keys.attempts(id), crate::query::encode(attempt)?);
        }
        for (index, result) in &changed.results {
            if let Some((index, earlier)) = after.result.take() {
                self.put_result(id, index, &earlier)?;
            }
            if is_inline(&result.bytes) {
                after.result = Some((*index, Content::clone(result)));
            } else {
                self.put_result(id, *index, result)?;
            }
        }
        Ok(Some(after))
    }

    /// A small payload for the record; a large one goes to a key of its own. One that stood there
    /// before goes with the execution.
    fn place_payload(&mut self, id: ExecutionId, payload: &Bytes) -> Option<Bytes> {
        if is_inline(payload) {
            return Some(payload.clone());
        }
        self.change(Kind::Put, self.keys.payload(id), payload.clone());
        None
    }

    /// Rows beside the record. They go with it. Of a row that steps changed several times, the last
    /// change counts.
    fn rows(&mut self, rows: &[&RowChange]) {
        let hash = self.keys.beside_of(&self.subject);
        let rows = last_of_each(rows).map(|row| (row_field(&row.key), row.bytes.as_ref()));
        let rows: Vec<_> = rows.collect();
        if self.stand.is_none() && rows.len() > STAGED_FROM {
            let rows = rows.into_iter().filter_map(|(field, bytes)| Some((field, bytes?.clone())));
            self.stage(hash, rows.collect());
            return;
        }
        for (field, bytes) in rows {
            match bytes {
                Some(bytes) => self.change_pair(Kind::Set, hash.clone(), field, bytes.clone()),
                None => self.change(Kind::Unset, hash.clone(), field),
            }
        }
    }

    /// Rows of a new record that are too many for one call are laid ready before it.
    fn stage(&mut self, hash: String, rows: Vec<(Vec<u8>, Bytes)>) {
        let staged = Staged::new(self.keys.staged(&self.home), rows);
        self.sheet.group.checks.push(Check::staged(&staged));
        self.change(Kind::Move, hash, staged.key.clone());
        self.sheet.group.staged.push(staged);
    }

    /// Output of an attempt.
    fn frames(&mut self, id: ExecutionId, change: &FrameChange) -> Result<(), EngineError> {
        let attempt = change.attempt_index;
        if change.first {
            self.change(Kind::Append, self.keys.streams(id), attempt.to_string());
        }
        for frame in &change.frames {
            let key = self.keys.frames(id, attempt, frame.mode);
            self.change_pair(Kind::Frame, key, frame.id.to_string(), frames::encode(frame)?);
        }
        for shelf in &change.shelves {
            let key = || self.keys.frames(id, attempt, shelf.mode);
            if shelf.drops > 0 {
                self.change(Kind::Keep, key(), shelf.kept.to_string());
            }
            if let Some(until) = shelf.until {
                self.change(Kind::Until, key(), until.0.to_string());
            }
        }
        if !change.frames.is_empty() {
            self.change(Kind::Tell, self.keys.told(id.partition()), self.raw.clone());
        }
        Ok(())
    }

    /// A result beside the record.
    fn put_result(
        &mut self,
        id: ExecutionId,
        index: u32,
        result: &Content,
    ) -> Result<(), EngineError> {
        let content = crate::query::encode(result)?;
        self.change_pair(Kind::Set, self.keys.results(id), index.to_string(), content);
        Ok(())
    }

    /// An entry of the list that searches walk.
    fn list_created(&mut self, execution: &Execution) {
        let created = execution.about.created_at.0;
        if self.now.0 - created >= DISORDER_MS {
            // A member that is made long after its flow was submitted.
            self.enter(self.index_key(OLD), created.to_string());
            return;
        }
        let mut entry = Vec::with_capacity(22);
        push_uint(&mut entry, created.unsigned_abs(), 6);
        entry.extend_from_slice(execution.id.uuid().as_bytes());
        let bucket = self.index_key(&format!("created:{}", created.div_euclid(HOUR_MS)));
        self.change_pair(Kind::Created, bucket, self.index_key("created"), entry);
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
            self.leave(self.index_key(OLD));
        }
    }

    /// All that lists the execution, not only what differs.
    fn relist(&mut self, execution: Option<&Execution>, places: &Places) {
        for queue in &places.queues {
            self.leave_queue(queue);
        }
        let place = execution.and_then(Execution::queue_place);
        self.queue(None, place.as_ref());
        self.retime("leases", execution.and_then(Execution::lease_due));
        self.retime("timers", execution.and_then(Execution::other_due));
        self.unlist(places);
        self.lists(&Relisted::between(None, execution));
    }

    /// All that lists the document, and its counts.
    fn relist_document(&mut self, id: &DocumentId, found: Option<&Document>, places: &Places) {
        self.retime("timers", found.and_then(Document::due));
        self.unlist(places);
        self.lists(&Relisted::of_document(None, found));
        let Some(flow) = found.and_then(Document::flow) else { return };
        if let Some(counts) = &places.counts {
            self.recount(id, counts);
        }
        // Written down whatever is there.
        for (field, is_set) in [(STOPPED, flow.stops_claims()), (UNDER, !flow.attached.is_empty())]
        {
            self.mark(id, field, !is_set, is_set);
        }
    }

    /// All counts of a flow's members.
    fn recount(&mut self, id: &DocumentId, counts: &MemberCounts) {
        for field in MemberCounts::all_fields() {
            let count = counts.fields().find(|(counted, _)| *counted == field);
            let tally = self.keys.tally(id);
            match count {
                Some((_, count)) => {
                    self.change_pair(Kind::Set, tally, field.to_string(), count.to_string());
                }
                None => self.change(Kind::Unset, tally, field.to_string()),
            }
        }
    }

    /// Takes it out of all lists that name it.
    fn unlist(&mut self, places: &Places) {
        for (list, name) in &places.lists {
            self.change(Kind::Leave, self.index_key(list), member(&self.subject, *name));
        }
    }

    fn lists(&mut self, change: &Relisted<'_>) {
        for listing in &change.into {
            let key = self.index_key(&list_name(listing.list, listing.namespace));
            let member = member(&self.subject, listing.name);
            self.change_pair(Kind::Enter, key, listing.at.0.to_string(), member);
        }
        for listing in &change.out {
            // An entry of the same name has overwritten it.
            if !change.into.iter().any(|new| is_same_member(listing, new)) {
                let key = self.index_key(&list_name(listing.list, listing.namespace));
                self.change(Kind::Leave, key, member(&self.subject, listing.name));
            }
        }
    }

    fn queue(&mut self, old: Option<&QueuePlace<'_>>, new: Option<&QueuePlace<'_>>) {
        let (old, name) = (old.map(queue_name), new.map(queue_name));
        // In the same queue the new score overwrites the old one.
        if let Some(old) = old.filter(|old| Some(old) != name.as_ref()) {
            self.leave_queue(&old);
        }
        let (Some(place), Some(name)) = (new, name) else { return };
        let score = place.score.to_string();
        let queue = self.index_key(&Keys::queue_index(&name));
        self.enter(queue, score.clone());
        let (ready, class) = self.ready(&name);
        self.change_pair(Kind::Ready, ready, score, class);
        if !place.class.is_empty() {
            let csv = place.class.as_csv().to_owned();
            self.change_pair(Kind::SetNew, self.index_key(REQUIRED), name.clone(), csv);
        }
        if let Some(partition) = self.home.flow_partition().filter(|_| self.wakes) {
            let list = self.keys.wake(place.namespace, &name);
            self.change(Kind::Wake, list, partition.to_string());
        }
        self.ready = Some(name);
    }

    fn timer(&mut self, index: &str, before: Option<Due>, after: Option<Due>) {
        if before.map(|due| due.at) != after.map(|due| due.at) {
            self.retime(index, after);
        }
    }

    fn retime(&mut self, index: &str, after: Option<Due>) {
        let key = self.index_key(index);
        match after.map(|due| due.at) {
            Some(at) => {
                self.enter(key, at.to_string());
                self.due = Some(self.due.map_or(at, |due| due.min(at)));
            }
            None => self.leave(key),
        }
    }
}

impl Item {
    /// Takes over the number that the store gave its last event: how it stands.
    pub(crate) fn settle(&mut self, number: u64) -> Option<After> {
        let mut after = self.after.take()?;
        match &mut after {
            After::Execution(entry) if number > 0 => {
                let entry = Arc::make_mut(entry);
                Arc::make_mut(&mut entry.execution).last_event = number;
            }
            After::Document(document, _) if number > 0 => {
                Arc::make_mut(document).last_event = number;
            }
            _ => {}
        }
        Some(after)
    }
}
