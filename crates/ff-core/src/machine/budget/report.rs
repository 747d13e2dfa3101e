//! The rules of usage: counted, or refused.

use std::collections::BTreeMap;

use super::super::Facts;
use super::super::draft::Halt;
use super::super::step::Step;
use super::draft::BudgetDraft;
use super::life::check_room;
use super::{keys, ledger};
use crate::check::check_partition;
use crate::error::Refusal;
use crate::event::{EventData, EventKind};
use crate::id::Dimension;
use crate::limits;
use crate::operation::{Report, UsageReported};
use crate::state::{
    Breach, BreachKind, Counter, EnforcementMode, HardAction, LastBreach, SoftAction,
};
use crate::time::TimestampMs;

/// A breach with its kind: hard ones sort first, then by dimension.
type Found = (BreachKind, Breach);

pub(in super::super) fn report(
    facts: &impl Facts,
    op: &Report<'_>,
    now: TimestampMs,
) -> Result<Step<UsageReported>, Halt> {
    if let Some(id) = op.execution_id {
        check_partition(id, &facts.settings().partitions)?;
    }
    let mut draft = BudgetDraft::existing(facts, op.budget_id, now)?;
    want(facts, &draft, op)?;
    if let Some(key) = op.key
        && keys::is_known(facts, &draft, key)?
    {
        return Ok(draft.close(UsageReported::AlreadyApplied));
    }
    let mut found = match weigh(&draft.body.dimensions, op.dimensions) {
        Ok(found) => found,
        Err(refusal) => return Err(draft.refuse(refusal)),
    };
    let is_hard = found.first().is_some_and(|(kind, _)| *kind == BreachKind::Hard);
    let mode = op.mode.unwrap_or(draft.body.mode);
    if is_hard && mode == EnforcementMode::Refuse {
        // What is not counted has passed no soft limit, and totals stay as they are.
        found.retain(|(kind, _)| *kind == BreachKind::Hard);
        for (_, breach) in &mut found {
            breach.current = used(&draft.body.dimensions, &breach.dimension);
        }
    } else {
        count(facts, &mut draft, op)?;
        if is_hard && draft.body.on_hard_limit != HardAction::Block {
            draft.enforce();
        }
    }
    note(&mut draft, &found);
    Ok(draft.close(answer(found)))
}

/// Asks for all rows at once, so that one round loads them.
fn want(facts: &impl Facts, draft: &BudgetDraft, op: &Report<'_>) -> Result<(), Halt> {
    let of_key = op.key.into_iter().flat_map(|key| keys::rows(draft, key));
    let of_ledger = op.execution_id.into_iter().flat_map(|id| ledger::rows(draft, id));
    let rows: Vec<_> = of_key.chain(of_ledger).collect();
    facts.want_rows(&(&draft.id).into(), &rows)?;
    Ok(())
}

fn used(counters: &BTreeMap<Dimension, Counter>, dimension: &Dimension) -> u64 {
    counters.get(dimension).map_or(0, |counter| counter.used)
}

/// Limits that the totals would be above, in the order in which they are told. Refuses totals that
/// no longer count exactly.
fn weigh(
    counters: &BTreeMap<Dimension, Counter>,
    deltas: &BTreeMap<Dimension, u64>,
) -> Result<Vec<Found>, Refusal> {
    check_room(counters, deltas.keys())?;
    let mut found = Vec::new();
    for (dimension, delta) in deltas {
        let counter = counters.get(dimension).copied().unwrap_or_default();
        let current = counter.used + delta;
        if current > limits::AMOUNT_MAX {
            let most = limits::AMOUNT_MAX;
            let detail = format!("{dimension} would be {current}, the most is {most}");
            return Err(Refusal::invalid("dimensions", detail));
        }
        if let Some((kind, limit)) = counter.breach(current) {
            found.push((kind, Breach { dimension: dimension.clone(), current, limit }));
        }
    }
    // Dimensions come in the order of their names.
    found.sort_by_key(|(kind, _)| *kind);
    Ok(found)
}

/// Adds to counters and ledger, and remembers the key.
fn count(facts: &impl Facts, draft: &mut BudgetDraft, op: &Report<'_>) -> Result<(), Halt> {
    for (dimension, delta) in op.dimensions {
        let counter = draft.body.dimensions.entry(dimension.clone()).or_default();
        counter.used += delta;
        match op.execution_id {
            Some(_) => counter.attributed += delta,
            None => counter.unattributed += delta,
        }
    }
    if let Some(id) = op.execution_id {
        ledger::add(facts, draft, (id, op.attempt_index), op.dimensions)?;
    }
    match op.key {
        Some(key) => keys::remember(facts, draft, key),
        None => Ok(()),
    }
}

/// Keeps count of breaches and tells them in events, one for each dimension.
fn note(draft: &mut BudgetDraft, found: &[Found]) {
    let Some((kind, first)) = found.first() else { return };
    let (kind, at, dimension) = (*kind, draft.now, first.dimension.clone());
    let budget = &mut draft.body;
    match kind {
        BreachKind::Hard => budget.hard_breaches += 1,
        BreachKind::Soft => budget.soft_breaches += 1,
    }
    budget.last_breach = Some(LastBreach { at, kind, dimension });
    let warns = budget.on_soft_limit == SoftAction::Warn;
    for (kind, breach) in found {
        let event = match kind {
            BreachKind::Hard => EventKind::BudgetHardLimit,
            BreachKind::Soft if warns => EventKind::BudgetSoftLimit,
            BreachKind::Soft => continue,
        };
        let mut data = EventData::new();
        data.insert("dimension".to_owned(), breach.dimension.as_str().into());
        data.insert("current".to_owned(), breach.current.into());
        data.insert("limit".to_owned(), breach.limit.into());
        draft.event(event, data);
    }
}

fn answer(found: Vec<Found>) -> UsageReported {
    match found.into_iter().next() {
        Some((BreachKind::Hard, breach)) => UsageReported::HardBreach(breach),
        Some((BreachKind::Soft, breach)) => UsageReported::SoftBreach(breach),
        None => UsageReported::Ok,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Limits;

    fn name(text: &str) -> Dimension {
        Dimension::new(text).unwrap()
    }

    #[test]
    fn hard_breaches_come_first_then_names() {
        let counter = |hard, soft, used| Counter {
            limits: Limits { hard, soft },
            used,
            ..Counter::default()
        };
        let counters: BTreeMap<_, _> = [
            (name("a"), counter(100, 5, 5)),
            (name("b"), counter(10, 0, 9)),
            (name("c"), counter(10, 0, 0)),
            (name("d"), counter(0, 1, 1)),
            (name("e"), counter(1, 1, 9)),
        ]
        .into();
        let weighed = |deltas: &[(&str, u64)]| {
            let deltas = deltas.iter().map(|(of, delta)| (name(of), *delta)).collect();
            let found = weigh(&counters, &deltas).unwrap();
            let short = |(kind, breach): &Found| {
                (*kind, breach.dimension.to_string(), breach.current, breach.limit)
            };
            found.iter().map(short).collect::<Vec<_>>()
        };
        use BreachKind::{Hard, Soft};
        assert_eq!(
            weighed(&[("d", 1), ("c", 11), ("b", 2), ("a", 1), ("x", 7)]),
            [
                (Hard, "b".to_owned(), 11, 10),
                (Hard, "c".to_owned(), 11, 10),
                (Soft, "a".to_owned(), 6, 5),
                (Soft, "d".to_owned(), 2, 1),
            ]
        );
        assert_eq!(weighed(&[("a", 0), ("b", 1)]), [], "at the limit is not above it");
        assert_eq!(weighed(&[("e", 0)]), [(Hard, "e".to_owned(), 9, 1)], "above it already");
    }

    #[test]
    fn totals_count_exactly_or_are_refused() {
        let most = limits::AMOUNT_MAX;
        let counters = [(name("a"), Counter { used: 1, ..Counter::default() })].into();
        let one = |delta| [(name("a"), delta)].into();
        assert_eq!(weigh(&counters, &one(most - 1)), Ok(Vec::new()));
        assert!(weigh(&counters, &one(most)).is_err());
    }
}
