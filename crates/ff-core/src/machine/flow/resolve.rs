//! What follows from the end of a member: edges resolve, groups decide, downstreams are released or
//! skipped, and in the end the flow ends.

use uuid::Uuid;

use super::super::draft::{Draft, Halt};
use super::super::{Facts, Needs};
use super::pages::{Beside, End, FAILURES, MEMBERS, MemberRef, OUT, OutEdge};
use super::scene::{Scene, beside};
use super::work::WorkItem;
use crate::event::{EventData, EventKind};
use crate::id::{DocumentId, ExecutionId};
use crate::limits;
use crate::state::{
    EdgeKind, EdgeState, Execution, FlowEnd, Group, GroupState, Outcome, Phase, Terminal,
};

pub(crate) const SIBLING_SATISFIED: &str = "sibling_quorum_satisfied";
pub(crate) const SIBLING_IMPOSSIBLE: &str = "sibling_quorum_impossible";

impl<F: Facts> Scene<'_, F> {
    /// Carries on until nothing more follows, or this step has done its share.
    pub(super) fn follow_up(&mut self) -> Result<(), Halt> {
        let undecided = std::mem::take(&mut self.undecided);
        self.for_each(undecided, Self::recount)?;
        while !self.ended.is_empty() {
            let ended = std::mem::take(&mut self.ended);
            self.for_each(ended, Self::end_member)?;
        }
        for id in self.flow_ids() {
            self.check_end(&id)?;
        }
        Ok(())
    }

    fn end_member(&mut self, id: ExecutionId) -> Result<(), Halt> {
        self.want_end(id)?;
        let draft = self.member(id)?;
        let failed = draft.execution.phase.terminal().is_some_and(is_failure);
        let member = draft.member_mut()?;
        if member.group.edges > 0 && member.group.state == GroupState::Pending {
            member.group.state = GroupState::Cancelled;
        }
        let (outs, parents) = (member.outs, std::mem::take(&mut member.parents));
        let draft = self.flow_of(id)?;
        let flow = draft.flow_mut();
        flow.live = flow.live.saturating_sub(1);
        let behind = flow.is_behind();
        if failed {
            self.note_failure(id)?;
        }
        let mut waiting = Vec::with_capacity(parents.len());
        for parent in parents {
            let uuid = ExecutionId::new(id.partition(), parent.uuid);
            // One that goes on waiting for others waits for this one again, should it be replayed.
            if self.tell_parent(uuid, parent.wait)? {
                waiting.push(parent);
            }
        }
        self.member(id)?.member_mut()?.parents = waiting;
        if outs == 0 {
            return Ok(());
        }
        if behind || self.left == 0 {
            return self.leave_work(id, WorkItem::Resolve { member: id.uuid(), from: 0 });
        }
        self.resolve(id, 0)
    }

    /// Notes a member that counts as a failure of the flow unless something handles it.
    pub(super) fn note_failure(&mut self, id: ExecutionId) -> Result<(), Halt> {
        let facts = self.facts;
        let draft = self.flow_of(id)?;
        let noted = draft.flow().failures;
        draft.flow_mut().failures += 1;
        draft.append(facts, &FAILURES, noted, id.uuid())
    }

    /// Asks at once for all that the record of an ended member says it touches.
    fn want_end(&mut self, id: ExecutionId) -> Result<(), Halt> {
        let (facts, left) = (self.facts, self.left);
        let member = self.member(id)?.member()?;
        let (flow, outs) = (DocumentId::flow_in(id.partition(), member.flow_id), member.outs);
        let parents = member.parents.iter().map(|p| ExecutionId::new(id.partition(), p.uuid));
        let parents: Vec<_> = parents.collect();
        let mut needs = Needs::default();
        needs.note(self.want(&parents).map(Some));
        if let Err(lacking) = self.want_flow(&flow) {
            needs.merge(lacking);
            // Whether they will be looked at only the flow can say; most often they are.
            needs.note(OUT.want(facts, &id.into(), (0, outs.min(left))).map(Some));
        }
        Ok(needs.into_result()?)
    }

    /// Resolves the edges of an ended member from a place on; leaves what is too much.
    pub(super) fn resolve(&mut self, id: ExecutionId, from: u32) -> Result<(), Halt> {
        let facts = self.facts;
        let draft = self.member(id)?;
        let Some(terminal) = draft.execution.phase.terminal() else { return Ok(()) };
        let (outcome, outs) = (terminal.outcome, draft.member()?.outs);
        let to = outs.min(from.saturating_add(self.left));
        // First of all: whoever comes next in a run that lacks facts asks for no more than will fit.
        self.left -= to - from;
        let edges = self.out_edges(id, from, to)?;
        let ids: Vec<_> = edges.iter().map(|edge| edge.to.id(id)).collect();
        let mut needs = Needs::default();
        needs.note(self.want(&ids).map(Some));
        let known = self.member(id)?.result.is_some() || self.flow_of(id)?.flow().stops_claims();
        if !known && edges.iter().any(|edge| edge.passes_result_of(outcome)) {
            needs.note(facts.result(id));
        }
        needs.into_result()?;
        self.member(id)?.member_mut()?.resolved = to;
        for edge in &edges {
            self.resolve_edge(id, outcome, edge)?;
        }
        if to < outs {
            self.leave_work(id, WorkItem::Resolve { member: id.uuid(), from: to })?;
        }
        Ok(())
    }

    pub(super) fn out_edges(
        &mut self,
        id: ExecutionId,
        from: u32,
        to: u32,
    ) -> Result<Vec<OutEdge>, Halt> {
        let facts = self.facts;
        self.member(id)?.items(facts, &id.into(), &OUT, (from, to))
    }

    /// One edge of a member that has ended.
    pub(super) fn resolve_edge(
        &mut self,
        id: ExecutionId,
        outcome: Outcome,
        edge: &OutEdge,
    ) -> Result<(), Halt> {
        if !edge.applied || edge.fixed.is_some() {
            return Ok(());
        }
        let flow_id = self.flow_of(id)?.flow().id;
        if !self.stands(flow_id, id, edge.to)? {
            // Its downstream was removed, and the edge with it.
            return Ok(());
        }
        let (state, downstream) = (edge.kind.resolved_by(outcome), edge.to.id(id));
        let flow = self.flow_of(id)?;
        flow.event(EventKind::EdgeResolved, resolved_data(edge, state, id, downstream));
        if flow.flow().stops_claims() {
            // Nobody is released any more, and nobody skipped: all that wait are cancelled.
            self.member(downstream)?.member_mut()?.group.count(state);
            return Ok(());
        }
        let payload = if edge.passes_result_of(outcome) {
            match self.member(id)?.result.clone() {
                Some(result) => Some(result),
                None => self.facts.result(id)?,
            }
        } else {
            None
        };
        let draft = self.member(downstream)?;
        let waits = draft.execution.awaits_start();
        let member = draft.member_mut()?;
        let decided = member.group.resolve(state);
        let group = member.group;
        if let (true, Some(payload)) = (waits, payload) {
            draft.replace_payload(payload);
        }
        if !decided {
            return Ok(());
        }
        match group.state {
            GroupState::Satisfied => draft.release_edges(),
            GroupState::Impossible if waits => self.skip(downstream)?,
            _ => {}
        }
        self.cancel_remaining(downstream, group)
    }

    /// Leaves the upstreams of a group to be cancelled, should it have decided and say so.
    pub(super) fn cancel_remaining(
        &mut self,
        downstream: ExecutionId,
        group: Group,
    ) -> Result<(), Halt> {
        let satisfied = match group.state {
            GroupState::Satisfied => true,
            GroupState::Impossible => false,
            GroupState::Pending | GroupState::Cancelled => return Ok(()),
        };
        if !group.join.cancels_remaining() || group.unresolved() == 0 {
            return Ok(());
        }
        let (from, uuid) = (0, downstream.uuid());
        let item = WorkItem::CancelSiblings { downstream: uuid, from, satisfied };
        self.leave_work(downstream, item)
    }

    /// The member can never run.
    pub(super) fn skip(&mut self, id: ExecutionId) -> Result<(), Halt> {
        let settings = self.facts.settings();
        self.member(id)?.skip(settings);
        self.ended.push_back(id);
        Ok(())
    }

    /// A child of a waiting member has ended: whether it waits for others still.
    pub(super) fn tell_parent(&mut self, parent: ExecutionId, wait: u32) -> Result<bool, Halt> {
        let now = self.now;
        let Some(draft) = self.draft(parent)? else { return Ok(false) };
        let Phase::Runnable(runnable) = &mut draft.execution.phase else { return Ok(false) };
        let Some(children) = &mut runnable.causes.children else { return Ok(false) };
        if children.wait != wait {
            return Ok(false);
        }
        children.ended += 1;
        let is_over = children.is_over();
        if is_over {
            runnable.causes.children = None;
            runnable.since = now;
            draft.event(EventKind::Unblocked);
        }
        Ok(!is_over)
    }

    /// A flow with members ends when all of them have.
    fn check_end(&mut self, id: &DocumentId) -> Result<(), Halt> {
        let flow = self.flow(id)?.flow();
        let is_empty = flow.members == 0 && !flow.is_cancelled();
        if flow.live > 0 || is_empty || flow.end.is_some() || flow.removing {
            return Ok(());
        }
        if flow.is_cancelled() {
            self.end_flow(id, false)
        } else if flow.judging {
            Ok(())
        } else if !flow.work.is_empty() {
            self.flow(id)?.flow_mut().judging = true;
            self.leave_flow_work(id, WorkItem::Judge { from: 0 })
        } else {
            self.judge(id, 0)
        }
    }

    /// Looks for a failure that nothing handled.
    pub(super) fn judge(&mut self, id: &DocumentId, from: u32) -> Result<(), Halt> {
        let noted = self.flow(id)?.flow().failures;
        let to = noted.min(from.saturating_add(limits::FLOW_STEP));
        let failures = self.failures(id, (from, to))?;
        self.want(&failures)?;
        let mut unhandled = false;
        self.for_each(failures, |scene, failure| {
            unhandled = unhandled || scene.is_unhandled(id, failure)?;
            Ok(())
        })?;
        if unhandled {
            return self.end_flow(id, true);
        }
        if to < noted {
            self.flow(id)?.flow_mut().judging = true;
            return self.leave_flow_work(id, WorkItem::Judge { from: to });
        }
        self.end_flow(id, false)
    }

    /// Members that were noted as failed.
    pub(super) fn failures(
        &mut self,
        id: &DocumentId,
        range: (u32, u32),
    ) -> Result<Vec<ExecutionId>, Halt> {
        let facts = self.facts;
        let uuids: Vec<Uuid> = self.flow(id)?.items(facts, &id.into(), &FAILURES, range)?;
        Ok(uuids.into_iter().map(|uuid| beside(id, uuid)).collect())
    }

    /// Whether a member has failed, no edge was satisfied by that, and not all of them led to groups
    /// that were satisfied anyway.
    pub(super) fn is_unhandled(
        &mut self,
        flow: &DocumentId,
        id: ExecutionId,
    ) -> Result<bool, Halt> {
        let flow_id = self.flow(flow)?.flow().id;
        let Some(found) = self.view(id)? else { return Ok(false) };
        // Its id may be that of a member that was removed.
        let member = found.member.as_ref().filter(|member| member.flow_id == flow_id);
        let (Some(terminal), Some(member)) = (found.phase.terminal(), member) else {
            return Ok(false);
        };
        if !is_failure(terminal) {
            return Ok(false);
        }
        let edges = self.out_edges(id, 0, member.outs)?;
        let edges: Vec<_> = edges.into_iter().filter(|edge| edge.applied).collect();
        let handles =
            |edge: &OutEdge| edge.fixed.is_none() && edge.kind.is_satisfied_by(terminal.outcome);
        if edges.iter().any(handles) {
            return Ok(false);
        }
        let downstreams: Vec<_> = edges.iter().map(|edge| edge.to.id(id)).collect();
        self.want(&downstreams)?;
        for edge in &edges {
            if self.group_of(flow, id, edge.to)? != Some(GroupState::Satisfied) {
                return Ok(true);
            }
        }
        Ok(downstreams.is_empty())
    }

    /// How the group of a downstream stands, or stood when that was removed.
    fn group_of(
        &mut self,
        flow: &DocumentId,
        upstream: ExecutionId,
        end: End,
    ) -> Result<Option<GroupState>, Halt> {
        let facts = self.facts;
        let flow_id = self.flow(flow)?.flow().id;
        if self.stands(flow_id, upstream, end)? {
            let found = self.view(end.id(upstream))?;
            return Ok(found.and_then(|found| found.member.as_ref().map(|m| m.group.state)));
        }
        let known: MemberRef = self.flow(flow)?.item(facts, &MEMBERS, end.number)?;
        Ok(known.gone)
    }

    fn end_flow(&mut self, id: &DocumentId, failed: bool) -> Result<(), Halt> {
        let now = self.now;
        let draft = self.flow(id)?;
        let flow = draft.flow_mut();
        flow.judging = false;
        flow.end = Some(FlowEnd { failed, at: now, kept_until: now.after(flow.retention_ms) });
        if flow.is_cancelled() {
            return Ok(());
        }
        let kind = if failed { EventKind::FlowFailed } else { EventKind::FlowCompleted };
        draft.event(kind, EventData::new());
        Ok(())
    }
}

fn resolved_data(
    edge: &OutEdge,
    state: EdgeState,
    upstream: ExecutionId,
    downstream: ExecutionId,
) -> EventData {
    EventData::from([
        ("edge_id".to_owned(), edge.id.to_string().as_str().into()),
        ("state".to_owned(), state.as_str().into()),
        ("upstream".to_owned(), upstream.to_string().as_str().into()),
        ("downstream".to_owned(), downstream.to_string().as_str().into()),
    ])
}

/// Whether an end counts as a failure of the flow unless something handles it.
pub(super) fn is_failure(terminal: &Terminal) -> bool {
    match terminal.outcome {
        Outcome::Failed | Outcome::Expired => true,
        Outcome::Cancelled => !terminal.cancellation.as_ref().is_some_and(|it| it.by_group),
        Outcome::Success | Outcome::Skipped => false,
    }
}

/// Whether it was cancelled because a group could not be satisfied any more.
pub(super) fn lost_to_group(found: &Execution) -> bool {
    let cancellation = found.phase.terminal().and_then(|terminal| terminal.cancellation.as_ref());
    cancellation.is_some_and(|it| it.by_group && it.reason == SIBLING_IMPOSSIBLE)
}

/// The state of an edge, which follows from its upstream.
pub(super) fn edge_state(
    upstream: &Execution,
    slot: u32,
    (kind, applied, fixed): (EdgeKind, bool, Option<Outcome>),
) -> EdgeState {
    if let Some(fixed) = fixed {
        return kind.resolved_by(fixed);
    }
    let Some(member) = upstream.member.as_ref().filter(|_| applied) else {
        return EdgeState::Pending;
    };
    if let Some(before) = member.taking_back.as_ref().filter(|before| before.counts(slot)) {
        return kind.resolved_by(before.outcome);
    }
    match upstream.phase.terminal() {
        Some(terminal) if slot < member.resolved => kind.resolved_by(terminal.outcome),
        _ => EdgeState::Pending,
    }
}

impl Draft {
    /// Its group lets it go.
    pub(super) fn release_edges(&mut self) {
        let now = self.now;
        let Phase::Runnable(runnable) = &mut self.execution.phase else { return };
        if !runnable.causes.edges {
            return;
        }
        runnable.causes.edges = false;
        // The delay went on underneath: what is over by now is gone.
        runnable.causes.delay = runnable.causes.delay.filter(|delay| delay.until > now);
        runnable.since = now;
        self.event(EventKind::Unblocked);
    }

    /// Its group does not let it go; a member that has started goes on.
    pub(super) fn block_edges(&mut self) -> bool {
        let now = self.now;
        let started = !self.execution.awaits_start();
        let Phase::Runnable(runnable) = &mut self.execution.phase else { return false };
        if runnable.causes.edges || started {
            return false;
        }
        runnable.causes.edges = true;
        runnable.since = now;
        runnable.grant = None;
        true
    }
}

impl OutEdge {
    /// Whether the result of an upstream that has ended so becomes the payload.
    fn passes_result_of(&self, outcome: Outcome) -> bool {
        let satisfied = self.kind.is_satisfied_by(outcome);
        self.data_passing_ref.is_some() && satisfied && outcome == Outcome::Success
    }

    /// Its state, which follows from its upstream.
    pub(super) fn state(&self, upstream: &Execution, slot: u32) -> EdgeState {
        edge_state(upstream, slot, (self.kind, self.applied, self.fixed))
    }
}
