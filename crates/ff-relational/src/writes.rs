//! What a batch leaves to be written: the net difference, row by row.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use ff_core::capability::Capabilities;
use ff_core::content::Content;
use ff_core::event::Event;
use ff_core::id::{DocumentId, ExecutionId, LaneId, Namespace};
use ff_core::machine::{
    Changed, ChangedDocument, Changes, DedupKey, DedupRecord, FrameChange, RowChange,
};
use ff_core::state::{Attempt, Document, Execution, Lane, QueuePlace, Recounted, Relisted, Worker};
use ff_core::time::TimestampMs;
use ff_core::token::Keyring;

/// Rows to write. Executions come in the order of their id, so that b-tree pages are met once.
#[derive(Debug, Default)]
pub struct Writes {
    pub executions: Vec<ExecutionWrite>,
    pub documents: Vec<DocumentWrite>,
    pub dedups: Vec<(DedupKey, DedupRecord)>,
    pub events: Vec<Event>,
    pub keyring: Option<Arc<Keyring>>,
    by_id: HashMap<ExecutionId, usize>,
    by_document: HashMap<DocumentId, usize>,
}

/// One execution: how it was stored, how it must be stored, and the rows beside it.
#[derive(Debug)]
pub struct ExecutionWrite {
    pub id: ExecutionId,
    /// None: there is no row.
    pub before: Option<Arc<Execution>>,
    /// None: there must be no row.
    pub after: Option<Arc<Execution>>,
    /// Payload, results and attempts that are stored must go before the new ones are written.
    pub purge: bool,
    pub payload: Option<Bytes>,
    /// Result of the attempt of this index.
    pub results: Vec<(u32, Content)>,
    pub attempts: Vec<Attempt>,
    /// Rows beside it, in order.
    pub rows: Vec<RowChange>,
    /// Output of its attempts, in order.
    pub frames: Vec<FrameChange>,
}

/// One document: how it was stored, how it must be stored, and the rows beside it.
#[derive(Debug)]
pub struct DocumentWrite {
    pub id: DocumentId,
    /// None: there is no row.
    pub before: Option<Arc<Document>>,
    /// None: there must be no row.
    pub after: Option<Arc<Document>>,
    /// Rows that are stored must go before new ones are written.
    pub purge: bool,
    /// Rows beside it, in order.
    pub rows: Vec<RowChange>,
}

/// A row of an index that goes, and one that comes.
#[derive(Debug, PartialEq, Eq)]
pub struct IndexChange<T> {
    pub out: Option<T>,
    pub into: Option<T>,
}

impl Writes {
    /// Adds the changes of one step to those of the steps before.
    pub(crate) fn take(&mut self, changes: Changes) {
        for changed in changes.executions {
            self.take_execution(changed);
        }
        for changed in changes.documents {
            self.take_document(changed);
        }
        self.dedups.extend(changes.dedup);
        self.keyring = changes.keyring.or(self.keyring.take());
    }

    fn take_execution(&mut self, changed: Changed) {
        self.events.extend(changed.events);
        let index = *self.by_id.entry(changed.id).or_insert_with(|| {
            self.executions.push(ExecutionWrite::stored(changed.id, changed.before));
            self.executions.len() - 1
        });
        let Some(write) = self.executions.get_mut(index) else { return };
        if changed.after.is_none() {
            write.clear();
        }
        if let (Some(result), Some(after)) = (changed.result, &changed.after) {
            let attempt = after.attempt.as_ref().map_or(0, |attempt| attempt.index);
            write.results.push((attempt, result));
        }
        write.after = changed.after;
        write.payload = changed.payload.or(write.payload.take());
        write.attempts.extend(changed.archived);
        write.rows.extend(changed.rows);
        write.frames.extend(changed.frames);
    }

    fn take_document(&mut self, changed: ChangedDocument) {
        self.events.extend(changed.events);
        let index = *self.by_document.entry(changed.id.clone()).or_insert_with(|| {
            self.documents.push(DocumentWrite::stored(changed.id, changed.before));
            self.documents.len() - 1
        });
        let Some(write) = self.documents.get_mut(index) else { return };
        if changed.after.is_none() {
            write.purge = write.before.is_some();
            write.rows.clear();
        }
        write.after = changed.after;
        write.rows.extend(changed.rows);
    }

    /// Drops what came and went within the batch, and sorts.
    pub(crate) fn settle(&mut self) {
        self.executions.retain(|write| write.before.is_some() || write.after.is_some());
        self.executions.sort_unstable_by_key(|write| write.id);
        self.by_id.clear();
        self.documents.retain(|write| write.before.is_some() || write.after.is_some());
        self.documents.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        self.by_document.clear();
        // Executions of one batch may have come in any order; the log is in that of its numbers.
        self.events.sort_unstable_by_key(|event| event.number);
    }

    /// What to add to the counts of documents that executions belong to.
    pub fn tallies(&self) -> BTreeMap<(DocumentId, u8), i64> {
        let mut tallies = BTreeMap::new();
        for write in &self.executions {
            let Some(change) = Recounted::between(write.before.as_deref(), write.after.as_deref())
            else {
                continue;
            };
            for (field, delta) in change.deltas() {
                *tallies.entry((change.flow.clone(), field)).or_default() += delta;
            }
        }
        // What is removed takes its counts along.
        let removed = |id: &DocumentId| self.documents.iter().any(|w| w.purge && w.id == *id);
        tallies.retain(|(id, _), delta| *delta != 0 && !removed(id));
        tallies
    }

    /// Queues that have an entry they did not have, one item for each entry.
    pub fn became_ready(&self) -> impl Iterator<Item = (&Namespace, &LaneId, &Capabilities)> {
        self.executions.iter().filter_map(|write| {
            let was = write.before.as_ref().and_then(|before| before.queue_place());
            let place = write.after.as_ref().and_then(|after| after.queue_place())?;
            was.is_none().then_some((place.namespace, place.lane, place.class))
        })
    }

    /// Lanes that claims may take from again.
    pub fn opened_lanes(&self) -> impl Iterator<Item = &Lane> {
        let closed = |document: Option<&Arc<Document>>| {
            let lane = document.and_then(|document| document.lane());
            lane.is_some_and(|lane| !lane.state.gives_claims())
        };
        self.documents.iter().filter_map(move |write| {
            let opened = closed(write.before.as_ref()) && !closed(write.after.as_ref());
            write.after.as_ref().filter(|_| opened)?.lane()
        })
    }

    /// Workers that get nothing more: they drain, or their registration ended.
    pub fn stopped_workers(&self) -> impl Iterator<Item = &Worker> {
        let claims = |document: Option<&Arc<Document>>| {
            let worker = document.and_then(|document| document.worker());
            worker.and_then(|w| w.registration.as_ref()).is_some_and(|live| !live.drains())
        };
        self.documents.iter().filter_map(move |write| {
            let stopped = claims(write.before.as_ref()) && !claims(write.after.as_ref());
            write.before.as_ref().filter(|_| stopped)?.worker()
        })
    }

    /// Executions whose output has grown or ended.
    pub fn output(&self) -> impl Iterator<Item = ExecutionId> {
        let told = |write: &&ExecutionWrite| {
            let end = |execution: &Option<Arc<Execution>>| {
                execution.as_ref().and_then(|execution| execution.output_end())
            };
            write.purge || !write.frames.is_empty() || end(&write.before) != end(&write.after)
        };
        self.executions.iter().filter(told).map(|write| write.id)
    }

    /// Whether the earliest timer may be another than before.
    pub fn moves_timers(&self) -> bool {
        self.executions.iter().any(|write| {
            let change = write.timer_change();
            change.out.is_some() || change.into.is_some()
        }) || self.documents.iter().any(|write| {
            let change = write.timer_change();
            change.out.is_some() || change.into.is_some()
        })
    }
}

impl ExecutionWrite {
    /// An execution as if it were new: all that lists it is to be written.
    pub fn listing(execution: Execution) -> Self {
        let write = Self::stored(execution.id, None);
        Self { after: Some(Arc::new(execution)), ..write }
    }

    /// An execution as if it were gone: all that lists it is to be removed.
    pub fn unlisting(execution: Execution) -> Self {
        Self::stored(execution.id, Some(Arc::new(execution)))
    }

    fn stored(id: ExecutionId, before: Option<Arc<Execution>>) -> Self {
        Self {
            id,
            before,
            after: None,
            purge: false,
            payload: None,
            results: Vec::new(),
            attempts: Vec::new(),
            rows: Vec::new(),
            frames: Vec::new(),
        }
    }

    fn clear(&mut self) {
        self.purge = self.before.is_some();
        self.payload = None;
        self.results.clear();
        self.attempts.clear();
        self.rows.clear();
        self.frames.clear();
    }

    pub fn queue_change(&self) -> IndexChange<QueuePlace<'_>> {
        IndexChange::between(
            self.before.as_ref().and_then(|before| before.queue_place()),
            self.after.as_ref().and_then(|after| after.queue_place()),
        )
    }

    pub fn timer_change(&self) -> IndexChange<TimestampMs> {
        IndexChange::between(
            self.before.as_ref().and_then(|before| before.due()).map(|due| due.at),
            self.after.as_ref().and_then(|after| after.due()).map(|due| due.at),
        )
    }

    pub fn listing_change(&self) -> Relisted<'_> {
        Relisted::between(self.before.as_deref(), self.after.as_deref())
    }
}

impl DocumentWrite {
    /// A document as if it were new: all that lists it is to be written.
    pub fn listing(document: Document) -> Self {
        let write = Self::stored(document.id.clone(), None);
        Self { after: Some(Arc::new(document)), ..write }
    }

    /// A document as if it were gone: all that lists it is to be removed.
    pub fn unlisting(document: Document) -> Self {
        Self::stored(document.id.clone(), Some(Arc::new(document)))
    }

    fn stored(id: DocumentId, before: Option<Arc<Document>>) -> Self {
        Self { id, before, after: None, purge: false, rows: Vec::new() }
    }

    pub fn timer_change(&self) -> IndexChange<TimestampMs> {
        IndexChange::between(
            self.before.as_ref().and_then(|before| before.due()).map(|due| due.at),
            self.after.as_ref().and_then(|after| after.due()).map(|due| due.at),
        )
    }

    pub fn listing_change(&self) -> Relisted<'_> {
        Relisted::of_document(self.before.as_deref(), self.after.as_deref())
    }
}

impl<T: PartialEq> IndexChange<T> {
    fn between(before: Option<T>, after: Option<T>) -> Self {
        if before == after {
            Self { out: None, into: None }
        } else {
            Self { out: before, into: after }
        }
    }
}
