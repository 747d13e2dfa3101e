//! The rules of making and tagging flows.

use super::super::Facts;
use super::super::document::DocumentDraft;
use super::super::draft::Halt;
use super::super::revision::check_revision;
use super::super::standing::check_attached;
use super::super::step::Step;
use super::existing;
use crate::error::{Code, Refusal};
use crate::event::{EventData, EventKind};
use crate::id::DocumentId;
use crate::limits;
use crate::operation::{CreateFlow, FlowCreated, SetFlowTags, TagsSet};
use crate::state::{Attached, Document, Flow, Gone, Work};
use crate::time::TimestampMs;

pub(in super::super) fn create(
    facts: &impl Facts,
    op: &CreateFlow,
    now: TimestampMs,
) -> Result<Step<FlowCreated>, Halt> {
    let id = DocumentId::flow(op.flow_id, &facts.settings().partitions);
    if let Some(document) = facts.document(&id)? {
        is_staying(&document)?;
        return Ok(Step::unchanged(FlowCreated::AlreadySatisfied));
    }
    check_attached(facts, &op.namespace, &op.attached, &Attached::default())?;
    let flow = blank(op, now);
    let mut draft = DocumentDraft::new(id, flow, now);
    draft.event(EventKind::FlowCreated, EventData::new());
    Ok(Step::done(FlowCreated::Created, draft.finish().into()))
}

/// Refuses an id whose flow is being removed: what would be found there is gone in a moment.
pub(super) fn is_staying(document: &Document) -> Result<(), Refusal> {
    match document.flow() {
        Some(flow) if flow.removing => {
            Err(Refusal::new(Code::StoreBusy, "the flow of this id is being removed; try again"))
        }
        _ => Ok(()),
    }
}

/// A flow without members.
pub(super) fn blank(op: &CreateFlow, now: TimestampMs) -> Flow {
    Flow {
        id: op.flow_id,
        namespace: op.namespace.clone(),
        kind: op.kind.clone(),
        tags: op.tags.clone(),
        created_at: now,
        retention_ms: op.retention_ms.unwrap_or(limits::RETENTION_MS),
        attached: op.attached.clone(),
        fingerprint: None,
        graph_revision: 0,
        members: 0,
        edges: 0,
        gone: Gone::default(),
        live: 0,
        failures: 0,
        judging: false,
        removing: false,
        waits: false,
        folded: 0,
        edge_seed: None,
        end: None,
        cancel: None,
        work: Work::default(),
    }
}

pub(in super::super) fn set_tags(
    facts: &impl Facts,
    op: &SetFlowTags,
    now: TimestampMs,
) -> Result<Step<TagsSet>, Halt> {
    let mut draft = DocumentDraft::<Flow>::of(existing(facts, op.flow_id)?, now)?;
    let revision = draft.revision();
    check_revision(op.expected_revision, revision)?;
    let flow = draft.flow_mut();
    let tags = flow.tags.merged(&op.tags)?;
    let count = tags.len();
    if tags == flow.tags {
        return Ok(Step::unchanged(TagsSet { count, revision }));
    }
    flow.tags = tags;
    draft.event(EventKind::FlowChanged, EventData::new());
    let reply = TagsSet { count, revision: revision + 1 };
    Ok(Step::done(reply, draft.finish().into()))
}
