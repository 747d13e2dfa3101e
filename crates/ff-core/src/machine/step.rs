//! What a step answers and what it changes: all of it data, on one page.

use std::sync::Arc;

use bytes::Bytes;

use super::{DedupKey, DedupRecord};
use crate::content::Content;
use crate::error::Refusal;
use crate::event::Event;
use crate::id::ExecutionId;
use crate::operation::{Reply, Submitted};
use crate::state::{Attempt, Execution};

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
    /// At most one a step.
    pub event: Option<Event>,
    pub payload: Option<Bytes>,
    /// Result of the current attempt.
    pub result: Option<Content>,
    /// The attempt that the current one replaced.
    pub archived: Option<Attempt>,
}

impl<R> Step<R> {
    pub(super) fn done(reply: R, changes: Changes) -> Self {
        Self { reply: Ok(reply), changes }
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
            if let Some(event) = &mut changed.event {
                event.number = next(event.subject.partition());
                if let Some(after) = &mut changed.after {
                    Arc::make_mut(after).last_event = event.number;
                }
            }
        }
    }
}

impl Step<Reply> {
    /// As [`Changes::number`], and shows the number in the reply of a submit.
    pub fn number(&mut self, next: impl FnMut(u16) -> u64) {
        self.changes.number(next);
        if let Ok(Reply::Submit(Submitted::Created { event_id, .. })) = &mut self.reply
            && let Some(event) = self.changes.executions.first().and_then(|c| c.event.as_ref())
        {
            *event_id = event.id();
        }
    }
}

impl From<Changed> for Changes {
    fn from(changed: Changed) -> Self {
        Self { executions: vec![changed], dedup: None }
    }
}
