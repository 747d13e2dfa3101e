//! The rules of making, changing, resetting and removing budgets, and what time does to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::super::Facts;
use super::super::document::{DocumentDraft, Fired};
use super::super::draft::Halt;
use super::super::revision::check_revision;
use super::super::step::Step;
use super::draft::{BudgetDraft, existing};
use super::{keys, ledger, scope};
use crate::error::{Code, Refusal};
use crate::id::{Dimension, DocumentId};
use crate::limits;
use crate::operation::{
    BudgetCreated, BudgetErrand, BudgetReset, CreateBudget, DeleteBudget, ResetBudget,
    SettleBudget, Settled, UpdateBudget,
};
use crate::state::{
    Budget, BudgetScope, BudgetWork, Counter, Document, DueKind, HardAction, LedgerPages, Limits,
    SoftAction, UsageKeyPages,
};
use crate::time::TimestampMs;

pub(in super::super) fn create(
    facts: &impl Facts,
    op: &CreateBudget,
    now: TimestampMs,
) -> Result<Step<BudgetCreated>, Halt> {
    let id = DocumentId::budget(op.budget_id, &facts.settings().partitions);
    let fingerprint = fingerprint(op);
    if let Some(document) = facts.document(&id)? {
        // What it was made as counts, not what updates made of it: a create that is sent again
        // because its reply was lost gets that reply.
        if document.budget().is_some_and(|budget| budget.fingerprint == fingerprint) {
            return Ok(Step::unchanged(BudgetCreated::AlreadySatisfied));
        }
        let detail = format!("budget {} was made with another definition", op.budget_id);
        return Err(Refusal::at(Code::BudgetAttachConflict, "budget_id", detail).into());
    }
    scope::check(facts, op)?;
    let mut draft = DocumentDraft::new(id, blank(op, fingerprint, now), now);
    draft.body.pending.attach = !matches!(op.scope, BudgetScope::Custom(_));
    Ok(draft.close(BudgetCreated::Created))
}

/// SHA-256 of the definition.
fn fingerprint(op: &CreateBudget) -> [u8; 32] {
    // A definition always encodes.
    Sha256::digest(postcard::to_stdvec(op).unwrap_or_default()).into()
}

/// A budget of which nothing is used.
fn blank(op: &CreateBudget, fingerprint: [u8; 32], now: TimestampMs) -> Budget {
    let counter = |limits| Counter { limits, ..Counter::default() };
    let dimensions = op.dimensions.iter().map(|(name, limits)| (name.clone(), counter(*limits)));
    let mut budget = Budget {
        id: op.budget_id,
        namespace: op.namespace.clone(),
        scope: op.scope.clone(),
        mode: op.enforcement_mode,
        on_hard_limit: op.on_hard_limit,
        on_soft_limit: op.on_soft_limit,
        reset_interval_ms: op.reset_interval_ms,
        created_at: now,
        fingerprint,
        definition: 1,
        dimensions: dimensions.collect(),
        hard_breaches: 0,
        soft_breaches: 0,
        last_breach: None,
        resets: 0,
        next_reset_at: None,
        ledgers: LedgerPages { since: now, ..LedgerPages::default() },
        keys: UsageKeyPages::default(),
        recount: None,
        pending: BudgetWork::default(),
    };
    budget.next_reset_at = budget.reset_after(now);
    budget
}

pub(in super::super) fn update(
    facts: &impl Facts,
    op: &UpdateBudget,
    now: TimestampMs,
) -> Result<Step<Settled>, Halt> {
    let mut draft = BudgetDraft::existing(facts, op.budget_id, now)?;
    let expected = check_revision(op.expected_revision, draft.body.definition);
    let room = check_room(&draft.body.dimensions, op.dimensions.keys());
    if let Err(refusal) = expected.and(room) {
        return Err(draft.refuse(refusal));
    }
    let after = &mut draft.body;
    let before = definition(after);
    for (dimension, limits) in &op.dimensions {
        after.dimensions.entry(dimension.clone()).or_default().limits = *limits;
    }
    after.on_hard_limit = op.on_hard_limit.unwrap_or(after.on_hard_limit);
    after.on_soft_limit = op.on_soft_limit.unwrap_or(after.on_soft_limit);
    if let Some(interval) = op.reset_interval_ms.filter(|ms| *ms != after.reset_interval_ms) {
        after.reset_interval_ms = interval;
        after.next_reset_at = after.reset_after(now);
    }
    if definition(after) == before {
        return Ok(draft.close(Settled::AlreadySatisfied));
    }
    after.definition += 1;
    Ok(draft.close(Settled::Done))
}

/// All that an update may change.
fn definition(budget: &Budget) -> (BTreeMap<Dimension, Limits>, HardAction, SoftAction, u64) {
    let limits = budget.dimensions.iter().map(|(name, counter)| (name.clone(), counter.limits));
    let Budget { on_hard_limit, on_soft_limit, reset_interval_ms, .. } = budget;
    (limits.collect(), *on_hard_limit, *on_soft_limit, *reset_interval_ms)
}

/// Refuses names that would bring a budget beyond its most dimensions.
pub(super) fn check_room<'a>(
    known: &BTreeMap<Dimension, Counter>,
    named: impl Iterator<Item = &'a Dimension>,
) -> Result<(), Refusal> {
    let new = named.filter(|dimension| !known.contains_key(*dimension)).count();
    if known.len() + new <= limits::BUDGET_DIMENSIONS {
        return Ok(());
    }
    let most = limits::BUDGET_DIMENSIONS;
    Err(Refusal::invalid("dimensions", format!("a budget has {most} dimensions at the most")))
}

pub(in super::super) fn reset(
    facts: &impl Facts,
    op: &ResetBudget,
    now: TimestampMs,
) -> Result<Step<BudgetReset>, Halt> {
    let mut draft = BudgetDraft::existing(facts, op.budget_id, now)?;
    draft.reset();
    let reset_count = draft.body.resets;
    let reply = BudgetReset { reset_count, next_reset_at: draft.body.next_reset_at };
    Ok(draft.close(reply))
}

pub(in super::super) fn delete(
    facts: &impl Facts,
    op: &DeleteBudget,
    now: TimestampMs,
) -> Result<Step<Settled>, Halt> {
    let mut draft = BudgetDraft::of(existing(facts, op.budget_id)?, now)?;
    draft.removed = true;
    Ok(draft.answer(Settled::Done))
}

/// Carries out what is due: the end of a period, or a piece of what is no longer needed.
pub(in super::super) fn fire(
    facts: &impl Facts,
    document: Arc<Document>,
    now: TimestampMs,
) -> Result<Fired, Halt> {
    let Some(due) = document.due().filter(|due| due.at <= now) else { return Ok(None) };
    // A draft begins with the end of the period.
    let mut draft = BudgetDraft::current(document, now)?;
    if due.kind == DueKind::Outbox {
        draft.body.pending.tell_at = Some(now.after(limits::BUDGET_ERRAND_RETRY_MS));
    } else if due.kind == DueKind::RetentionTrimmer {
        if draft.body.ledgers.has_void() {
            ledger::sweep(facts, &mut draft)?;
        } else {
            keys::sweep(facts, &mut draft)?;
        }
    }
    draft.note_room();
    Ok(Some((due.kind, draft.finish())))
}

pub(in super::super) fn settle(
    facts: &impl Facts,
    op: &SettleBudget,
    now: TimestampMs,
) -> Result<Step<Settled>, Halt> {
    let mut draft = BudgetDraft::existing(facts, op.budget_id, now)?;
    let pending = &mut draft.body.pending;
    let before = *pending;
    match op.done {
        BudgetErrand::Attach => pending.attach = false,
        // What was asked for later is not done.
        BudgetErrand::Admit { since } => drop(pending.admit.take_if(|at| *at <= since)),
        BudgetErrand::Enforce { since } => drop(pending.enforce.take_if(|at| *at <= since)),
    }
    let reply = if *pending == before { Settled::AlreadySatisfied } else { Settled::Done };
    Ok(draft.close(reply))
}
