//! The rate window of a quota policy: in any span of its length at most the limit, and never fewer.

use std::collections::{BTreeMap, BTreeSet};

use ff_core::backend::BackendExt;
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::operation::{Admission, CheckAdmission, UpdateQuotaPolicy};
use ff_core::read::Due;
use ff_core::state::{DueKind, PublicState, QuotaSpec};

use super::admission::under;
use crate::limits::{check, first_lease, rate, tick};
use crate::world::World;

const SECOND: i64 = 1_000;

fn later(retry_after_ms: u64) -> Admission {
    Admission::RateExceeded { retry_after_ms }
}

pub async fn the_limit_is_admitted_and_no_more(world: &World) {
    let id = world.quota(rate(3, 1)).await;
    for _ in 0..3 {
        assert_eq!(world.admit(id).await.1, Admission::Admitted);
    }
    assert_eq!(world.admit(id).await.1, later(1_000));
    world.advance(SECOND - 1).await;
    assert_eq!(world.admit(id).await.1, later(1));
    world.advance(1).await;
    for _ in 0..3 {
        assert_eq!(world.admit(id).await.1, Admission::Admitted);
    }
    assert_eq!(world.admit(id).await.1, later(1_000));
}

pub async fn the_window_slides(world: &World) {
    let id = world.quota(rate(3, 1)).await;
    for _ in 0..3 {
        assert_eq!(world.admit(id).await.1, Admission::Admitted);
        world.advance(400).await;
    }
    // They came at 0, 400 and 800: as each leaves, one comes.
    for retry in [200, 400, 400] {
        assert_eq!(world.admit(id).await.1, Admission::Admitted);
        assert_eq!(world.admit(id).await.1, later(retry));
        world.advance(retry.cast_signed()).await;
    }
}

pub async fn it_is_told_when_the_oldest_leaves(world: &World) {
    let id = world.quota(rate(2, 10)).await;
    world.admit(id).await;
    world.advance(3_000).await;
    world.admit(id).await;
    assert_eq!(world.admit(id).await.1, later(7_000));
    world.advance(7_000).await;
    assert_eq!(world.admit(id).await.1, Admission::Admitted);
    assert_eq!(world.admit(id).await.1, later(3_000));
}

pub async fn what_is_refused_takes_no_place(world: &World) {
    let id = world.quota(rate(1, 1)).await;
    world.admit(id).await;
    for _ in 0..9 {
        world.advance(100).await;
        assert!(matches!(world.admit(id).await.1, Admission::RateExceeded { .. }));
    }
    world.advance(100).await;
    assert_eq!(world.admit(id).await.1, Admission::Admitted);
}

pub async fn a_resumed_claim_takes_no_place(world: &World) {
    let id = world.quota(rate(1, 1)).await;
    let resumed =
        || CheckAdmission { opens_attempt: false, ..check(id, first_lease(world.somebody())) };
    for _ in 0..5 {
        assert_eq!(world.act(resumed()).await, Admission::Admitted);
    }
    assert_eq!(world.admit(id).await.1, Admission::Admitted);
    assert_eq!(world.admit(id).await.1, later(1_000));
    assert_eq!(world.act(resumed()).await, Admission::Admitted, "nor does the window stop it");
    assert_eq!(world.describe_quota(id).await.policy.slots, 7);
}

pub async fn a_slot_that_is_given_back_keeps_its_place(world: &World) {
    let id = world.quota(rate(1, 1)).await;
    let (slot, _) = world.admit(id).await;
    world.give_back(id, slot).await;
    assert_eq!(world.act(check(id, slot)).await, later(1_000));
}

pub async fn jitter_comes_from_the_execution(world: &World) {
    let id = world.quota(QuotaSpec { jitter_ms: 500, ..rate(1, 1) }).await;
    world.admit(id).await;
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
    assert_eq!(world.describe_quota(id).await.policy.waiting, 10, "they come one after another");
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
        world.admit(id).await;
        world.advance(1_000).await;
    }
    let update = |spec| UpdateQuotaPolicy::new(id, spec);
    world.act(update(rate(2, 10))).await;
    assert_eq!(world.admit(id).await.1, later(8_000), "until only one of them is left");
    world.act(update(rate(4, 10))).await;
    assert_eq!(world.admit(id).await.1, later(6_000));
    world.act(update(rate(4, 5))).await;
    assert_eq!(world.admit(id).await.1, later(1_000), "a shorter window");
    world.act(update(rate(6, 10))).await;
    assert_eq!(world.admit(id).await.1, Admission::Admitted);
    assert_eq!(world.admit(id).await.1, Admission::Admitted);
    assert_eq!(world.admit(id).await.1, later(6_000));
}

pub async fn a_window_that_is_switched_on_begins_empty(world: &World) {
    let id = world.quota(QuotaSpec::default()).await;
    for _ in 0..5 {
        world.admit(id).await;
    }
    world.act(UpdateQuotaPolicy::new(id, rate(1, 1))).await;
    assert_eq!(world.admit(id).await.1, Admission::Admitted);
    assert_eq!(world.admit(id).await.1, later(1_000));
}

pub async fn many_claims_are_counted_exactly(world: &World) {
    let most = 300;
    let id = world.quota(rate(most, 1)).await;
    for round in 0..3 {
        let checks = || {
            let slots = (0..most + 20).map(|_| first_lease(world.somebody()));
            slots.map(|slot| check(id, slot).into()).collect()
        };
        let replies = world.backend.apply(checks()).await;
        let admitted = format!("{replies:?}").matches("(Admitted)").count();
        assert_eq!(admitted, most as usize, "round {round}");
        world.pass(SECOND).await;
    }
}

pub async fn what_has_left_is_forgotten(world: &World) {
    let id = world.quota(rate(200, 1)).await;
    for _ in 0..150 {
        let (slot, _) = world.admit(id).await;
        world.give_back(id, slot).await;
    }
    world.pass(limits::SLOT_PENDING_MS.cast_signed()).await;
    let nothing = world.act(tick()).await;
    assert_eq!((nothing.total(), nothing.more), (0, false));
    let dues = world.backend.ask(Due).await.unwrap();
    assert_eq!(dues.items, [], "nothing is left for the timer");
    world.admit(id).await;
    world.advance(SECOND).await;
    let ticked = world.act(tick()).await;
    assert_eq!(ticked.fired, [(DueKind::QuotaReconciler, 1)]);
}
