//! Failures: which are tried again, and when.

use ff_core::error::Code;
use ff_core::event::{Detail, EventKind};
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::operation::{Fail, Failed, PreviousFailure, Submit, Task};
use ff_core::state::{
    AttemptProgress, AttemptState, AttemptType, BlockingReason, EligibilityState, FailureClass,
    LifecyclePhase, Outcome, OwnershipState, PublicState,
};

use crate::world::{World, fail, policy};

const TERMINAL: Failed = Failed::TerminalFailed { replayed: false };

/// Milliseconds until the retry that a failure scheduled; none when there is no retry.
async fn retry_in(world: &World, fail: Fail) -> Option<u64> {
    let now = world.now().await;
    match world.act(fail).await {
        Failed::RetryScheduled { delay_until, replayed: false, .. } => Some(delay_until.since(now)),
        TERMINAL => None,
        other => panic!("{other:?}"),
    }
}

/// The delays of all retries of an execution that only ever fails.
async fn delays(world: &World, submit: Submit) -> Vec<u64> {
    let mut task = world.start(submit).await;
    let mut delays = Vec::new();
    while let Some(delay) = retry_in(world, fail(&task, "transient")).await {
        delays.push(delay);
        world.pass(delay.cast_signed()).await;
        task = world.claim_one().await;
    }
    delays
}

async fn start_with(world: &World, json: &str) -> Task {
    world.start(world.work_with(json)).await
}

pub async fn a_failure_waits_for_its_retry(world: &World) {
    let task = world.start(world.work()).await;
    world.advance(300).await;
    let now = world.now().await;
    let reply = world.fail(&task, "transient").await.unwrap();
    let delay_until = now.after(1_000);
    assert_eq!(reply, Failed::RetryScheduled { delay_until, retry_count: 1, replayed: false });
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.state.lifecycle_phase, LifecyclePhase::Runnable);
    assert_eq!(record.state.ownership_state, OwnershipState::Unowned);
    assert_eq!(record.state.eligibility_state, EligibilityState::NotEligibleUntilTime);
    assert_eq!(record.state.blocking_reason, BlockingReason::WaitingForRetryBackoff);
    assert_eq!(record.state.attempt_state, AttemptProgress::PendingRetryAttempt);
    assert_eq!(record.state.public_state, PublicState::Delayed);
    assert_eq!((record.delay_until, record.retry_count), (Some(delay_until), 1));
    assert_eq!(record.failure_reason.as_deref(), Some("it broke"));
    assert_eq!(record.failure_category.as_deref(), Some("transient"));
    assert_eq!(record.failure_class, Some(FailureClass::Transient));
    assert_eq!((record.lease_id, record.completed_at), (None, None));
    let [attempt] = world.attempts(task.execution_id).await.try_into().unwrap();
    assert_eq!((attempt.state, attempt.active_ms), (AttemptState::EndedFailure, 300));
    assert_eq!(attempt.ended_at, Some(now));
    assert_eq!(attempt.failure_reason.as_deref(), Some("it broke"));
    assert_eq!(attempt.failure_category.as_deref(), Some("transient"));
}

pub async fn no_retry_starts_before_its_backoff_is_over(world: &World) {
    let task = world.start(world.work()).await;
    world.fail(&task, "transient").await.unwrap();
    world.pass(999).await;
    assert_eq!(world.claim_ids(1).await, []);
    world.pass(1).await;
    let retry = world.claim_one().await;
    assert_eq!((retry.attempt_type, retry.attempt_index), (AttemptType::Retry, 1));
    assert_eq!((retry.retry_count, retry.reclaim_count, retry.lease_epoch), (1, 0, 2));
    let failure = PreviousFailure { reason: "it broke".into(), category: "transient".into() };
    assert_eq!(retry.previous_failure, Some(failure));
    use EventKind::{Claimed, Eligible, RetryScheduled, Submitted};
    assert_eq!(
        world.history(task.execution_id).await,
        [Submitted, Claimed, RetryScheduled, Eligible, Claimed]
    );
}

pub async fn the_default_backoff_doubles_and_gives_up_after_three(world: &World) {
    let submit = world.work();
    let id = submit.execution_id;
    assert_eq!(delays(world, submit).await, [1_000, 2_000, 4_000]);
    let record = world.describe(id).await;
    assert_eq!(record.state.terminal_outcome, Some(Outcome::Failed));
    assert_eq!((record.retry_count, record.total_attempt_count), (3, 4));
    assert_eq!(record.completed_at, Some(world.now().await));
    let event = world.events(id).await.pop().unwrap();
    assert_eq!((event.kind, event.outcome), (EventKind::Failed, Some(Outcome::Failed)));
    assert_eq!(event.data["category"], Detail::from("transient"));
}

pub async fn backoff_follows_the_policy(world: &World) {
    let fixed = r#"{"type":"fixed","delay_ms":70}"#;
    let capped = r#"{"type":"exponential","initial_delay_ms":10,"max_delay_ms":50}"#;
    let steps =
        r#"{"type":"exponential","initial_delay_ms":7,"max_delay_ms":1000,"multiplier":1.5}"#;
    let small = r#"{"type":"exponential","initial_delay_ms":500,"max_delay_ms":100}"#;
    let cases = [
        (fixed, [70, 70, 70, 70, 70]),
        (capped, [10, 20, 40, 50, 50]),
        // Each step is a whole number: 7 × 1.5 is 10, and 10 × 1.5 is 15.
        (steps, [7, 10, 15, 22, 33]),
        (small, [100; 5]),
    ];
    for (backoff, expected) in cases {
        let json = format!(r#"{{"retry_policy":{{"max_retries":5,"backoff":{backoff}}}}}"#);
        assert_eq!(delays(world, world.work_with(&json)).await, expected, "{backoff}");
    }
}

pub async fn jitter_comes_from_the_id_and_the_retry(world: &World) {
    let backoff = r#"{"type":"fixed","delay_ms":1000,"jitter":true}"#;
    let json = format!(r#"{{"retry_policy":{{"max_retries":3,"backoff":{backoff}}}}}"#);
    let execution_id: ExecutionId = "{fp:7}:0199aabb-0000-7000-8000-000000000001".parse().unwrap();
    let submit = Submit { execution_id, ..world.work_with(&json) };
    assert_eq!(delays(world, submit).await, [738, 886, 838]);
}

pub async fn a_retry_without_a_delay_is_eligible_at_once(world: &World) {
    let backoff = r#"{"type":"fixed","delay_ms":0}"#;
    let task = start_with(world, &format!(r#"{{"retry_policy":{{"backoff":{backoff}}}}}"#)).await;
    assert_eq!(retry_in(world, fail(&task, "transient")).await, Some(0));
    let record = world.describe(task.execution_id).await;
    assert_eq!((record.state.public_state, record.delay_until), (PublicState::Waiting, None));
    assert_eq!(world.claim_one().await.attempt_type, AttemptType::Retry);
}

pub async fn the_class_decides_whether_there_is_a_retry(world: &World) {
    for (class, retried) in [
        (FailureClass::Transient, true),
        (FailureClass::Permanent, false),
        (FailureClass::InfraCrash, true),
        (FailureClass::Timeout, true),
        (FailureClass::Cancelled, false),
    ] {
        let expected = retried.then_some(1_000);
        let task = world.start(world.work()).await;
        assert_eq!(retry_in(world, fail(&task, class.as_str())).await, expected, "{class:?}");
        assert_eq!(world.describe(task.execution_id).await.failure_class, Some(class));
        let task = world.start(world.work()).await;
        let given = Fail { class: Some(class), ..fail(&task, "whatever they say") };
        assert_eq!(retry_in(world, given).await, expected, "{class:?} given");
        let record = world.describe(task.execution_id).await;
        assert_eq!(record.failure_class, Some(class));
        assert_eq!(record.failure_category.as_deref(), Some("whatever they say"));
    }
}

pub async fn the_given_class_wins_over_the_category(world: &World) {
    let task = world.start(world.work()).await;
    let given = Fail { class: Some(FailureClass::Permanent), ..fail(&task, "transient") };
    assert_eq!(retry_in(world, given).await, None);
    let task = world.start(world.work()).await;
    let given = Fail { class: Some(FailureClass::Transient), ..fail(&task, "permanent") };
    assert_eq!(retry_in(world, given).await, Some(1_000));
}

pub async fn an_unknown_category_is_transient_and_kept_as_it_is(world: &World) {
    for category in ["", "Permanent", " permanent", "http/503 ü"] {
        let task = world.start(world.work()).await;
        assert_eq!(retry_in(world, fail(&task, category)).await, Some(1_000), "{category:?}");
        let record = world.describe(task.execution_id).await;
        assert_eq!(record.failure_category.as_deref(), Some(category));
        assert_eq!(record.failure_class, Some(FailureClass::Transient));
    }
}

pub async fn only_listed_categories_are_tried_again(world: &World) {
    let json = r#"{"retry_policy":{"retryable_categories":["rate limit","permanent"]}}"#;
    for (category, retried) in
        [("rate limit", true), ("transient", false), ("Rate limit", false), ("permanent", false)]
    {
        let task = start_with(world, json).await;
        let expected = retried.then_some(1_000);
        assert_eq!(retry_in(world, fail(&task, category)).await, expected, "{category}");
    }
}

pub async fn without_retries_the_first_failure_is_the_end(world: &World) {
    let task = start_with(world, r#"{"retry_policy":{"max_retries":0}}"#).await;
    assert_eq!(world.fail(&task, "transient").await.unwrap(), TERMINAL);
    let record = world.describe(task.execution_id).await;
    assert_eq!((record.state.public_state, record.retry_count), (PublicState::Failed, 0));
    assert_eq!(record.state.attempt_state, AttemptProgress::AttemptTerminal);
}

pub async fn retry_after_replaces_a_shorter_backoff(world: &World) {
    for (after, expected) in [(0, 1_000), (999, 1_000), (1_001, 1_001), (600_000, 600_000)] {
        let task = world.start(world.work()).await;
        let fail = Fail { retry_after_ms: Some(after), ..fail(&task, "transient") };
        assert_eq!(retry_in(world, fail).await, Some(expected), "{after}");
    }
    let task = world.start(world.work()).await;
    let fail = Fail { retry_after_ms: Some(600_000), ..fail(&task, "permanent") };
    assert_eq!(retry_in(world, fail).await, None, "it makes no retry of its own");
}

pub async fn a_scheduled_retry_is_one_event_that_says_when(world: &World) {
    let task = world.start(world.work()).await;
    world.fail(&task, "rate limit").await.unwrap();
    let delay_until = world.now().await.after(1_000);
    let event = world.events(task.execution_id).await.pop().unwrap();
    assert_eq!((event.kind, event.outcome), (EventKind::RetryScheduled, None));
    assert_eq!((event.attempt_index, event.lease_epoch), (Some(0), Some(1)));
    assert_eq!(event.data["reason"], Detail::from("it broke"));
    assert_eq!(event.data["category"], Detail::from("rate limit"));
    assert_eq!(event.data["delay_until"], Detail::from(delay_until));
    assert_eq!(event.data["retry_count"], Detail::from(1_u32));
}

pub async fn what_a_failure_says_has_limits(world: &World) {
    let task = world.start(world.work()).await;
    let reason = |bytes| Fail { reason: "x".repeat(bytes), ..fail(&task, "transient") };
    let category = |bytes: usize| fail(&task, &"x".repeat(bytes));
    let after = |ms| Fail { retry_after_ms: Some(ms), ..fail(&task, "transient") };
    for bad in [
        reason(limits::REASON_BYTES + 1),
        category(limits::CATEGORY_BYTES + 1),
        after(limits::DURATION_MAX_MS + 1),
        after(u64::MAX),
    ] {
        world.refuses(bad, Code::InvalidInput).await;
    }
    let largest = Fail {
        reason: reason(limits::REASON_BYTES).reason,
        retry_after_ms: Some(limits::DURATION_MAX_MS),
        ..category(limits::CATEGORY_BYTES)
    };
    assert_eq!(retry_in(world, largest).await, Some(limits::DURATION_MAX_MS));
}

pub async fn a_huge_number_of_retries_is_allowed(world: &World) {
    let backoff =
        r#"{"type":"exponential","initial_delay_ms":1,"max_delay_ms":2,"multiplier":1000}"#;
    let json = format!(r#"{{"retry_policy":{{"max_retries":1000000,"backoff":{backoff}}}}}"#);
    let submit = Submit { policy: policy(&json), ..world.work() };
    let mut task = world.start(submit).await;
    for count in 1..=20 {
        let delay = retry_in(world, fail(&task, "transient")).await.unwrap();
        assert_eq!(delay, if count == 1 { 1 } else { 2 });
        world.pass(delay.cast_signed()).await;
        task = world.claim_one().await;
        assert_eq!((task.retry_count, task.attempt_index), (count, count));
    }
}
