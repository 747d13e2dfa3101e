//! The time of a suspension is up: five ways to go on from there.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::event::{Detail, EventKind};
use ff_core::limits;
use ff_core::operation::{IssuedWaitpoint, Suspend, SuspendTimeout, Task, Tick};
use ff_core::read::Record;
use ff_core::state::{
    AttemptState, BlockingReason, Condition, DueKind, FailureClass, Outcome, PublicState,
    SignalEffect, SuspensionReason, TimeoutBehavior,
};
use ff_core::time::TimestampMs;

use crate::waits::{named, names, resume, signal, suspend, wildcard, within};
use crate::world::World;

const TIMEOUT_MS: u64 = 1_000;

/// An execution whose suspension has just timed out, with its waitpoint.
async fn timed_out(world: &World, behavior: TimeoutBehavior) -> (Task, IssuedWaitpoint) {
    let task = world.start(world.work()).await;
    let asked = within(TIMEOUT_MS, behavior, suspend(&task, named("a", "go")));
    let [a] = world.suspend(asked).await.try_into().unwrap();
    world.signal(&task, &a, "not it").await;
    world.pass(999).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Suspended);
    world.advance(1).await;
    let tick = Tick { home: None, most: limits::TICK_ENTRIES };
    let ticked = world.backend.call(tick).await.unwrap();
    assert_eq!(ticked.fired, [(DueKind::SuspensionTimeout, 1)]);
    (task, a)
}

/// It ended: everything of the suspension is gone and nothing fires a second time.
async fn ended(world: &World, (task, a): &(Task, IssuedWaitpoint), kind: EventKind) -> Record {
    let id = task.execution_id;
    let record = world.describe(id).await;
    assert_eq!((record.suspension_id, record.suspension_timeout_at), (None, None));
    assert_eq!((record.waitpoint_ids.len(), record.completed_at), (0, Some(world.now().await)));
    let events = world.events(id).await;
    let [.., closed, last] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((closed.kind, last.kind), (EventKind::WaitpointClosed, kind));
    assert_eq!(last.data["reason"], Detail::from("suspension_timeout"));
    assert_eq!(last.outcome, record.state.terminal_outcome);
    world.refuses(signal(id, a, "go"), Code::TargetNotSignalable).await;
    world.pass(60_000).await;
    assert_eq!(world.events(id).await, events, "nothing fires twice");
    assert_eq!(world.claim_ids(1).await, []);
    record
}

pub async fn fail_ends_it_as_failed(world: &World) {
    let it = timed_out(world, TimeoutBehavior::Fail).await;
    let record = ended(world, &it, EventKind::Failed).await;
    assert_eq!(record.state.terminal_outcome, Some(Outcome::Failed));
    assert_eq!(record.failure_reason.as_deref(), Some("suspension_timeout"));
    assert_eq!(record.failure_category.as_deref(), Some("timeout"));
    assert_eq!(record.failure_class, Some(FailureClass::Timeout));
    assert_eq!(record.retry_count, 0, "a suspension that failed is not tried again");
    let [attempt] = world.attempts(record.execution_id).await.try_into().unwrap();
    assert_eq!((attempt.state, attempt.active_ms), (AttemptState::EndedFailure, 0));
    assert_eq!(attempt.failure_reason.as_deref(), Some("suspension_timeout"));
}

pub async fn cancel_ends_it_as_cancelled(world: &World) {
    let it = timed_out(world, TimeoutBehavior::Cancel).await;
    let record = ended(world, &it, EventKind::Cancelled).await;
    assert_eq!(record.state.terminal_outcome, Some(Outcome::Cancelled));
    assert_eq!(record.cancellation_reason.as_deref(), Some("suspension_timeout"));
    assert_eq!(record.cancelled_by.as_deref(), Some("system_timeout"));
    let [attempt] = world.attempts(record.execution_id).await.try_into().unwrap();
    assert_eq!(attempt.state, AttemptState::EndedCancelled);
}

pub async fn expire_ends_it_as_expired(world: &World) {
    let it = timed_out(world, TimeoutBehavior::Expire).await;
    let record = ended(world, &it, EventKind::Expired).await;
    assert_eq!(record.state.terminal_outcome, Some(Outcome::Expired));
    assert_eq!(record.failure_reason.as_deref(), Some("suspension_timeout"));
    assert_eq!(record.failure_category.as_deref(), Some("timeout"));
    let [attempt] = world.attempts(record.execution_id).await.try_into().unwrap();
    assert_eq!(attempt.state, AttemptState::EndedFailure);
    assert_eq!(attempt.failure_category.as_deref(), Some("timeout"));
}

pub async fn auto_resume_goes_on_with_a_signal_from_the_system(world: &World) {
    let (task, a) = timed_out(world, TimeoutBehavior::AutoResume).await;
    let at = world.now().await;
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.state.public_state, PublicState::Resumable);
    assert_eq!((record.suspension_timeout_at, record.waitpoint_ids), (None, vec![]));
    world.pass(60_000).await;
    world.refuses(signal(task.execution_id, &a, "go"), Code::TargetNotSignalable).await;
    let next = world.claim_one().await;
    assert_eq!((next.attempt_id, next.lease_epoch), (task.attempt_id, 2));
    let [heard] = next.extras.resume_signals.as_slice() else { panic!("{:?}", next.extras) };
    assert_eq!((&*heard.name, heard.category.as_str()), ("__timeout__", "timeout"));
    assert_eq!((heard.source_type.as_str(), heard.accepted_at), ("system", at));
    assert_eq!(world.observe(&next).await, next.extras.resume_signals);
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.signal_count, 1, "nobody sent it");
    let history = world.history(task.execution_id).await;
    use EventKind::{Claimed, Resumed, SignalAccepted, WaitpointClosed};
    assert!(history.ends_with(&[SignalAccepted, WaitpointClosed, Resumed, Claimed]), "{history:?}");
}

pub async fn auto_resume_hands_over_time_alone(world: &World) {
    let task = world.start(world.work()).await;
    let both = Condition::AllOf(vec![named("a", "x"), named("a", "y")]);
    let asked = within(TIMEOUT_MS, TimeoutBehavior::AutoResume, suspend(&task, both));
    let [a] = world.suspend(asked).await.try_into().unwrap();
    assert_eq!(world.signal(&task, &a, "x").await, SignalEffect::AppendedToWaitpoint);
    world.pass(1_000).await;
    assert_eq!(names(&world.claim_one().await.extras.resume_signals), ["__timeout__"]);
}

pub async fn what_only_time_ends_is_resumed_by_time(world: &World) {
    let task = world.start(world.work()).await;
    let asked = suspend(&task, Condition::TimeoutOnly);
    world.suspend(within(TIMEOUT_MS, TimeoutBehavior::AutoResume, asked)).await;
    world.pass(1_000).await;
    assert_eq!(names(&world.claim_one().await.extras.resume_signals), ["__timeout__"]);
}

pub async fn escalate_hands_it_to_an_operator(world: &World) {
    let (task, a) = timed_out(world, TimeoutBehavior::Escalate).await;
    let id = task.execution_id;
    let record = world.describe(id).await;
    assert_eq!(record.state.public_state, PublicState::Suspended);
    assert_eq!(record.state.blocking_reason, BlockingReason::PausedByOperator);
    assert_eq!(record.suspension_timeout_at, None);
    assert_eq!(record.waitpoint_ids, [a.waitpoint_id]);
    assert!(record.suspension_id.is_some());
    let history = world.history(id).await;
    assert_eq!(history.last(), Some(&EventKind::Escalated));
    world.pass(60_000).await;
    assert_eq!(world.history(id).await, history, "nothing fires twice");
    assert_eq!(world.signal(&task, &a, "go").await, SignalEffect::ResumeConditionSatisfied);
    assert_eq!(names(&world.claim_one().await.extras.resume_signals), ["go"]);
    let (task, _) = timed_out(world, TimeoutBehavior::Escalate).await;
    world.act(resume(task.execution_id)).await;
    assert_eq!(world.claim_ids(1).await, [task.execution_id]);
}

pub async fn the_next_suspension_is_not_escalated(world: &World) {
    let (task, a) = timed_out(world, TimeoutBehavior::Escalate).await;
    world.signal(&task, &a, "go").await;
    let task = world.claim_one().await;
    let reason = SuspensionReason("waiting_for_callback".to_owned());
    world.suspend(Suspend { reason, ..suspend(&task, wildcard("a")) }).await;
    let state = world.describe(task.execution_id).await.state;
    assert_eq!(state.blocking_reason, BlockingReason::WaitingForCallback);
}

pub async fn the_policy_speaks_for_a_suspend_that_does_not(world: &World) {
    let policy = r#"{"suspension_policy":{"default_timeout_ms":1000,"timeout_behavior":"cancel"}}"#;
    let other = Some(TimeoutBehavior::Expire);
    for (timeout, behavior, after, outcome) in [
        (None, None, 1_000, Outcome::Cancelled),
        (None, other, 1_000, Outcome::Expired),
        (Some(SuspendTimeout::For(200)), None, 200, Outcome::Cancelled),
        (Some(SuspendTimeout::For(5_000)), other, 5_000, Outcome::Expired),
    ] {
        let task = world.start(world.work_with(policy)).await;
        let asked = suspend(&task, wildcard("a"));
        world.suspend(Suspend { timeout, timeout_behavior: behavior, ..asked }).await;
        let at = world.now().await.after(after);
        let record = world.describe(task.execution_id).await;
        assert_eq!(record.suspension_timeout_at, Some(at));
        world.pass(after.cast_signed() - 1).await;
        assert_eq!(world.public_state(task.execution_id).await, PublicState::Suspended);
        world.pass(1).await;
        let state = world.describe(task.execution_id).await.state;
        assert_eq!(state.terminal_outcome, Some(outcome));
    }
}

pub async fn without_any_word_it_waits_for_ever_and_else_fails(world: &World) {
    let (task, _) = world.suspended(wildcard("a")).await;
    assert_eq!(world.describe(task.execution_id).await.suspension_timeout_at, None);
    world.pass(limits::DURATION_MAX_MS.cast_signed()).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Suspended);
    let task = world.start(world.work()).await;
    let timeout = Some(SuspendTimeout::For(1));
    world.suspend(Suspend { timeout, ..suspend(&task, wildcard("a")) }).await;
    world.pass(1).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Failed);
}

pub async fn a_timeout_that_is_not_in_the_future_fires_with_the_next_tick(world: &World) {
    let now = world.now().await;
    for at in [now, TimestampMs(now.0 - 1), TimestampMs(now.0 - 600_000)] {
        let task = world.start(world.work()).await;
        let timeout = Some(SuspendTimeout::At(at));
        world.suspend(Suspend { timeout, ..suspend(&task, wildcard("a")) }).await;
        assert_eq!(world.public_state(task.execution_id).await, PublicState::Suspended);
        world.settle().await;
        assert_eq!(world.public_state(task.execution_id).await, PublicState::Failed);
    }
}

pub async fn a_signal_before_the_timeout_wins(world: &World) {
    for behavior in TimeoutBehavior::ALL {
        let task = world.start(world.work()).await;
        let asked = within(TIMEOUT_MS, behavior, suspend(&task, wildcard("a")));
        let [a] = world.suspend(asked).await.try_into().unwrap();
        world.pass(999).await;
        world.signal(&task, &a, "go").await;
        world.pass(60_000).await;
        let next = world.claim_one().await;
        assert_eq!((next.attempt_id, next.lease_epoch), (task.attempt_id, 2), "{behavior}");
        assert_eq!(names(&next.extras.resume_signals), ["go"], "{behavior}");
        world.complete(&next).await.unwrap();
    }
}

pub async fn every_suspension_has_its_own_timeout(world: &World) {
    let task = world.start(world.work()).await;
    let first = within(5_000, TimeoutBehavior::Fail, suspend(&task, wildcard("a")));
    let [a] = world.suspend(first).await.try_into().unwrap();
    world.signal(&task, &a, "go").await;
    let task = world.claim_one().await;
    world.suspend(within(20_000, TimeoutBehavior::Cancel, suspend(&task, wildcard("a")))).await;
    world.pass(19_999).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Suspended);
    world.pass(1).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Cancelled);
}
