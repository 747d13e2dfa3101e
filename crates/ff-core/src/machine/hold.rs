//! The rules of hold and release.

use super::Facts;
use super::draft::{Draft, Halt, existing};
use super::step::Step;
use crate::error::{Code, Refusal};
use crate::event::{EventData, EventKind};
use crate::operation::{Hold, Release, Settled};
use crate::state::{Execution, Phase};
use crate::time::TimestampMs;

pub(super) fn hold(facts: &impl Facts, op: &Hold, now: TimestampMs) -> Result<Step<Settled>, Halt> {
    let execution = existing(facts, op.execution_id)?;
    let mut draft = Draft::of(execution, now);
    let Phase::Runnable(runnable) = &mut draft.execution.phase else {
        return Err(not_runnable(&draft.execution).into());
    };
    if runnable.causes.hold.is_some() {
        return Ok(Step::unchanged(Settled::AlreadySatisfied));
    }
    runnable.hold(op.detail.clone(), now);
    let data = EventData::from([
        ("reason".to_owned(), "paused_by_operator".into()),
        ("detail".to_owned(), op.detail.as_str().into()),
    ]);
    draft.event_with(EventKind::Blocked, data);
    Ok(Step::done(Settled::Done, draft.finish().into()))
}

pub(super) fn release(
    facts: &impl Facts,
    op: &Release,
    now: TimestampMs,
) -> Result<Step<Settled>, Halt> {
    let execution = existing(facts, op.execution_id)?;
    let mut draft = Draft::of(execution, now);
    let Phase::Runnable(runnable) = &mut draft.execution.phase else {
        return Err(not_runnable(&draft.execution).into());
    };
    if runnable.causes.hold.take().is_none() {
        return Ok(Step::unchanged(Settled::AlreadySatisfied));
    }
    // The delay went on underneath: what is over by now is gone.
    runnable.causes.delay = runnable.causes.delay.filter(|delay| delay.until > now);
    runnable.since = now;
    draft.event(EventKind::Unblocked);
    Ok(Step::done(Settled::Done, draft.finish().into()))
}

fn not_runnable(execution: &Execution) -> Refusal {
    Refusal::new(
        Code::ExecutionNotEligible,
        format!(
            "only a runnable execution can be held: it is {}",
            execution.public_state().as_str()
        ),
    )
}
