//! Members that are removed by themselves from a flow that has ended.
//!
//! Whoever has edges with such a member keeps them, and no rule or reader finds its other end any more:
//! so a removal touches the flow alone, however many edges there are. In the groups behind it they stay
//! counted as they had resolved.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::Facts;
use super::super::draft::{Draft, Halt};
use super::super::rows::RowChange;
use super::super::step::{Changes, Step};
use super::members::name_row;
use super::not_terminal;
use super::pages::{Beside, IN, InEdge, MEMBERS, MemberRef, OUT, OutEdge};
use super::scene::Scene;
use crate::event::{EventData, EventKind};
use crate::id::DocumentId;
use crate::operation::Deleted;
use crate::state::{Execution, Flow, Member};
use crate::time::TimestampMs;

/// Removes a member that has ended, once its flow has.
pub(in super::super) fn remove_member(
    facts: &impl Facts,
    execution: Arc<Execution>,
    member: &Member,
    now: TimestampMs,
) -> Result<Step<Deleted>, Halt> {
    let id = DocumentId::flow_in(execution.id.partition(), member.flow_id);
    let document = facts.document(&id)?;
    let flow = document.as_ref().and_then(|document| document.flow());
    if flow.is_some_and(|flow| flow.end.is_none()) {
        return Err(not_terminal().into());
    }
    let changes = match flow.filter(|flow| !flow.removing) {
        Some(flow) => strike_out(facts, &id, flow, (&execution, member), now)?,
        None => Draft::of(execution, now).delete().into(),
    };
    Ok(Step::done(Deleted, changes))
}

/// Takes a member and its edges out of the lists and counts of its flow.
fn strike_out(
    facts: &impl Facts,
    id: &DocumentId,
    flow: &Flow,
    (execution, member): (&Execution, &Member),
    now: TimestampMs,
) -> Result<Changes, Halt> {
    let edges = edges_that_stand(facts, id, flow, (execution, member))?;
    let mut scene = Scene::new(facts, now);
    let draft = scene.flow(id)?;
    let flow = draft.flow_mut();
    flow.gone.members += 1;
    flow.gone.edges += edges;
    flow.graph_revision += 1;
    let gone = MemberRef::gone(member.group.state);
    draft.change_item(facts, &MEMBERS, member.number, |it: &mut MemberRef| *it = gone)?;
    if let Some(name) = &member.name {
        draft.put_row(RowChange::remove(name_row(name)));
    }
    let removed = execution.id.to_string();
    let data = EventData::from([("removed".to_owned(), removed.as_str().into())]);
    draft.event(EventKind::FlowChanged, data);
    scene.remove(execution.id)?;
    Ok(scene.finish())
}

/// How many edges of a member lead to others that are there, or from them.
fn edges_that_stand(
    facts: &impl Facts,
    id: &DocumentId,
    flow: &Flow,
    (execution, member): (&Execution, &Member),
) -> Result<u32, Halt> {
    if flow.gone.members == 0 {
        return Ok(member.outs + member.ins);
    }
    let of = execution.id.into();
    let outs: Vec<OutEdge> = OUT.stored_items(facts, &of, (0, member.outs))?;
    let ins: Vec<InEdge> = IN.stored_items(facts, &of, (0, member.ins))?;
    let others = outs.iter().map(|edge| edge.to.number);
    let others: Vec<u32> = others.chain(ins.iter().map(|edge| edge.from.number)).collect();
    let gone = gone_among(facts, id, flow, others.iter().copied())?;
    let stand = others.iter().filter(|number| !gone.contains(number)).count();
    Ok(u32::try_from(stand).unwrap_or(u32::MAX))
}

/// Which of these members were removed by themselves, as the store has it.
pub(super) fn gone_among(
    facts: &impl Facts,
    id: &DocumentId,
    flow: &Flow,
    numbers: impl Iterator<Item = u32>,
) -> Result<BTreeSet<u32>, Halt> {
    if flow.gone.members == 0 {
        return Ok(BTreeSet::new());
    }
    let pages: BTreeSet<u32> = numbers.map(|number| MEMBERS.place(number).0).collect();
    MEMBERS.want_pages(facts, &id.into(), pages.iter().copied())?;
    let mut gone = BTreeSet::new();
    for page in pages {
        let members: Vec<MemberRef> = MEMBERS.stored(facts, &id.into(), page)?;
        let numbered = (page * MEMBERS.per_page()..).zip(members);
        gone.extend(numbered.filter(|(_, it)| it.gone.is_some()).map(|(number, _)| number));
    }
    Ok(gone)
}
