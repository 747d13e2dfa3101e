//! The rule of submitting a whole graph.
//!
//! The graph is written down in one step: the flow, its lists, and its members in chunks. The first
//! chunk becomes executions at once; the others are unfolded one after another as work that edges
//! wait for, so nothing is ever resolved against a member that is not there yet.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::super::Facts;
use super::super::document::DocumentDraft;
use super::super::draft::{Draft, Halt};
use super::super::rows::{Family, RowChange, RowKey};
use super::super::standing::check_attached;
use super::super::step::Step;
use super::super::submit::{execution, ground};
use super::create::{blank, is_staying};
use super::members::name_row;
use super::pages::{Beside, IN, InEdge, Link, MEMBERS, MemberRef, OUT, OutEdge, TOPOLOGY};
use super::scene::{Scene, beside, broken};
use super::work::WorkItem;
use crate::error::{Code, Refusal};
use crate::event::{EventData, EventKind};
use crate::id::{DocumentId, EdgeId};
use crate::limits;
use crate::operation::{Graph, SubmitFlow, SubmittedFlow};
use crate::policy::Retention;
use crate::state::{Attached, Execution, Flow, Group, Phase};
use crate::time::TimestampMs;

/// A member that is not there yet.
#[derive(Debug, Serialize, Deserialize)]
struct Folded {
    execution: Execution,
    payload: bytes::Bytes,
    outs: Vec<OutEdge>,
    ins: Vec<InEdge>,
}

pub(in super::super) fn submit(
    facts: &impl Facts,
    op: &SubmitFlow,
    now: TimestampMs,
) -> Result<Step<SubmittedFlow>, Halt> {
    let id = DocumentId::flow(op.flow.flow_id, &facts.settings().partitions);
    if let Some(document) = facts.document(&id)? {
        is_staying(&document)?;
        let flow = document.flow().filter(|flow| flow.fingerprint == Some(op.fingerprint()));
        let Some(flow) = flow else { return Err(mismatch().into()) };
        return Ok(Step::unchanged(known(facts, &id, flow, op)?));
    }
    let graph = op.graph()?;
    check_ids(facts, op)?;
    let retention = check_ground(facts, op)?;
    let mut scene = Scene::new(facts, now);
    scene.put_flow(write_down(op, &graph, id.clone(), now));
    let folded = fold(op, &graph, retention, now);
    for (at, member) in (0..).zip(folded) {
        if at < limits::FLOW_STEP {
            scene.put(member.into_draft(now));
        } else {
            scene.hold_back(&id, at, &member)?;
        }
    }
    if op.members.len() > limits::FLOW_STEP as usize {
        scene.leave_flow_work(&id, WorkItem::Unfold { from: limits::FLOW_STEP })?;
    }
    let reply = SubmittedFlow {
        flow_id: op.flow.flow_id,
        members: op.members.iter().map(|m| (m.name.clone(), m.submit.execution_id)).collect(),
        edges: (0..graph.links.len()).map(|n| op.edge_id(n)).collect(),
        graph_revision: scene.flow(&id)?.flow().graph_revision,
        duplicate: false,
    };
    Ok(Step::done(reply, scene.finish()))
}

/// What the first submit answered.
fn known(
    facts: &impl Facts,
    id: &DocumentId,
    flow: &Flow,
    op: &SubmitFlow,
) -> Result<SubmittedFlow, Halt> {
    let count = u32::try_from(op.members.len()).unwrap_or(u32::MAX);
    // Those that were removed since have no name.
    let members: Vec<MemberRef> = MEMBERS.stored_items(facts, &id.into(), (0, count))?;
    let named = |member: MemberRef| Some((member.name?, beside(id, member.uuid)));
    let members = members.into_iter().filter_map(named).collect();
    let (seed, edges) = flow.edge_seed.unwrap_or_default();
    let first = SubmitFlow { edge_seed: seed, ..op.clone() };
    Ok(SubmittedFlow {
        flow_id: flow.id,
        members,
        edges: (0..edges as usize).map(|n| first.edge_id(n)).collect(),
        graph_revision: flow.graph_revision,
        duplicate: true,
    })
}

fn mismatch() -> Refusal {
    Refusal::new(
        Code::IdempotencyMismatch,
        "the flow's id or idempotency key was used before with another graph",
    )
}

/// Refuses a graph that its lanes do not take or that stands under nothing that is there; answers
/// with what its namespace says of retention.
fn check_ground(facts: &impl Facts, op: &SubmitFlow) -> Result<Retention, Halt> {
    check_attached(facts, &op.flow.namespace, &op.flow.attached, &Attached::default())?;
    let mut retention = Retention::default();
    for member in &op.members {
        retention = ground(facts, &member.submit)?;
    }
    Ok(retention)
}

/// Members are new, of the flow's namespace, and stand beside it.
fn check_ids(facts: &impl Facts, op: &SubmitFlow) -> Result<(), Halt> {
    let partition = op.flow.flow_id.partition(&facts.settings().partitions);
    let ids: Vec<_> = op.members.iter().map(|member| member.submit.execution_id).collect();
    if ids.iter().any(|id| id.partition() != partition) {
        let detail = format!("members of this flow stand in partition {partition}");
        return Err(Refusal::invalid("members", detail).into());
    }
    facts.want_executions(&ids)?;
    for id in ids {
        if facts.execution(id)?.is_some() {
            let detail = format!("there is an execution {id} already");
            return Err(Refusal::at(Code::IdempotencyMismatch, "members", detail).into());
        }
    }
    Ok(())
}

/// The flow with its lists of members and edges.
fn write_down(
    op: &SubmitFlow,
    graph: &Graph,
    id: DocumentId,
    now: TimestampMs,
) -> DocumentDraft<Flow> {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let mut flow = blank(&op.flow, now);
    flow.fingerprint = Some(op.fingerprint());
    flow.members = count(op.members.len());
    (flow.live, flow.folded) = (flow.members, flow.members);
    flow.edges = count(graph.links.len());
    flow.graph_revision = 1;
    flow.edge_seed = Some((op.edge_seed, flow.edges));
    let mut draft = DocumentDraft::new(id, flow, now);
    let members: Vec<_> = op
        .members
        .iter()
        .map(|m| MemberRef::new(m.submit.execution_id, Some(m.name.clone())))
        .collect();
    for (page, members) in (0..).zip(members.chunks(MEMBERS.per_page() as usize)) {
        draft.put_page(&MEMBERS, page, members);
    }
    for (number, member) in (0u32..).zip(&op.members) {
        draft.put_row(RowChange::put(name_row(&member.name), &number));
    }
    let mut slots: HashMap<u32, u32> = HashMap::new();
    let mut slot_of = |from| {
        let slot = slots.entry(from).or_default();
        *slot += 1;
        *slot - 1
    };
    let links = graph.links.iter();
    let links: Vec<_> = links.map(|&(from, to)| Link { from, to, slot: slot_of(from) }).collect();
    for (page, links) in (0..).zip(links.chunks(TOPOLOGY.per_page() as usize)) {
        draft.put_page(&TOPOLOGY, page, links);
    }
    draft.event(EventKind::FlowCreated, EventData::new());
    draft
}

/// All members with their edges, each as it will be.
fn fold(op: &SubmitFlow, graph: &Graph, retention: Retention, now: TimestampMs) -> Vec<Folded> {
    let mut folded: Vec<_> = (0..)
        .zip(&op.members)
        .map(|(number, member)| {
            let mut made = execution(&member.submit, retention, now);
            let mut part =
                crate::state::Member::new(op.flow.flow_id, number, Some(member.name.clone()));
            part.group.join = graph.joins.get(&number).copied().unwrap_or_default();
            made.member = Some(Box::new(part));
            let payload = member.submit.payload.bytes.clone();
            Folded { execution: made, payload, outs: Vec::new(), ins: Vec::new() }
        })
        .collect();
    for (n, (&(from, to), edge)) in graph.links.iter().zip(&op.edges).enumerate() {
        let ids = [from, to].map(|n| op.members[n as usize].submit.execution_id);
        let edge = edge.between(ids[0], ids[1]);
        let (out_slot, in_slot) = (folded[from as usize].outs.len(), folded[to as usize].ins.len());
        let slot = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let out = OutEdge { applied: true, ..edge.out(op.edge_id(n), (to, slot(in_slot))) };
        folded[from as usize].outs.push(out);
        let into = InEdge { applied: true, ..edge.in_edge((from, slot(out_slot))) };
        folded[to as usize].ins.push(into);
    }
    folded.iter_mut().for_each(Folded::count);
    folded
}

impl Folded {
    /// Notes the edges in the record.
    fn count(&mut self) {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let (outs, ins) = (count(self.outs.len()), count(self.ins.len()));
        if let Some(member) = &mut self.execution.member {
            (member.outs, member.ins) = (outs, ins);
            member.group = Group { edges: ins, ..member.group };
        }
        if let Phase::Runnable(runnable) = &mut self.execution.phase {
            runnable.causes.edges = ins > 0;
        }
    }

    fn into_draft(self, now: TimestampMs) -> Draft {
        let mut draft = Draft::new(self.execution.clone(), self.payload.clone(), now);
        self.put_edges(&mut draft);
        draft.event(EventKind::Submitted);
        draft
    }

    fn put_edges(&self, draft: &mut Draft) {
        for (page, edges) in (0..).zip(self.outs.chunks(OUT.per_page() as usize)) {
            draft.put_page(&OUT, page, edges);
        }
        for (page, edges) in (0..).zip(self.ins.chunks(IN.per_page() as usize)) {
            draft.put_page(&IN, page, edges);
        }
    }
}

fn folded_row(number: u32) -> RowKey {
    RowKey::numbered(Family::Unfold, number)
}

impl<F: Facts> Scene<'_, F> {
    /// Keeps a member for a later step.
    fn hold_back(&mut self, id: &DocumentId, number: u32, member: &Folded) -> Result<(), Halt> {
        self.flow(id)?.put_row(RowChange::put(folded_row(number), member));
        Ok(())
    }

    /// Makes members from a number on; where to go on.
    pub(super) fn unfold(&mut self, id: &DocumentId, from: u32) -> Result<Option<u32>, Halt> {
        let facts = self.facts;
        let seeded = self.flow(id)?.flow().folded;
        let to = seeded.min(from.saturating_add(limits::FLOW_STEP));
        let keys: Vec<_> = (from..to).map(folded_row).collect();
        facts.want_rows(&id.into(), &keys)?;
        let mut members = Vec::with_capacity(keys.len());
        for key in keys {
            let draft = self.flow(id)?;
            let folded: Option<Folded> = draft.find_row(facts, &key)?;
            members.push(folded.ok_or_else(|| broken("a member was not written down"))?);
            draft.put_row(RowChange::remove(key));
        }
        let ids: Vec<_> = members.iter().map(|folded| folded.execution.id).collect();
        self.want(&ids)?;
        for folded in members {
            self.unfold_member(id, folded)?;
        }
        Ok((to < seeded).then_some(to))
    }

    fn unfold_member(&mut self, id: &DocumentId, folded: Folded) -> Result<(), Halt> {
        let (now, member) = (self.now, folded.execution.id);
        if let Some(taken) = self.view(member)? {
            return self.adopt(id, &taken, &folded);
        }
        self.put(folded.into_draft(now));
        let flow = self.flow(id)?.flow();
        if flow.stops_claims() {
            let reason = flow.cancel.as_ref().map(|cancel| cancel.reason.clone());
            let reason = reason.unwrap_or_default();
            self.cancel_member(member, &reason, crate::state::CancelSource::FlowCascade)?;
        }
        Ok(())
    }
}

impl<F: Facts> Scene<'_, F> {
    /// Somebody has used the id of a member meanwhile: that execution takes its place, unless it
    /// belongs to another flow, which then lacks one.
    fn adopt(&mut self, id: &DocumentId, taken: &Execution, folded: &Folded) -> Result<(), Halt> {
        if taken.member.is_some() {
            let flow = self.flow(id)?.flow_mut();
            flow.live = flow.live.saturating_sub(1);
            return Ok(());
        }
        let Some(draft) = self.draft(taken.id)? else { return Ok(()) };
        draft.execution.member.clone_from(&folded.execution.member);
        folded.put_edges(draft);
        if taken.is_terminal() {
            self.ended.push_back(taken.id);
        } else if !folded.ins.is_empty() {
            draft.block_edges();
        }
        Ok(())
    }
}

impl SubmitFlow {
    /// The id of its `n`-th edge.
    pub(super) fn edge_id(&self, n: usize) -> EdgeId {
        EdgeId::new(uuid::Uuid::from_u128(self.edge_seed.as_u128().wrapping_add(n as u128)))
    }
}
