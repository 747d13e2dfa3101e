//! The rule of complete.

use super::Facts;
use super::claim;
use super::draft::Halt;
use super::fence::{Passage, pass};
use super::step::{Changes, Step};
use crate::operation::{Claim, ClaimNext, Complete, Completed};
use crate::state::{Execution, LeaseEnd, LeaseEndReply};
use crate::time::TimestampMs;

pub(super) fn complete(
    facts: &impl Facts,
    op: &Complete,
    now: TimestampMs,
) -> Result<Step<Completed>, Halt> {
    let passage = pass(facts, op.execution_id, op.authority, LeaseEnd::Complete, now)?;
    let Passage::Open(mut draft) = passage else {
        return Ok(Step::unchanged(Completed { tasks: Vec::new(), replayed: true }));
    };
    let next = op.next.as_ref().and_then(|next| as_claim(next, &draft.execution));
    draft.succeed(facts.settings());
    draft.remember(op.authority.fence().copied(), LeaseEndReply::Completed);
    draft.result.clone_from(&op.result);
    let mut changes = Changes::from(draft.finish());
    let mut tasks = Vec::new();
    if let Some(next) = next {
        let step = claim(facts, &next, now)?;
        changes.executions.extend(step.changes.executions);
        tasks = step.reply?;
    }
    Ok(Step::done(Completed { tasks, replayed: false }, changes))
}

/// The claim of the same worker, in the same namespace.
fn as_claim(next: &ClaimNext, execution: &Execution) -> Option<Claim> {
    let lease = execution.phase.lease()?;
    Some(Claim {
        namespace: execution.about.namespace.clone(),
        worker_id: lease.worker_id.clone(),
        worker_instance_id: lease.worker_instance_id.clone(),
        lanes: next.lanes.clone(),
        order: next.order,
        capabilities: next.capabilities.clone(),
        max: next.max,
        lease_ttl_ms: next.lease_ttl_ms,
        seed: next.seed,
    })
}
