//! Usage compared with what ledgers hold, some pages of them a step.
//!
//! A walk that takes several steps keeps its place and its sums in the record. Whatever changes a
//! ledger that it has passed changes the sums as well, so that what others count meanwhile is no
//! difference. It goes from the end to the beginning, as those do who take the places of ledgers that
//! are gone: so whoever takes away what it has passed moves nobody out of its sight. A difference is
//! told only by a step that writes: a store may have read the record before the rows, and a write is
//! made only if the record is still the same.

use std::collections::BTreeMap;

use super::super::Facts;
use super::super::draft::Halt;
use super::super::pages;
use super::super::rows::{Family, RowKey};
use super::super::step::Step;
use super::draft::{BudgetDraft, existing};
use super::ledger;
use crate::id::{Dimension, ExecutionId};
use crate::limits;
use crate::operation::{BudgetRecounted, Miscounted, RecountBudget, Verdict};
use crate::state::{Budget, LedgerPages, Recount};
use crate::time::TimestampMs;

pub(in super::super) fn recount(
    facts: &impl Facts,
    op: &RecountBudget,
    now: TimestampMs,
) -> Result<Step<BudgetRecounted>, Halt> {
    let mut draft = BudgetDraft::of(existing(facts, op.budget_id)?, now)?;
    // A period that is over has no usage. A look does not end it.
    if draft.body.is_over(now) {
        let verdict = Verdict::Sound;
        return Ok(Step::unchanged(BudgetRecounted { verdict, spenders: Vec::new() }));
    }
    let before = draft.body.recount.take();
    let is_kept = before.is_some();
    let LedgerPages { current: first, next, .. } = draft.body.ledgers;
    let begin = Recount { before: next, sums: BTreeMap::new() };
    let mut recount = before.unwrap_or_else(|| begin.clone());
    let to = recount.before.min(next);
    let from = to.saturating_sub(limits::RECOUNT_PAGES).max(first);
    let spenders = listed(facts, &draft, from, to)?;
    for id in &spenders {
        let found = ledger::find(facts, &draft, *id)?;
        recount.add(found.iter().flat_map(|ledger| &ledger.amounts));
    }
    recount.before = from;
    let verdict = if from > first {
        draft.body.recount = Some(recount);
        Verdict::More
    } else {
        let again = (!op.repair && !is_kept).then_some(begin);
        conclude(&mut draft.body, &recount.sums, op.repair, again)
    };
    Ok(draft.close(BudgetRecounted { verdict, spenders }))
}

/// All ledgers have been summed up. Unless that is to be repaired, a difference is told by a walk that has
/// written: `again` is how another one begins.
fn conclude(
    budget: &mut Budget,
    sums: &BTreeMap<Dimension, u64>,
    repair: bool,
    again: Option<Recount>,
) -> Verdict {
    let wrong = budget.compare(sums);
    if wrong.is_empty() {
        return Verdict::Sound;
    }
    if repair {
        budget.count_as(sums);
    } else if again.is_some() {
        budget.recount = again;
        return Verdict::More;
    }
    Verdict::Wrong(wrong)
}

/// The executions that some pages name. Asks for all that is to be read of them.
fn listed(
    facts: &impl Facts,
    draft: &BudgetDraft,
    from: u64,
    to: u64,
) -> Result<Vec<ExecutionId>, Halt> {
    let of = (&draft.id).into();
    let numbers: Vec<_> =
        (from..to).map(|number| RowKey::counted(Family::LedgerPage, number)).collect();
    facts.want_rows(&of, &numbers)?;
    let mut ids = Vec::new();
    for number in from..to {
        let page = pages::find::<ExecutionId>(facts, draft, Family::LedgerPage, number)?;
        ids.extend(page.into_iter().flat_map(|page| page.items));
    }
    let rows: Vec<_> = ids.iter().map(|id| ledger::row(draft.body.resets, *id)).collect();
    facts.want_rows(&of, &rows)?;
    Ok(ids)
}

impl Budget {
    /// Dimensions whose usage is not what ledgers hold and what is attributed to nobody.
    fn compare(&self, sums: &BTreeMap<Dimension, u64>) -> Vec<Miscounted> {
        let names = self.dimensions.keys().chain(sums.keys());
        let mut names: Vec<_> = names.cloned().collect();
        names.sort_unstable();
        names.dedup();
        let wrong = names.into_iter().filter_map(|dimension| {
            let counter = self.dimensions.get(&dimension).copied().unwrap_or_default();
            let in_ledgers = sums.get(&dimension).copied().unwrap_or_default();
            let counted = in_ledgers.saturating_add(counter.unattributed);
            let is_right = counter.attributed == in_ledgers && counter.used == counted;
            (!is_right).then_some(Miscounted { dimension, used: counter.used, counted })
        });
        wrong.collect()
    }

    /// Counts what ledgers hold, and what is attributed to nobody.
    fn count_as(&mut self, sums: &BTreeMap<Dimension, u64>) {
        for dimension in sums.keys() {
            self.dimensions.entry(dimension.clone()).or_default();
        }
        for (dimension, counter) in &mut self.dimensions {
            counter.attributed = sums.get(dimension).copied().unwrap_or_default();
            counter.used = counter.attributed.saturating_add(counter.unattributed);
        }
    }
}

impl Recount {
    fn add<'a>(&mut self, amounts: impl Iterator<Item = (&'a Dimension, &'a u64)>) {
        for (dimension, amount) in amounts {
            let sum = self.sums.entry(dimension.clone()).or_default();
            *sum = sum.saturating_add(*amount);
        }
    }

    /// Something was added to a ledger that a page names.
    pub(super) fn note_added(&mut self, page: u64, amounts: &BTreeMap<Dimension, u64>) {
        if page >= self.before {
            self.add(amounts.iter());
        }
    }

    /// A ledger that a page named is gone.
    pub(super) fn note_removed(&mut self, page: u64, amounts: &BTreeMap<Dimension, u64>) {
        if page >= self.before {
            for (dimension, amount) in amounts {
                let sum = self.sums.entry(dimension.clone()).or_default();
                *sum = sum.saturating_sub(*amount);
            }
        }
    }
}
