//! What is kept beside a budget, and for how long.

use std::collections::BTreeMap;

use super::super::rows::Family;
use super::super::trial::{Trial, execution};
use crate::id::{BudgetId, Dimension, DocumentId, IdempotencyKey, Namespace};
use crate::operation::{CreateBudget, RecordSpend, ReleaseBudget, ResetBudget, UsageReported};
use crate::state::{Budget, BudgetScope};
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
