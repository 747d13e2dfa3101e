//! What is kept beside a budget, and for how long.

use std::collections::BTreeMap;

use super::super::rows::Family;
use super::super::trial::{Trial, execution};
use crate::id::{BudgetId, Dimension, DocumentId, IdempotencyKey, Namespace};
use crate::limits;
use crate::operation::{
    BudgetRecounted, CreateBudget, Miscounted, RecordSpend, RecountBudget, ReleaseBudget,
    ResetBudget, UsageReported,
};
use crate::state::{Body, Budget, BudgetScope};
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
fn recount(trial: &mut Trial, budget_id: BudgetId, repair: bool) -> (u32, BudgetRecounted) {
    let mut steps = 0;
    loop {
        steps += 1;
        match trial.call(RecountBudget { budget_id, repair }) {
            BudgetRecounted::More => {}
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
        assert_eq!(recount(&mut trial, id, true).1, BudgetRecounted::Sound);
        trial.spoil(|document| {
            let Body::Budget(budget) = &mut document.body else { panic!("a budget") };
            let counter = budget.dimensions.values_mut().next().unwrap();
            (counter.used, counter.attributed) = (9_000, 9_000);
        });
        let dimension = Dimension::new("tokens").unwrap();
        let wrong = Miscounted { dimension, used: 9_000, counted: count };
        let wrong = BudgetRecounted::Wrong(vec![wrong]);
        assert_eq!(recount(&mut trial, id, false), (plain, wrong.clone()));
        assert_eq!(used(&trial), 9_000, "it was to be told alone");
        assert_eq!(recount(&mut trial, id, true), (repaired, wrong));
        assert_eq!(used(&trial), count);
        assert_eq!(recount(&mut trial, id, false).1, BudgetRecounted::Sound);
        assert_eq!(budget(&trial).recount, None);
    }
}

#[test]
fn what_rests_is_compared_without_a_write() {
    let (mut trial, id) = trial(0);
    trial.call(spend(id, 1, None));
    let before = trial.document.clone();
    assert_eq!(recount(&mut trial, id, true), (1, BudgetRecounted::Sound));
    assert_eq!(trial.document, before);
}

#[test]
fn a_reset_ends_a_comparison_under_way() {
    let (mut trial, id) = trial(0);
    (0..600).for_each(|n| drop(trial.call(spend(id, n, None))));
    let step = RecountBudget { budget_id: id, repair: false };
    assert_eq!(trial.call(step.clone()), BudgetRecounted::More);
    trial.call(ResetBudget { budget_id: id });
    trial.call(spend(id, 1, None));
    assert_eq!(trial.call(step), BudgetRecounted::Sound);
}

#[test]
fn a_look_does_not_end_a_period() {
    let (mut trial, id) = trial(1_000);
    trial.call(spend(id, 1, None));
    trial.advance(1_500);
    let before = trial.document.clone();
    assert_eq!(recount(&mut trial, id, true), (1, BudgetRecounted::Sound));
    assert_eq!(trial.document, before);
}
