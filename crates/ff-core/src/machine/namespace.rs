//! The rule of namespaces.

use super::Facts;
use super::document::DocumentDraft;
use super::draft::Halt;
use super::revision::check_revision;
use super::standing::check_attached;
use super::step::Step;
use crate::event::{EventData, EventKind};
use crate::id::DocumentId;
use crate::operation::{NamespaceSet, SetNamespace};
use crate::state::NamespaceRecord;
use crate::time::TimestampMs;

pub(super) fn set(
    facts: &impl Facts,
    op: &SetNamespace,
    now: TimestampMs,
) -> Result<Step<NamespaceSet>, Halt> {
    let id = DocumentId::namespace(&op.namespace);
    let fresh = || NamespaceRecord::new(&op.namespace);
    let mut draft = DocumentDraft::open(facts, id, fresh, now)?;
    check_revision(op.expected_revision, draft.revision())?;
    let before = std::mem::take(&mut draft.body.attached);
    draft.body.attached = op.attach.over(&before);
    draft.body.retention = op.retention.unwrap_or(draft.body.retention);
    check_attached(facts, &op.namespace, &draft.body.attached, &op.attach.kept(&before))?;
    let record = NamespaceRecord::clone(&draft.body);
    if draft.is_untouched() {
        return Ok(Step::unchanged(NamespaceSet { record, revision: draft.revision() }));
    }
    draft.event(EventKind::NamespaceChanged, EventData::new());
    let revision = draft.revision() + 1;
    Ok(draft.answer(NamespaceSet { record, revision }))
}
