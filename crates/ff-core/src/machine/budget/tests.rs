//! What is kept beside a budget, and for how long.

use std::collections::{BTreeMap, BTreeSet};

use super::super::rows::Family;
use super::super::trial::{Trial, execution};
use crate::id::{BudgetId, Dimension, DocumentId, IdempotencyKey, Namespace};
use crate::limits;
use crate::operation::{
    CreateBudget, DisownUsage, Miscounted, RecordSpend, RecountBudget, ReleaseBudget, ResetBudget,
    UsageReported, Verdict,
};
use crate::state::{Body, Budget, BudgetScope, LedgerPages};
use crate::time::TimestampMs;

const HOUR: u64 = 3_600_000;

fn trial(reset_interval_ms: u64) -> (Trial, BudgetId) {
    let id = BudgetId::mint();
    let mut trial = Trial::new(|partitions| DocumentId::budget(id, partitions));
    let scope = BudgetScope::Custom("all".to_owned());
    let create = CreateBudget::new(id, Namespace::default(), scope);
    trial.call(CreateBudget { reset_interval_ms, ..create });
    (trial, id)
}

fn spend(budget_id: BudgetId, number: u128, key: Option<&str>) -> RecordSpend {
    RecordSpend {
        budget_id,
        execution_id: execution(number),
        dimensions: BTreeMap::from([(Dimension::new("tokens").unwrap(), 1)]),
        idempotency_key: key.map(|key| IdempotencyKey::new(key).unwrap()),
    }
}

fn budget(trial: &Trial) -> &Budget {
    trial.document.as_ref().and_then(|document| document.budget()).unwrap()
}

#[test]
fn keys_go_when_a_day_is_over() {
    let (mut trial, id) = trial(0);
    for n in 0..300 {
        trial.call(spend(id, 0, Some(&n.to_string())));
    }
    assert_eq!((trial.rows_of(Family::UsageKey), trial.rows_of(Family::UsageKeyPage)), (300, 5));
    trial.advance(24 * HOUR - 1);
    trial.settle();
    assert_eq!(trial.call(spend(id, 0, Some("7"))), UsageReported::AlreadyApplied);
    trial.advance(1);
    assert_eq!(trial.call(spend(id, 0, Some("7"))), UsageReported::Ok, "a day is over");
    trial.advance(HOUR);
    assert_eq!(trial.settle(), 5, "a page a step");
    assert_eq!(trial.rows_of(Family::UsageKey), 1, "the one that was used again");
    assert_eq!(trial.call(spend(id, 0, Some("7"))), UsageReported::AlreadyApplied);
    trial.advance(25 * HOUR);
    trial.settle();
    assert_eq!((trial.rows_of(Family::UsageKey), trial.rows_of(Family::UsageKeyPage)), (0, 0));
    assert_eq!(budget(&trial).keys.until, None);
}

#[test]
fn pages_of_keys_are_of_one_hour() {
    let (mut trial, id) = trial(0);
    for n in 0..5 {
        trial.call(spend(id, 0, Some(&n.to_string())));
        trial.advance(HOUR);
    }
    assert_eq!(trial.rows_of(Family::UsageKeyPage), 5);
    let first = budget(&trial).keys.until.unwrap();
    trial.now = first;
    assert_eq!(trial.settle(), 1);
    assert_eq!(budget(&trial).keys.until, Some(first.after(HOUR)));
    assert_eq!(trial.rows_of(Family::UsageKey), 4);
}

#[test]
fn a_reset_voids_ledgers_and_the_timer_takes_them_away() {
    let (mut trial, id) = trial(0);
    for n in 0..200 {
        trial.call(spend(id, n, None));
    }
    assert_eq!((trial.rows_of(Family::Ledger), trial.rows_of(Family::LedgerPage)), (200, 4));
    let rows = trial.rows.len();
    trial.call(ResetBudget { budget_id: id });
    assert_eq!(trial.rows.len(), rows, "a reset touches none");
    trial.call(spend(id, 3, None));
    assert_eq!(trial.settle(), 4, "a page a step");
    assert_eq!((trial.rows_of(Family::Ledger), trial.rows_of(Family::LedgerPage)), (1, 1));
    trial.call(ReleaseBudget { budget_id: id, execution_id: execution(3) });
    assert_eq!((trial.rows_of(Family::Ledger), trial.rows_of(Family::LedgerPage)), (0, 0));
    assert_eq!(budget(&trial).dimensions.values().next().unwrap().used, 0);
}

#[test]
fn spending_and_giving_back_leaves_nothing_behind() {
    let (mut trial, id) = trial(0);
    trial.call(spend(id, 1, None));
    let rows = trial.rows.len();
    for _ in 0..500 {
        trial.call(spend(id, 2, None));
        trial.call(ReleaseBudget { budget_id: id, execution_id: execution(2) });
    }
    assert_eq!(trial.rows.len(), rows);
}

#[test]
fn a_period_that_is_over_ends_with_the_next_report() {
    let (mut trial, id) = trial(1_000);
    trial.call(spend(id, 1, None));
    trial.advance(1_500);
    trial.call(spend(id, 1, None));
    let found = budget(&trial);
    assert_eq!((found.resets, found.dimensions.values().next().unwrap().used), (1, 1));
    assert_eq!(found.next_reset_at, Some(TimestampMs(1_002_500)));
}

/// Steps until it is decided.
fn recount(trial: &mut Trial, budget_id: BudgetId, repair: bool) -> (u32, Verdict) {
    let mut steps = 0;
    loop {
        steps += 1;
        match trial.call(RecountBudget { budget_id, repair }).verdict {
            Verdict::More => {}
            decided => return (steps, decided),
        }
    }
}

fn used(trial: &Trial) -> u64 {
    budget(trial).dimensions.values().next().unwrap().used
}

#[test]
fn usage_that_is_not_what_ledgers_hold_is_told_and_made_right() {
    let few = 3;
    let many = 2 * 64 * limits::RECOUNT_PAGES + 1;
    // One more step where a difference is to be told without a repair, and nothing was kept.
    for (count, plain, repaired) in [(few, 2, 1), (many, 3, 3)] {
        let (mut trial, id) = trial(0);
        (0..count).for_each(|n| drop(trial.call(spend(id, n.into(), None))));
        assert_eq!(recount(&mut trial, id, true).1, Verdict::Sound);
        trial.spoil(|document| {
            let Body::Budget(budget) = &mut document.body else { panic!("a budget") };
            let counter = budget.dimensions.values_mut().next().unwrap();
            (counter.used, counter.attributed) = (9_000, 9_000);
        });
        let dimension = Dimension::new("tokens").unwrap();
        let wrong = Miscounted { dimension, used: 9_000, counted: count };
        let wrong = Verdict::Wrong(vec![wrong]);
        assert_eq!(recount(&mut trial, id, false), (plain, wrong.clone()));
        assert_eq!(used(&trial), 9_000, "it was to be told alone");
        assert_eq!(recount(&mut trial, id, true), (repaired, wrong));
        assert_eq!(used(&trial), count);
        assert_eq!(recount(&mut trial, id, false).1, Verdict::Sound);
        assert_eq!(budget(&trial).recount, None);
    }
}

#[test]
fn what_rests_is_compared_without_a_write() {
    let (mut trial, id) = trial(0);
    trial.call(spend(id, 1, None));
    let before = trial.document.clone();
    assert_eq!(recount(&mut trial, id, true), (1, Verdict::Sound));
    assert_eq!(trial.document, before);
}

#[test]
fn a_reset_ends_a_comparison_under_way() {
    let (mut trial, id) = trial(0);
    (0..600).for_each(|n| drop(trial.call(spend(id, n, None))));
    let step = RecountBudget { budget_id: id, repair: false };
    assert_eq!(trial.call(step.clone()).verdict, Verdict::More);
    trial.call(ResetBudget { budget_id: id });
    trial.call(spend(id, 1, None));
    assert_eq!(trial.call(step).verdict, Verdict::Sound);
}

#[test]
fn a_look_does_not_end_a_period() {
    let (mut trial, id) = trial(1_000);
    trial.call(spend(id, 1, None));
    trial.advance(1_500);
    let before = trial.document.clone();
    assert_eq!(recount(&mut trial, id, true), (1, Verdict::Sound));
    assert_eq!(trial.document, before);
}

/// Ledgers, the pages that name them, and whether each page but the last is full.
fn shelves(trial: &Trial) -> (usize, usize, u64) {
    let LedgerPages { current, next, .. } = budget(trial).ledgers;
    (trial.rows_of(Family::Ledger), trial.rows_of(Family::LedgerPage), next - current)
}

#[test]
fn pages_stay_full_however_many_ledgers_come_and_go() {
    let (mut trial, id) = trial(0);
    (0..1_000).for_each(|n| drop(trial.call(spend(id, n, None))));
    assert_eq!(shelves(&trial), (1_000, 16, 16));
    // From the middle, from the end and from the beginning, some of them twice and some unknown.
    let batches = [300..364, 936..1_000, 340..404, 0..64, 980..1_044, 64..65];
    let mut gone = BTreeSet::new();
    for batch in batches {
        let fresh = batch.clone().filter(|n| *n < 1_000 && !gone.contains(n)).count();
        let execution_ids = batch.clone().map(execution).collect();
        let disowned = trial.call(DisownUsage { budget_id: id, execution_ids });
        assert_eq!(disowned.ledgers as usize, fresh);
        gone.extend(batch.filter(|n| *n < 1_000));
        let left = 1_000 - gone.len();
        assert_eq!(shelves(&trial), (left, left.div_ceil(64), left.div_ceil(64) as u64));
        assert_eq!(recount(&mut trial, id, false).1, Verdict::Sound);
    }
    let counter = *budget(&trial).dimensions.values().next().unwrap();
    let nobodys = gone.len() as u64;
    assert_eq!((counter.used, counter.unattributed), (1_000, nobodys), "what was used stays used");
    // Those that are left are found where they stand, and given back one by one.
    for n in (0..1_000).filter(|n| !gone.contains(n)) {
        trial.call(ReleaseBudget { budget_id: id, execution_id: execution(n) });
    }
    assert_eq!(shelves(&trial), (0, 0, 0));
    assert_eq!(used(&trial), nobodys);
}

#[test]
fn ledgers_that_move_during_a_comparison_are_counted_once() {
    let (mut trial, id) = trial(0);
    let many = 2 * 64 * u128::from(limits::RECOUNT_PAGES);
    (0..many).for_each(|n| drop(trial.call(spend(id, n, None))));
    let step = RecountBudget { budget_id: id, repair: false };
    let first = trial.call(step.clone());
    assert_eq!(first.verdict, Verdict::More);
    assert_eq!(first.spenders, (many / 2..many).map(execution).collect::<Vec<_>>());
    // Some go that it has passed, and some that it has not: others from the end take their places.
    for gone in [700..764, 10..74] {
        let execution_ids = gone.map(execution).collect();
        trial.call(DisownUsage { budget_id: id, execution_ids });
    }
    (many..many + 3).for_each(|n| drop(trial.call(spend(id, n, None))));
    assert_eq!(recount(&mut trial, id, false).1, Verdict::Sound);
    // So many that all pages that it has passed are gone.
    trial.call(step);
    for from in (100..many).step_by(64) {
        let execution_ids = (from..from + 64).map(execution).collect();
        trial.call(DisownUsage { budget_id: id, execution_ids });
    }
    trial.call(spend(id, many + 9, None));
    assert_eq!(recount(&mut trial, id, false).1, Verdict::Sound);
}
