//! The fence: what decides whether a worker may still write.

use std::sync::Arc;

use super::Facts;
use super::draft::{Draft, Halt, existing};
use super::facts::Settings;
use crate::error::{Code, Current, Refusal};
use crate::id::{Authority, ExecutionId, LeaseFence};
use crate::state::{Execution, LeaseEnd, LeaseEndReply, LostBy, Phase};
use crate::time::TimestampMs;

/// How a fenced operation may go on.
pub(super) enum Passage {
    /// The lease is live; this is the execution to change.
    Open(Box<Draft>),
    /// The operation was carried out before; this was its reply.
    Repeated(LeaseEndReply),
}

impl LeaseEndReply {
    /// The memory of one operation holds the reply of another: that must not be.
    pub(super) fn misremembered(self) -> Refusal {
        Refusal::new(Code::InvariantViolation, format!("the last lease end remembers {self:?}"))
    }
}

/// Checks a lease-ending operation.
pub(super) fn pass(
    facts: &impl Facts,
    id: ExecutionId,
    authority: Authority,
    operation: LeaseEnd,
    now: TimestampMs,
) -> Result<Passage, Halt> {
    let execution = existing(facts, id)?;
    let Authority::Fence(fence) = authority else {
        return override_live(execution, facts.settings(), now);
    };
    if let Some(end) = &execution.last_end
        && end.fence == fence
        && end.reply.operation() == operation
    {
        return Ok(Passage::Repeated(end.reply));
    }
    match check(&execution, &fence, now) {
        Ok(()) => Ok(Passage::Open(Box::new(Draft::of(execution, now)))),
        Err(refusal) => Err(refuse_and_expire(refusal, execution, &fence, facts.settings(), now)),
    }
}

/// Checks a renewal: as above, without repetition.
pub(super) fn live(
    facts: &impl Facts,
    id: ExecutionId,
    fence: &LeaseFence,
    now: TimestampMs,
) -> Result<Draft, Halt> {
    let execution = existing(facts, id)?;
    match check(&execution, fence, now) {
        Ok(()) => Ok(Draft::of(execution, now)),
        Err(refusal) => Err(refuse_and_expire(refusal, execution, fence, facts.settings(), now)),
    }
}

/// Checks progress, which does not perform an expiry that it meets.
pub(super) fn live_or_leave(
    facts: &impl Facts,
    id: ExecutionId,
    fence: &LeaseFence,
    now: TimestampMs,
) -> Result<Draft, Halt> {
    let execution = existing(facts, id)?;
    check(&execution, fence, now)?;
    Ok(Draft::of(execution, now))
}

/// The checks in their order; the first that fails is the answer.
pub(super) fn check(
    execution: &Execution,
    fence: &LeaseFence,
    now: TimestampMs,
) -> Result<(), Refusal> {
    let refuse = |code, detail| Err(Refusal::new(code, detail).with_current(current(execution)));
    if execution.is_terminal() {
        return Err(not_active(execution));
    }
    if let Some(loss) = &execution.last_loss
        && loss.fence == *fence
    {
        return match loss.by {
            LostBy::Time => refuse(Code::LeaseExpired, "the lease ran out and was taken away"),
            LostBy::Revocation => refuse(Code::LeaseRevoked, "the lease was revoked"),
        };
    }
    let Phase::Active(lease) = &execution.phase else { return Err(not_active(execution)) };
    if execution.live_fence() != Some(*fence) {
        return refuse(Code::StaleLease, "another lease has taken the place of this one");
    }
    if lease.is_over(now) {
        return refuse(Code::LeaseExpired, "the lease has run out");
    }
    Ok(())
}

pub(super) fn not_active(execution: &Execution) -> Refusal {
    let detail = match execution.phase.terminal() {
        Some(terminal) => format!("the execution has ended: {}", terminal.outcome.as_str()),
        None => format!("the execution is {}", execution.public_state().as_str()),
    };
    Refusal::new(Code::ExecutionNotActive, detail).with_current(current(execution))
}

fn current(execution: &Execution) -> Current {
    Current {
        terminal_outcome: execution.phase.terminal().map(|terminal| terminal.outcome),
        lease_epoch: execution.lease_epoch,
        phase: execution.lifecycle_phase(),
        attempt_id: execution.attempt.as_ref().map(|attempt| attempt.id),
    }
}

/// A holder that comes too late finds out, and its call performs the expiry that is due.
fn refuse_and_expire(
    refusal: Refusal,
    execution: Arc<Execution>,
    fence: &LeaseFence,
    settings: &Settings,
    now: TimestampMs,
) -> Halt {
    if refusal.code == Code::LeaseExpired && execution.live_fence() == Some(*fence) {
        let changes = expired(execution, settings, now);
        return Halt::refused_with(refusal, changes);
    }
    refusal.into()
}

fn override_live(
    execution: Arc<Execution>,
    settings: &Settings,
    now: TimestampMs,
) -> Result<Passage, Halt> {
    match &execution.phase {
        Phase::Active(lease) if !lease.is_over(now) => {
            Ok(Passage::Open(Box::new(Draft::of(execution, now))))
        }
        Phase::Active(_) => {
            let changes = expired(Arc::clone(&execution), settings, now);
            let after = changes.after.as_ref().unwrap_or(&execution);
            Err(Halt::refused_with(not_active(after), changes.clone()))
        }
        _ => Err(not_active(&execution).into()),
    }
}

fn expired(execution: Arc<Execution>, settings: &Settings, now: TimestampMs) -> super::Changed {
    let mut draft = Draft::of(execution, now);
    draft.lose_lease(LostBy::Time, None, settings);
    draft.finish()
}
