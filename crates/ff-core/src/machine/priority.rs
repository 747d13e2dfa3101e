//! The rule of change of priority.

use super::Facts;
use super::draft::{Draft, Halt, existing};
use super::step::Step;
use super::submit::clamp_priority;
use crate::error::{Code, Refusal};
use crate::event::{EventData, EventKind};
use crate::operation::{ChangePriority, PriorityChanged};
use crate::time::TimestampMs;

pub(super) fn change(
    facts: &impl Facts,
    op: &ChangePriority,
    now: TimestampMs,
) -> Result<Step<PriorityChanged>, Halt> {
    let execution = existing(facts, op.execution_id)?;
    if execution.is_terminal() {
        return Err(Refusal::new(Code::ExecutionNotEligible, "the execution has ended").into());
    }
    let (old, new) = (execution.priority, clamp_priority(op.priority));
    if old == new {
        return Ok(Step::unchanged(PriorityChanged { old, new }));
    }
    let mut draft = Draft::of(execution, now);
    draft.execution.priority = new;
    let data = EventData::from([
        ("old".to_owned(), u32::from(old).into()),
        ("new".to_owned(), u32::from(new).into()),
    ]);
    draft.event_with(EventKind::PriorityChanged, data);
    Ok(Step::done(PriorityChanged { old, new }, draft.finish().into()))
}
