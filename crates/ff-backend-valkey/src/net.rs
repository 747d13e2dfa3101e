//! What one step, or several one after another, make of each execution and document.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use ff_core::content::Content;
use ff_core::event::Event;
use ff_core::id::{DocumentId, ExecutionId};
use ff_core::machine::{
    Changed, ChangedDocument, Changes, DedupKey, DedupRecord, FrameChange, RowChange,
};
use ff_core::state::{Attempt, Document, Execution};

/// The net changes of steps that ran in this order, each over what the ones before left.
#[derive(Debug, Default)]
pub(crate) struct Net<'a> {
    pub(crate) executions: Vec<NetExecution<'a>>,
    pub(crate) documents: Vec<NetDocument<'a>>,
    pub(crate) dedups: Vec<&'a (DedupKey, DedupRecord)>,
}

/// One execution: how it was before the first step, how it is after the last, and what the steps
/// left beside it, in order.
#[derive(Debug)]
pub(crate) struct NetExecution<'a> {
    pub(crate) id: ExecutionId,
    pub(crate) before: Option<&'a Arc<Execution>>,
    pub(crate) after: Option<&'a Arc<Execution>>,
    pub(crate) events: Vec<&'a Event>,
    pub(crate) payload: Option<&'a Bytes>,
    /// Results with the index of their attempt.
    pub(crate) results: Vec<(u32, &'a Content)>,
    pub(crate) archived: Vec<&'a Attempt>,
    pub(crate) rows: Vec<&'a RowChange>,
    pub(crate) frames: Vec<&'a FrameChange>,
}

#[derive(Debug)]
pub(crate) struct NetDocument<'a> {
    pub(crate) id: &'a DocumentId,
    pub(crate) before: Option<&'a Arc<Document>>,
    pub(crate) after: Option<&'a Arc<Document>>,
    pub(crate) events: Vec<&'a Event>,
    pub(crate) rows: Vec<&'a RowChange>,
}

impl<'a> Net<'a> {
    pub(crate) fn of(changes: &'a Changes) -> Self {
        let mut net = Self::default();
        net.take(changes);
        net
    }

    /// How many records it touches.
    pub(crate) fn len(&self) -> usize {
        self.executions.len() + self.documents.len()
    }

    /// Whether a document is removed, with all that is counted of it.
    pub(crate) fn removes(&self, id: &DocumentId) -> bool {
        self.documents.iter().any(|net| net.id == id && net.after.is_none())
    }

    /// Adds the changes of a step to those of the steps before.
    pub(crate) fn take(&mut self, changes: &'a Changes) {
        for changed in &changes.executions {
            match self.executions.iter_mut().find(|net| net.id == changed.id) {
                Some(net) => net.take(changed),
                None => self.executions.push(NetExecution::of(changed)),
            }
        }
        for changed in &changes.documents {
            match self.documents.iter_mut().find(|net| *net.id == changed.id) {
                Some(net) => net.take(changed),
                None => self.documents.push(NetDocument::of(changed)),
            }
        }
        self.dedups.extend(&changes.dedup);
    }
}

/// Of changes in their order the last one to each row: several steps may have changed it.
pub(crate) fn last_of_each<'a>(rows: &[&'a RowChange]) -> impl Iterator<Item = &'a RowChange> {
    let mut last = HashMap::with_capacity(rows.len());
    last.extend(rows.iter().enumerate().map(|(place, row)| (&row.key, place)));
    let rows = rows.iter().enumerate();
    rows.filter(move |(place, row)| last[&row.key] == *place).map(|(_, row)| *row)
}

impl<'a> NetExecution<'a> {
    fn of(changed: &'a Changed) -> Self {
        let mut net = Self::unchanged(changed.id, changed.before.as_ref());
        net.take(changed);
        net
    }

    pub(crate) fn unchanged(id: ExecutionId, execution: Option<&'a Arc<Execution>>) -> Self {
        Self {
            id,
            before: execution,
            after: execution,
            events: Vec::new(),
            payload: None,
            results: Vec::new(),
            archived: Vec::new(),
            rows: Vec::new(),
            frames: Vec::new(),
        }
    }

    fn take(&mut self, changed: &'a Changed) {
        self.after = changed.after.as_ref();
        self.events.extend(&changed.events);
        let Some(after) = self.after else {
            // All of it goes with the record.
            let events = std::mem::take(&mut self.events);
            *self = Self { after: None, events, ..Self::unchanged(self.id, self.before) };
            return;
        };
        self.payload = changed.payload.as_ref().or(self.payload);
        if let (Some(result), Some(attempt)) = (&changed.result, &after.attempt) {
            self.results.push((attempt.index, result));
        }
        self.archived.extend(&changed.archived);
        self.rows.extend(&changed.rows);
        self.frames.extend(&changed.frames);
    }
}

impl<'a> NetDocument<'a> {
    fn of(changed: &'a ChangedDocument) -> Self {
        let mut net = Self::unchanged(&changed.id, changed.before.as_ref());
        net.take(changed);
        net
    }

    pub(crate) fn unchanged(id: &'a DocumentId, document: Option<&'a Arc<Document>>) -> Self {
        let (events, rows) = (Vec::new(), Vec::new());
        Self { id, before: document, after: document, events, rows }
    }

    fn take(&mut self, changed: &'a ChangedDocument) {
        self.after = changed.after.as_ref();
        self.events.extend(&changed.events);
        if self.after.is_none() {
            self.rows.clear();
        }
        self.rows.extend(&changed.rows);
    }
}
