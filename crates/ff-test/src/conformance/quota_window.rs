//! The rate window of a quota policy: in any span of its length at most the limit, and never fewer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use ff_core::backend::BackendExt;
use ff_core::event::EventKind;
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::operation::{
    Admission, CheckAdmission, Command, ReleaseAdmission, Reply, SlotEnd, UpdateQuotaPolicy,
};
use ff_core::read::Due;
use ff_core::state::{DueKind, PublicState, QuotaSpec};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::granted_slots::grant;
use crate::grants::claim_granted;
use crate::limits::{ADMITTED, check, confirm, first_lease, rate, tick, under};
use crate::world::{PATIENCE, World};

const SECOND: i64 = 1_000;

/// A slot, and a place in the window.
const PLACED: Admission = Admission::Admitted { keeps_place: true };

fn later(retry_after_ms: u64) -> Admission {
    Admission::RateExceeded { retry_after_ms }
}

pub async fn the_limit_is_admitted_and_no_more(world: &World) {
    let id = world.quota(rate(3, 1)).await;
    for _ in 0..3 {
        assert_eq!(world.begin(id).await.1, PLACED);
    }
    assert_eq!(world.begin(id).await.1, later(1_000));
    world.advance(SECOND - 1).await;
    assert_eq!(world.begin(id).await.1, later(1));
    world.advance(1).await;
    for _ in 0..3 {
        assert_eq!(world.begin(id).await.1, PLACED);
    }
    assert_eq!(world.begin(id).await.1, later(1_000));
}

pub async fn the_window_slides(world: &World) {
    let id = world.quota(rate(3, 1)).await;
    for _ in 0..3 {
        assert_eq!(world.begin(id).await.1, PLACED);
        world.advance(400).await;
    }
    // They came at 0, 400 and 800: as each leaves, one comes.
    for retry in [200, 400, 400] {
        assert_eq!(world.begin(id).await.1, PLACED);
        assert_eq!(world.begin(id).await.1, later(retry));
        world.advance(retry.cast_signed()).await;
    }
}

pub async fn a_place_counts_from_when_the_attempt_begins(world: &World) {
    let id = world.quota(rate(1, 1)).await;
    let (slot, admission) = world.admit(id).await;
    assert_eq!(admission, PLACED);
    world.advance(900).await;
    world.act(confirm(id, slot)).await;
    world.advance(200).await;
    assert_eq!(
        world.begin(id).await.1,
        later(800),
        "a second after the claim, not after the lease"
    );
    world.advance(800).await;
    assert_eq!(world.begin(id).await.1, PLACED);
}

pub async fn a_place_is_kept_until_the_lease_is_heard_of(world: &World) {
    let id = world.quota(rate(2, 1)).await;
    world.begin(id).await;
    let (slot, _) = world.admit(id).await;
    world.advance(1_500).await;
    assert_eq!(world.admit(id).await.1, PLACED, "what has begun has left");
    world.advance(1_500).await;
    assert_eq!(world.admit(id).await.1, later(1_000), "what has not begun has not");
    let why = SlotEnd::Unused(check(id, slot).claimant);
    world.act(ReleaseAdmission { quota_policy_id: id, slot, why }).await;
    assert_eq!(world.admit(id).await.1, PLACED, "nor does it come any more");
}

pub async fn a_claim_from_an_old_grant_counts_when_it_is_made(world: &World) {
    let quota = world.quota(rate(1, 1)).await;
    let granted = world.submit(under(world, &[], Some(quota))).await;
    world.submit(under(world, &[], Some(quota))).await;
    assert_eq!(grant(world, limits::GRANT_TTL_MAX_MS).await, granted);
    world.pass(2 * SECOND).await;
    assert_eq!(world.claim_ids(1).await, [], "the place is kept for the grant");
    let task = world.backend.take_up(claim_granted(granted)).await.unwrap();
    assert_eq!(task.execution_id, granted);
    world.pass(SECOND - 1).await;
    assert_eq!(world.claim_ids(1).await, [], "a second has not passed since it began");
    world.pass(1).await;
    assert_eq!(world.claim_ids(1).await.len(), 1);
}

pub async fn a_crowd_begins_no_more_than_the_window_allows(world: &World) {
    const MOST: usize = 5;
    const ALL: usize = 40;
    let quota = world.quota(rate(MOST as u32, 1)).await;
    for _ in 0..ALL {
        world.submit(under(world, &[], Some(quota))).await;
    }
    let (begun, looks) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let is_done = || begun.load(Ordering::Relaxed) >= ALL;
    let claims = async || {
        while !is_done() {
            begun.fetch_add(world.claim(2).await.len(), Ordering::Relaxed);
            looks.fetch_add(1, Ordering::Relaxed);
            // A store in memory may never wait for anything.
            yield_now().await;
        }
    };
    // Time passes between what some claims ask and what they get, as often as others end.
    let time = async {
        for turn in 1.. {
            let seen = looks.load(Ordering::Relaxed);
            world.advance(70).await;
            if turn % 5 == 0 {
                world.settle().await;
            }
            while looks.load(Ordering::Relaxed) == seen && !is_done() {
                yield_now().await;
            }
            if is_done() {
                return;
            }
        }
    };
    let crowd = async { tokio::join!(claims(), claims(), claims(), claims(), time) };
    timeout(PATIENCE, crowd).await.expect("all have begun in time");
    let log = world.log().await.into_iter().map(|envelope| envelope.event);
    let claimed = log.filter(|event| event.kind == EventKind::Claimed);
    let mut times: Vec<_> = claimed.map(|event| event.time).collect();
    times.sort_unstable();
    assert_eq!(times.len(), ALL);
    for span in times.windows(MOST + 1) {
        assert!(span[MOST].since(span[0]) >= 1_000, "more than {MOST} in a second: {span:?}");
    }
}

pub async fn it_is_told_when_the_oldest_leaves(world: &World) {
    let id = world.quota(rate(2, 10)).await;
    world.begin(id).await;
    world.advance(3_000).await;
    world.begin(id).await;
    assert_eq!(world.begin(id).await.1, later(7_000));
    world.advance(7_000).await;
    assert_eq!(world.begin(id).await.1, PLACED);
    assert_eq!(world.begin(id).await.1, later(3_000));
}

pub async fn what_is_refused_takes_no_place(world: &World) {
    let id = world.quota(rate(1, 1)).await;
    world.begin(id).await;
    for _ in 0..9 {
        world.advance(100).await;
        assert!(matches!(world.begin(id).await.1, Admission::RateExceeded { .. }));
    }
    world.advance(100).await;
    assert_eq!(world.begin(id).await.1, PLACED);
}

pub async fn a_resumed_claim_takes_no_place(world: &World) {
    let id = world.quota(rate(1, 1)).await;
    let resumed =
        || CheckAdmission { opens_attempt: false, ..check(id, first_lease(world.somebody())) };
    for _ in 0..5 {
        assert_eq!(world.act(resumed()).await, ADMITTED);
    }
    assert_eq!(world.begin(id).await.1, PLACED);
    assert_eq!(world.begin(id).await.1, later(1_000));
    assert_eq!(world.act(resumed()).await, ADMITTED, "nor does the window stop it");
    assert_eq!(world.describe_quota(id).await.policy.slots, 7);
}

pub async fn a_slot_that_is_given_back_keeps_its_place(world: &World) {
    let id = world.quota(rate(1, 1)).await;
    let (slot, _) = world.begin(id).await;
    world.give_back(id, slot).await;
    assert_eq!(world.act(check(id, slot)).await, later(1_000));
}

pub async fn jitter_comes_from_the_execution(world: &World) {
    let id = world.quota(QuotaSpec { jitter_ms: 500, ..rate(1, 1) }).await;
    world.begin(id).await;
    let mut told = BTreeSet::new();
    for _ in 0..20 {
        let slot = first_lease(world.somebody());
        let refused = world.act(check(id, slot)).await;
        assert_eq!(world.act(check(id, slot)).await, refused, "the same each time");
        let Admission::RateExceeded { retry_after_ms } = refused else { panic!("{refused:?}") };
        assert!((1_000..=1_500).contains(&retry_after_ms), "{retry_after_ms}");
        told.insert(retry_after_ms);
    }
    assert!(told.len() > 5, "it spreads them: {told:?}");
}

pub async fn who_waits_comes_after_its_jitter(world: &World) {
    let jitter_ms = 500;
    let id = world.quota(QuotaSpec { jitter_ms, ..rate(10, 1) }).await;
    let mut all = BTreeSet::new();
    for _ in 0..20 {
        all.insert(world.submit(under(world, &[], Some(id))).await);
    }
    let first = world.claim_ids(20).await;
    assert_eq!(first.len(), 10);
    let mut told = BTreeMap::new();
    for execution in all.iter().filter(|execution| !first.contains(execution)) {
        let slot = first_lease(*execution);
        let refused = world.act(check(id, slot)).await;
        let Admission::RateExceeded { retry_after_ms } = refused else { panic!("{refused:?}") };
        told.insert(*execution, retry_after_ms);
    }
    world.pass(SECOND).await;
    // Of an id in some hundreds the jitter is nothing.
    let rest = told.values().filter(|at| **at > 1_000).count();
    let waiting = world.describe_quota(id).await.policy.waiting as usize;
    assert_eq!(waiting, rest, "they come one after another");
    let state = async |id| world.describe(id).await.state.public_state;
    let mut passed = 1_000;
    for (execution, at) in sorted(&told) {
        let early = at.saturating_sub(passed + 1);
        world.pass(early.cast_signed()).await;
        passed += early;
        if passed < at {
            assert_eq!(state(execution).await, PublicState::RateLimited, "{at} of {told:?}");
        }
        world.pass((at - passed).cast_signed()).await;
        passed = at;
        assert_eq!(state(execution).await, PublicState::Waiting, "{at} of {told:?}");
    }
    assert_eq!(world.claim_ids(20).await.len(), 10);
    assert_eq!(world.describe_quota(id).await.policy.waiting, 0);
}

/// By the time at which they were told to come again.
fn sorted(told: &BTreeMap<ExecutionId, u64>) -> Vec<(ExecutionId, u64)> {
    let mut all: Vec<_> = told.iter().map(|(id, at)| (*id, *at)).collect();
    all.sort_by_key(|(_, at)| *at);
    all
}

pub async fn another_limit_counts_what_was_admitted(world: &World) {
    let id = world.quota(rate(5, 10)).await;
    for _ in 0..4 {
        world.begin(id).await;
        world.advance(1_000).await;
    }
    let update = |spec| UpdateQuotaPolicy::new(id, spec);
    world.act(update(rate(2, 10))).await;
    assert_eq!(world.begin(id).await.1, later(8_000), "until only one of them is left");
    world.act(update(rate(4, 10))).await;
    assert_eq!(world.begin(id).await.1, later(6_000));
    world.act(update(rate(4, 5))).await;
    assert_eq!(world.begin(id).await.1, later(1_000), "a shorter window");
    world.act(update(rate(6, 10))).await;
    assert_eq!(world.begin(id).await.1, PLACED);
    assert_eq!(world.begin(id).await.1, PLACED);
    assert_eq!(world.begin(id).await.1, later(6_000));
}

pub async fn a_window_that_is_switched_on_begins_empty(world: &World) {
    let id = world.quota(QuotaSpec::default()).await;
    for _ in 0..5 {
        world.begin(id).await;
    }
    world.act(UpdateQuotaPolicy::new(id, rate(1, 1))).await;
    assert_eq!(world.begin(id).await.1, PLACED);
    assert_eq!(world.begin(id).await.1, later(1_000));
}

pub async fn many_claims_are_counted_exactly(world: &World) {
    let most = 300;
    let id = world.quota(rate(most, 1)).await;
    for round in 0..3 {
        let slots: Vec<_> = (0..most + 20).map(|_| first_lease(world.somebody())).collect();
        let checks = slots.iter().map(|slot| check(id, *slot).into()).collect();
        let replies = slots.iter().zip(world.backend.apply(checks).await);
        let admitted = replies.filter(|(_, reply)| *reply == Ok(Reply::CheckAdmission(PLACED)));
        let begun: Vec<Command> = admitted.map(|(slot, _)| confirm(id, *slot).into()).collect();
        assert_eq!(begun.len(), most as usize, "round {round}");
        world.backend.apply(begun).await;
        world.pass(SECOND).await;
    }
}

pub async fn what_has_left_is_forgotten(world: &World) {
    let id = world.quota(rate(200, 1)).await;
    for _ in 0..150 {
        let (slot, _) = world.begin(id).await;
        world.give_back(id, slot).await;
    }
    world.pass(limits::SLOT_PENDING_MS.cast_signed()).await;
    let nothing = world.act(tick()).await;
    assert_eq!((nothing.total(), nothing.more), (0, false));
    let dues = world.backend.ask(Due).await.unwrap();
    assert_eq!(dues.items, [], "nothing is left for the timer");
    world.begin(id).await;
    world.advance(SECOND).await;
    let ticked = world.act(tick()).await;
    assert_eq!(ticked.fired, [(DueKind::QuotaReconciler, 1)]);
}
