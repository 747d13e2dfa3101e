//! The rule of delay.

use super::Facts;
use super::draft::Halt;
use super::fence::{Passage, pass};
use super::flow;
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
        Passage::Repeated(reply) => return Ok(Step::unchanged(delayed(reply, true)?)),
        Passage::Open(draft) => draft,
    };
    let delay_until = match op.until {
        DelayUntil::At(at) => at,
        DelayUntil::For(ms) => now.after(ms),
    };
    let public_state = draft.put_aside(delay_until);
    let reply = LeaseEndReply::Delayed { delay_until, public_state };
    let reply = flow::reply_of(facts, &draft.execution, reply)?;
    draft.remember(op.authority.fence().copied(), reply);
    Ok(Step::done(delayed(reply, false)?, draft.finish().into()))
}

fn delayed(reply: LeaseEndReply, replayed: bool) -> Result<Delayed, Halt> {
    match reply {
        LeaseEndReply::Delayed { delay_until, public_state } => {
            Ok(Delayed { delay_until, public_state, replayed })
        }
        other => Err(other.misremembered().into()),
    }
}
