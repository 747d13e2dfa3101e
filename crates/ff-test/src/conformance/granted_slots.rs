//! Slots and places of grants that nobody uses.

use ff_core::backend::BackendExt;
use ff_core::id::{ExecutionId, LeaseId, QuotaPolicyId};
use ff_core::limits;
use ff_core::operation::{
    CheckAdmission, ClaimForWorker, ConfirmAdmission, Confirmed, Errand, HeldBy,
    IssueGrantAndClaim, TakenSlots,
};
use ff_core::state::SlotId;
use ff_engine::acts;

use super::admission::{apply_for, holders, set_aside, slot};
use super::admission_by_name::for_worker;
use crate::grants::grant_and_claim;
use crate::limits::{cap, check, first_lease, rate, tick, under};
use crate::world::World;

const SHORT_MS: u64 = 1_000;
/// Longer than a slot is pending: it is held by then.
const LONG_MS: u64 = limits::SLOT_PENDING_MS + 1_000;

/// The best is granted to a worker, for so long.
pub(super) async fn grant(world: &World, grant_ttl_ms: u64) -> ExecutionId {
    let asked = ClaimForWorker { grant_ttl_ms, ..for_worker() };
    world.backend.claim_for_worker(asked).await.expect("an answer").expect("a grant").execution_id
}

/// An execution whose grant has lapsed, another one behind it, and what is still to be done for the
/// slot of the grant.
async fn lapsed(world: &World, ttl_ms: u64) -> (QuotaPolicyId, ExecutionId, Vec<Errand>) {
    let quota = world.quota(cap(1)).await;
    let first = world.submit(under(world, &[], Some(quota))).await;
    world.submit(under(world, &[], Some(quota))).await;
    assert_eq!(grant(world, ttl_ms).await, first);
    world.pass(ttl_ms.cast_signed() - 1).await;
    world.advance(1).await;
    let owed = world.act(tick()).await.errands;
    let is_of_it =
        |it: &Errand| matches!(it, Errand::GiveBack { execution_id, .. } if *execution_id == first);
    assert!(owed.iter().any(is_of_it), "the grant has lapsed: {owed:?}");
    (quota, first, owed)
}

async fn carry_out(world: &World, owed: &[Errand]) {
    for errand in owed {
        acts::carry_out(&*world.backend, errand).await.expect("carried out");
    }
}

pub async fn a_lapsed_grant_takes_no_slot_from_the_lease_that_follows(world: &World) {
    for ttl_ms in [SHORT_MS, LONG_MS] {
        let (quota, first, owed) = lapsed(world, ttl_ms).await;
        let task = world.claim(1).await.remove(0);
        assert_eq!(task.execution_id, first);
        for _ in 0..2 {
            carry_out(world, &owed).await;
            assert_eq!(holders(world, quota).await, [slot(&task)], "granted for {ttl_ms} ms");
        }
        assert_eq!(world.claim_ids(5).await, [], "the cap is 1");
        world.complete(&task).await.expect("completed");
        assert_eq!(holders(world, quota).await, []);
        let last = world.claim(5).await;
        assert_eq!(last.len(), 1);
        world.complete(&last[0]).await.expect("completed");
    }
}

pub async fn a_lapsed_grant_takes_no_slot_from_a_claim_under_way(world: &World) {
    for ttl_ms in [SHORT_MS, LONG_MS] {
        let (quota, first, owed) = lapsed(world, ttl_ms).await;
        let slots =
            TakenSlots { lease_epoch: 1, quota_policy_ids: vec![quota], places: Vec::new() };
        let claim = IssueGrantAndClaim { slots, ..grant_and_claim(first) };
        let asked = CheckAdmission { claimant: claim.lease_id, ..check(quota, first_lease(first)) };
        world.act(asked).await;
        carry_out(world, &owed).await;
        let task = world.act(claim).await;
        assert_eq!(holders(world, quota).await, [slot(&task)], "granted for {ttl_ms} ms");
        assert_eq!(world.claim_ids(5).await, []);
        world.complete(&task).await.expect("completed");
        let last = world.claim(5).await;
        world.complete(&last[0]).await.expect("completed");
        assert_eq!(holders(world, quota).await, []);
    }
}

pub async fn a_slot_that_a_lapsed_grant_shared_is_free_once_nobody_wants_it(world: &World) {
    for ttl_ms in [SHORT_MS, LONG_MS] {
        let (quota, first, owed) = lapsed(world, ttl_ms).await;
        let slot = SlotId { execution_id: first, lease_epoch: 1 };
        // A claim that asks and is never heard of again.
        world.act(CheckAdmission { claimant: LeaseId::mint(), ..check(quota, slot) }).await;
        carry_out(world, &owed).await;
        assert_eq!(holders(world, quota).await, [slot], "it may still come");
        world.pass(limits::SLOT_PENDING_MS.cast_signed()).await;
        world.pass(limits::ERRAND_RETRY_MS.cast_signed()).await;
        assert_eq!(holders(world, quota).await, [], "granted for {ttl_ms} ms");
        for _ in 0..2 {
            let task = world.claim(1).await.remove(0);
            world.complete(&task).await.expect("completed");
        }
    }
}

pub async fn a_lease_whose_slot_is_gone_gets_it_back(world: &World) {
    let quota = world.quota(cap(1)).await;
    let task = world.start(under(world, &[], Some(quota))).await;
    let backend = &*world.backend;
    let found = async |repair| acts::audit(backend, repair).await.expect("audited");
    assert_eq!(found(false).await.found.violations, [], "it holds its slot");
    world.give_back(quota, slot(&task)).await;
    let audited = found(false).await;
    assert_eq!((audited.found.violations.len(), &audited.left), (1, &audited.found));
    let violation = &audited.found.violations[0];
    assert_eq!(violation.invariant, "I19", "{violation:?}");
    assert_eq!(violation.subject, Some(task.execution_id.to_string()));
    assert_eq!(holders(world, quota).await, [], "a look changes nothing");
    let repaired = found(true).await;
    assert_eq!((repaired.mended(), repaired.left.violations.len()), (1, 0));
    assert_eq!(holders(world, quota).await, [slot(&task)]);
    world.submit(under(world, &[], Some(quota))).await;
    assert_eq!(world.claim_ids(5).await, [], "the cap is 1");
    world.complete(&task).await.expect("completed");
    assert_eq!(world.claim(5).await.len(), 1);
    let lost = ConfirmAdmission {
        quota_policy_id: quota,
        slot: slot(&task),
        by: HeldBy::Lease,
        restore: Some(task.lease_id),
    };
    assert_eq!(
        world.act(lost).await,
        Confirmed::Restored,
        "whether the lease lives is asked later"
    );
    world.pass(limits::SLOT_PENDING_MS.cast_signed()).await;
    world.pass(limits::ERRAND_RETRY_MS.cast_signed()).await;
    assert_eq!(holders(world, quota).await.len(), 1, "that lease has ended");
}

pub async fn a_lapsed_grant_gives_its_place_back(world: &World) {
    for ttl_ms in [SHORT_MS, LONG_MS] {
        let quota = world.quota(rate(1, 60)).await;
        let first = world.submit(under(world, &[], Some(quota))).await;
        assert_eq!(grant(world, ttl_ms).await, first);
        world.pass(ttl_ms.cast_signed()).await;
        let task = world.claim_one().await;
        assert_eq!(task.execution_id, first, "no attempt was opened before: {ttl_ms} ms");
        world.complete(&task).await.expect("completed");
        world.submit(under(world, &[], Some(quota))).await;
        assert_eq!(world.claim_ids(5).await, [], "now one was");
        world.pass(60_000).await;
        let last = world.claim_one().await;
        world.complete(&last).await.expect("completed");
    }
}

pub async fn a_claim_that_is_not_heard_of_again_gives_its_place_back(world: &World) {
    let quota = world.quota(rate(1, 60)).await;
    let id = world.submit(under(world, &[], Some(quota))).await;
    let applicant = set_aside(world).await;
    apply_for(world, quota, &applicant).await;
    world.pass(limits::SLOT_PENDING_MS.cast_signed()).await;
    world.pass(limits::ERRAND_RETRY_MS.cast_signed()).await;
    assert_eq!(world.claim_ids(5).await, [id]);
    world.submit(under(world, &[], Some(quota))).await;
    assert_eq!(world.claim_ids(5).await, []);
}
