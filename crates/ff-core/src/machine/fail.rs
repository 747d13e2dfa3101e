//! The rule of fail.

use super::Facts;
use super::draft::Halt;
use super::fence::{Passage, pass};
use super::flow;
use super::step::Step;
use crate::operation::{Fail, Failed};
use crate::state::{Failure, FailureClass, LeaseEnd, LeaseEndReply};
use crate::time::TimestampMs;

pub(super) fn fail(facts: &impl Facts, op: &Fail, now: TimestampMs) -> Result<Step<Failed>, Halt> {
    let mut draft = match pass(facts, op.execution_id, op.authority, LeaseEnd::Fail, now)? {
        Passage::Repeated(reply) => return Ok(Step::unchanged(failed(reply, true))),
        Passage::Open(draft) => draft,
    };
    let failure = Failure {
        reason: op.reason.clone(),
        category: op.category.clone(),
        class: op.class.unwrap_or_else(|| FailureClass::of_category(&op.category)),
    };
    let reply = draft.fail(failure, op.retry_after_ms.unwrap_or(0), facts.settings());
    let reply = flow::reply_of(facts, &draft.execution, reply)?;
    draft.remember(op.authority.fence().copied(), reply);
    Ok(Step::done(failed(reply, false), draft.finish().into()))
}

fn failed(reply: LeaseEndReply, replayed: bool) -> Failed {
    match reply {
        LeaseEndReply::RetryScheduled { delay_until, retry_count } => {
            Failed::RetryScheduled { delay_until, retry_count, replayed }
        }
        _ => Failed::TerminalFailed { replayed },
    }
}
