//! What a step means for flows, and what the rules of flows share.

use std::sync::Arc;

use super::super::document::DocumentDraft;
use super::super::draft::Halt;
use super::super::step::{Changed, Step};
use super::super::{Facts, Needs};
use super::scene::Scene;
use crate::error::{Code, Refusal};
use crate::id::{DocumentId, ExecutionId, FlowId};
use crate::state::{CancelSource, Document, Execution, Flow, LeaseEndReply, PublicState};
use crate::time::TimestampMs;

/// Carries on what a step means for flows: members that it has ended, and members of a cancelled
/// flow whose lease it has ended without an outcome.
pub(in super::super) fn settle<R>(
    facts: &impl Facts,
    step: Step<R>,
    now: TimestampMs,
) -> Result<Step<R>, Needs> {
    if step.changes.settled || !step.changes.executions.iter().any(concerns_flow) {
        return Ok(step);
    }
    let Step { reply, mut changes } = step;
    let mut scene = Scene::new(facts, now);
    let concerned = changes.executions.iter().filter(|changed| concerns_flow(changed));
    let before: Vec<_> = concerned.filter_map(|changed| changed.before.clone()).collect();
    for changed in std::mem::take(&mut changes.executions) {
        scene.take(changed);
    }
    match before.iter().try_for_each(|before| scene.settle_one(before)) {
        Ok(()) => {}
        Err(Halt::Needs(needs)) => return Err(needs),
        // What is broken is told, and changes nothing.
        Err(Halt::Refused(refused)) => return Ok(Step::refused(refused.0)),
    }
    let settled = scene.finish();
    changes.executions = settled.executions;
    changes.documents = settled.documents;
    changes.settled = true;
    Ok(Step { reply, changes })
}

/// Whether a change of an execution means something to its flow.
fn concerns_flow(changed: &Changed) -> bool {
    match (&changed.before, &changed.after) {
        (Some(before), Some(after)) => follows(before, after),
        _ => false,
    }
}

fn follows(before: &Execution, after: &Execution) -> bool {
    after.member.is_some()
        && !before.is_terminal()
        && (after.is_terminal() || before.phase.lease().is_some() && after.phase.lease().is_none())
}

impl<F: Facts> Scene<'_, F> {
    /// Carries on what a change of one execution means for its flow.
    pub(in super::super) fn settle_one(&mut self, before: &Execution) -> Result<(), Halt> {
        let Some(draft) = self.draft(before.id)? else { return Ok(()) };
        if !follows(before, &draft.execution) {
            return Ok(());
        }
        if draft.execution.is_terminal() {
            self.ended.push_back(before.id);
            return self.follow_up();
        }
        let flow = self.flow_of(before.id)?.flow();
        if let Some(cancel) = flow.cancel.clone().filter(|_| flow.stops_claims()) {
            self.cancel_member(before.id, &cancel.reason, CancelSource::FlowCascade)?;
        }
        self.follow_up()
    }
}

/// Why a member that waits is to be cancelled with its flow, if it is.
pub(in super::super) fn stopped(
    facts: &impl Facts,
    execution: &Execution,
) -> Result<Option<String>, Needs> {
    let waits = !execution.is_terminal() && execution.phase.lease().is_none();
    if waits { stops(facts, execution) } else { Ok(None) }
}

/// Why its flow was cancelled, should that end every member that does not run.
pub(in super::super) fn stops(
    facts: &impl Facts,
    execution: &Execution,
) -> Result<Option<String>, Needs> {
    let Some(member) = &execution.member else { return Ok(None) };
    let id = DocumentId::flow_in(execution.id.partition(), member.flow_id);
    let document = facts.document(&id)?;
    let flow = document.as_ref().and_then(|document| document.flow());
    let flow = flow.filter(|flow| flow.stops_claims());
    Ok(flow.and_then(|flow| flow.cancel.as_ref()).map(|cancel| cancel.reason.clone()))
}

/// What the end of a lease answers: a member that its cancelled flow ends in the same step is told
/// so, since nothing will be tried again and nothing waited for.
pub(in super::super) fn reply_of(
    facts: &impl Facts,
    execution: &Execution,
    reply: LeaseEndReply,
) -> Result<LeaseEndReply, Needs> {
    let is_cancelled = stopped(facts, execution)?.is_some();
    Ok(if is_cancelled { reply.of_cancelled() } else { reply })
}

impl LeaseEndReply {
    fn of_cancelled(self) -> Self {
        let public_state = PublicState::Cancelled;
        match self {
            Self::RetryScheduled { .. } => Self::TerminalFailed,
            Self::Delayed { delay_until, .. } => Self::Delayed { delay_until, public_state },
            Self::WaitingChildren { unresolved, .. } => {
                Self::WaitingChildren { unresolved, public_state }
            }
            other => other,
        }
    }
}

/// The flow, or `flow_not_found`.
pub(super) fn existing(facts: &impl Facts, id: FlowId) -> Result<Arc<Document>, Halt> {
    let document = facts.document(&DocumentId::flow(id, &facts.settings().partitions))?;
    let standing = document.filter(|document| document.flow().is_some_and(|flow| !flow.removing));
    standing.ok_or_else(|| not_found(id).into())
}

/// A flow that may get members and edges.
pub(super) fn open(document: Arc<Document>) -> Result<Arc<Document>, Halt> {
    match document.flow().filter(|flow| flow.is_cancelled()) {
        Some(flow) => Err(already_terminal(flow).into()),
        None => Ok(document),
    }
}

pub(super) fn not_found(id: FlowId) -> Refusal {
    Refusal::at(Code::FlowNotFound, "flow_id", format!("no flow {id}"))
}

pub(super) fn already_terminal(flow: &Flow) -> Refusal {
    let how = if flow.is_cancelled() { "was cancelled" } else { "has ended" };
    Refusal::new(Code::FlowAlreadyTerminal, format!("the flow {how}"))
}

pub(super) fn not_terminal() -> Refusal {
    Refusal::new(Code::FlowNotTerminal, "some of the flow's members have not ended")
}

/// It waits for members, which only a cancel ends.
pub(super) fn without_members() -> Refusal {
    Refusal::new(Code::FlowNotTerminal, "the flow is open and has no members; cancel it first")
}

/// All members have ended, and what follows from that is carried out at this moment.
pub(super) fn still_at_work() -> Refusal {
    let detail = "all members have ended; what follows from that is under way: try again";
    Refusal::new(Code::FlowNotTerminal, detail)
}

pub(super) fn not_in_flow(id: ExecutionId) -> Refusal {
    Refusal::new(Code::ExecutionNotInFlow, format!("{id} is not a member of the flow"))
}

impl DocumentDraft<Flow> {
    pub(super) fn flow(&self) -> &Flow {
        &self.body
    }

    pub(super) fn flow_mut(&mut self) -> &mut Flow {
        &mut self.body
    }
}
