//! A document in the making: the copy that a rule works on.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::Facts;
use super::draft::Halt;
use super::revision::before_first;
use super::rows::{RowChange, RowKey, find_changed};
use super::step::{ChangedDocument, Changes, Step};
use crate::error::{Code, Refusal};
use crate::event::{Event, EventData, EventKind};
use crate::id::{DocumentId, DocumentKind};
use crate::state::{Document, DueKind, Part};
use crate::time::TimestampMs;

/// What time did to a document, if anything: under whose name it counts, and the change.
pub(super) type Fired = Option<(DueKind, ChangedDocument)>;

pub(super) struct DocumentDraft<B> {
    pub(super) id: DocumentId,
    pub(super) body: Box<B>,
    pub(super) now: TimestampMs,
    /// It goes, with its rows.
    pub(super) removed: bool,
    revision: u64,
    event_seq: u64,
    last_event: u64,
    before: Option<Arc<Document>>,
    /// What one that is not stored began as: as long as it is that, it need not be.
    begun: Option<Box<B>>,
    events: Vec<Event>,
    rows: Vec<RowChange>,
}

impl<B: Part> DocumentDraft<B> {
    /// A change of an existing document.
    pub(super) fn of(before: Arc<Document>, now: TimestampMs) -> Result<Self, Halt> {
        let Some(body) = B::of(&before.body) else {
            let detail = format!("{} is something else", before.id);
            return Err(Refusal::new(Code::Corruption, detail).into());
        };
        let mut draft = Self::new(before.id.clone(), body.clone(), now);
        draft.revision = before.revision;
        draft.event_seq = before.event_seq;
        draft.last_event = before.last_event;
        draft.before = Some(before);
        Ok(draft)
    }

    /// A change of a document that begins as `fresh` if there is none.
    pub(super) fn open(
        facts: &impl Facts,
        id: DocumentId,
        fresh: impl FnOnce() -> B,
        now: TimestampMs,
    ) -> Result<Self, Halt> {
        match facts.document(&id)? {
            Some(before) => Self::of(before, now),
            None => {
                let mut draft = Self::new(id, fresh(), now);
                draft.begun = Some(draft.body.clone());
                Ok(draft)
            }
        }
    }

    /// A new document.
    pub(super) fn new(id: DocumentId, body: B, now: TimestampMs) -> Self {
        // These are never removed, and are at 0 before anybody has said anything of them.
        let is_lasting = matches!(id.kind, DocumentKind::Lane | DocumentKind::Namespace);
        Self {
            id,
            body: Box::new(body),
            now,
            removed: false,
            revision: if is_lasting { 0 } else { before_first(now) },
            event_seq: 0,
            last_event: 0,
            before: None,
            begun: None,
            events: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Whether there is nothing to write.
    pub(super) fn is_untouched(&self) -> bool {
        let stored = self.before.as_ref().and_then(|before| B::of(&before.body));
        let before = stored.or(self.begun.as_deref());
        !self.removed
            && self.rows.is_empty()
            && self.events.is_empty()
            && before == Some(&*self.body)
    }

    /// As it is in the store.
    pub(super) fn stored(&self) -> Option<&B> {
        self.before.as_ref().and_then(|before| B::of(&before.body))
    }

    pub(super) const fn revision(&self) -> u64 {
        self.revision
    }

    /// Notes an event of this step. Call it after the change.
    pub(super) fn event(&mut self, kind: EventKind, data: EventData) {
        self.event_seq += 1;
        self.events.push(Event {
            number: 0,
            previous: self.last_event,
            subject: (&self.id).into(),
            namespace: self.body.namespace().clone(),
            lane: None,
            seq: self.event_seq,
            kind,
            time: self.now,
            attempt_index: None,
            lease_epoch: None,
            worker_instance_id: None,
            outcome: None,
            data,
        });
    }

    /// Notes a row to write or to remove.
    pub(super) fn row(&mut self, change: RowChange) {
        self.rows.push(change);
    }

    /// A row as this step leaves it.
    pub(super) fn find_row<T: DeserializeOwned>(
        &self,
        facts: &impl Facts,
        key: &RowKey,
    ) -> Result<Option<T>, Halt> {
        find_changed(facts, &(&self.id).into(), &self.rows, key)
    }

    pub(super) fn finish(self) -> ChangedDocument {
        let Self { id, before, events, .. } = self;
        if self.removed {
            return ChangedDocument { id, before, after: None, events, rows: Vec::new() };
        }
        let after = Document {
            id: id.clone(),
            revision: self.revision + 1,
            event_seq: self.event_seq,
            last_event: self.last_event,
            body: self.body.into_body(),
        };
        ChangedDocument { id, before, after: Some(Arc::new(after)), events, rows: self.rows }
    }

    /// What has been changed, if anything has.
    pub(super) fn changes(self) -> Changes {
        if self.is_untouched() { Changes::default() } else { self.finish().into() }
    }

    pub(super) fn answer<R>(self, reply: R) -> Step<R> {
        Step::done(reply, self.changes())
    }

    /// Refuses; what the draft began with is kept.
    pub(super) fn refuse(self, refusal: Refusal) -> Halt {
        Halt::refused_with(refusal, self.changes())
    }
}
