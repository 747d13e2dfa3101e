//! The rules by which a ledger goes: its usage is given back, or stays and is nobody's.

use super::super::Facts;
use super::super::draft::Halt;
use super::super::step::Step;
use super::draft::BudgetDraft;
use super::ledger;
use crate::check::check_partition;
use crate::operation::{DisownUsage, ReleaseBudget, Settled, UsageDisowned};
use crate::time::TimestampMs;

pub(in super::super) fn release(
    facts: &impl Facts,
    op: &ReleaseBudget,
    now: TimestampMs,
) -> Result<Step<Settled>, Halt> {
    check_partition(op.execution_id, &facts.settings().partitions)?;
    let mut draft = BudgetDraft::existing(facts, op.budget_id, now)?;
    let found = ledger::find_each(facts, &draft, &[op.execution_id])?;
    if found.is_empty() {
        return Ok(draft.close(Settled::AlreadySatisfied));
    }
    for (dimension, amount) in found.values().flat_map(|ledger| &ledger.amounts) {
        let counter = draft.body.dimensions.entry(dimension.clone()).or_default();
        counter.used = counter.used.saturating_sub(*amount);
        counter.attributed = counter.attributed.saturating_sub(*amount);
    }
    ledger::remove(facts, &mut draft, &found)?;
    Ok(draft.close(Settled::Done))
}

pub(in super::super) fn disown(
    facts: &impl Facts,
    op: &DisownUsage,
    now: TimestampMs,
) -> Result<Step<UsageDisowned>, Halt> {
    for id in &op.execution_ids {
        check_partition(*id, &facts.settings().partitions)?;
    }
    let mut draft = BudgetDraft::existing(facts, op.budget_id, now)?;
    let found = ledger::find_each(facts, &draft, &op.execution_ids)?;
    let ledgers = u32::try_from(found.len()).unwrap_or(u32::MAX);
    if ledgers > 0 {
        for (dimension, amount) in found.values().flat_map(|ledger| &ledger.amounts) {
            let counter = draft.body.dimensions.entry(dimension.clone()).or_default();
            counter.attributed = counter.attributed.saturating_sub(*amount);
            counter.unattributed = counter.unattributed.saturating_add(*amount);
        }
        ledger::remove(facts, &mut draft, &found)?;
    }
    Ok(draft.close(UsageDisowned { ledgers }))
}
