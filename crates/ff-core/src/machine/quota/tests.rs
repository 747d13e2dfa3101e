//! The window against a list of times, and the line of those who wait against a sorted set.

use std::collections::BTreeSet;

use proptest::prelude::*;
use uuid::Uuid;

use super::super::rows::Family;
use super::super::trial::{Trial, execution};
use crate::id::{DocumentId, ExecutionId, LeaseId, Namespace, QuotaPolicyId};
use crate::limits;
use crate::operation::{
    Admission, CheckAdmission, ConfirmAdmission, Confirmed, CreateQuotaPolicy, HeldBy,
    ReleaseAdmission, SettleWaking, SlotEnd, UpdateQuotaPolicy,
};
use crate::state::{QuotaPolicy, QuotaSpec, SlotId, Verdict};
use crate::time::TimestampMs;

const WINDOW_MS: u64 = 1_000;

fn rate(max_requests_per_window: u32) -> QuotaSpec {
    QuotaSpec { window_seconds: WINDOW_MS / 1000, max_requests_per_window, ..QuotaSpec::default() }
}

fn cap(max_concurrent: u32) -> QuotaSpec {
    QuotaSpec { max_concurrent, ..QuotaSpec::default() }
}

fn trial(spec: QuotaSpec) -> (Trial, QuotaPolicyId) {
    let quota_policy_id = QuotaPolicyId::mint();
    let mut trial = Trial::new(|partitions| DocumentId::quota_policy(quota_policy_id, partitions));
    trial.call(CreateQuotaPolicy { quota_policy_id, namespace: Namespace::default(), spec });
    (trial, quota_policy_id)
}

fn slot(number: u128) -> SlotId {
    SlotId { execution_id: execution(number), lease_epoch: 1 }
}

fn check(quota_policy_id: QuotaPolicyId, number: u128) -> CheckAdmission {
    let slot = slot(number);
    CheckAdmission { quota_policy_id, slot, claimant: claimant(), opens_attempt: true, score: 0 }
}

fn confirm(quota_policy_id: QuotaPolicyId, number: u128) -> ConfirmAdmission {
    ConfirmAdmission { quota_policy_id, slot: slot(number), by: HeldBy::Lease, restore: None }
}

fn claimant() -> LeaseId {
    LeaseId::new(Uuid::nil())
}

impl Trial {
    /// What a claim would be told, and how many are in the window.
    fn verdict(&self, id: QuotaPolicyId) -> (Verdict, u32) {
        let found = super::verdict(self.facts(), id, (execution(0), true), self.now);
        found.expect("nothing is lacking")
    }
}

fn policy(trial: &Trial) -> &QuotaPolicy {
    trial.document.as_ref().and_then(|document| document.quota_policy()).unwrap()
}

/// Those who were woken have been let go.
fn settle(trial: &mut Trial, quota_policy_id: QuotaPolicyId, execution_ids: Vec<ExecutionId>) {
    trial.call(SettleWaking { quota_policy_id, execution_ids, let_go: Vec::new() });
}

/// Who was admitted.
#[derive(Default)]
struct Admitted {
    /// When each attempt began.
    begun: Vec<TimestampMs>,
    /// Those of whom nothing has been heard.
    kept: Vec<u128>,
}

impl Admitted {
    fn inside(&self, now: TimestampMs) -> Vec<TimestampMs> {
        let begun = self.begun.iter().copied();
        begun.filter(|at| at.after(WINDOW_MS) > now).collect()
    }

    /// When one more may come, if that is not now.
    fn refused(&self, most: usize, now: TimestampMs) -> Option<u64> {
        let Some(most) = most.checked_sub(self.kept.len()).filter(|most| *most > 0) else {
            return Some(WINDOW_MS);
        };
        let inside = self.inside(now);
        let edge = inside.len().checked_sub(most).map(|index| inside[index]);
        edge.map(|at| at.after(WINDOW_MS).since(now))
    }

    /// One of the last of whom nothing has been heard.
    fn pick(&mut self, back: usize) -> Option<SlotId> {
        let at = self.kept.len().checked_sub(1 + back)?;
        Some(slot(self.kept.remove(at)))
    }
}

#[derive(Debug, Clone, Copy)]
enum Act {
    Check,
    /// A claim that was admitted opens an attempt.
    Begin(usize),
    /// Its lease is over before anybody has heard of it.
    Over(usize),
    /// A claim that was admitted opens none.
    Unused(usize),
    Resume,
    Advance(u64),
    Tick,
    Limit(u32),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        20 => Just(Act::Check),
        18 => (0..8_usize).prop_map(Act::Begin),
        1 => (0..8_usize).prop_map(Act::Over),
        3 => (0..8_usize).prop_map(Act::Unused),
        2 => Just(Act::Resume),
        6 => (0..40_u64).prop_map(Act::Advance),
        1 => (0..3_000_u64).prop_map(Act::Advance),
        3 => Just(Act::Tick),
        1 => (1..150_u32).prop_map(Act::Limit),
    ]
}

proptest! {
    #[test]
    fn the_window_admits_what_a_list_of_times_admits(
        first in 1..150_u32,
        acts in prop::collection::vec(act(), 1..600),
    ) {
        let (mut trial, id) = trial(rate(first));
        let (mut admitted, mut limit) = (Admitted::default(), first);
        for (number, act) in (1_u128..).zip(acts) {
            match act {
                Act::Check => {
                    let expected = match admitted.refused(limit as usize, trial.now) {
                        Some(retry_after_ms) => Admission::RateExceeded { retry_after_ms },
                        None => Admission::Admitted { keeps_place: true },
                    };
                    prop_assert_eq!(trial.call(check(id, number)), expected);
                    if expected == (Admission::Admitted { keeps_place: true }) {
                        admitted.kept.push(number);
                    }
                }
                Act::Begin(back) => {
                    let Some(slot) = admitted.pick(back) else { continue };
                    let by = HeldBy::Lease;
                    trial.call(ConfirmAdmission { quota_policy_id: id, slot, by, restore: None });
                    admitted.begun.push(trial.now);
                }
                Act::Over(back) => {
                    let Some(slot) = admitted.pick(back) else { continue };
                    prop_assert_eq!(trial.call(ReleaseAdmission::of_lease(id, slot)).freed, 1);
                    admitted.begun.push(trial.now);
                }
                Act::Unused(back) => {
                    let Some(slot) = admitted.pick(back) else { continue };
                    let why = SlotEnd::Unused(claimant());
                    let unused = ReleaseAdmission { quota_policy_id: id, slot, why };
                    prop_assert_eq!(trial.call(unused).freed, 1);
                }
                Act::Resume => {
                    let resumed = CheckAdmission { opens_attempt: false, ..check(id, number) };
                    let expected = Admission::Admitted { keeps_place: false };
                    prop_assert_eq!(trial.call(resumed), expected);
                }
                Act::Advance(ms) => trial.advance(ms),
                Act::Tick => {
                    trial.settle();
                }
                Act::Limit(most) => {
                    limit = most;
                    trial.call(UpdateQuotaPolicy::new(id, rate(most)));
                }
            }
            let kept = admitted.kept.len();
            prop_assert_eq!(policy(&trial).window.kept as usize, kept);
            let (_, in_window) = trial.verdict(id);
            prop_assert_eq!(in_window as usize, kept + admitted.inside(trial.now).len());
        }
        trial.advance(10 * WINDOW_MS);
        trial.settle();
        prop_assert_eq!(trial.rows_of(Family::Admitted), 0, "all have left");
        prop_assert_eq!(policy(&trial).window.trim_at, None);
    }

    #[test]
    fn the_best_of_those_who_wait_is_woken_first(
        scores in prop::collection::vec((-3..3_i64, any::<bool>()), 1..300),
    ) {
        let (mut trial, id) = trial(cap(1));
        let mut line = BTreeSet::new();
        trial.call(check(id, 0));
        for (number, (score, frees)) in (1_u128..).zip(scores) {
            let waits = CheckAdmission { score, ..check(id, number) };
            for _ in 0..2 {
                let retry_after_ms = limits::SLOT_RETRY_MS;
                let refused = Admission::ConcurrencyExceeded { retry_after_ms };
                prop_assert_eq!(trial.call(waits.clone()), refused);
            }
            line.insert((score, execution(number)));
            if frees {
                let released = trial.call(ReleaseAdmission::of_lease(id, slot(0)));
                let best = line.pop_first().map(|(_, id)| id);
                prop_assert_eq!(&released.wake, &best.into_iter().collect::<Vec<_>>());
                trial.call(check(id, 0));
                settle(&mut trial, id, released.wake);
            }
            prop_assert_eq!(policy(&trial).waiting as usize, line.len());
        }
        let mut woken: Vec<ExecutionId> = Vec::new();
        trial.call(UpdateQuotaPolicy::new(id, cap(line.len() as u32 + 2)));
        while !policy(&trial).waking.is_empty() {
            let waking = policy(&trial).waking.clone();
            woken.extend(&waking);
            settle(&mut trial, id, waking);
        }
        prop_assert_eq!(woken, line.into_iter().map(|(_, id)| id).collect::<Vec<_>>());
        prop_assert_eq!(trial.rows_of(Family::Waiting) + trial.rows_of(Family::Waiter), 0);
    }
}

#[test]
fn a_large_limit_is_kept_in_small_pieces() {
    let most = 5_000;
    let (mut trial, id) = trial(rate(most));
    for number in 0..u128::from(most) {
        trial.call(check(id, number));
        assert_eq!(trial.call(confirm(id, number)), Confirmed::Held);
    }
    let retry_after_ms = WINDOW_MS;
    assert_eq!(trial.call(check(id, 9_999)), Admission::RateExceeded { retry_after_ms });
    assert_eq!(trial.rows_of(Family::Admitted), 79);
    let largest = trial.rows.values().map(bytes::Bytes::len).max().unwrap();
    assert!(largest < 1_024, "a row has {largest} bytes");
    let record = postcard::to_stdvec(&trial.document).unwrap().len();
    assert!(record < 1_024, "the record has {record} bytes");
}

#[test]
fn slots_have_no_holes_whoever_gives_one_back() {
    let (mut trial, id) = trial(cap(0));
    for number in 0..20 {
        trial.call(check(id, number));
        trial.call(confirm(id, number));
    }
    for number in [19, 0, 7, 7, 13, 1, 18] {
        trial.call(ReleaseAdmission::of_lease(id, slot(number)));
        let slots = policy(&trial).slots as usize;
        assert_eq!((trial.rows_of(Family::Slot), trial.rows_of(Family::Holder)), (slots, slots));
    }
    assert_eq!(policy(&trial).slots, 14);
    trial.advance(limits::SLOT_PENDING_MS);
    trial.settle();
    assert_eq!(policy(&trial).overdue, []);
    assert_eq!(trial.rows_of(Family::PendingSlot), 0);
    for number in 0..20 {
        trial.call(ReleaseAdmission::of_lease(id, slot(number)));
    }
    assert_eq!((policy(&trial).slots, trial.rows.len()), (0, 0));
}

#[test]
fn those_that_nobody_asked_for_are_noted_up_to_a_limit() {
    let (mut trial, id) = trial(cap(0));
    let most = limits::TIMER_ROWS as u128;
    for number in 0..most + 10 {
        trial.call(check(id, number));
    }
    trial.advance(limits::SLOT_PENDING_MS);
    assert_eq!(trial.settle(), 2, "it does not go on and on");
    assert_eq!(policy(&trial).overdue, (0..most).map(slot).collect::<Vec<_>>());
    for number in 0..most {
        let confirm = confirm(id, number);
        assert_eq!(trial.call(confirm), Confirmed::Held);
    }
    assert_eq!(policy(&trial).overdue, []);
    trial.advance(limits::SLOT_PENDING_MS);
    trial.settle();
    assert_eq!(policy(&trial).overdue, (most..most + 10).map(slot).collect::<Vec<_>>());
}
