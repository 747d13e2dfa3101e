//! The rule of replay.

use super::Facts;
use super::draft::{Draft, Halt, existing};
use super::flow;
use super::step::Step;
use crate::error::{Code, Refusal};
use crate::event::{EventData, EventKind};
use crate::operation::{Replay, Replayed};
use crate::state::{About, Counts, Execution, Next, Phase};
use crate::time::TimestampMs;

pub(super) fn replay(
    facts: &impl Facts,
    op: &Replay,
    now: TimestampMs,
) -> Result<Step<Replayed>, Halt> {
    let execution = existing(facts, op.execution_id)?;
    check(&execution)?;
    if execution.member.is_some() {
        return flow::replay_member(facts, op, now);
    }
    let mut draft = Draft::of(execution, now);
    again(&mut draft);
    let execution = &draft.execution;
    let (replay_count, public_state) = (execution.counts.replays, execution.public_state());
    let reply = Replayed { replay_count, public_state, unresolved: 0 };
    Ok(Step::done(reply, draft.finish().into()))
}

/// Whether it may be replayed.
pub(super) fn check(execution: &Execution) -> Result<(), Refusal> {
    if !execution.is_terminal() {
        return Err(not_terminal(execution));
    }
    let most = execution.policy().max_replay_count;
    if execution.counts.replays >= most {
        let detail =
            format!("replayed {} times, the policy allows {most}", execution.counts.replays);
        return Err(Refusal::new(Code::MaxReplaysExhausted, detail));
    }
    Ok(())
}

/// Gives it another generation.
pub(super) fn again(draft: &mut Draft) {
    let now = draft.now;
    let execution = &mut draft.execution;
    execution.counts = Counts {
        replays: execution.counts.replays + 1,
        retries: 0,
        reclaims: 0,
        attempts: execution.counts.attempts,
    };
    execution.deadline_at = deadline(&execution.about, now);
    execution.failure = None;
    execution.progress = None;
    execution.phase = Phase::eligible(Next::Replay, now);
    let count = execution.counts.replays;
    let data = EventData::from([("replay_count".to_owned(), count.into())]);
    draft.event_with(EventKind::Replayed, data);
}

/// A relative deadline counts from now; an absolute one holds only while it is in the future.
pub(super) fn deadline(about: &About, now: TimestampMs) -> Option<TimestampMs> {
    let absolute = about.execution_deadline_at.filter(|at| *at > now);
    Execution::deadline_from(&About { execution_deadline_at: absolute, ..about.clone() }, now)
}

pub(super) fn not_terminal(execution: &Execution) -> Refusal {
    Refusal::new(
        Code::ExecutionNotTerminal,
        format!("the execution has not ended: it is {}", execution.public_state().as_str()),
    )
}
