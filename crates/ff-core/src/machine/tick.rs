//! What time does: the tick, and its parts for one execution.

use std::sync::Arc;

use super::Facts;
use super::draft::{Draft, Halt};
use super::facts::Settings;
use super::step::{Changed, Changes, Step};
use crate::event::EventKind;
use crate::id::ExecutionId;
use crate::operation::{
    ExpireExecution, Fired, MarkLeaseExpired, NotDue, PromoteDelayed, Tick, Ticked,
};
use crate::state::{DueKind, Execution, LostBy, Phase};
use crate::time::TimestampMs;

pub(super) fn tick(facts: &impl Facts, op: &Tick, now: TimestampMs) -> Result<Step<Ticked>, Halt> {
    let due = facts.due(op.partition, now, op.most as usize)?;
    facts.want_executions(&due.ids)?;
    let mut ticked = Ticked { fired: Vec::new(), more: !due.complete };
    let mut changes = Changes::default();
    for id in due.ids {
        let Some(execution) = facts.execution(id)? else { continue };
        let Some((kind, changed)) = fire(execution, facts.settings(), now) else { continue };
        ticked.count(kind);
        // One transition a step: what is due after this one is found by the next tick.
        let still_due = changed.after.as_ref().and_then(|after| after.due());
        ticked.more |= still_due.is_some_and(|due| due.at <= now);
        changes.executions.push(changed);
    }
    Ok(Step::done(ticked, changes))
}

/// Carries out the earliest thing that is due.
fn fire(
    execution: Arc<Execution>,
    settings: &Settings,
    now: TimestampMs,
) -> Option<(DueKind, Changed)> {
    let due = execution.due().filter(|due| due.at <= now)?;
    let mut draft = Draft::of(execution, now);
    let changed = match due.kind {
        DueKind::ExecutionDeadline => {
            draft.expire(settings);
            draft.finish()
        }
        DueKind::AttemptTimeout => {
            draft.time_out_attempt(settings);
            draft.finish()
        }
        DueKind::LeaseExpiry => {
            draft.lose_lease(LostBy::Time, None, settings);
            draft.finish()
        }
        DueKind::SuspensionTimeout => {
            draft.time_out_suspension(settings);
            draft.finish()
        }
        // A draft begins with it.
        DueKind::PendingWaitpointExpiry => draft.finish(),
        DueKind::DelayedPromoter => {
            draft.promote();
            draft.finish()
        }
        DueKind::GrantExpiry => {
            draft.lapse_grant();
            draft.finish()
        }
        DueKind::RetentionTrimmer => draft.delete(),
    };
    Some((due.kind, changed))
}

impl Draft {
    /// The delay is over.
    fn promote(&mut self) {
        if let Phase::Runnable(runnable) = &mut self.execution.phase {
            runnable.causes.delay = None;
            runnable.since = self.now;
        }
        self.event(EventKind::Eligible);
    }
}

pub(super) fn expire(
    facts: &impl Facts,
    op: &ExpireExecution,
    now: TimestampMs,
) -> Result<Step<Fired>, Halt> {
    fire_one(facts, op.execution_id, now, Draft::expire_if_due)
}

pub(super) fn promote(
    facts: &impl Facts,
    op: &PromoteDelayed,
    now: TimestampMs,
) -> Result<Step<Fired>, Halt> {
    fire_one(facts, op.execution_id, now, |draft, _| {
        let due = match &draft.execution.phase {
            Phase::Runnable(runnable) => {
                let causes = &runnable.causes;
                causes.hold.is_none() && causes.delay.is_some_and(|delay| delay.until <= now)
            }
            _ => false,
        };
        if due {
            draft.promote();
        }
        due
    })
}

pub(super) fn mark_lease_expired(
    facts: &impl Facts,
    op: &MarkLeaseExpired,
    now: TimestampMs,
) -> Result<Step<Fired>, Halt> {
    fire_one(facts, op.execution_id, now, Draft::lose_lease_if_over)
}

/// One kind of due work on one execution; says why there is none.
fn fire_one(
    facts: &impl Facts,
    id: ExecutionId,
    now: TimestampMs,
    fire: impl FnOnce(&mut Draft, &Settings) -> bool,
) -> Result<Step<Fired>, Halt> {
    let nothing = |why| Ok(Step::unchanged(Fired::AlreadySatisfied(why)));
    let Some(execution) = facts.execution(id)? else { return nothing(NotDue::ExecutionNotFound) };
    if execution.is_terminal() {
        return nothing(NotDue::AlreadyTerminal);
    }
    let mut draft = Draft::of(execution, now);
    if fire(&mut draft, facts.settings()) {
        Ok(Step::done(Fired::Done, draft.finish().into()))
    } else {
        nothing(NotDue::NotYetDue)
    }
}
