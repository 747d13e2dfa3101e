//! The rule of cancel.

use std::sync::Arc;

use super::Facts;
use super::draft::{Draft, Halt, existing};
use super::fence::{live, not_active};
use super::step::Step;
use crate::operation::{Cancel, Cancelled};
use crate::state::{Cancellation, LeaseEndReply, Phase};
use crate::time::TimestampMs;

pub(super) fn cancel(
    facts: &impl Facts,
    op: &Cancel,
    now: TimestampMs,
) -> Result<Step<Cancelled>, Halt> {
    let execution = existing(facts, op.execution_id)?;
    if let Phase::Terminal(terminal) = &execution.phase {
        // Who asks for what is already so gets the first answer, whatever its fence.
        return match &terminal.cancellation {
            Some(first) => Ok(Step::unchanged(Cancelled { from: first.from, replayed: true })),
            None => Err(not_active(&execution).into()),
        };
    }
    let mut draft = match &op.fence {
        Some(fence) => live(facts, op.execution_id, fence, now)?,
        None => Draft::of(Arc::clone(&execution), now),
    };
    let from = execution.public_state();
    let cancellation = Cancellation { reason: op.reason.clone(), source: op.source.clone(), from };
    draft.cancel(cancellation, facts.settings());
    draft.remember(op.fence, LeaseEndReply::Cancelled { from });
    Ok(Step::done(Cancelled { from, replayed: false }, draft.finish().into()))
}
