//! Leases that run out.

use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::limits;
use ff_core::operation::Task;
use ff_core::state::{
    AttemptProgress, AttemptState, AttemptType, BlockingReason, EligibilityState, FailureClass,
    LifecyclePhase, Outcome, OwnershipState, PublicState,
};

use crate::world::{World, code, complete, fenced, progress};

const TTL: i64 = limits::LEASE_TTL_MS.cast_signed();

pub async fn a_lease_past_its_expiry_reads_as_expired_before_anyone_acts(world: &World) {
    let task = world.start(world.work()).await;
    world.advance(TTL - 1).await;
    let state = world.describe(task.execution_id).await.state;
    assert_eq!(state.ownership_state, OwnershipState::Leased);
    world.advance(1).await;
    let state = world.describe(task.execution_id).await.state;
    assert_eq!(state.lifecycle_phase, LifecyclePhase::Active);
    assert_eq!(state.ownership_state, OwnershipState::LeaseExpiredReclaimable);
    assert_eq!(state.public_state, PublicState::Active);
}

pub async fn an_expired_lease_makes_the_execution_eligible_again(world: &World) {
    let task = world.start(world.work()).await;
    world.pass(TTL).await;
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.state.lifecycle_phase, LifecyclePhase::Runnable);
    assert_eq!(record.state.ownership_state, OwnershipState::LeaseExpiredReclaimable);
    assert_eq!(record.state.eligibility_state, EligibilityState::EligibleNow);
    assert_eq!(record.state.blocking_reason, BlockingReason::WaitingForWorker);
    assert_eq!(record.state.attempt_state, AttemptProgress::AttemptInterrupted);
    assert_eq!(record.state.public_state, PublicState::Waiting);
    assert_eq!((record.lease_id, record.lease_expires_at), (None, None));
    assert_eq!((record.worker_id, record.worker_instance_id), (None, None));
    assert_eq!((record.lease_epoch, record.lease_reclaim_count, record.retry_count), (1, 1, 0));
    let kinds = [EventKind::Submitted, EventKind::Claimed, EventKind::LeaseExpired];
    assert_eq!(world.history(task.execution_id).await, kinds);
}

pub async fn a_lease_lives_until_the_last_millisecond(world: &World) {
    let task = world.start(world.work()).await;
    world.pass(TTL - 1).await;
    world.complete(&task).await.unwrap();
}

pub async fn the_reclaim_is_a_new_attempt_and_the_lost_one_is_interrupted(world: &World) {
    let lost = world.start(world.work()).await;
    world.pass(TTL).await;
    let ended_at = world.now().await;
    let task = world.claim_one().await;
    assert_eq!((task.attempt_index, task.attempt_type), (1, AttemptType::Reclaim));
    assert_eq!((task.lease_epoch, task.reclaim_count, task.retry_count), (2, 1, 0));
    assert_ne!((task.attempt_id, task.lease_id), (lost.attempt_id, lost.lease_id));
    let [first, second] = world.attempts(task.execution_id).await.try_into().unwrap();
    assert_eq!(first.state, AttemptState::InterruptedReclaimed);
    assert_eq!((first.ended_at, first.active_ms), (Some(ended_at), limits::LEASE_TTL_MS));
    assert_eq!((second.state, second.ended_at), (AttemptState::Started, None));
}

pub async fn time_after_the_expiry_does_not_count_as_time_under_lease(world: &World) {
    let task = world.start(world.work()).await;
    world.pass(TTL + 700).await;
    let [attempt] = world.attempts(task.execution_id).await.try_into().unwrap();
    assert_eq!(attempt.active_ms, limits::LEASE_TTL_MS);
}

pub async fn a_late_call_is_refused_and_performs_the_expiry(world: &World) {
    for name in [
        "renew_lease",
        "complete_execution",
        "fail_execution",
        "delay_execution",
        "cancel_execution",
    ] {
        let task = world.start(world.work()).await;
        world.advance(TTL).await;
        let command = fenced(&task).into_iter().find(|command| command.name() == name).unwrap();
        assert_eq!(code(world.command(command).await), Code::LeaseExpired, "{name}");
        let record = world.describe(task.execution_id).await;
        assert_eq!(record.state.lifecycle_phase, LifecyclePhase::Runnable, "{name}");
        assert_eq!(record.lease_reclaim_count, 1, "{name}");
        let kinds = [EventKind::Submitted, EventKind::Claimed, EventKind::LeaseExpired];
        assert_eq!(world.history(task.execution_id).await, kinds, "{name}");
        assert_eq!(world.claim_one().await.attempt_type, AttemptType::Reclaim, "{name}");
    }
}

pub async fn late_progress_is_refused_and_leaves_the_expiry_to_others(world: &World) {
    let task = world.start(world.work()).await;
    world.advance(TTL).await;
    world.refuses(progress(&task, 50), Code::LeaseExpired).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Active);
}

async fn lose(world: &World, task: &Task) {
    world.pass(task.ttl_ms.cast_signed()).await;
}

pub async fn the_loss_after_the_last_allowed_reclaim_fails_the_execution(world: &World) {
    let submit = world.work_with(r#"{"timeout_policy":{"max_reclaim_count":2}}"#);
    let mut task = world.start(submit).await;
    for count in 1..=2 {
        lose(world, &task).await;
        assert_eq!(world.describe(task.execution_id).await.lease_reclaim_count, count);
        task = world.claim_one().await;
        assert_eq!(task.reclaim_count, count);
    }
    lose(world, &task).await;
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.state.terminal_outcome, Some(Outcome::Failed));
    assert_eq!(record.lease_reclaim_count, 2, "the loss that ends it does not count");
    assert_eq!(record.failure_reason.as_deref(), Some("max_reclaims_exceeded"));
    assert_eq!(record.failure_class, Some(FailureClass::InfraCrash));
    assert_eq!(record.completed_at, Some(world.now().await));
    let history = world.history(task.execution_id).await;
    assert_eq!(history.last(), Some(&EventKind::Failed));
    assert_eq!(history.len(), 1 + 3 + 2 + 1, "one event each: submit, claims, losses, the end");
    let last = world.attempts(task.execution_id).await.pop().unwrap();
    assert_eq!(last.state, AttemptState::InterruptedReclaimed);
    world.refuses(complete(&task), Code::ExecutionNotActive).await;
}

pub async fn with_no_reclaim_allowed_the_first_loss_is_the_end(world: &World) {
    let submit = world.work_with(r#"{"timeout_policy":{"max_reclaim_count":0}}"#);
    let task = world.start(submit).await;
    world.advance(TTL).await;
    assert_eq!(code(world.complete(&task).await), Code::LeaseExpired);
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.state.public_state, PublicState::Failed);
    assert_eq!(record.lease_reclaim_count, 0);
    world.settle().await;
    assert_eq!(world.claim_ids(1).await, []);
}

pub async fn reclaims_do_not_use_up_retries(world: &World) {
    let submit = world.work_with(r#"{"retry_policy":{"max_retries":1}}"#);
    let task = world.start(submit).await;
    lose(world, &task).await;
    let task = world.claim_one().await;
    lose(world, &task).await;
    let task = world.claim_one().await;
    world.fail(&task, "transient").await.unwrap();
    let record = world.describe(task.execution_id).await;
    assert_eq!((record.lease_reclaim_count, record.retry_count), (2, 1));
    assert_eq!(record.state.attempt_state, AttemptProgress::PendingRetryAttempt);
}

pub async fn every_lease_has_its_own_expiry(world: &World) {
    let first = world.start(world.work()).await;
    world.pass(TTL - 10).await;
    let second = world.start(world.work()).await;
    world.pass(10).await;
    assert_eq!(world.public_state(first.execution_id).await, PublicState::Waiting);
    assert_eq!(world.public_state(second.execution_id).await, PublicState::Active);
    assert_eq!(world.claim_ids(10).await, [first.execution_id]);
}
