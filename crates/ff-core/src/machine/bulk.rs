//! The rules of bulk operations.

use std::sync::Arc;

use super::Facts;
use super::document::{DocumentDraft, Fired};
use super::draft::Halt;
use super::step::Step;
use crate::error::{Code, Refusal};
use crate::event::{EventData, EventKind};
use crate::id::{BulkId, DocumentId};
use crate::limits;
use crate::operation::{AdvanceBulk, BulkCreated, BulkWish, CreateBulk, SetBulk, Settled};
use crate::state::{Bulk, BulkState, Document, DueKind, Part};
use crate::time::TimestampMs;

pub(super) fn create(
    facts: &impl Facts,
    op: &CreateBulk,
    now: TimestampMs,
) -> Result<Step<BulkCreated>, Halt> {
    let id = DocumentId::bulk(op.bulk_id);
    if let Some(document) = facts.document(&id)? {
        let made_as = |bulk: &&Bulk| {
            (&bulk.namespace, bulk.action, &bulk.targets, &bulk.reason)
                == (&op.namespace, op.action, &op.targets, &op.reason)
        };
        return match Bulk::of(&document.body).filter(made_as) {
            Some(bulk) => {
                Ok(Step::unchanged(BulkCreated::AlreadySatisfied { matched: bulk.matched }))
            }
            None => {
                let detail = format!("bulk operation {} is another one", op.bulk_id);
                Err(Refusal::at(Code::IdempotencyMismatch, "bulk_id", detail).into())
            }
        };
    }
    let bulk = Bulk {
        id: op.bulk_id,
        namespace: op.namespace.clone(),
        action: op.action,
        targets: op.targets.clone(),
        reason: op.reason.clone(),
        state: BulkState::Running,
        matched: op.matched,
        done: 0,
        failed: 0,
        steps: 0,
        cursor: None,
        created_at: now,
        changed_at: now,
        due_at: now,
    };
    let mut draft = DocumentDraft::new(id, bulk, now);
    draft.tell();
    Ok(draft.answer(BulkCreated::Created))
}

pub(super) fn set(
    facts: &impl Facts,
    op: &SetBulk,
    now: TimestampMs,
) -> Result<Step<Settled>, Halt> {
    let mut draft = DocumentDraft::existing(facts, op.bulk_id, now)?;
    let state = draft.body.state;
    if state == op.to.state() {
        return Ok(Step::unchanged(Settled::AlreadySatisfied));
    }
    if state.has_ended() {
        let detail = format!("the bulk operation is {}", state.as_str());
        return Err(Refusal::new(Code::Terminal, detail).into());
    }
    if op.to == BulkWish::Resume {
        draft.body.due_at = now;
    }
    draft.turn(op.to.state());
    Ok(draft.answer(Settled::Done))
}

pub(super) fn advance(
    facts: &impl Facts,
    op: &AdvanceBulk,
    now: TimestampMs,
) -> Result<Step<Settled>, Halt> {
    let mut draft = DocumentDraft::existing(facts, op.bulk_id, now)?;
    // What was carried out counts, also if somebody has paused or ended it meanwhile.
    if draft.body.steps != op.steps || draft.body.state == BulkState::Completed {
        return Ok(Step::unchanged(Settled::AlreadySatisfied));
    }
    let bulk = &mut draft.body;
    bulk.steps += 1;
    bulk.done += u64::from(op.done);
    bulk.failed += u64::from(op.failed);
    bulk.cursor.clone_from(&op.cursor);
    bulk.due_at = now;
    if op.is_last && bulk.state != BulkState::Aborted {
        draft.turn(BulkState::Completed);
    }
    Ok(draft.answer(Settled::Done))
}

/// It is told that it is to be carried on, and again in a second; one that has ended goes.
pub(super) fn fire(document: Arc<Document>, now: TimestampMs) -> Result<Fired, Halt> {
    let Some(due) = document.due().filter(|due| due.at <= now) else { return Ok(None) };
    let mut draft = DocumentDraft::<Bulk>::of(document, now)?;
    match due.kind {
        DueKind::RetentionTrimmer => draft.removed = true,
        _ => draft.body.due_at = now.after(limits::ERRAND_RETRY_MS),
    }
    Ok(Some((due.kind, draft.finish())))
}

impl DocumentDraft<Bulk> {
    /// The bulk operation, or `bulk_not_found`.
    fn existing(facts: &impl Facts, id: BulkId, now: TimestampMs) -> Result<Self, Halt> {
        let missing =
            || Refusal::at(Code::BulkNotFound, "bulk_id", format!("no bulk operation {id}"));
        Self::of(facts.document(&DocumentId::bulk(id))?.ok_or_else(missing)?, now)
    }

    fn turn(&mut self, state: BulkState) {
        self.body.state = state;
        self.body.changed_at = self.now;
        self.tell();
    }

    fn tell(&mut self) {
        let data = EventData::from([
            ("state".to_owned(), self.body.state.as_str().into()),
            ("action".to_owned(), self.body.action.as_str().into()),
            ("done".to_owned(), self.body.done.into()),
            ("failed".to_owned(), self.body.failed.into()),
        ]);
        self.event(EventKind::BulkChanged, data);
    }
}
