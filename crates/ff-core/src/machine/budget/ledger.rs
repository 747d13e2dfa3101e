//! What each execution used of a budget in the current period.
//!
//! A row for each period and execution, so that a reset voids all of them without touching one;
//! pages name the executions, so that a timer can take void ones away.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::Facts;
use super::super::draft::Halt;
use super::super::pages::{self, Page};
use super::super::rows::{Family, RowChange, RowKey};
use super::draft::BudgetDraft;
use crate::id::{Dimension, DocumentId, ExecutionId};
use crate::limits;
use crate::read::{LedgerRead, ReadLedger};
use crate::time::TimestampMs;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ledger {
    pub(super) amounts: BTreeMap<Dimension, u64>,
    /// The part of it that was said to be of an attempt, of the newest ones.
    attempts: BTreeMap<u32, BTreeMap<Dimension, u64>>,
    /// The page that names it.
    page: u64,
}

pub(super) fn row(period: u64, id: ExecutionId) -> RowKey {
    let mut name = period.to_be_bytes().to_vec();
    name.extend(id.to_bytes());
    RowKey::named(Family::Ledger, name)
}

/// The rows that a report of an execution looks at.
pub(super) fn rows(draft: &BudgetDraft, id: ExecutionId) -> impl Iterator<Item = RowKey> {
    let page = pages::open(Family::LedgerPage, draft.body.ledgers.next);
    std::iter::once(row(draft.body.resets, id)).chain(page)
}

pub(super) fn find(
    facts: &impl Facts,
    draft: &BudgetDraft,
    id: ExecutionId,
) -> Result<Option<Ledger>, Halt> {
    draft.find_row(facts, &row(draft.body.resets, id))
}

/// Notes what an execution used; the counters are the caller's.
pub(super) fn add(
    facts: &impl Facts,
    draft: &mut BudgetDraft,
    (id, attempt_index): (ExecutionId, Option<u32>),
    amounts: &BTreeMap<Dimension, u64>,
) -> Result<(), Halt> {
    let period = draft.body.resets;
    let mut ledger = match find(facts, draft, id)? {
        Some(ledger) => ledger,
        None => {
            let list = (Family::LedgerPage, draft.body.ledgers.next);
            let page = pages::append(facts, draft, list, (period, id))?;
            draft.body.ledgers.next = page + 1;
            Ledger { amounts: BTreeMap::new(), attempts: BTreeMap::new(), page }
        }
    };
    add_to(&mut ledger.amounts, amounts);
    if let Some(index) = attempt_index {
        add_to(ledger.attempts.entry(index).or_default(), amounts);
        if ledger.attempts.len() > limits::LEDGER_ATTEMPTS {
            ledger.attempts.pop_first();
        }
    }
    if let Some(recount) = &mut draft.body.recount {
        recount.note_added(ledger.page, amounts);
    }
    draft.row(RowChange::put(row(period, id), &ledger));
    Ok(())
}

fn add_to(sums: &mut BTreeMap<Dimension, u64>, amounts: &BTreeMap<Dimension, u64>) {
    for (dimension, amount) in amounts {
        *sums.entry(dimension.clone()).or_default() += amount;
    }
}

/// What an execution used, by attempt; none if there is no such budget.
pub(in super::super) fn read(
    facts: &impl Facts,
    question: &ReadLedger,
    now: TimestampMs,
) -> Result<Option<Box<LedgerRead>>, Halt> {
    let id = DocumentId::budget(question.budget_id, &facts.settings().partitions);
    let Some(document) = facts.document(&id)? else { return Ok(None) };
    // A period that is over has ended, whether the timer has come by or not.
    let draft = BudgetDraft::current(document, now)?;
    let found = find(facts, &draft, question.execution_id)?;
    let (usage, attempts) = found.map(|found| (found.amounts, found.attempts)).unwrap_or_default();
    let mut other = usage.clone();
    for (dimension, amount) in attempts.values().flatten() {
        if let Some(rest) = other.get_mut(dimension) {
            *rest = rest.saturating_sub(*amount);
        }
    }
    other.retain(|_, rest| *rest > 0);
    let reset_count = draft.body.resets;
    Ok(Some(Box::new(LedgerRead { reset_count, usage, attempts, other })))
}

pub(super) fn remove(
    facts: &impl Facts,
    draft: &mut BudgetDraft,
    id: ExecutionId,
    ledger: &Ledger,
) -> Result<(), Halt> {
    draft.row(RowChange::remove(row(draft.body.resets, id)));
    if let Some(recount) = &mut draft.body.recount {
        recount.note_removed(ledger.page, &ledger.amounts);
    }
    let page = pages::find(facts, draft, Family::LedgerPage, ledger.page)?;
    if let Some(mut page) = page {
        page.items.retain(|listed: &ExecutionId| *listed != id);
        pages::put(draft, Family::LedgerPage, ledger.page, &page);
    }
    Ok(())
}

/// Takes away a page of ledgers of a period that is over.
pub(super) fn sweep(facts: &impl Facts, draft: &mut BudgetDraft) -> Result<(), Halt> {
    let number = draft.body.ledgers.first;
    let page = pages::find(facts, draft, Family::LedgerPage, number)?;
    if let Some(Page { mark: period, items }) = page {
        for id in items {
            draft.row(RowChange::remove(row(period, id)));
        }
    }
    pages::remove(draft, Family::LedgerPage, number);
    draft.body.ledgers.first = number + 1;
    Ok(())
}
