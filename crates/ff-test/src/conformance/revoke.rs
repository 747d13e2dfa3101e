//! Revoke: an operator takes a lease away.

use ff_core::error::Code;
use ff_core::event::{Detail, EventKind};
use ff_core::id::LeaseId;
use ff_core::limits;
use ff_core::operation::{Revoke, Revoked};
use ff_core::state::{
    AttemptProgress, AttemptState, AttemptType, EligibilityState, LifecyclePhase, OwnershipState,
    PublicState,
};

use crate::world::{World, delay, revoke};

const TTL: i64 = limits::LEASE_TTL_MS.cast_signed();

pub async fn a_revoked_lease_is_claimable_again_as_a_reclaim(world: &World) {
    let task = world.start(world.work()).await;
    let reply = world.act(revoke(task.execution_id)).await;
    assert_eq!(reply, Revoked::Revoked { lease_id: task.lease_id, lease_epoch: 1 });
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.state.lifecycle_phase, LifecyclePhase::Runnable);
    assert_eq!(record.state.ownership_state, OwnershipState::LeaseRevoked);
    assert_eq!(record.state.eligibility_state, EligibilityState::EligibleNow);
    assert_eq!(record.state.attempt_state, AttemptProgress::AttemptInterrupted);
    assert_eq!(record.state.public_state, PublicState::Waiting);
    assert_eq!((record.lease_id, record.lease_reclaim_count), (None, 1));
    let next = world.claim_one().await;
    assert_eq!((next.attempt_type, next.attempt_index), (AttemptType::Reclaim, 1));
    assert_eq!((next.lease_epoch, next.reclaim_count), (2, 1));
    let [first, _] = world.attempts(task.execution_id).await.try_into().unwrap();
    assert_eq!(first.state, AttemptState::InterruptedReclaimed);
    let event = &world.events(task.execution_id).await[2];
    assert_eq!(event.kind, EventKind::LeaseRevoked);
    assert_eq!(event.data["reason"], Detail::from("maintenance"));
    assert_eq!(event.worker_instance_id.as_deref(), Some("pool-1"));
}

pub async fn a_repeated_revocation_is_already_satisfied(world: &World) {
    let task = world.start(world.work()).await;
    let expected =
        |lease_id| Revoke { expected_lease_id: Some(lease_id), ..revoke(task.execution_id) };
    world.act(expected(task.lease_id)).await;
    let before = world.describe(task.execution_id).await;
    let told = Revoked::AlreadySatisfied { lease_id: task.lease_id, lease_epoch: 1 };
    for again in [revoke(task.execution_id), expected(task.lease_id)] {
        assert_eq!(world.act(again).await, told);
    }
    assert_eq!(world.describe(task.execution_id).await, before);
    world.refuses(expected(LeaseId::mint()), Code::ExecutionNotActive).await;
}

pub async fn a_newer_lease_is_not_the_revoked_one(world: &World) {
    let first = world.start(world.work()).await;
    let id = first.execution_id;
    world.act(revoke(id)).await;
    let second = world.claim_one().await;
    let stale = Revoke { expected_lease_id: Some(first.lease_id), ..revoke(id) };
    world.refuses(stale, Code::StaleLease).await;
    let reply = world.act(revoke(id)).await;
    assert_eq!(reply, Revoked::Revoked { lease_id: second.lease_id, lease_epoch: 2 });
    assert_eq!(world.describe(id).await.lease_reclaim_count, 2);
}

pub async fn without_a_live_lease_there_is_nothing_to_revoke(world: &World) {
    let waiting = world.submit(world.work()).await;
    world.refuses(revoke(waiting), Code::ExecutionNotActive).await;
    let task = world.claim_one().await;
    world.act(delay(&task, 1_000)).await;
    world.refuses(revoke(waiting), Code::ExecutionNotActive).await;
    let done = world.finish(world.work()).await;
    world.refuses(revoke(done.execution_id), Code::ExecutionNotActive).await;
    let expired = world.start(world.work()).await;
    world.pass(TTL).await;
    world.refuses(revoke(expired.execution_id), Code::ExecutionNotActive).await;
}

pub async fn a_revocation_at_the_cap_fails_the_execution(world: &World) {
    let submit = world.work_with(r#"{"timeout_policy":{"max_reclaim_count":0}}"#);
    let task = world.start(submit).await;
    let reply = world.act(revoke(task.execution_id)).await;
    assert_eq!(reply, Revoked::Revoked { lease_id: task.lease_id, lease_epoch: 1 });
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.state.public_state, PublicState::Failed);
    assert_eq!(record.failure_reason.as_deref(), Some("max_reclaims_exceeded"));
    assert_eq!(world.history(task.execution_id).await.last(), Some(&EventKind::Failed));
}

pub async fn the_reason_has_a_limit(world: &World) {
    let task = world.start(world.work()).await;
    let reason = |bytes| Revoke { reason: "x".repeat(bytes), ..revoke(task.execution_id) };
    world.refuses(reason(limits::REASON_BYTES + 1), Code::InvalidInput).await;
    world.act(reason(limits::REASON_BYTES)).await;
}
