//! The rule of cancel.

use super::Facts;
use super::draft::{Draft, Halt, existing};
use super::fence::{Passage, not_active, pass};
use super::step::Step;
use crate::id::Authority;
use crate::operation::{Cancel, Cancelled};
use crate::state::{Cancellation, LeaseEnd, LeaseEndReply, Phase};
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
    let from = execution.public_state();
    let mut draft = match op.fence {
        None => Box::new(Draft::of(execution, now)),
        Some(fence) => {
            let authority = Authority::Fence(fence);
            match pass(facts, op.execution_id, authority, LeaseEnd::Cancel, now)? {
                Passage::Open(draft) => draft,
                Passage::Repeated(LeaseEndReply::Cancelled { from }) => {
                    return Ok(Step::unchanged(Cancelled { from, replayed: true }));
                }
                Passage::Repeated(other) => return Err(other.misremembered().into()),
            }
        }
    };
    let (reason, source) = (op.reason.clone(), op.source.clone());
    let cancellation = Cancellation { reason, source, from, by_group: false };
    draft.cancel(cancellation, facts.settings());
    draft.remember(op.fence, LeaseEndReply::Cancelled { from });
    Ok(Step::done(Cancelled { from, replayed: false }, draft.finish().into()))
}
