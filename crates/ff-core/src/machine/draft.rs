//! An execution in the making: the copy that a rule works on.

use std::sync::Arc;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::rows::{RowChange, RowKey, find_changed};
use super::step::{Changed, Changes, FrameChange, Step};
use super::{Facts, Needs};
use crate::content::Content;
use crate::error::{Code, Refusal};
use crate::event::{Event, EventData, EventKind};
use crate::id::ExecutionId;
use crate::limits;
use crate::state::{Attempt, Execution, Owed};
use crate::time::TimestampMs;

/// Why a rule stops early: it lacks facts, or it refuses, perhaps with changes of its own.
#[derive(Debug)]
pub(super) enum Halt {
    Needs(Needs),
    Refused(Box<(Refusal, Changes)>),
}

impl Halt {
    pub(super) fn refused_with(refusal: Refusal, changes: impl Into<Changes>) -> Self {
        Self::Refused(Box::new((refusal, changes.into())))
    }
}

impl From<Needs> for Halt {
    fn from(needs: Needs) -> Self {
        Self::Needs(needs)
    }
}

impl From<Refusal> for Halt {
    fn from(refusal: Refusal) -> Self {
        Self::refused_with(refusal, Changes::default())
    }
}

pub(super) struct Draft {
    pub(super) execution: Execution,
    pub(super) now: TimestampMs,
    pub(super) result: Option<Content>,
    pub(super) archived: Option<Attempt>,
    pub(super) frames: Option<FrameChange>,
    before: Option<Arc<Execution>>,
    payload: Option<Bytes>,
    events: Vec<Event>,
    rows: Vec<RowChange>,
}

impl Draft {
    /// A change of an existing execution. Waitpoints that time has closed are closed first, whether
    /// a tick has come by or not, so that no rule depends on when it does.
    pub(super) fn of(before: Arc<Execution>, now: TimestampMs) -> Self {
        let mut draft = Self::untouched(before, now);
        draft.close_unused();
        draft
    }

    /// A change that leaves to others what time has done: a claim, which some stores note in short.
    pub(super) fn untouched(before: Arc<Execution>, now: TimestampMs) -> Self {
        let execution = Execution::clone(&before);
        Self { before: Some(before), ..Self::blank(execution, now) }
    }

    /// A new execution.
    pub(super) fn new(execution: Execution, payload: Bytes, now: TimestampMs) -> Self {
        Self { payload: Some(payload), ..Self::blank(execution, now) }
    }

    /// Goes on with what a rule has finished.
    pub(super) fn reopen(mut changed: Changed, now: TimestampMs) -> Result<Self, Box<Changed>> {
        let Some(after) = changed.after.take() else { return Err(Box::new(changed)) };
        let mut execution = Arc::unwrap_or_clone(after);
        execution.revision = execution.revision.saturating_sub(1);
        Ok(Self {
            execution,
            now,
            result: changed.result,
            archived: changed.archived,
            frames: changed.frames,
            before: changed.before,
            payload: changed.payload,
            events: changed.events,
            rows: changed.rows,
        })
    }

    fn blank(execution: Execution, now: TimestampMs) -> Self {
        let (before, payload, result, archived, frames) = (None, None, None, None, None);
        let (events, rows) = (Vec::new(), Vec::new());
        Self { execution, now, result, archived, frames, before, payload, events, rows }
    }

    /// Notes an event of this step, once for each thing that changes. Call it after the change.
    pub(super) fn event(&mut self, kind: EventKind) {
        self.event_with(kind, EventData::new());
    }

    pub(super) fn event_with(&mut self, kind: EventKind, data: EventData) {
        let execution = &mut self.execution;
        execution.event_seq += 1;
        let lease = execution
            .phase
            .lease()
            .or_else(|| self.before.as_ref().and_then(|before| before.phase.lease()));
        self.events.push(Event {
            number: 0,
            previous: execution.last_event,
            subject: execution.id.into(),
            namespace: execution.about.namespace.clone(),
            lane: Some(execution.about.lane.clone()),
            seq: execution.event_seq,
            kind,
            time: self.now,
            attempt_index: execution.attempt.as_ref().map(|attempt| attempt.index),
            lease_epoch: (execution.lease_epoch > 0).then_some(execution.lease_epoch),
            worker_instance_id: lease.map(|lease| lease.worker_instance_id.clone()),
            outcome: execution.phase.terminal().map(|terminal| terminal.outcome),
            data,
        });
        if kind != EventKind::Progressed {
            execution.last_transition_at = self.now;
        }
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
        find_changed(facts, &self.execution.id.into(), &self.rows, key)
    }

    pub(super) fn finish(mut self) -> Changed {
        self.note_slots();
        self.execution.revision += 1;
        Changed {
            id: self.execution.id,
            before: self.before,
            after: Some(Arc::new(self.execution)),
            events: self.events,
            payload: self.payload,
            result: self.result,
            archived: self.archived,
            rows: self.rows,
            frames: self.frames,
        }
    }

    /// What is owed is told with this step, and again later.
    pub(super) fn remind(&mut self) {
        if let Some(owed) = &mut self.execution.owed {
            owed.due_at = self.now.after(limits::ERRAND_RETRY_MS);
        }
    }

    /// A lease that has ended, or a grant that nobody used, owes its slots. Done here once, so that no
    /// rule can forget it.
    fn note_slots(&mut self) {
        let held = self.before.as_ref().map(|before| before.slots()).unwrap_or_default();
        if held.is_empty() {
            return;
        }
        let kept = self.execution.slots();
        let due_at = self.now.after(limits::ERRAND_RETRY_MS);
        for slot in held.into_iter().filter(|slot| !kept.iter().any(|it| it.is_same_slot(slot))) {
            let fresh = || Box::new(Owed { slots: Vec::new(), due_at });
            let owed = self.execution.owed.get_or_insert_with(fresh);
            if !owed.slots.contains(&slot) {
                owed.slots.push(slot);
            }
        }
    }

    /// Whether there is nothing to write.
    pub(super) fn is_untouched(&self) -> bool {
        self.rows.is_empty() && self.before.as_deref() == Some(&self.execution)
    }

    /// Another payload takes the place of the one it was submitted with.
    pub(super) fn replace_payload(&mut self, payload: Content) {
        if self.execution.about.content_type != payload.content_type {
            let about = Arc::make_mut(&mut self.execution.about);
            about.content_type = payload.content_type;
        }
        self.payload = Some(payload.bytes);
    }

    /// Answers with what has been changed, if anything has.
    pub(super) fn answer<R>(self, reply: R) -> Step<R> {
        Step::done(reply, self.changes())
    }

    /// Refuses; what has been changed so far stays.
    pub(super) fn refuse(self, refusal: Refusal) -> Halt {
        Halt::refused_with(refusal, self.changes())
    }

    fn changes(self) -> Changes {
        if self.before.as_deref() == Some(&self.execution) {
            Changes::default()
        } else {
            self.finish().into()
        }
    }

    /// Finishes as the removal of the execution.
    pub(super) fn remove(self) -> Changed {
        Changed {
            id: self.execution.id,
            before: self.before,
            after: None,
            events: self.events,
            payload: None,
            result: None,
            archived: None,
            rows: Vec::new(),
            frames: None,
        }
    }
}

/// The execution, or `execution_not_found`.
pub(super) fn existing(facts: &impl Facts, id: ExecutionId) -> Result<Arc<Execution>, Halt> {
    match facts.execution(id)? {
        Some(execution) => Ok(execution),
        None => Err(not_found(id).into()),
    }
}

pub(super) fn not_found(id: ExecutionId) -> Refusal {
    Refusal::at(Code::ExecutionNotFound, "execution_id", format!("no execution {id}"))
}
