//! What each execution used of a budget in the current period.
//!
//! A row for each period and execution, so that a reset voids all of them without touching one;
//! pages name the executions, so that a timer can take void ones away.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::super::Facts;
use super::super::draft::Halt;
use super::super::pages::{self, Page};
use super::super::rows::{Family, RowChange, RowKey};
use super::draft::BudgetDraft;
use crate::id::{Dimension, DocumentId, ExecutionId};
use crate::limits;
use crate::read::{LedgerRead, ReadLedger};
use crate::state::LedgerPages;
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

/// Those of some executions that have one. Asks for all that their removal looks at.
pub(super) fn find_each(
    facts: &impl Facts,
    draft: &BudgetDraft,
    ids: &[ExecutionId],
) -> Result<BTreeMap<ExecutionId, Ledger>, Halt> {
    let rows: Vec<_> = ids.iter().map(|id| row(draft.body.resets, *id)).collect();
    facts.want_rows(&(&draft.id).into(), &rows)?;
    let mut found = BTreeMap::new();
    for id in ids {
        if let Some(ledger) = find(facts, draft, *id)? {
            found.insert(*id, ledger);
        }
    }
    Ok(found)
}

/// Takes ledgers away; the counters are the caller's.
pub(super) fn remove(
    facts: &impl Facts,
    draft: &mut BudgetDraft,
    gone: &BTreeMap<ExecutionId, Ledger>,
) -> Result<(), Halt> {
    let mut listed = Listed::around(facts, draft, gone)?;
    listed.strike_out(gone);
    let period = draft.body.resets;
    let moved = listed.moved.iter().map(|(id, _)| *id).collect::<Vec<_>>();
    let mut ledgers = find_each(facts, draft, &moved)?;
    for (id, Ledger { amounts, page, .. }) in gone {
        draft.row(RowChange::remove(row(period, *id)));
        if let Some(recount) = &mut draft.body.recount {
            recount.note_removed(*page, amounts);
        }
    }
    for (id, page) in &listed.moved {
        let Some(ledger) = ledgers.get_mut(id) else { continue };
        if let Some(recount) = &mut draft.body.recount {
            recount.note_removed(ledger.page, &ledger.amounts);
            recount.note_added(*page, &ledger.amounts);
        }
        ledger.page = *page;
        draft.row(RowChange::put(row(period, *id), ledger));
    }
    for (number, page) in &listed.pages {
        pages::put(draft, Family::LedgerPage, *number, page);
    }
    draft.body.ledgers.next = listed.next;
    Ok(())
}

/// Pages of this period from which ledgers are taken away. All but the last are full before and
/// after: whoever walks over them meets no more pages than there are ledgers for, however many came
/// and went.
struct Listed {
    pages: BTreeMap<u64, Page<ExecutionId>>,
    first: u64,
    next: u64,
    /// Who stands in an earlier page than before.
    moved: Vec<(ExecutionId, u64)>,
}

impl Listed {
    /// The pages that name these, and as many of the last ones as it takes to fill them.
    fn around(
        facts: &impl Facts,
        draft: &BudgetDraft,
        gone: &BTreeMap<ExecutionId, Ledger>,
    ) -> Result<Self, Halt> {
        let LedgerPages { current: first, next, .. } = draft.body.ledgers;
        let last = next.saturating_sub(pages::filling(gone.len())).max(first);
        let of_gone = gone.values().map(|ledger| ledger.page);
        let numbers: BTreeSet<u64> = of_gone.chain(last..next).collect();
        let rows: Vec<_> =
            numbers.iter().map(|number| RowKey::counted(Family::LedgerPage, *number)).collect();
        facts.want_rows(&(&draft.id).into(), &rows)?;
        let mut pages = BTreeMap::new();
        for number in numbers {
            if let Some(page) = pages::find(facts, draft, Family::LedgerPage, number)? {
                pages.insert(number, page);
            }
        }
        Ok(Self { pages, first, next, moved: Vec::new() })
    }

    fn strike_out(&mut self, gone: &BTreeMap<ExecutionId, Ledger>) {
        for page in self.pages.values_mut() {
            page.items.retain(|id| !gone.contains_key(id));
        }
        let holes: BTreeSet<u64> = gone.values().map(|ledger| ledger.page).collect();
        for number in holes {
            while self.has_room(number) {
                let Some(id) = self.take_last(number) else { break };
                self.moved.push((id, number));
                self.pages.entry(number).and_modify(|page| page.items.push(id));
            }
        }
        while self.first < self.next && self.is_empty(self.next - 1) {
            self.next -= 1;
        }
    }

    fn has_room(&self, number: u64) -> bool {
        self.pages.get(&number).is_some_and(|page| page.items.len() < pages::PAGE_ITEMS)
    }

    fn is_empty(&self, number: u64) -> bool {
        self.pages.get(&number).is_some_and(|page| page.items.is_empty())
    }

    /// The last of those that stand behind a page.
    fn take_last(&mut self, behind: u64) -> Option<ExecutionId> {
        while behind + 1 < self.next {
            let page = self.pages.get_mut(&(self.next - 1))?;
            if let Some(id) = page.items.pop() {
                return Some(id);
            }
            self.next -= 1;
        }
        None
    }
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
