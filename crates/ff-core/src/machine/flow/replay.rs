//! The rules of replay inside a flow: a replayed member takes its edges back, and what was skipped
//! because of them.

use std::collections::BTreeSet;

use super::super::Facts;
use super::super::draft::{Draft, Halt, not_found};
use super::super::replay::{again, check, deadline};
use super::super::step::Step;
use super::existing;
use super::pages::{Beside, IN, InEdge, OUT, OutEdge};
use super::resolve::{edge_state, lost_to_group};
use super::scene::{Scene, stands_in};
use super::work::WorkItem;
use crate::error::{Code, Refusal};
use crate::event::{EventData, EventKind};
use crate::id::{DocumentId, ExecutionId};
use crate::limits;
use crate::operation::{FlowReplayed, Replay, ReplayFlow, Replayed};
use crate::state::{
    Causes, EdgeState, Execution, Flow, GroupState, Next, Outcome, Phase, Reach, Runnable,
    TakingBack,
};
use crate::time::TimestampMs;

/// Replays a member of a flow.
pub(in super::super) fn replay_member(
    facts: &impl Facts,
    op: &Replay,
    now: TimestampMs,
) -> Result<Step<Replayed>, Halt> {
    let mut scene = Scene::new(facts, now);
    let flow = scene.flow_of(op.execution_id)?.flow();
    if flow.removing {
        // It goes with its flow, whatever it would be by then.
        return Err(not_found(op.execution_id).into());
    }
    not_cancelled(flow)?;
    let reach = Reach { descendants: op.descendants, siblings: false };
    scene.replay(&[op.execution_id], reach)?;
    scene.follow_up()?;
    let draft = scene.member(op.execution_id)?;
    let reply = Replayed {
        replay_count: draft.execution.counts.replays,
        public_state: draft.execution.public_state(),
        unresolved: draft.member()?.group.unresolved(),
    };
    Ok(Step::done(reply, scene.finish()))
}

fn not_cancelled(flow: &Flow) -> Result<(), Refusal> {
    if flow.is_cancelled() {
        Err(Refusal::new(Code::ReplayNotAllowed, "the flow was cancelled, which is for ever"))
    } else {
        Ok(())
    }
}

/// Replays what failed, or given members.
pub(in super::super) fn replay_flow(
    facts: &impl Facts,
    op: &ReplayFlow,
    now: TimestampMs,
) -> Result<Step<FlowReplayed>, Halt> {
    let document = existing(facts, op.flow_id)?;
    let id = document.id.clone();
    let mut scene = Scene::new(facts, now);
    let flow = scene.flow(&id)?.flow();
    not_cancelled(flow)?;
    if flow.end.is_none() {
        let detail = "some of its members have not ended";
        return Err(Refusal::new(Code::FlowNotTerminal, detail).into());
    }
    let (replayed, more) = match &op.members {
        Some(members) => {
            let mut members = members.clone();
            members.sort_unstable();
            members.dedup();
            if let Some(stranger) = members.iter().find(|member| !stands_in(&id, **member)) {
                return Err(super::not_in_flow(*stranger).into());
            }
            scene.want(&members)?;
            for member in &members {
                let found = scene.view(*member)?;
                let of = found.as_ref().and_then(|found| found.member.as_ref());
                if of.map(|member| member.flow_id) != Some(op.flow_id) {
                    return Err(super::not_in_flow(*member).into());
                }
            }
            scene.replay(&members, Reach::default())?;
            (members, false)
        }
        None => scene.replay_all_failed(&id)?,
    };
    if replayed.is_empty() && !more {
        return Ok(Step::unchanged(FlowReplayed::AlreadySatisfied));
    }
    scene.follow_up()?;
    Ok(Step::done(FlowReplayed::Replayed { members: replayed, more }, scene.finish()))
}

impl<F: Facts> Scene<'_, F> {
    /// Names the failures that nothing handled, replays the first of them, and leaves the rest:
    /// which, and whether there may be others behind them.
    fn replay_all_failed(&mut self, id: &DocumentId) -> Result<(Vec<ExecutionId>, bool), Halt> {
        let noted = self.flow(id)?.flow().failures;
        let from = noted.saturating_sub(limits::FLOW_REPLAY_NAMED);
        let named = self.replayable(id, (from, noted))?;
        let more = from > 0;
        if (!named.is_empty() || more)
            && let Some(before) = self.replay_failed(id, noted)?
        {
            self.leave_flow_work(id, WorkItem::ReplayFailed { before })?;
        }
        Ok((named, more))
    }

    /// Replays failures that nothing handled before a place: those before which place are left. The
    /// newest come first: what failed behind another failure then waits for it.
    pub(super) fn replay_failed(
        &mut self,
        id: &DocumentId,
        before: u32,
    ) -> Result<Option<u32>, Halt> {
        let from = before.saturating_sub(limits::FLOW_STEP / 4);
        let failures = self.replayable(id, (from, before))?;
        self.replay(&failures, Reach { descendants: false, siblings: true })?;
        Ok((from > 0).then_some(from))
    }

    /// Of the failures that were noted there, those that nothing handled.
    fn replayable(&mut self, id: &DocumentId, range: (u32, u32)) -> Result<Vec<ExecutionId>, Halt> {
        let failures = self.failures(id, range)?;
        self.want(&failures)?;
        let mut found = BTreeSet::new();
        self.for_each(failures, |scene, failure| {
            // One that failed again after a replay was noted twice.
            if scene.is_replayable(id, failure)? {
                found.insert(failure);
            }
            Ok(())
        })?;
        Ok(found.into_iter().collect())
    }

    /// Whether a member failed, nothing handled that, and its policy allows another generation.
    fn is_replayable(&mut self, flow: &DocumentId, id: ExecutionId) -> Result<bool, Halt> {
        let spent = self.view(id)?.is_some_and(|found| check(&found).is_err());
        Ok(!spent && self.is_unhandled(flow, id)?)
    }

    /// Gives members another generation: all of them before any edge is taken back, so that edges
    /// between them are pending again whichever comes first.
    fn replay(&mut self, ids: &[ExecutionId], reach: Reach) -> Result<(), Halt> {
        let mut ended = Vec::with_capacity(ids.len());
        for id in ids {
            ended.push((*id, self.begin_again(*id)?));
        }
        self.for_each(ended, |scene, (id, outcome)| scene.take_back_edges(id, outcome, reach))
    }

    /// Another generation of one member: the outcome of the one before.
    fn begin_again(&mut self, id: ExecutionId) -> Result<Outcome, Halt> {
        let draft = self.member(id)?;
        check(&draft.execution)?;
        let outcome = draft.execution.phase.terminal().map(|terminal| terminal.outcome);
        again(draft);
        let group = draft.member()?.group;
        // Its group has not let it go: that must be seen anew.
        if group.edges > 0 && group.state != GroupState::Satisfied {
            self.undecided.push(id);
        }
        self.reopen(id)?;
        self.wait_again(id)?;
        Ok(outcome.unwrap_or(Outcome::Skipped))
    }

    /// Members that go on waiting for others wait for this one again.
    fn wait_again(&mut self, id: ExecutionId) -> Result<(), Halt> {
        let parents = std::mem::take(&mut self.member(id)?.member_mut()?.parents);
        let mut waiting = Vec::with_capacity(parents.len());
        for parent in parents {
            let draft = self.draft(ExecutionId::new(id.partition(), parent.uuid))?;
            let children = draft.and_then(|draft| draft.execution.phase.children_mut());
            if let Some(children) = children.filter(|children| children.wait == parent.wait) {
                children.ended = children.ended.saturating_sub(1);
                waiting.push(parent);
            }
        }
        self.member(id)?.member_mut()?.parents = waiting;
        Ok(())
    }

    /// A member that had ended has not.
    fn reopen(&mut self, id: ExecutionId) -> Result<(), Halt> {
        let draft = self.flow_of(id)?;
        let flow = draft.flow_mut();
        flow.live += 1;
        if flow.end.take().is_some() {
            draft.event(EventKind::FlowReopened, EventData::new());
        }
        Ok(())
    }

    /// Counts the edges of a member that its group has not let go against its upstreams as they are
    /// now.
    pub(super) fn recount(&mut self, id: ExecutionId) -> Result<(), Halt> {
        let facts = self.facts;
        let member = self.member(id)?.member()?;
        let (ins, flow_id, before) = (member.ins, member.flow_id, member.group);
        let mut edges: Vec<InEdge> = self.member(id)?.items(facts, &id.into(), &IN, (0, ins))?;
        edges.retain(|edge| edge.applied);
        let upstreams: Vec<_> = edges.iter().map(|edge| edge.from.id(id)).collect();
        self.want(&upstreams)?;
        let (mut satisfied, mut impossible, mut gone, mut passing) = (0, 0, 0, None);
        for (edge, upstream) in edges.iter().zip(upstreams) {
            let Some(found) = self.view(upstream)?.filter(|it| edge.from.is(flow_id, it)) else {
                gone += 1;
                continue;
            };
            let state = edge.state(&found);
            satisfied += u32::from(state == EdgeState::Satisfied);
            impossible += u32::from(state == EdgeState::Impossible);
            let outcome = found.phase.terminal().map(|it| it.outcome);
            if edge.passes && state == EdgeState::Satisfied && outcome == Some(Outcome::Success) {
                passing = Some(upstream);
            }
        }
        // Those of upstreams that were removed had resolved, and stay counted as they were.
        let stays = before.satisfied.saturating_sub(satisfied).min(gone);
        (satisfied, impossible) = (satisfied + stays, impossible + gone - stays);
        // It may have come while the member could not take it.
        if let Some(payload) = passing.map(|upstream| facts.result(upstream)).transpose()?.flatten()
        {
            self.member(id)?.replace_payload(payload);
        }
        let draft = self.member(id)?;
        let group = &mut draft.member_mut()?.group;
        (group.satisfied, group.impossible) = (satisfied, impossible);
        group.reopen();
        let (blocks, group) = (group.blocks(), *group);
        if let Phase::Runnable(runnable) = &mut draft.execution.phase {
            runnable.causes.edges = blocks;
        }
        if group.state == GroupState::Impossible {
            self.skip(id)?;
        }
        self.cancel_remaining(id, group)
    }

    /// Takes outgoing edges of a replayed member back: whether some are left.
    pub(super) fn reset_edges(&mut self, id: ExecutionId) -> Result<bool, Halt> {
        let Some(draft) = self.draft(id)? else { return Ok(false) };
        let Some(before) = draft.member()?.taking_back.clone() else { return Ok(false) };
        let (from, to) = (before.from, before.to.min(before.from.saturating_add(self.left)));
        let edges = self.out_edges(id, from, to)?;
        let ids: Vec<_> = edges.iter().map(|edge| edge.to.id(id)).collect();
        self.want(&ids)?;
        let flow_id = self.flow_of(id)?.flow().id;
        self.left -= to - from;
        let more = to < before.to;
        let left = more.then(|| Box::new(TakingBack { from: to, ..*before.clone() }));
        self.member(id)?.member_mut()?.taking_back = left;
        for ((slot, edge), downstream) in (from..).zip(edges).zip(ids) {
            let counts = edge.fixed.is_some() || before.counts(slot);
            let counted = edge.applied && !before.except.contains(&slot);
            if !counted || !self.stands(flow_id, id, edge.to)? {
                continue;
            }
            let outcome = edge.fixed.unwrap_or(before.outcome);
            let state = if counts { edge.kind.resolved_by(outcome) } else { EdgeState::Pending };
            let taken_back = self.takes_back(downstream, state, before.reach)?;
            if counts && !taken_back {
                self.fix(id, slot, &edge, Some(outcome))?;
            } else if edge.fixed.is_some() && taken_back {
                self.fix(id, slot, &edge, None)?;
            }
        }
        Ok(more)
    }

    /// All of them, as the generation before has left them; what is too much is left as work.
    fn take_back_edges(
        &mut self,
        id: ExecutionId,
        outcome: Outcome,
        reach: Reach,
    ) -> Result<(), Halt> {
        let member = self.member(id)?.member_mut()?;
        let resolved = std::mem::take(&mut member.resolved);
        if member.taking_back.is_some() {
            // The generation between has resolved none: its turn comes behind what is left.
            return Ok(());
        }
        let (from, to, except) = (0, member.outs, Vec::new());
        let before = TakingBack { outcome, from, to, resolved, reach, except };
        member.taking_back = Some(Box::new(before));
        if self.reset_edges(id)? {
            self.leave_work(id, WorkItem::Reset { member: id.uuid() })?;
        }
        Ok(())
    }

    /// Replays upstreams that were cancelled because the group of a member could not be satisfied,
    /// from a place on; where to go on.
    pub(super) fn revive_siblings(
        &mut self,
        downstream: ExecutionId,
        from: u32,
    ) -> Result<Option<u32>, Halt> {
        let facts = self.facts;
        let Some(draft) = self.draft(downstream)? else { return Ok(None) };
        let member = draft.member()?;
        let (ins, flow_id) = (member.ins, member.flow_id);
        let to = ins.min(from.saturating_add(limits::FLOW_STEP / 4));
        let edges: Vec<InEdge> =
            self.member(downstream)?.items(facts, &downstream.into(), &IN, (from, to))?;
        let ends = edges.iter().filter(|edge| edge.applied).map(|edge| edge.from);
        let ends: Vec<_> = ends.collect();
        self.want(&ends.iter().map(|end| end.id(downstream)).collect::<Vec<_>>())?;
        let mut cancelled = Vec::new();
        for end in ends {
            let id = end.id(downstream);
            let found = self.view(id)?.filter(|found| end.is(flow_id, found));
            let may_run = |found: &Execution| check(found).is_ok() && lost_to_group(found);
            cancelled.extend(found.is_some_and(|found| may_run(&found)).then_some(id));
        }
        self.replay(&cancelled, Reach { descendants: false, siblings: true })?;
        Ok((to < ins).then_some(to))
    }

    /// Whether a downstream lets go of an edge that is pending again.
    fn takes_back(
        &mut self,
        id: ExecutionId,
        state: EdgeState,
        reach: Reach,
    ) -> Result<bool, Halt> {
        let stopped = self.flow_of(id)?.flow().stops_claims();
        let draft = self.member(id)?;
        let skipped =
            draft.execution.phase.terminal().is_some_and(|t| t.outcome == Outcome::Skipped);
        let waits = draft.execution.awaits_start();
        let replays = reach.descendants && draft.execution.is_terminal() && !skipped && !stopped;
        let started = draft.execution.started_at.is_some();
        let group = &mut draft.member_mut()?.group;
        // One that was cancelled before it began: it stays so, and its edges are as its upstreams are.
        let never_ran = !skipped && !waits && (!started || group.state == GroupState::Cancelled);
        if !skipped && !waits && !replays && !never_ran {
            return Ok(false);
        }
        group.unresolve(state);
        if stopped {
            // Of a cancelled flow nobody comes back, and whoever still waits is cancelled.
            return Ok(true);
        }
        group.reopen();
        let (blocks, hopeless) = (group.blocks(), group.state == GroupState::Impossible);
        let cancelled_some = group.join.cancels_remaining();
        if skipped && hopeless {
            // Another upstream keeps it from running: it stays skipped until that one is replayed.
            if reach.siblings && cancelled_some {
                self.leave_work(id, WorkItem::Revive { downstream: id.uuid(), from: 0 })?;
            }
        } else if replays {
            if check(&draft.execution).is_ok() {
                self.replay(&[id], reach)?;
                self.member(id)?.block_again(blocks);
            }
        } else if never_ran {
            group.state = GroupState::Cancelled;
        } else if skipped {
            draft.unskip();
            self.undecided.push(id);
            self.reopen(id)?;
            self.wait_again(id)?;
            self.take_back_edges(id, Outcome::Skipped, reach)?;
        } else if blocks && draft.block_edges() {
            let data = EventData::from([("reason".to_owned(), "waiting_for_children".into())]);
            draft.event_with(EventKind::Blocked, data);
        }
        Ok(true)
    }

    /// Makes the state of an edge lasting, or no longer so.
    fn fix(
        &mut self,
        id: ExecutionId,
        slot: u32,
        edge: &OutEdge,
        fixed: Option<Outcome>,
    ) -> Result<(), Halt> {
        let facts = self.facts;
        self.member(id)?.change_item(facts, &OUT, slot, |edge: &mut OutEdge| edge.fixed = fixed)?;
        let downstream = self.member(edge.to.id(id))?;
        downstream.change_item(facts, &IN, edge.slot, |edge: &mut InEdge| edge.fixed = fixed)
    }
}

impl InEdge {
    /// Its state, which follows from its upstream.
    pub(super) fn state(&self, upstream: &Execution) -> EdgeState {
        edge_state(upstream, self.slot, (self.kind, self.applied, self.fixed))
    }
}

impl Draft {
    /// It was skipped because of a member that is replayed. A delay or a hold goes on, and its time
    /// begins anew.
    fn unskip(&mut self) {
        let kept = self.execution.phase.terminal().and_then(|terminal| terminal.underneath.clone());
        let causes = Causes { edges: true, ..kept.map(|kept| *kept).unwrap_or_default() };
        self.execution.deadline_at = deadline(&self.execution.about, self.now);
        let next = if self.execution.counts.attempts == 0 { Next::First } else { Next::Replay };
        self.execution.phase = Phase::Runnable(Runnable::new(causes, next, self.now));
        let data = EventData::from([("reason".to_owned(), "upstream_replayed".into())]);
        self.event_with(EventKind::Replayed, data);
    }

    fn block_again(&mut self, blocks: bool) {
        if let Phase::Runnable(runnable) = &mut self.execution.phase {
            runnable.causes.edges = blocks;
        }
    }
}
