//! A document in the making: the copy that a rule works on.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::Facts;
use super::draft::Halt;
use super::rows::{RowChange, RowKey, find_changed};
use super::step::ChangedDocument;
use crate::event::{Event, EventData, EventKind};
use crate::id::DocumentId;
use crate::state::{Body, Document};
use crate::time::TimestampMs;

pub(super) struct DocumentDraft {
    pub(super) document: Document,
    pub(super) now: TimestampMs,
    /// It goes, with its rows.
    pub(super) removed: bool,
    before: Option<Arc<Document>>,
    events: Vec<Event>,
    rows: Vec<RowChange>,
}

impl DocumentDraft {
    /// A change of an existing document.
    pub(super) fn of(before: Arc<Document>, now: TimestampMs) -> Self {
        let document = Document::clone(&before);
        Self::blank(document, Some(before), now)
    }

    /// A new document.
    pub(super) fn new(id: DocumentId, body: Body, now: TimestampMs) -> Self {
        let document = Document { id, revision: 0, event_seq: 0, last_event: 0, body };
        Self::blank(document, None, now)
    }

    fn blank(document: Document, before: Option<Arc<Document>>, now: TimestampMs) -> Self {
        Self { document, now, removed: false, before, events: Vec::new(), rows: Vec::new() }
    }

    /// Whether there is nothing to write.
    pub(super) fn is_untouched(&self) -> bool {
        !self.removed && self.rows.is_empty() && self.before.as_deref() == Some(&self.document)
    }

    /// Notes an event of this step. Call it after the change.
    pub(super) fn event(&mut self, kind: EventKind, data: EventData) {
        let document = &mut self.document;
        document.event_seq += 1;
        self.events.push(Event {
            number: 0,
            previous: document.last_event,
            subject: (&document.id).into(),
            namespace: document.namespace().clone(),
            lane: None,
            seq: document.event_seq,
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
        find_changed(facts, &(&self.document.id).into(), &self.rows, key)
    }

    pub(super) fn finish(mut self) -> ChangedDocument {
        self.document.revision += 1;
        let (id, before, events) = (self.document.id.clone(), self.before, self.events);
        if self.removed {
            return ChangedDocument { id, before, after: None, events, rows: Vec::new() };
        }
        let after = Some(Arc::new(self.document));
        ChangedDocument { id, before, after, events, rows: self.rows }
    }
}
