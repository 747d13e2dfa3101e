//! The rules of cancelling: a whole flow, and the upstreams of a group that has decided.

use super::super::Facts;
use super::super::draft::Halt;
use super::super::step::{PassedSibling, Step};
use super::pages::{Beside, End, IN, InEdge, MEMBERS, MemberRef};
use super::resolve::{SIBLING_IMPOSSIBLE, SIBLING_SATISFIED};
use super::scene::{Scene, beside};
use super::work::WorkItem;
use super::{already_terminal, existing};
use crate::event::{EventData, EventKind};
use crate::id::{DocumentId, ExecutionId};
use crate::limits;
use crate::operation::{CancelFlow, FlowCancelled};
use crate::state::{CancelPolicy, CancelSource, Cancellation, FlowCancel, GroupState, Phase};
use crate::time::TimestampMs;

/// What a group has decided.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decided {
    pub(super) satisfied: bool,
    /// When it did. Of a group with more upstreams than one step cancels: when the step before was.
    pub(super) at: TimestampMs,
}

pub(in super::super) fn cancel(
    facts: &impl Facts,
    op: &CancelFlow,
    now: TimestampMs,
) -> Result<Step<FlowCancelled>, Halt> {
    let document = existing(facts, op.flow_id)?;
    let mut scene = Scene::new(facts, now);
    let id = document.id.clone();
    let draft = scene.flow(&id)?;
    let flow = draft.flow_mut();
    if let Some(cancel) = &flow.cancel {
        return Ok(Step::unchanged(FlowCancelled {
            policy: cancel.policy,
            reason: cancel.reason.clone(),
            scheduled: if flow.is_being_cancelled() { flow.live } else { 0 },
            replayed: true,
        }));
    }
    if flow.end.is_some() {
        return Err(already_terminal(flow).into());
    }
    let (policy, reason) = (op.policy, op.reason.clone());
    flow.cancel = Some(FlowCancel { policy, reason, at: now });
    let data = EventData::from([
        ("policy".to_owned(), op.policy.as_str().into()),
        ("reason".to_owned(), op.reason.as_str().into()),
    ]);
    draft.event(EventKind::FlowCancelled, data);
    let rest = match op.policy {
        CancelPolicy::FlowOnly => None,
        CancelPolicy::CancelAll | CancelPolicy::CancelPending => scene.cancel_members(&id, 0)?,
    };
    if let Some(from) = rest {
        scene.leave_flow_work(&id, WorkItem::CancelMembers { from })?;
    }
    // Those that this step has ended are not among those that are left.
    scene.follow_up()?;
    let scheduled = if rest.is_some() { scene.flow(&id)?.flow().live } else { 0 };
    let (policy, reason) = (op.policy, op.reason.clone());
    let reply = FlowCancelled { policy, reason, scheduled, replayed: false };
    Ok(Step::done(reply, scene.finish()))
}

impl<F: Facts> Scene<'_, F> {
    /// Cancels members from a number on; where to go on.
    pub(super) fn cancel_members(
        &mut self,
        id: &DocumentId,
        from: u32,
    ) -> Result<Option<u32>, Halt> {
        let flow = self.flow(id)?.flow();
        let (members, cancel) = (flow.members, flow.cancel.clone());
        let Some(cancel) = cancel else { return Ok(None) };
        let to = members.min(from.saturating_add(limits::FLOW_STEP));
        let ids = self.member_ids(id, from, to)?;
        self.want(&ids)?;
        for (number, member) in (from..).zip(ids) {
            if !self.is_of(id, member, number)? {
                continue;
            }
            let Some(draft) = self.draft(member)? else { continue };
            let spared = cancel.policy == CancelPolicy::CancelPending
                && matches!(draft.execution.phase, Phase::Active(_));
            if !draft.execution.is_terminal() && !spared {
                self.cancel_member(member, &cancel.reason, CancelSource::FlowCascade)?;
            }
        }
        Ok((to < members).then_some(to))
    }

    pub(super) fn cancel_member(
        &mut self,
        id: ExecutionId,
        reason: &str,
        source: CancelSource,
    ) -> Result<(), Halt> {
        let settings = self.facts.settings();
        let draft = self.member(id)?;
        let from = draft.execution.public_state();
        let (reason, by_group) = (reason.to_owned(), source == CancelSource::OperatorOverride);
        draft.cancel(Cancellation { reason, source, from, by_group }, settings);
        self.ended.push_back(id);
        Ok(())
    }

    /// Whether an execution that the flow lists under a number is that member of it: the id of one
    /// that was still to be made may have gone to another flow.
    pub(super) fn is_of(
        &mut self,
        flow: &DocumentId,
        id: ExecutionId,
        number: u32,
    ) -> Result<bool, Halt> {
        let flow_id = self.flow(flow)?.flow().id;
        Ok(self.stands(flow_id, id, End { uuid: id.uuid(), number })?)
    }

    /// Ids of the members `from..to`.
    pub(super) fn member_ids(
        &mut self,
        id: &DocumentId,
        from: u32,
        to: u32,
    ) -> Result<Vec<ExecutionId>, Halt> {
        let facts = self.facts;
        let refs: Vec<MemberRef> = self.flow(id)?.items(facts, &id.into(), &MEMBERS, (from, to))?;
        Ok(refs.into_iter().map(|member| beside(id, member.uuid)).collect())
    }

    /// Cancels the upstreams of a group that has decided, from a place on; where to go on.
    pub(super) fn cancel_siblings(
        &mut self,
        downstream: ExecutionId,
        from: u32,
        decided: Decided,
    ) -> Result<Option<u32>, Halt> {
        let facts = self.facts;
        let Some(draft) = self.draft(downstream)? else { return Ok(None) };
        let member = draft.member()?;
        let (ins, flow_id) = (member.ins, member.flow_id);
        let state = if decided.satisfied { GroupState::Satisfied } else { GroupState::Impossible };
        if member.group.state != state {
            // A replay has taken the decision back.
            return Ok(None);
        }
        let to = ins.min(from.saturating_add(limits::FLOW_STEP));
        let edges: Vec<InEdge> =
            self.member(downstream)?.items(facts, &downstream.into(), &IN, (from, to))?;
        let edges = edges.into_iter().filter(|edge| edge.applied && edge.fixed.is_none());
        let ends: Vec<_> = edges.map(|edge| edge.from).collect();
        self.want(&ends.iter().map(|end| end.id(downstream)).collect::<Vec<_>>())?;
        for end in ends {
            if self.stands(flow_id, downstream, end)? {
                self.cancel_sibling(end.id(downstream), decided)?;
            } else {
                let satisfied = decided.satisfied;
                self.passed.push(PassedSibling { satisfied, had_ended: false });
            }
        }
        Ok((to < ins).then_some(to))
    }

    /// An upstream whose end led to the decision, or came before it, is none of those that it ends.
    fn cancel_sibling(&mut self, id: ExecutionId, decided: Decided) -> Result<(), Halt> {
        let satisfied = decided.satisfied;
        let draft = self.member(id)?;
        match draft.execution.phase.terminal() {
            None => {
                let reason = if satisfied { SIBLING_SATISFIED } else { SIBLING_IMPOSSIBLE };
                self.cancel_member(id, reason, CancelSource::OperatorOverride)
            }
            Some(terminal) => {
                if terminal.at > decided.at {
                    self.passed.push(PassedSibling { satisfied, had_ended: true });
                }
                Ok(())
            }
        }
    }
}
