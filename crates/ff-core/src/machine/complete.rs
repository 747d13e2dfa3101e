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
    let next = op.next.as_ref().and_then(|next| next.as_claim(&draft.execution));
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

impl ClaimNext {
    /// The claim of the worker that holds `execution`, in the same namespace.
    pub fn as_claim(&self, execution: &Execution) -> Option<Claim> {
        let lease = execution.phase.lease()?;
        Some(Claim {
            namespace: execution.about.namespace.clone(),
            worker_id: lease.worker_id.clone(),
            worker_instance_id: lease.worker_instance_id.clone(),
            lanes: self.lanes.clone(),
            order: self.order,
            capabilities: self.capabilities.clone(),
            max: self.max,
            lease_ttl_ms: self.lease_ttl_ms,
            seed: self.seed,
        })
    }
}
