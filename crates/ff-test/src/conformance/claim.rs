//! What a claim makes and what its task carries.

use std::collections::BTreeSet;
use std::time::Duration;

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::id::{Handle, HandleKind, LeaseId};
use ff_core::limits;
use ff_core::operation::{Claim, Replay};
use ff_core::state::{
    AttemptProgress, AttemptState, AttemptType, EligibilityState, LifecyclePhase, OwnershipState,
    PublicState,
};
use tokio::task::JoinSet;

use crate::world::{World, delay, fail};

pub async fn a_claim_leases_the_execution_to_the_instance(world: &World) {
    world.advance(7).await;
    let now = world.now().await;
    let task = world.start(world.work()).await;
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.state.lifecycle_phase, LifecyclePhase::Active);
    assert_eq!(record.state.ownership_state, OwnershipState::Leased);
    assert_eq!(record.state.eligibility_state, EligibilityState::NotApplicable);
    assert_eq!(record.state.attempt_state, AttemptProgress::RunningAttempt);
    assert_eq!(record.state.public_state, PublicState::Active);
    assert_eq!((record.lease_id, record.lease_epoch), (Some(task.lease_id), 1));
    assert_eq!(record.worker_id.as_deref(), Some("pool"));
    assert_eq!(record.worker_instance_id.as_deref(), Some("pool-1"));
    assert_eq!(record.lease_expires_at, Some(now.after(limits::LEASE_TTL_MS)));
    assert_eq!(record.lease_last_renewed_at, Some(now));
    assert_eq!(record.lease_renewal_deadline, Some(now.after(limits::LEASE_TTL_MS * 2 / 3)));
    assert_eq!((record.started_at, record.last_transition_at), (Some(now), now));
    assert_eq!((record.current_attempt_index, record.total_attempt_count), (Some(0), 1));
    assert_eq!(record.current_attempt_id, Some(task.attempt_id));
}

pub async fn the_first_task_carries_its_lease_and_attempt(world: &World) {
    let now = world.now().await;
    let id = world.submit(world.work()).await;
    let claim = Claim { lease_ttl_ms: 5_000, ..world.claim_request(1) };
    let task = world.claim_as(claim.clone()).await.pop().unwrap();
    assert_eq!((task.execution_id, task.created_at), (id, now));
    assert_eq!((task.lease_epoch, task.ttl_ms, task.expires_at), (1, 5_000, now.after(5_000)));
    assert_eq!((task.attempt_index, task.attempt_type), (0, AttemptType::Initial));
    assert_eq!((task.retry_count, task.reclaim_count), (0, 0));
    assert_eq!((&task.previous_failure, task.deadline_at), (&None, None));
    assert_eq!(task.attempt_deadline_at, None);
    assert_eq!(task.lease_id, LeaseId::from_seed(claim.seed, 0));
}

pub async fn every_task_of_a_claim_has_a_lease_id_counted_from_the_seed(world: &World) {
    for _ in 0..4 {
        world.submit(world.work()).await;
    }
    let claim = world.claim_request(4);
    let tasks = world.claim_as(claim.clone()).await;
    let leases: Vec<_> = tasks.iter().map(|task| task.lease_id).collect();
    let counted: Vec<_> = (0..4).map(|n| LeaseId::from_seed(claim.seed, n)).collect();
    assert_eq!(leases, counted);
}

pub async fn a_handle_names_the_lease_and_its_store(world: &World) {
    let task = world.start(world.work()).await;
    let label = world.backend.backend_label();
    let text = task.handle.encode();
    let handle = Handle::decode(&text, label).unwrap();
    assert_eq!((handle.fence(), handle.execution_id), (task.fence(), task.execution_id));
    assert_eq!((handle.kind, handle.attempt_index), (HandleKind::Fresh, 0));
    assert_eq!((handle.ttl_ms, &handle.lane), (task.ttl_ms, &task.lane));
    assert_eq!(handle.worker_instance_id.as_str(), "pool-1");
    let refusal = Handle::decode(&text, "another store").unwrap_err();
    assert_eq!(refusal.code, Code::HandleFromOtherBackend);
    let refusal = Handle::decode(&text[..text.len() - 4], label).unwrap_err();
    assert_eq!(refusal.code, Code::InvalidInput);
}

pub async fn what_the_next_claim_opens_depends_on_how_the_last_lease_ended(world: &World) {
    let first = world.start(world.work()).await;
    assert_eq!((first.attempt_type, first.handle.kind), (AttemptType::Initial, HandleKind::Fresh));
    world.act(delay(&first, 0)).await;
    let resumed = world.claim_one().await;
    assert_eq!(resumed.attempt_type, AttemptType::Initial);
    assert_eq!(resumed.handle.kind, HandleKind::Resumed);
    assert_eq!((resumed.attempt_index, resumed.attempt_id), (0, first.attempt_id));
    assert_ne!(resumed.lease_id, first.lease_id);
    world.act(fail(&resumed, "transient")).await;
    world.pass(1_000).await;
    let retry = world.claim_one().await;
    assert_eq!((retry.attempt_type, retry.handle.kind), (AttemptType::Retry, HandleKind::Fresh));
    world.pass(limits::LEASE_TTL_MS.cast_signed()).await;
    let reclaim = world.claim_one().await;
    assert_eq!(reclaim.attempt_type, AttemptType::Reclaim);
    assert_eq!(reclaim.handle.kind, HandleKind::Reclaimed);
    world.complete(&reclaim).await.unwrap();
    world.act(Replay { execution_id: first.execution_id, descendants: false }).await;
    let replay = world.claim_one().await;
    assert_eq!((replay.attempt_type, replay.handle.kind), (AttemptType::Replay, HandleKind::Fresh));
    let epochs = [&first, &resumed, &retry, &reclaim, &replay].map(|task| task.lease_epoch);
    assert_eq!(epochs, [1, 2, 3, 4, 5]);
    let indexes = [&retry, &reclaim, &replay].map(|task| task.attempt_index);
    assert_eq!(indexes, [1, 2, 3]);
}

pub async fn started_is_set_by_the_first_claim_only(world: &World) {
    let task = world.start(world.work()).await;
    let started_at = world.describe(task.execution_id).await.started_at;
    world.act(delay(&task, 500)).await;
    world.pass(500).await;
    world.claim_one().await;
    assert_eq!(world.describe(task.execution_id).await.started_at, started_at);
}

pub async fn a_claim_is_one_event_with_its_lease(world: &World) {
    let task = world.start(world.work()).await;
    let event = world.events(task.execution_id).await.pop().unwrap();
    assert_eq!(event.kind, EventKind::Claimed);
    assert_eq!((event.attempt_index, event.lease_epoch), (Some(0), Some(1)));
    assert_eq!(event.worker_instance_id.as_deref(), Some("pool-1"));
    assert_eq!((event.data["attempt_type"].clone(), event.outcome), ("initial".into(), None));
}

pub async fn the_running_attempt_is_listed(world: &World) {
    let task = world.start(world.work()).await;
    let [attempt] = world.attempts(task.execution_id).await.try_into().unwrap();
    assert_eq!((attempt.index, attempt.id), (0, task.attempt_id));
    assert_eq!((attempt.kind, attempt.state), (AttemptType::Initial, AttemptState::Started));
    assert_eq!((attempt.started_at, attempt.ended_at), (world.now().await, None));
    assert_eq!(attempt.worker_id.as_str(), "pool");
    assert_eq!(attempt.worker_instance_id.as_str(), "pool-1");
}

pub async fn concurrent_claims_never_share_an_execution(world: &World) {
    for _ in 0..20 {
        world.submit(world.work()).await;
    }
    let mut claims = JoinSet::new();
    for _ in 0..8 {
        let (backend, claim) = (world.backend.clone(), world.claim_request(5));
        claims.spawn(async move { backend.claim(claim, Duration::ZERO).await.unwrap() });
    }
    let tasks = claims.join_all().await.concat();
    let ids: BTreeSet<_> = tasks.iter().map(|task| task.execution_id).collect();
    assert_eq!((tasks.len(), ids.len()), (20, 20));
    assert!(tasks.iter().all(|task| task.lease_epoch == 1));
}
