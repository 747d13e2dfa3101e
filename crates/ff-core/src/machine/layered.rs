//! Facts as a step leaves them: for a second step that belongs to the first.

use std::sync::Arc;

use bytes::Bytes;

use super::facts::{
    Candidates, DedupKey, DedupRecord, DueList, Facts, Known, Needs, QueueView, Settings,
};
use super::rows::{RowChange, RowKey};
use super::step::{Changed, ChangedDocument, Changes};
use crate::content::Content;
use crate::id::{DocumentId, ExecutionId, Home, Subject};
use crate::state::{Document, Execution};
use crate::time::TimestampMs;
use crate::token::Keyring;

pub(super) struct Layered<'a, F> {
    pub(super) facts: &'a F,
    pub(super) changes: &'a Changes,
}

impl<F: Facts> Layered<'_, F> {
    fn changed(&self, id: ExecutionId) -> Option<&Changed> {
        self.changes.executions.iter().find(|changed| changed.id == id)
    }

    fn changed_document(&self, id: &DocumentId) -> Option<&ChangedDocument> {
        self.changes.documents.iter().find(|changed| changed.id == *id)
    }
}

impl<F: Facts> Facts for Layered<'_, F> {
    fn settings(&self) -> &Settings {
        self.facts.settings()
    }

    fn is_lost(&self, lacking: &Needs) -> bool {
        self.facts.is_lost(lacking)
    }

    fn execution(&self, id: ExecutionId) -> Known<Arc<Execution>> {
        match self.changed(id) {
            Some(changed) => Ok(changed.after.clone()),
            None => self.facts.execution(id),
        }
    }

    fn document(&self, id: &DocumentId) -> Known<Arc<Document>> {
        match self.changed_document(id) {
            Some(changed) => Ok(changed.after.clone()),
            None => self.facts.document(id),
        }
    }

    fn payload(&self, id: ExecutionId) -> Known<Bytes> {
        match self.changed(id).and_then(|changed| changed.payload.clone()) {
            Some(payload) => Ok(Some(payload)),
            None => self.facts.payload(id),
        }
    }

    fn result(&self, id: ExecutionId) -> Known<Content> {
        match self.changed(id).and_then(|changed| changed.result.clone()) {
            Some(result) => Ok(Some(result)),
            None => self.facts.result(id),
        }
    }

    fn dedup(&self, key: &DedupKey) -> Known<DedupRecord> {
        self.facts.dedup(key)
    }

    /// What the first step has put into queues stands among the others in its place, and what it
    /// has taken out is passed over.
    fn candidates(&self, view: &QueueView, at_least: usize) -> Result<Candidates, Needs> {
        let touched = self.changes.executions.len();
        let mut base = self.facts.candidates(view, at_least + touched)?;
        self.facts.want_executions(&base.ids)?;
        let mut entries = Vec::with_capacity(base.ids.len());
        for id in base.ids.drain(..) {
            let execution = self.facts.execution(id)?;
            let place = execution.as_ref().and_then(|execution| execution.queue_place());
            entries.extend(place.map(|place| (place.score, id)));
        }
        let last = entries.last().copied();
        entries.retain(|(_, id)| self.changed(*id).is_none());
        for changed in &self.changes.executions {
            let place = changed.after.as_ref().and_then(|after| after.queue_place());
            let Some(place) = place.filter(|place| view.sees(place)) else { continue };
            let entry = (place.score, changed.id);
            // Behind the known front others may stand before it.
            if base.complete || last.is_some_and(|last| entry < last) {
                entries.push(entry);
            }
        }
        entries.sort_unstable();
        let ids = entries.into_iter().map(|(_, id)| id).collect();
        Ok(Candidates { ids, complete: base.complete })
    }

    fn due(&self, home: Option<&Home>, now: TimestampMs, most: usize) -> Result<DueList, Needs> {
        self.facts.due(home, now, most)
    }

    fn row(&self, of: &Subject, key: &RowKey) -> Known<Bytes> {
        let rows = match of {
            Subject::Execution(id) => self.changed(*id).map(|changed| &changed.rows),
            Subject::Document(id) => self.changed_document(id).map(|changed| &changed.rows),
        };
        let changed = rows.and_then(|rows| rows.iter().rev().find(|row| row.key == *key));
        match changed {
            Some(RowChange { bytes, .. }) => Ok(bytes.clone()),
            None => self.facts.row(of, key),
        }
    }

    fn keyring(&self) -> Result<Arc<Keyring>, Needs> {
        self.facts.keyring()
    }
}
