//! The rules of single edges: staged, applied, resolved; and of groups.

use std::collections::{BTreeSet, HashMap};

use super::super::Facts;
use super::super::draft::Halt;
use super::super::rows::{Family, RowChange, RowKey};
use super::super::step::Step;
use super::gone::gone_among;
use super::pages::{Beside, End, IN, InEdge, Link, MEMBERS, MemberRef, OUT, OutEdge, TOPOLOGY};
use super::scene::{Scene, beside, stands_in};
use super::{existing, not_in_flow, open};
use crate::error::{Code, Refusal};
use crate::event::{EventData, EventKind};
use crate::id::{DocumentId, EdgeId, ExecutionId, FlowId};
use crate::limits;
use crate::operation::{
    ApplyEdge, EdgeApplied, EdgeResolution, EdgeStaged, GroupSet, NewEdge, ResolveEdge,
    SetGroupPolicy, StageEdge,
};
use crate::state::{EdgeState, Flow, GroupState, Outcome};
use crate::time::TimestampMs;

pub(in super::super) fn stage(
    facts: &impl Facts,
    op: &StageEdge,
    now: TimestampMs,
) -> Result<Step<EdgeStaged>, Halt> {
    let (from, to) = (op.edge.upstream, op.edge.downstream);
    let document = open(existing(facts, op.flow_id)?)?;
    let mut scene = Scene::new(facts, now);
    let id = document.id.clone();
    let flow = scene.flow(&id)?.flow();
    if let Some(expected) = op.expected_graph_revision
        && expected != flow.graph_revision
    {
        let detail = format!("the graph has revision {}", flow.graph_revision);
        return Err(Refusal::new(Code::StaleGraphRevision, detail).into());
    }
    if flow.edges >= limits::FLOW_EDGES {
        let detail = format!("a flow has at most {} edges", limits::FLOW_EDGES);
        return Err(Refusal::invalid("edges", detail).into());
    }
    let strangers = [from, to].into_iter().find(|member| !stands_in(&id, *member));
    if let Some(stranger) = strangers {
        return Err(not_in_flow(stranger).into());
    }
    scene.want(&[from, to])?;
    let (up, down) = (scene.number_in(op.flow_id, from)?, scene.number_in(op.flow_id, to)?);
    scene.check_new(&id, op, up)?;
    if op.apply {
        scene.check_applicable(to)?;
    }
    let (slot, edge) = scene.link(&id, op, up, down)?;
    let data = EventData::from([("edge_id".to_owned(), op.edge_id.to_string().as_str().into())]);
    let draft = scene.flow(&id)?;
    draft.event(EventKind::FlowChanged, data);
    let (edge_id, graph_revision) = (op.edge_id, draft.flow().graph_revision);
    let unresolved = if op.apply { Some(scene.make_count(from, slot, edge)?) } else { None };
    Ok(Step::done(EdgeStaged { edge_id, graph_revision, unresolved }, scene.finish()))
}

impl<F: Facts> Scene<'_, F> {
    /// The number of a member of this flow.
    fn number_in(&mut self, flow: FlowId, id: ExecutionId) -> Result<u32, Halt> {
        let found = self.view(id)?;
        let member = found.as_ref().and_then(|found| found.member.as_ref());
        match member.filter(|member| member.flow_id == flow) {
            Some(member) => Ok(member.number),
            None => Err(not_in_flow(id).into()),
        }
    }

    /// Refuses an edge that closes a cycle, is there already, or passes a second payload.
    fn check_new(&mut self, id: &DocumentId, op: &StageEdge, up: u32) -> Result<(), Halt> {
        let facts = self.facts;
        let NewEdge { upstream: from, downstream: to, .. } = op.edge;
        let upstream = self.member(from)?;
        let waits = upstream.execution.phase.children().is_some();
        // Where nothing leads to the upstream there is no way back.
        if (waits || upstream.member()?.ins > 0) && leads_to(self, id, to, &[up])? {
            let detail = "the upstream already waits for the downstream";
            return Err(Refusal::new(Code::CycleDetected, detail).into());
        }
        let edges = self.member(to)?.member()?.ins;
        IN.want(facts, &to.into(), (0, edges))?;
        let draft = self.member(to)?;
        let end = End { uuid: from.uuid(), number: up };
        let mut passing = None;
        for page in 0..IN.count(edges) {
            for edge in draft.page::<InEdge>(facts, &IN, page)? {
                if edge.from == end {
                    let detail = "there is an edge between the two already";
                    return Err(Refusal::new(Code::DependencyAlreadyExists, detail).into());
                }
                passing = Some(edge.from).filter(|_| edge.passes).or(passing);
            }
        }
        if let Some(passing) = passing.filter(|_| op.edge.passes())
            && self.stands(op.flow_id, to, passing)?
        {
            return Err(second_payload().into());
        }
        let known: Option<u32> = self.flow(id)?.find_row(facts, &edge_row(op.edge_id))?;
        if known.is_some() {
            let detail = "the edge id was used before in this flow";
            return Err(Refusal::new(Code::DependencyAlreadyExists, detail).into());
        }
        Ok(())
    }

    /// Refuses an edge to a member for which nothing can count any more.
    fn check_applicable(&mut self, downstream: ExecutionId) -> Result<(), Halt> {
        let downstream = self.member(downstream)?;
        if downstream.execution.is_terminal() {
            return Err(Refusal::new(Code::Terminal, "the downstream has ended").into());
        }
        if downstream.member()?.group.state != GroupState::Pending {
            return Err(group_fixed("its group has decided").into());
        }
        Ok(())
    }

    /// Writes an edge that does not count yet, and says how it stands beside its upstream.
    fn link(
        &mut self,
        id: &DocumentId,
        op: &StageEdge,
        up: u32,
        down: u32,
    ) -> Result<(u32, OutEdge), Halt> {
        let facts = self.facts;
        let NewEdge { upstream: from, downstream: to, .. } = op.edge;
        let in_slot = self.member(to)?.member()?.ins;
        let ended = self.member(from)?.execution.is_terminal();
        let draft = self.member(from)?;
        let member = draft.member_mut()?;
        let slot = member.outs;
        member.outs += 1;
        if ended && member.resolved == slot {
            // Nothing is left to be resolved, and an edge that does not count has nothing to.
            member.resolved = member.outs;
        }
        let edge = op.edge.out(op.edge_id, (down, in_slot));
        draft.append(facts, &OUT, slot, edge.clone())?;
        let draft = self.member(to)?;
        draft.member_mut()?.ins += 1;
        draft.append(facts, &IN, in_slot, op.edge.in_edge((up, slot)))?;
        let draft = self.flow(id)?;
        let flow = draft.flow_mut();
        let number = flow.edges;
        flow.edges += 1;
        flow.graph_revision += 1;
        draft.append(facts, &TOPOLOGY, number, Link { from: up, to: down, slot })?;
        draft.put_row(RowChange::put(edge_row(op.edge_id), &number));
        Ok((slot, edge))
    }

    /// Makes an edge count, which resolves at once if its upstream has ended; says for how many the
    /// downstream waits now.
    fn make_count(&mut self, from: ExecutionId, slot: u32, edge: OutEdge) -> Result<u32, Halt> {
        let (facts, to) = (self.facts, edge.to.id(from));
        let downstream = self.member(to)?;
        downstream.member_mut()?.group.apply();
        if downstream.block_edges() {
            let data = EventData::from([("reason".to_owned(), "waiting_for_children".into())]);
            downstream.event_with(EventKind::Blocked, data);
        }
        downstream.change_item(facts, &IN, edge.slot, |edge: &mut InEdge| edge.applied = true)?;
        let upstream = self.member(from)?;
        upstream.change_item(facts, &OUT, slot, |edge: &mut OutEdge| edge.applied = true)?;
        let ended = upstream.execution.phase.terminal().map(|terminal| terminal.outcome);
        let due = slot < upstream.member()?.resolved;
        if let Some(before) = &mut upstream.member_mut()?.taking_back {
            before.except.push(slot);
        }
        if let Some(outcome) = ended.filter(|_| due) {
            self.resolve_edge(from, outcome, &OutEdge { applied: true, ..edge })?;
        }
        self.follow_up()?;
        Ok(self.member(to)?.member()?.group.unresolved())
    }

    /// The edge with an id, if its upstream is there: that, and its place beside it.
    pub(super) fn find_edge(
        &mut self,
        id: &DocumentId,
        edge: EdgeId,
    ) -> Result<Option<(ExecutionId, u32)>, Halt> {
        let facts = self.facts;
        let draft = self.flow(id)?;
        let seeded = draft.flow().seeded_number(edge);
        let number = match seeded {
            Some(number) => Some(number),
            None => draft.find_row(facts, &edge_row(edge))?,
        };
        let Some(number) = number.filter(|number| *number < draft.flow().edges) else {
            return Ok(None);
        };
        let link: Link = draft.item(facts, &TOPOLOGY, number)?;
        let known: MemberRef = draft.item(facts, &MEMBERS, link.from)?;
        let from = beside(id, known.uuid);
        let is_there = known.gone.is_none() && self.is_of(id, from, link.from)?;
        Ok(is_there.then_some((from, link.slot)))
    }

    /// An edge that must be there, with its upstream and place.
    fn edge(&mut self, flow: FlowId, edge: EdgeId) -> Result<(ExecutionId, u32, OutEdge), Halt> {
        let id = DocumentId::flow(flow, &self.facts.settings().partitions);
        let none = || {
            let detail = format!("no edge {edge} in this flow");
            Halt::from(Refusal::at(Code::InvalidDependency, "edge_id", detail))
        };
        let (from, slot) = self.find_edge(&id, edge)?.ok_or_else(none)?;
        let edges = self.out_edges(from, slot, slot + 1)?;
        let found = edges.into_iter().next().ok_or_else(none)?;
        if !self.stands(flow, from, found.to)? {
            return Err(none());
        }
        Ok((from, slot, found))
    }
}

pub(in super::super) fn apply(
    facts: &impl Facts,
    op: &ApplyEdge,
    now: TimestampMs,
) -> Result<Step<EdgeApplied>, Halt> {
    existing(facts, op.flow_id)?;
    let mut scene = Scene::new(facts, now);
    let (from, slot, edge) = scene.edge(op.flow_id, op.edge_id)?;
    if edge.applied {
        return Ok(Step::unchanged(EdgeApplied::AlreadyApplied));
    }
    open(existing(facts, op.flow_id)?)?;
    scene.check_applicable(edge.to.id(from))?;
    let unresolved = scene.make_count(from, slot, edge)?;
    Ok(Step::done(EdgeApplied::Applied { unresolved }, scene.finish()))
}

pub(in super::super) fn set_policy(
    facts: &impl Facts,
    op: &SetGroupPolicy,
    now: TimestampMs,
) -> Result<Step<GroupSet>, Halt> {
    let document = existing(facts, op.flow_id)?;
    let mut scene = Scene::new(facts, now);
    scene.number_in(op.flow_id, op.downstream)?;
    let group = &mut scene.member(op.downstream)?.member_mut()?.group;
    if group.join == op.join {
        return Ok(Step::unchanged(GroupSet::AlreadySet));
    }
    if group.satisfied + group.impossible > 0 || group.state != GroupState::Pending {
        return Err(group_fixed("an edge of it has resolved").into());
    }
    group.join = op.join;
    let draft = scene.flow(&document.id)?;
    draft.flow_mut().graph_revision += 1;
    let downstream = op.downstream.to_string();
    let data = EventData::from([("downstream".to_owned(), downstream.as_str().into())]);
    draft.event(EventKind::FlowChanged, data);
    Ok(Step::done(GroupSet::Set, scene.finish()))
}

/// Resolves one edge whose upstream has ended with an outcome, if that was not done.
pub(in super::super) fn resolve(
    facts: &impl Facts,
    op: &ResolveEdge,
    now: TimestampMs,
) -> Result<Step<EdgeResolution>, Halt> {
    existing(facts, op.flow_id)?;
    let mut scene = Scene::new(facts, now);
    let (from, slot, edge) = scene.edge(op.flow_id, op.edge_id)?;
    let upstream = scene.member(from)?;
    let state = edge.state(&upstream.execution, slot);
    let outcome = upstream.execution.phase.terminal().map(|terminal| terminal.outcome);
    let to = edge.to.id(from);
    if state != EdgeState::Pending {
        let decided = scene.view(to)?.and_then(|found| found.member.as_ref().map(|m| m.group));
        let fired = decided.is_some_and(|group| group.state != GroupState::Pending);
        return Ok(Step::unchanged(if fired {
            EdgeResolution::AlreadyFired
        } else {
            EdgeResolution::AlreadyResolved
        }));
    }
    let Some(outcome) = outcome.filter(|outcome| *outcome == op.outcome && edge.applied) else {
        return Ok(Step::unchanged(EdgeResolution::Pending));
    };
    let state = edge.kind.resolved_by(outcome);
    scene.resolve_edge(from, outcome, &edge)?;
    let fix = |fixed: &mut Option<Outcome>| *fixed = Some(outcome);
    scene.member(from)?.change_item(
        facts,
        &OUT,
        slot,
        |edge: &mut OutEdge| fix(&mut edge.fixed),
    )?;
    let in_slot = edge.slot;
    if let Some(draft) = scene.draft(to)? {
        draft.change_item(facts, &IN, in_slot, |edge: &mut InEdge| fix(&mut edge.fixed))?;
    }
    scene.follow_up()?;
    let reply = match state {
        EdgeState::Satisfied => EdgeResolution::Satisfied,
        _ => EdgeResolution::Impossible,
    };
    Ok(Step::done(reply, scene.finish()))
}

/// Whether one of others waits for a member to end: by ways that lead from it over edges, and over
/// members that wait for others as their children. Reads the whole graph, and where members wait the
/// records of all that is met on the way.
pub(super) fn leads_to<F: Facts>(
    scene: &mut Scene<'_, F>,
    flow: &DocumentId,
    id: ExecutionId,
    targets: &[u32],
) -> Result<bool, Halt> {
    let start = scene.member(id)?.member()?;
    let (number, is_end) = (start.number, start.outs == 0 && start.parents.is_empty());
    if is_end {
        return Ok(false);
    }
    let next = downstreams(scene, flow)?;
    let waits = scene.flow(flow)?.flow().waits;
    let mut seen = BTreeSet::from([number]);
    let mut wave = vec![number];
    while !wave.is_empty() {
        let mut reached: Vec<u32> =
            wave.iter().filter_map(|number| next.get(number)).flatten().copied().collect();
        if waits {
            reached.extend(waiting_for(scene, flow, &wave)?);
        }
        reached.retain(|number| seen.insert(*number));
        if reached.iter().any(|number| targets.contains(number)) {
            return Ok(true);
        }
        wave = reached;
    }
    Ok(false)
}

/// Where the edges of each member of a flow lead.
fn downstreams<F: Facts>(
    scene: &mut Scene<'_, F>,
    id: &DocumentId,
) -> Result<HashMap<u32, Vec<u32>>, Halt> {
    let facts = scene.facts;
    let flow = scene.flow(id)?.flow().clone();
    let mut links: Vec<Link> =
        scene.flow(id)?.items(facts, &id.into(), &TOPOLOGY, (0, flow.edges))?;
    let gone = gone_among(facts, id, &flow, links.iter().flat_map(|link| [link.from, link.to]))?;
    links.retain(|link| !gone.contains(&link.from) && !gone.contains(&link.to));
    let mut next: HashMap<u32, Vec<u32>> = HashMap::new();
    for link in links {
        next.entry(link.from).or_default().push(link.to);
    }
    Ok(next)
}

/// Members that wait for one of these as a child.
fn waiting_for<F: Facts>(
    scene: &mut Scene<'_, F>,
    flow: &DocumentId,
    numbers: &[u32],
) -> Result<Vec<u32>, Halt> {
    let members = scene.flow(flow)?.flow().members;
    let all = scene.member_ids(flow, 0, members)?;
    let ids: Vec<_> = numbers.iter().filter_map(|number| all.get(*number as usize)).collect();
    scene.want(&ids.iter().map(|id| **id).collect::<Vec<_>>())?;
    let mut parents: Vec<(ExecutionId, u32)> = Vec::new();
    for id in ids {
        let Some(found) = scene.view(*id)? else { continue };
        let waiting = found.member.iter().flat_map(|member| member.parents.iter());
        parents.extend(waiting.map(|parent| (beside(flow, parent.uuid), parent.wait)));
    }
    scene.want(&parents.iter().map(|(id, _)| *id).collect::<Vec<_>>())?;
    let mut found = Vec::new();
    for (parent, wait) in parents {
        let Some(parent) = scene.view(parent)? else { continue };
        // It may have ended that wait in another way.
        let waits = parent.phase.children().is_some_and(|children| children.wait == wait);
        found.extend(parent.member.as_ref().filter(|_| waits).map(|member| member.number));
    }
    Ok(found)
}

pub(super) fn edge_row(edge: EdgeId) -> RowKey {
    RowKey::named(Family::EdgeId, edge.uuid().as_bytes())
}

pub(super) fn second_payload() -> Refusal {
    Refusal::new(Code::InvalidDependency, "another edge passes its result to this member already")
}

fn group_fixed(why: &str) -> Refusal {
    Refusal::new(Code::EdgeGroupFixed, format!("the group cannot change: {why}"))
}

impl NewEdge {
    /// The edge beside its upstream; its downstream has a number, and `slot` is its place there.
    pub(super) fn out(&self, id: EdgeId, (number, slot): (u32, u32)) -> OutEdge {
        OutEdge {
            id,
            to: End { uuid: self.downstream.uuid(), number },
            slot,
            kind: self.kind,
            name: self.name.clone(),
            data_passing_ref: self.data_passing_ref.clone().filter(|text| !text.is_empty()),
            applied: false,
            fixed: None,
        }
    }

    /// The edge beside its downstream; its upstream has a number, and `slot` is its place there.
    pub(super) fn in_edge(&self, (number, slot): (u32, u32)) -> InEdge {
        InEdge {
            from: End { uuid: self.upstream.uuid(), number },
            slot,
            kind: self.kind,
            name: self.name.clone(),
            passes: self.passes(),
            applied: false,
            fixed: None,
        }
    }
}

impl Flow {
    /// The number of an edge of the submitted graph.
    fn seeded_number(&self, edge: EdgeId) -> Option<u32> {
        let (seed, count) = self.edge_seed?;
        let offset = edge.uuid().as_u128().wrapping_sub(seed.as_u128());
        u32::try_from(offset).ok().filter(|number| *number < count)
    }
}
