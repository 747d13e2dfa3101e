//! The rules of making, changing and removing quota policies, and what time does to them.

use std::sync::Arc;

use super::super::Facts;
use super::super::document::{DocumentDraft, Fired};
use super::super::draft::Halt;
use super::super::revision::check_revision;
use super::super::step::Step;
use super::draft::QuotaDraft;
use super::waiting::Pace;
use super::{slots, waiting, window};
use crate::error::{Code, Refusal};
use crate::id::DocumentId;
use crate::limits;
use crate::operation::{
    CreateQuotaPolicy, DeleteQuotaPolicy, QuotaPolicyCreated, QuotaPolicyUpdated, Settled,
    UpdateQuotaPolicy,
};
use crate::state::{Document, PendingSlots, QuotaPolicy, RateWindow};
use crate::time::TimestampMs;

pub(in super::super) fn create(
    facts: &impl Facts,
    op: &CreateQuotaPolicy,
    now: TimestampMs,
) -> Result<Step<QuotaPolicyCreated>, Halt> {
    let id = DocumentId::quota_policy(op.quota_policy_id, &facts.settings().partitions);
    if let Some(document) = facts.document(&id)? {
        // What it was made as counts, not what updates made of it: a create that is sent again
        // because its reply was lost gets that reply.
        let made_as = document.quota_policy().map(|policy| (&policy.namespace, policy.created_as));
        if made_as == Some((&op.namespace, op.spec)) {
            return Ok(Step::unchanged(QuotaPolicyCreated::AlreadySatisfied));
        }
        let detail = format!("quota policy {} was made with another spec", op.quota_policy_id);
        return Err(Refusal::at(Code::QuotaAttachConflict, "quota_policy_id", detail).into());
    }
    let policy = QuotaPolicy {
        id: op.quota_policy_id,
        namespace: op.namespace.clone(),
        spec: op.spec,
        created_as: op.spec,
        definition: 1,
        created_at: now,
        window: RateWindow::default(),
        slots: 0,
        pending: PendingSlots::default(),
        overdue: Vec::new(),
        ask_at: None,
        patrol: 0,
        patrol_at: None,
        waiting: 0,
        resuming: 0,
        wake_at: None,
        resting: Vec::new(),
        waking: Vec::new(),
        tell_at: None,
    };
    let draft = DocumentDraft::new(id, policy, now);
    Ok(draft.answer(QuotaPolicyCreated::Created))
}

pub(in super::super) fn update(
    facts: &impl Facts,
    op: &UpdateQuotaPolicy,
    now: TimestampMs,
) -> Result<Step<QuotaPolicyUpdated>, Halt> {
    let mut draft = QuotaDraft::existing(facts, op.quota_policy_id, now)?;
    check_revision(op.expected_revision, draft.body.definition)?;
    let spec = op.change.over(&draft.body.spec);
    spec.check()?;
    if draft.body.spec == spec {
        return Ok(Step::unchanged(QuotaPolicyUpdated::default()));
    }
    draft.body.spec = spec;
    draft.body.definition += 1;
    window::refit(facts, &mut draft)?;
    let wake = waiting::let_in(facts, &mut draft, limits::QUOTA_WAKES, Pace::AtOnce)?;
    Ok(draft.answer(QuotaPolicyUpdated { wake }))
}

pub(in super::super) fn delete(
    facts: &impl Facts,
    op: &DeleteQuotaPolicy,
    now: TimestampMs,
) -> Result<Step<Settled>, Halt> {
    let mut draft = QuotaDraft::existing(facts, op.quota_policy_id, now)?;
    draft.removed = true;
    Ok(draft.answer(Settled::Done))
}

/// Carries out what is due: pending slots whose time is over are noted, and what has left the window
/// goes.
pub(in super::super) fn fire(
    facts: &impl Facts,
    document: Arc<Document>,
    now: TimestampMs,
) -> Result<Fired, Halt> {
    let Some(due) = document.due().filter(|due| due.at <= now) else { return Ok(None) };
    let mut draft = QuotaDraft::of(document, now)?;
    if draft.body.pending.until.is_some_and(|at| at <= now) {
        slots::note_overdue(facts, &mut draft)?;
    }
    if draft.body.window.trim_at.is_some_and(|at| at <= now) {
        window::trim(facts, &mut draft)?;
    }
    if draft.body.patrol_at.is_some_and(|at| at <= now) {
        slots::patrol(facts, &mut draft)?;
    }
    waiting::rouse(&mut draft);
    if draft.body.wake_at.is_some_and(|at| at <= now) {
        waiting::let_in(facts, &mut draft, limits::QUOTA_WAKES, Pace::Spread)?;
    }
    draft.remind();
    Ok(Some((due.kind, draft.finish())))
}
