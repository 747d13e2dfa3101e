//! A budget in the making.

use std::sync::Arc;

use super::super::Facts;
use super::super::document::DocumentDraft;
use super::super::draft::Halt;
use super::super::step::Step;
use crate::error::{Code, Refusal};
use crate::event::{EventData, EventKind};
use crate::id::{BudgetId, DocumentId};
use crate::limits;
use crate::state::{Budget, BudgetWork, Document};
use crate::time::TimestampMs;

pub(super) type BudgetDraft = DocumentDraft<Budget>;

impl DocumentDraft<Budget> {
    /// A change of an existing budget. A period that is over ends first, whether a tick has come by
    /// or not, so that no rule depends on when it does.
    pub(super) fn current(before: Arc<Document>, now: TimestampMs) -> Result<Self, Halt> {
        let mut draft = Self::of(before, now)?;
        if draft.body.is_over(now) {
            draft.reset();
        }
        Ok(draft)
    }

    pub(super) fn existing(
        facts: &impl Facts,
        id: BudgetId,
        now: TimestampMs,
    ) -> Result<Self, Halt> {
        Self::current(existing(facts, id)?, now)
    }

    /// Whoever was kept back may come as soon as there is room again. Done here once, so that no rule
    /// can forget it.
    pub(super) fn note_room(&mut self) {
        let was_used_up = self.stored().is_some_and(Budget::is_used_up);
        if was_used_up && !self.body.is_used_up() {
            self.body.pending.admit = Some(self.now);
            self.body.pending.tell_at = Some(self.now);
        }
        let BudgetWork { attach, admit, enforce, tell_at } = &mut self.body.pending;
        match *attach || admit.is_some() || enforce.is_some() {
            true => drop(tell_at.get_or_insert(self.now.after(limits::ERRAND_RETRY_MS))),
            false => *tell_at = None,
        }
    }

    /// Answers with what has been changed, if anything has.
    pub(super) fn close<R>(mut self, reply: R) -> Step<R> {
        self.note_room();
        self.answer(reply)
    }

    /// What runs under it is to end.
    pub(super) fn enforce(&mut self) {
        self.body.pending.enforce = Some(self.now);
        self.body.pending.tell_at = Some(self.now);
    }

    pub(super) fn reset(&mut self) {
        self.body.reset(self.now);
        let mut data = EventData::new();
        data.insert("reset_count".to_owned(), self.body.resets.into());
        if let Some(at) = self.body.next_reset_at {
            data.insert("next_reset_at".to_owned(), at.into());
        }
        self.event(EventKind::BudgetReset, data);
    }
}

/// The budget, or `budget_not_found`.
pub(super) fn existing(facts: &impl Facts, id: BudgetId) -> Result<Arc<Document>, Halt> {
    let document = facts.document(&DocumentId::budget(id, &facts.settings().partitions))?;
    let missing = || Refusal::at(Code::BudgetNotFound, "budget_id", format!("no budget {id}"));
    Ok(document.ok_or_else(missing)?)
}
