//! The execution deadline: from submit or replay to `expired`.

use ff_core::event::{Detail, EventKind};
use ff_core::id::ExecutionId;
use ff_core::operation::{Release, Replay, Submit};
use ff_core::state::{
    AttemptProgress, AttemptState, EligibilityState, FailureClass, Outcome, PublicState,
};
use ff_core::time::TimestampMs;

use crate::world::{World, cancel, delay, fail, hold};

const RELATIVE: &str = r#"{"timeout_policy":{"execution_deadline_ms":1000}}"#;

async fn assert_expired(world: &World, id: ExecutionId) {
    let record = world.describe(id).await;
    assert_eq!(record.state.terminal_outcome, Some(Outcome::Expired));
    assert_eq!(record.state.public_state, PublicState::Expired);
    assert_eq!(record.failure_reason.as_deref(), Some("execution_deadline"));
    assert_eq!(record.failure_category.as_deref(), Some("timeout"));
    assert_eq!(record.failure_class, Some(FailureClass::Timeout));
    assert_eq!((record.lease_id, record.delay_until), (None, None));
    let event = world.events(id).await.pop().unwrap();
    assert_eq!((event.kind, event.outcome), (EventKind::Expired, Some(Outcome::Expired)));
    assert_eq!(event.data["reason"], Detail::from("execution_deadline"));
}

pub async fn the_earlier_of_the_two_deadlines_counts(world: &World) {
    let now = world.now().await;
    let at = |ms| Some(now.after(ms));
    for (json, absolute, expected) in [
        ("{}", None, None),
        ("{}", at(700), at(700)),
        (RELATIVE, None, at(1_000)),
        (RELATIVE, at(999), at(999)),
        (RELATIVE, at(1_001), at(1_000)),
    ] {
        let submit = Submit { execution_deadline_at: absolute, ..world.work_with(json) };
        let task = world.start(submit).await;
        assert_eq!(task.deadline_at, expected);
        assert_eq!(world.describe(task.execution_id).await.deadline_at, expected);
    }
}

pub async fn an_execution_expires_at_its_deadline_from_any_phase(world: &World) {
    let later = Some(world.now().await.after(5_000));
    let running = world.start(world.work_with(RELATIVE)).await;
    let retrying = world.start(world.work_with(RELATIVE)).await;
    world.act(fail(&retrying, "transient")).await;
    let aside = world.start(world.work_with(RELATIVE)).await;
    world.act(delay(&aside, 5_000)).await;
    let delayed = Submit { delay_until: later, ..world.work_with(RELATIVE) };
    let delayed = world.submit(delayed).await;
    let waiting = world.submit(world.work_with(RELATIVE)).await;
    let held = world.submit(world.work_with(RELATIVE)).await;
    world.act(hold(held)).await;
    let all =
        [running.execution_id, retrying.execution_id, aside.execution_id, delayed, waiting, held];
    world.pass(999).await;
    for id in all {
        assert_eq!(world.describe(id).await.state.terminal_outcome, None);
    }
    world.pass(1).await;
    for id in all {
        assert_expired(world, id).await;
    }
    for (id, active_ms) in [(running.execution_id, 1_000), (aside.execution_id, 0)] {
        let [attempt] = world.attempts(id).await.try_into().unwrap();
        assert_eq!((attempt.state, attempt.active_ms), (AttemptState::EndedFailure, active_ms));
        assert_eq!(attempt.failure_reason.as_deref(), Some("execution_deadline"));
        assert_eq!(attempt.failure_category.as_deref(), Some("timeout"));
    }
    assert_eq!(world.describe(waiting).await.state.attempt_state, AttemptProgress::None);
}

pub async fn a_deadline_in_the_past_is_accepted_and_expires_at_once(world: &World) {
    let now = world.now().await;
    for deadline in [now, TimestampMs(now.0 - 1), TimestampMs(0)] {
        let submit = Submit { execution_deadline_at: Some(deadline), ..world.work() };
        let id = world.submit(submit).await;
        assert_eq!(world.claim_ids(1).await, [], "it is too late to start it");
        world.settle().await;
        assert_expired(world, id).await;
    }
    let none = world.work_with(r#"{"timeout_policy":{"execution_deadline_ms":0}}"#);
    let id = world.submit(none).await;
    world.settle().await;
    assert_expired(world, id).await;
}

pub async fn no_claim_takes_what_is_past_its_deadline(world: &World) {
    let late = world.submit(Submit { priority: 9, ..world.work_with(RELATIVE) }).await;
    let fine = world.submit(world.work()).await;
    world.advance(1_000).await;
    assert_eq!(world.claim_ids(10).await, [fine]);
    world.settle().await;
    assert_expired(world, late).await;
}

pub async fn a_deadline_ends_with_the_outcome(world: &World) {
    let done = world.finish(world.work_with(RELATIVE)).await;
    let cancelled = world.submit(world.work_with(RELATIVE)).await;
    world.act(cancel(cancelled)).await;
    world.pass(5_000).await;
    assert_eq!(world.public_state(done.execution_id).await, PublicState::Completed);
    assert_eq!(world.public_state(cancelled).await, PublicState::Cancelled);
}

pub async fn a_replay_counts_the_relative_deadline_anew(world: &World) {
    let task = world.finish(world.work_with(RELATIVE)).await;
    world.advance(700).await;
    world.act(Replay { execution_id: task.execution_id, descendants: false }).await;
    let deadline = world.now().await.after(1_000);
    assert_eq!(world.describe(task.execution_id).await.deadline_at, Some(deadline));
    world.pass(999).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Waiting);
    world.pass(1).await;
    assert_expired(world, task.execution_id).await;
}

pub async fn a_replay_drops_an_absolute_deadline_that_has_passed(world: &World) {
    for json in ["{}", RELATIVE] {
        let deadline = world.now().await.after(1_000);
        let absolute = Submit { execution_deadline_at: Some(deadline), ..world.work_with(json) };
        let id = world.submit(absolute).await;
        world.act(cancel(id)).await;
        world.act(Replay { execution_id: id, descendants: false }).await;
        let kept = world.describe(id).await.deadline_at;
        assert_eq!(kept, Some(deadline), "it holds while it is in the future");
        world.pass(1_000).await;
        assert_expired(world, id).await;
        world.act(Replay { execution_id: id, descendants: false }).await;
        let record = world.describe(id).await;
        let relative = record.policy.timeout.execution_deadline_ms;
        assert_eq!(record.deadline_at, relative.map(|ms| deadline.after(ms)));
        world.settle().await;
        assert_eq!(world.claim_ids(1).await, [id]);
    }
}

pub async fn a_hold_does_not_stop_the_deadline(world: &World) {
    let id = world.submit(Submit { held: true, ..world.work_with(RELATIVE) }).await;
    world.pass(500).await;
    world.act(Release { execution_id: id }).await;
    let state = world.describe(id).await.state;
    assert_eq!(state.eligibility_state, EligibilityState::EligibleNow);
    world.pass(500).await;
    assert_expired(world, id).await;
}
