//! What a step answers and what it changes: all of it data, on one page.

use std::sync::Arc;

use bytes::Bytes;

use super::rows::RowChange;
use super::{DedupKey, DedupRecord};
use crate::content::Content;
use crate::error::Refusal;
use crate::event::Event;
use crate::id::{DocumentId, ExecutionId, Home};
use crate::operation::{Reply, Submitted};
use crate::state::{Attempt, Document, Execution, Frame, FrameMode};
use crate::time::TimestampMs;
use crate::token::Keyring;

/// Reply and changes of one command. They are independent: a refusal may carry changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Step<R = Reply> {
    pub reply: Result<R, Refusal>,
    pub changes: Changes,
}

/// What a store must write, in one atomic step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Changes {
    pub executions: Vec<Changed>,
    pub documents: Vec<ChangedDocument>,
    /// Remember a submit under its key.
    pub dedup: Option<(DedupKey, DedupRecord)>,
    pub keyring: Option<Arc<Keyring>>,
    /// Upstreams of decided groups that were to be cancelled and were not. Counted, not written.
    pub passed: Vec<PassedSibling>,
    /// What it means for flows is among them.
    pub(super) settled: bool,
    /// What it means for other homes is in the reply.
    pub told: bool,
}

/// An upstream that its group, once decided, no longer needed, and that could not be cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassedSibling {
    /// What the group had decided: satisfied, or impossible.
    pub satisfied: bool,
    /// Whether it was there, and had ended by itself meanwhile.
    pub had_ended: bool,
}

/// One execution before and after, and what is kept beside it. Queue place and timer follow from
/// the two (see [`Execution::queue_place`] and [`Execution::due`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    pub id: ExecutionId,
    /// None: it did not exist.
    pub before: Option<Arc<Execution>>,
    /// None: it is removed, with payload, results and attempts.
    pub after: Option<Arc<Execution>>,
    /// In order; the execution's own comes last.
    pub events: Vec<Event>,
    pub payload: Option<Bytes>,
    /// Result of the current attempt.
    pub result: Option<Content>,
    /// The attempt that the current one replaced.
    pub archived: Option<Attempt>,
    /// Rows beside the record.
    pub rows: Vec<RowChange>,
    /// Frames of the current attempt.
    pub frames: Option<FrameChange>,
}

/// One document before and after, and the rows beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedDocument {
    pub id: DocumentId,
    /// None: it did not exist.
    pub before: Option<Arc<Document>>,
    /// None: it is removed, with its rows.
    pub after: Option<Arc<Document>>,
    pub events: Vec<Event>,
    pub rows: Vec<RowChange>,
}

/// What becomes of the frames of one attempt. Old ones go before new ones come.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrameChange {
    pub attempt_index: u32,
    /// The attempt had none before.
    pub first: bool,
    pub shelves: Vec<ShelfChange>,
    pub frames: Vec<Frame>,
}

/// What becomes of the frames of one mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShelfChange {
    pub mode: FrameMode,
    /// The oldest ones that go.
    pub drops: u32,
    /// How many there are afterwards.
    pub kept: u32,
    /// When all of them are gone; absent: as before.
    pub until: Option<TimestampMs>,
}

impl<R> Step<R> {
    pub(super) fn done(reply: R, changes: Changes) -> Self {
        Self { reply: Ok(reply), changes }
    }

    pub(super) fn map<S>(self, reply: impl FnOnce(R) -> S) -> Step<S> {
        Step { reply: self.reply.map(reply), changes: self.changes }
    }

    pub(super) fn unchanged(reply: R) -> Self {
        Self::done(reply, Changes::default())
    }

    pub(super) fn refused(refusal: Refusal) -> Self {
        Self { reply: Err(refusal), changes: Changes::default() }
    }
}

impl Changes {
    /// Gives the events their numbers, in order, and notes the last in what it is about.
    pub fn number(&mut self, mut next: impl FnMut(&Home) -> u64) {
        for changed in &mut self.executions {
            let last = number(&mut changed.events, &mut next);
            if let (Some(number), Some(after)) = (last, &mut changed.after) {
                Arc::make_mut(after).last_event = number;
            }
        }
        for changed in &mut self.documents {
            let last = number(&mut changed.events, &mut next);
            if let (Some(number), Some(after)) = (last, &mut changed.after) {
                Arc::make_mut(after).last_event = number;
            }
        }
    }

    /// Takes on what a later part of the same step changes, which saw these changes.
    pub(super) fn then(&mut self, later: Self) {
        for changed in later.executions {
            match self.executions.iter_mut().find(|earlier| earlier.id == changed.id) {
                Some(earlier) => earlier.then(changed),
                None => self.executions.push(changed),
            }
        }
        for changed in later.documents {
            match self.documents.iter_mut().find(|earlier| earlier.id == changed.id) {
                Some(earlier) => {
                    earlier.after = changed.after;
                    earlier.events.extend(changed.events);
                    earlier.rows.extend(changed.rows);
                }
                None => self.documents.push(changed),
            }
        }
        self.passed.extend(later.passed);
    }

    /// Whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        self.executions.is_empty() && self.documents.is_empty() && self.keyring.is_none()
    }
}

impl Changed {
    fn then(&mut self, later: Self) {
        self.after = later.after;
        self.events.extend(later.events);
        self.payload = later.payload.or(self.payload.take());
        self.result = later.result.or(self.result.take());
        self.archived = later.archived.or(self.archived.take());
        self.rows.extend(later.rows);
        self.frames = later.frames.or(self.frames.take());
    }
}

/// Numbers the events of one subject: the last number.
fn number(events: &mut [Event], next: &mut impl FnMut(&Home) -> u64) -> Option<u64> {
    let home = events.first()?.subject.home();
    let mut last = None;
    for event in events {
        event.number = next(&home);
        event.previous = last.replace(event.number).unwrap_or(event.previous);
    }
    last
}

impl Step<Reply> {
    /// As [`Changes::number`], and shows the number in the reply of a submit.
    pub fn number(&mut self, next: impl FnMut(&Home) -> u64) {
        self.changes.number(next);
        if let Ok(Reply::Submit(Submitted::Created { event_id, .. })) = &mut self.reply
            && let Some(event) = self.changes.executions.first().and_then(|c| c.events.last())
        {
            *event_id = event.id();
        }
    }
}

impl From<Changed> for Changes {
    fn from(changed: Changed) -> Self {
        Self { executions: vec![changed], ..Self::default() }
    }
}

impl From<ChangedDocument> for Changes {
    fn from(changed: ChangedDocument) -> Self {
        Self { documents: vec![changed], ..Self::default() }
    }
}
