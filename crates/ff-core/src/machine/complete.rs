//! The rule of complete.

use super::Facts;
use super::claim::claim_free;
use super::draft::{Draft, Halt};
use super::fence::{Passage, pass};
use super::flow;
use super::layered::Layered;
use super::step::Step;
use crate::content::Content;
use crate::error::Code;
use crate::operation::{Claim, ClaimNext, Complete, Completed};
use crate::state::{Execution, LeaseEnd, LeaseEndReply};
use crate::time::TimestampMs;

/// Completes, and claims over what that leaves: a member that it has released may be next.
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
    draft.keep_result(op.result.clone());
    let completed = Completed { tasks: Vec::new(), replayed: false };
    let step = flow::settle(facts, Step::done(completed, draft.finish().into()), now)?;
    let Some(next) = next.filter(|_| step.reply.is_ok()) else { return Ok(step) };
    let mut changes = step.changes;
    let claimed = if changes.documents.is_empty() {
        claim_free(facts, &next, now)?
    } else {
        claim_free(&Layered { facts, changes: &changes }, &next, now)?
    };
    changes.then(claimed.changes);
    changes.settled = true;
    let tasks = match claimed.reply {
        // The end of the task stands, whoever may go on.
        Err(refusal) if refusal.code == Code::WorkerNotRegistered => Vec::new(),
        reply => reply?,
    };
    Ok(Step::done(Completed { tasks, replayed: false }, changes))
}

impl Draft {
    /// Keeps what the current attempt brought.
    fn keep_result(&mut self, result: Option<Content>) {
        if let Some(attempt) = &mut self.execution.attempt {
            let bytes = result.as_ref().map(|result| result.bytes.len());
            attempt.result_bytes = bytes.map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
        }
        self.result = result;
    }
}

impl ClaimNext {
    /// The claim of the worker that holds `execution`, in the same namespace.
    pub fn as_claim(&self, execution: &Execution) -> Option<Claim> {
        let lease = execution.phase.lease()?;
        Some(Claim {
            sets_aside: false,
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
