//! The attempt timeout: time under lease of one attempt.

use ff_core::event::{Detail, EventKind};
use ff_core::limits;
use ff_core::operation::Task;
use ff_core::state::{
    AttemptProgress, AttemptState, AttemptType, FailureClass, Outcome, PublicState,
};

use crate::world::{World, delay, renew, revoke};

const TIMEOUT: &str = r#"{"timeout_policy":{"attempt_timeout_ms":1000}}"#;
const TIMEOUT_ONCE: &str =
    r#"{"timeout_policy":{"attempt_timeout_ms":1000},"retry_policy":{"max_retries":0}}"#;

async fn start(world: &World) -> Task {
    world.start(world.work_with(TIMEOUT)).await
}

pub async fn an_attempt_that_used_up_its_time_is_tried_again(world: &World) {
    let task = start(world).await;
    assert_eq!(task.attempt_deadline_at, Some(world.now().await.after(1_000)));
    world.pass(999).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Active);
    world.pass(1).await;
    let now = world.now().await;
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.state.attempt_state, AttemptProgress::PendingRetryAttempt);
    assert_eq!((record.retry_count, record.delay_until), (1, Some(now.after(1_000))));
    assert_eq!(record.failure_reason.as_deref(), Some("attempt_timeout"));
    assert_eq!(record.failure_category.as_deref(), Some("timeout"));
    assert_eq!(record.failure_class, Some(FailureClass::Timeout));
    let [attempt] = world.attempts(task.execution_id).await.try_into().unwrap();
    assert_eq!((attempt.state, attempt.active_ms), (AttemptState::EndedFailure, 1_000));
    assert_eq!(attempt.failure_reason.as_deref(), Some("attempt_timeout"));
    let event = world.events(task.execution_id).await.pop().unwrap();
    assert_eq!(event.kind, EventKind::RetryScheduled);
    assert_eq!(event.data["reason"], Detail::from("attempt_timeout"));
}

pub async fn without_a_retry_the_execution_expires(world: &World) {
    let unlisted = r#"{"timeout_policy":{"attempt_timeout_ms":1000},
        "retry_policy":{"retryable_categories":["transient"]}}"#;
    for json in [TIMEOUT_ONCE, unlisted] {
        let task = world.start(world.work_with(json)).await;
        world.pass(1_000).await;
        let record = world.describe(task.execution_id).await;
        assert_eq!(record.state.terminal_outcome, Some(Outcome::Expired));
        assert_eq!(record.failure_reason.as_deref(), Some("attempt_timeout"));
        assert_eq!((record.retry_count, record.completed_at), (0, Some(world.now().await)));
        let [attempt] = world.attempts(task.execution_id).await.try_into().unwrap();
        assert_eq!(attempt.state, AttemptState::EndedFailure);
        assert_eq!(attempt.failure_category.as_deref(), Some("timeout"));
        assert_eq!(attempt.failure_reason.as_deref(), Some("attempt_timeout"));
        let event = world.events(task.execution_id).await.pop().unwrap();
        assert_eq!((event.kind, event.outcome), (EventKind::Expired, Some(Outcome::Expired)));
    }
}

pub async fn a_listed_timeout_is_tried_again(world: &World) {
    let task = world
        .start(world.work_with(
            r#"{"timeout_policy":{"attempt_timeout_ms":1000},
                "retry_policy":{"retryable_categories":["timeout"]}}"#,
        ))
        .await;
    world.pass(1_000).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Delayed);
}

pub async fn waiting_does_not_count(world: &World) {
    let task = start(world).await;
    world.advance(400).await;
    world.act(delay(&task, 60_000)).await;
    world.pass(60_000).await;
    let task = world.claim_one().await;
    assert_eq!(task.attempt_deadline_at, Some(world.now().await.after(600)));
    world.pass(599).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Active);
    world.pass(1).await;
    assert_eq!(world.describe(task.execution_id).await.retry_count, 1);
}

pub async fn an_attempt_without_time_left_is_over_as_soon_as_it_goes_on(world: &World) {
    let task = start(world).await;
    world.advance(1_000).await;
    // The worker was faster than the timer.
    world.act(delay(&task, 0)).await;
    let task = world.claim_one().await;
    assert_eq!(task.attempt_deadline_at, Some(world.now().await));
    world.settle().await;
    assert_eq!(world.describe(task.execution_id).await.retry_count, 1);
}

pub async fn a_renewal_does_not_extend_it(world: &World) {
    let task = start(world).await;
    world.pass(900).await;
    world.act(renew(&task)).await;
    world.pass(100).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Delayed);
}

pub async fn every_attempt_has_its_own_time(world: &World) {
    let task = start(world).await;
    world.advance(900).await;
    world.act(revoke(task.execution_id)).await;
    let reclaim = world.claim_one().await;
    let whole = Some(world.now().await.after(1_000));
    assert_eq!((reclaim.attempt_type, reclaim.attempt_deadline_at), (AttemptType::Reclaim, whole));
    world.pass(1_000).await;
    world.pass(1_000).await;
    let retry = world.claim_one().await;
    let whole = Some(world.now().await.after(1_000));
    assert_eq!((retry.attempt_type, retry.attempt_deadline_at), (AttemptType::Retry, whole));
}

pub async fn a_lost_lease_comes_before_a_later_timeout(world: &World) {
    let json =
        format!(r#"{{"timeout_policy":{{"attempt_timeout_ms":{}}}}}"#, limits::LEASE_TTL_MS + 1);
    let task = world.start(world.work_with(&json)).await;
    world.pass(limits::LEASE_TTL_MS.cast_signed() + 100).await;
    let record = world.describe(task.execution_id).await;
    assert_eq!((record.lease_reclaim_count, record.retry_count), (1, 0));
}

pub async fn at_the_same_instant_the_timeout_comes_before_the_lost_lease(world: &World) {
    let json = format!(r#"{{"timeout_policy":{{"attempt_timeout_ms":{}}}}}"#, limits::LEASE_TTL_MS);
    let task = world.start(world.work_with(&json)).await;
    world.pass(limits::LEASE_TTL_MS.cast_signed()).await;
    let record = world.describe(task.execution_id).await;
    assert_eq!((record.lease_reclaim_count, record.retry_count), (0, 1));
}
