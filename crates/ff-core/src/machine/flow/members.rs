//! The rules of adding members, and of removing a flow with all of them.

use std::sync::Arc;

use super::super::Facts;
use super::super::document::DocumentDraft;
use super::super::draft::{Draft, Halt, existing as existing_execution};
use super::super::rows::{Family, RowChange, RowKey};
use super::super::step::{Changes, Step};
use super::pages::{Beside, MEMBERS, MemberRef};
use super::resolve::is_failure;
use super::scene::Scene;
use super::work::WorkItem;
use super::{existing, not_found, not_terminal, open, still_at_work, without_members};
use crate::error::{Code, Refusal};
use crate::event::{EventData, EventKind};
use crate::id::{DocumentId, ExecutionId, FlowId, MemberName, Namespace};
use crate::limits;
use crate::operation::{AddToFlow, AddedToFlow, DeleteFlow, Deleted, InFlow};
use crate::state::{Document, Flow, Group, Member};
use crate::time::TimestampMs;

pub(in super::super) fn add(
    facts: &impl Facts,
    op: &AddToFlow,
    now: TimestampMs,
) -> Result<Step<AddedToFlow>, Halt> {
    let document = open(existing(facts, op.flow_id)?)?;
    let execution = existing_execution(facts, op.execution_id)?;
    if execution.about.namespace != *document.namespace() {
        return Err(super::super::draft::not_found(op.execution_id).into());
    }
    if let Some(member) = &execution.member {
        if member.flow_id == op.flow_id {
            let node_count = document.flow().map_or(0, Flow::node_count);
            return Ok(Step::unchanged(AddedToFlow::AlreadyMember { node_count }));
        }
        let detail = format!("it is a member of {}", member.flow_id);
        return Err(Refusal::new(Code::AlreadyMemberOfDifferentFlow, detail).into());
    }
    let mut scene = Scene::new(facts, now);
    let id = document.id.clone();
    scene.put_flow(DocumentDraft::of(document, now)?);
    let mut draft = Draft::of(execution, now);
    let live = !draft.execution.is_terminal();
    let failed = draft.execution.phase.terminal().is_some_and(is_failure);
    draft.execution.member = Some(scene.admit(&id, op.execution_id, op.name.clone(), live)?);
    scene.put(draft);
    if failed {
        scene.note_failure(op.execution_id)?;
    }
    scene.follow_up()?;
    let node_count = scene.flow(&id)?.flow().node_count();
    Ok(Step::done(AddedToFlow::Added { node_count }, scene.finish()))
}

/// The flow that a submit names, which must take members.
pub(in super::super) fn check_submit(
    facts: &impl Facts,
    within: &InFlow,
    namespace: &Namespace,
) -> Result<Arc<Document>, Halt> {
    let document = existing(facts, within.flow_id)?;
    // A flow of another namespace is not there.
    if document.namespace() != namespace {
        return Err(not_found(within.flow_id).into());
    }
    open(document)
}

/// Makes a new execution a member of its flow.
pub(in super::super) fn submit_into(
    facts: &impl Facts,
    document: Arc<Document>,
    name: Option<MemberName>,
    mut draft: Draft,
) -> Result<(Draft, Changes), Halt> {
    let mut scene = Scene::new(facts, draft.now);
    let id = document.id.clone();
    scene.put_flow(DocumentDraft::of(document, draft.now)?);
    draft.execution.member = Some(scene.admit(&id, draft.execution.id, name, true)?);
    Ok((draft, scene.finish()))
}

impl<F: Facts> Scene<'_, F> {
    /// Takes an execution on as the next member.
    pub(super) fn admit(
        &mut self,
        id: &DocumentId,
        execution: ExecutionId,
        name: Option<MemberName>,
        live: bool,
    ) -> Result<Box<Member>, Halt> {
        let facts = self.facts;
        let draft = self.flow(id)?;
        let flow = draft.flow_mut();
        if flow.members >= limits::FLOW_MEMBERS {
            let detail = format!("a flow has at most {} members", limits::FLOW_MEMBERS);
            return Err(Refusal::invalid("members", detail).into());
        }
        let (number, flow_id) = (flow.members, flow.id);
        flow.members += 1;
        flow.live += u32::from(live);
        flow.graph_revision += 1;
        let kind = match flow.end.take() {
            Some(_) => EventKind::FlowReopened,
            None => EventKind::FlowChanged,
        };
        let execution_text = execution.to_string();
        let data = EventData::from([("member".to_owned(), execution_text.as_str().into())]);
        draft.event(kind, data);
        if let Some(name) = &name {
            let row = name_row(name);
            if draft.find_row::<u32>(facts, &row)?.is_some() {
                let detail = format!("there is a member {name:?} already");
                return Err(Refusal::invalid("name", detail).into());
            }
            draft.put_row(RowChange::put(row, &number));
        }
        draft.append(facts, &MEMBERS, number, MemberRef::new(execution, name.clone()))?;
        Ok(Box::new(Member::new(flow_id, number, name)))
    }

    /// Removes members before a number, the newest first; those before which number are left.
    pub(super) fn remove_members(
        &mut self,
        id: &DocumentId,
        before: u32,
    ) -> Result<Option<u32>, Halt> {
        let from = before.saturating_sub(limits::FLOW_STEP);
        let ids = self.member_ids(id, from, before)?;
        self.want(&ids)?;
        for (number, member) in (from..).zip(ids) {
            if self.is_of(id, member, number)? {
                self.remove(member)?;
            }
        }
        if from > 0 {
            return Ok(Some(from));
        }
        self.flow(id)?.removed = true;
        Ok(None)
    }
}

pub(in super::super) fn delete(
    facts: &impl Facts,
    op: &DeleteFlow,
    now: TimestampMs,
) -> Result<Step<Deleted>, Halt> {
    let document = existing(facts, op.flow_id)?;
    let id = document.id.clone();
    let mut scene = Scene::new(facts, now);
    let flow = scene.flow(&id)?.flow_mut();
    let over = flow.end.is_some() || (flow.members == 0 && flow.is_cancelled());
    if !flow.work.is_empty() && flow.live == 0 {
        return Err(still_at_work().into());
    }
    if !over || !flow.work.is_empty() {
        let refusal = if flow.members == 0 { without_members() } else { not_terminal() };
        return Err(refusal.into());
    }
    flow.removing = true;
    let before = flow.members;
    scene.leave_flow_work(&id, WorkItem::Remove { before })?;
    scene.carry_on(&id)?;
    Ok(Step::done(Deleted, scene.finish()))
}

pub(super) fn name_row(name: &MemberName) -> RowKey {
    RowKey::named(Family::MemberName, name.as_str())
}

impl Member {
    /// A member without edges.
    pub(super) fn new(flow_id: FlowId, number: u32, name: Option<MemberName>) -> Self {
        Self {
            flow_id,
            number,
            name,
            group: Group::default(),
            ins: 0,
            outs: 0,
            resolved: 0,
            taking_back: None,
            parents: Vec::new(),
            waits: 0,
            children: 0,
            waiting_attempt: 0,
        }
    }
}
