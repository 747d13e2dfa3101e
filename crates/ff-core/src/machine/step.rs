//! What a step answers and what it changes: all of it data, on one page.

use std::sync::Arc;

use bytes::Bytes;

use super::rows::RowChange;
use super::{DedupKey, DedupRecord};
use crate::content::Content;
use crate::error::Refusal;
use crate::event::Event;
use crate::id::ExecutionId;
use crate::operation::{Reply, Submitted};
use crate::state::{Attempt, Execution, Frame, FrameMode};
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
    /// Remember a submit under its key.
    pub dedup: Option<(DedupKey, DedupRecord)>,
    pub keyring: Option<Arc<Keyring>>,
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
    /// Gives the events their numbers, in order, and notes each in its execution.
    pub fn number(&mut self, mut next: impl FnMut(u16) -> u64) {
        for changed in &mut self.executions {
            let mut last = None;
            for event in &mut changed.events {
                event.number = next(event.subject.partition());
                event.previous = last.replace(event.number).unwrap_or(event.previous);
            }
            if let (Some(number), Some(after)) = (last, &mut changed.after) {
                Arc::make_mut(after).last_event = number;
            }
        }
    }
}

impl Step<Reply> {
    /// As [`Changes::number`], and shows the number in the reply of a submit.
    pub fn number(&mut self, next: impl FnMut(u16) -> u64) {
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
