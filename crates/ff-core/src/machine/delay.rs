//! The rule of delay.

use super::Facts;
use super::draft::Halt;
use super::fence::{Passage, pass};
use super::step::Step;
use crate::operation::{Delay, DelayUntil, Delayed};
use crate::state::{LeaseEnd, LeaseEndReply};
use crate::time::TimestampMs;

pub(super) fn delay(
    facts: &impl Facts,
    op: &Delay,
    now: TimestampMs,
) -> Result<Step<Delayed>, Halt> {
    let mut draft = match pass(facts, op.execution_id, op.authority, LeaseEnd::Delay, now)? {
        Passage::Repeated(LeaseEndReply::Delayed { delay_until, public_state }) => {
            return Ok(Step::unchanged(Delayed { delay_until, public_state, replayed: true }));
        }
        Passage::Repeated(other) => return Err(other.misremembered().into()),
        Passage::Open(draft) => draft,
    };
    let delay_until = match op.until {
        DelayUntil::At(at) => at,
        DelayUntil::For(ms) => now.after(ms),
    };
    let public_state = draft.put_aside(delay_until);
    draft.remember(
        op.authority.fence().copied(),
        LeaseEndReply::Delayed { delay_until, public_state },
    );
    Ok(Step::done(Delayed { delay_until, public_state, replayed: false }, draft.finish().into()))
}
