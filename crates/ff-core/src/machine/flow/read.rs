//! Questions about the graph of a flow, decided over its rows.

use std::sync::Arc;

use uuid::Uuid;

use super::super::draft::Halt;
use super::super::{Facts, Needs};
use super::gone::gone_among;
use super::inputs::name_of;
use super::pages::{CHILDREN, End, IN, InEdge, MEMBERS, MemberRef, OUT, OutEdge};
use super::scene::{Scene, beside};
use super::{existing, not_found};
use crate::error::{Code, Refusal};
use crate::id::{DocumentId, EdgeId, ExecutionId, FlowId};
use crate::limits;
use crate::read::{
    DescribeEdge, EdgeSnapshot, Eligibility, EvaluateEligibility, FlowEdges, FlowMembers,
    ListFlowEdges, ListFlowMembers, MemberSnapshot, Upstream,
};
use crate::state::{EdgeState, Execution, Flow, GroupState, Phase};
use crate::time::TimestampMs;

/// Members that one page of edges looks at.
const LOOK_AT: u32 = 256;

fn flow_of(facts: &impl Facts, id: FlowId) -> Result<(DocumentId, Flow), Halt> {
    let document = existing(facts, id)?;
    match document.flow() {
        Some(flow) => Ok((document.id.clone(), flow.clone())),
        None => Err(not_found(id).into()),
    }
}

fn refs(
    facts: &impl Facts,
    id: &DocumentId,
    from: u32,
    to: u32,
) -> Result<Vec<(End, MemberRef)>, Halt> {
    let refs: Vec<MemberRef> = MEMBERS.stored_items(facts, &id.into(), (from, to))?;
    let numbered = (from..).zip(refs).filter(|(_, member)| member.gone.is_none());
    let found: Vec<_> =
        numbered.map(|(number, member)| (End { uuid: member.uuid, number }, member)).collect();
    let ids: Vec<_> = found.iter().map(|(end, _)| beside(id, end.uuid)).collect();
    facts.want_executions(&ids)?;
    Ok(found)
}

/// The member that the flow has under a number, if it is there.
fn standing(
    facts: &impl Facts,
    id: &DocumentId,
    flow: &Flow,
    end: End,
) -> Result<Option<Arc<Execution>>, Needs> {
    let found = facts.execution(beside(id, end.uuid))?;
    Ok(found.filter(|found| end.is(flow.id, found)))
}

/// A page of members in the order in which they were added.
pub(in super::super) fn list_members(
    facts: &impl Facts,
    query: &ListFlowMembers,
) -> Result<FlowMembers, Halt> {
    let (id, flow) = flow_of(facts, query.flow_id)?;
    let to = flow.members.min(query.from.saturating_add(query.limit));
    let mut items = Vec::new();
    for (end, member) in refs(facts, &id, query.from, to)? {
        // One that is not there yet, or not any more, is left out.
        if let Some(execution) = standing(facts, &id, &flow, end)? {
            items.push(MemberSnapshot::of(&execution, member.name));
        }
    }
    Ok(FlowMembers { items, next: (to < flow.members).then_some(to) })
}

/// A page of edges, by upstream.
pub(in super::super) fn list_edges(
    facts: &impl Facts,
    query: &ListFlowEdges,
) -> Result<FlowEdges, Halt> {
    let (id, flow) = flow_of(facts, query.flow_id)?;
    let (first, mut slot) = query.from;
    let to = flow.members.min(first.saturating_add(LOOK_AT));
    let mut next = (to < flow.members).then_some((to, 0));
    let (mut room, mut parts, mut needs) = (query.limit, Vec::new(), Needs::default());
    for (end, _) in refs(facts, &id, first, to)? {
        let number = end.number;
        let Some(execution) = standing(facts, &id, &flow, end)? else { continue };
        slot = if number == first { slot } else { 0 };
        let upstream = execution.id;
        let outs = execution.member.as_ref().map_or(0, |member| member.outs);
        let end = outs.min(slot.saturating_add(room));
        needs.note(OUT.want(facts, &upstream.into(), (slot, end)).map(Some));
        room -= end.saturating_sub(slot);
        parts.push((execution, slot, end));
        if end < outs {
            next = Some((number, end));
            break;
        }
        if room == 0 {
            next = (number + 1 < flow.members).then_some((number + 1, 0));
            break;
        }
    }
    needs.into_result()?;
    let mut found = Vec::new();
    for (execution, slot, end) in parts {
        let edges: Vec<OutEdge> = OUT.stored_items(facts, &execution.id.into(), (slot, end))?;
        found.extend((slot..).zip(edges).map(|(slot, edge)| (Arc::clone(&execution), slot, edge)));
    }
    let gone = gone_among(facts, &id, &flow, found.iter().map(|(.., edge)| edge.to.number))?;
    found.retain(|(.., edge)| !gone.contains(&edge.to.number));
    let items = found.into_iter().map(|(upstream, slot, edge)| snapshot(&upstream, slot, edge));
    Ok(FlowEdges { items: items.collect(), next })
}

fn snapshot(upstream: &Execution, slot: u32, edge: OutEdge) -> EdgeSnapshot {
    EdgeSnapshot {
        edge_id: edge.id,
        upstream: upstream.id,
        downstream: edge.to.id(upstream.id),
        kind: edge.kind,
        state: edge.state(upstream, slot),
        applied: edge.applied,
        name: edge.name,
        data_passing_ref: edge.data_passing_ref,
    }
}

/// One edge, or `edge_not_found`.
pub(in super::super) fn describe_edge(
    facts: &impl Facts,
    query: &DescribeEdge,
    now: TimestampMs,
) -> Result<EdgeSnapshot, Halt> {
    let (id, _) = flow_of(facts, query.flow_id)?;
    let mut scene = Scene::new(facts, now);
    let none = |edge: EdgeId| {
        Refusal::at(Code::EdgeNotFound, "edge_id", format!("no edge {edge} in this flow"))
    };
    let Some((upstream, slot)) = scene.find_edge(&id, query.edge_id)? else {
        return Err(none(query.edge_id).into());
    };
    let Some(execution) = facts.execution(upstream)? else {
        return Err(none(query.edge_id).into());
    };
    let edges = scene.out_edges(upstream, slot, slot + 1)?;
    let edge = edges.into_iter().next().ok_or_else(|| none(query.edge_id))?;
    if !scene.stands(query.flow_id, upstream, edge.to)? {
        return Err(none(query.edge_id).into());
    }
    Ok(snapshot(&execution, slot, edge))
}

/// How far one member is from being run.
pub(in super::super) fn eligibility(
    facts: &impl Facts,
    query: &EvaluateEligibility,
) -> Result<Eligibility, Halt> {
    let (_, flow) = flow_of(facts, query.flow_id)?;
    let Some(execution) = facts.execution(query.execution_id)? else {
        return Ok(Eligibility::NotFound);
    };
    let Some(member) = execution.member.as_ref().filter(|m| m.flow_id == flow.id) else {
        return Ok(Eligibility::NotFound);
    };
    Ok(match &execution.phase {
        Phase::Terminal(_) => Eligibility::Terminal,
        Phase::Active(_) => Eligibility::Owned,
        Phase::Suspended(_) => Eligibility::NotRunnable,
        Phase::Runnable(_) if member.group.state == GroupState::Impossible => {
            Eligibility::Impossible
        }
        Phase::Runnable(runnable) if runnable.causes.waits_for_members() => {
            Eligibility::BlockedByDependencies
        }
        Phase::Runnable(runnable) if runnable.causes.is_empty() && !flow.stops_claims() => {
            Eligibility::Eligible
        }
        Phase::Runnable(_) => Eligibility::NotRunnable,
    })
}

/// Some of the members that a member waits for.
pub(in super::super) fn waited_for(
    facts: &impl Facts,
    execution: &Execution,
) -> Result<Vec<Upstream>, Halt> {
    let Some(member) = &execution.member else { return Ok(Vec::new()) };
    let of = execution.id.into();
    let beside = |uuid| ExecutionId::new(execution.id.partition(), uuid);
    let edges: Vec<(ExecutionId, Option<InEdge>)> = if execution.phase.children().is_some() {
        let to = member.children.min(LOOK_AT);
        let uuids: Vec<Uuid> = CHILDREN.stored_items(facts, &of, (0, to))?;
        uuids.into_iter().map(|uuid| (beside(uuid), None)).collect()
    } else {
        let edges: Vec<InEdge> = IN.stored_items(facts, &of, (0, member.ins.min(LOOK_AT)))?;
        edges.into_iter().map(|edge| (edge.from.id(execution.id), Some(edge))).collect()
    };
    let ids: Vec<_> = edges.iter().map(|(id, _)| *id).collect();
    facts.want_executions(&ids)?;
    let mut found = Vec::new();
    for (id, edge) in edges {
        let Some(upstream) = facts.execution(id)? else { continue };
        let pending = match &edge {
            Some(edge) if !edge.from.is(member.flow_id, &upstream) => continue,
            Some(edge) => edge.state(&upstream) == EdgeState::Pending,
            None => !upstream.is_terminal(),
        };
        if pending && found.len() < limits::EXPLAIN_ITEMS as usize {
            found.push(Upstream {
                execution_id: id,
                name: edge
                    .as_ref()
                    .and_then(|edge| edge.name.clone())
                    .unwrap_or_else(|| name_of(&upstream)),
                state: upstream.public_state(),
                kind: edge.map(|edge| edge.kind),
            });
        }
    }
    Ok(found)
}
