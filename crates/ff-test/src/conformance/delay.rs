//! Delay: the worker puts its task aside and keeps the attempt.

use ff_core::error::Code;
use ff_core::event::{Detail, EventKind};
use ff_core::id::HandleKind;
use ff_core::limits;
use ff_core::operation::{Delay, DelayUntil, Delayed, Task};
use ff_core::state::{
    AttemptProgress, AttemptState, BlockingReason, EligibilityState, LifecyclePhase,
    OwnershipState, PublicState, StateVector,
};
use ff_core::time::TimestampMs;

use crate::world::{World, delay};

fn delay_at(task: &Task, at: TimestampMs) -> Delay {
    Delay { until: DelayUntil::At(at), ..delay(task, 0) }
}

pub async fn a_delay_releases_the_lease_and_keeps_the_attempt(world: &World) {
    let task = world.start(world.work()).await;
    world.advance(300).await;
    let delay_until = world.now().await.after(5_000);
    let reply = world.act(delay(&task, 5_000)).await;
    let public_state = PublicState::Delayed;
    assert_eq!(reply, Delayed { delay_until, public_state, replayed: false });
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.state.lifecycle_phase, LifecyclePhase::Runnable);
    assert_eq!(record.state.ownership_state, OwnershipState::Unowned);
    assert_eq!(record.state.eligibility_state, EligibilityState::NotEligibleUntilTime);
    assert_eq!(record.state.blocking_reason, BlockingReason::WaitingForDelay);
    assert_eq!(record.state.attempt_state, AttemptProgress::AttemptInterrupted);
    assert_eq!((record.state.public_state, record.delay_until), (public_state, Some(delay_until)));
    assert_eq!(record.state, StateVector::put_aside(reply.public_state));
    assert_eq!((record.lease_id, record.retry_count, record.lease_reclaim_count), (None, 0, 0));
    let [attempt] = world.attempts(task.execution_id).await.try_into().unwrap();
    assert_eq!((attempt.state, attempt.ended_at), (AttemptState::Started, None));
    assert_eq!(attempt.active_ms, 300);
}

pub async fn the_same_attempt_goes_on_when_the_time_has_come(world: &World) {
    let first = world.start(world.work()).await;
    let until = world.now().await.after(5_000);
    world.act(delay_at(&first, until)).await;
    world.pass(4_999).await;
    assert_eq!(world.claim_ids(1).await, []);
    world.pass(1).await;
    let record = world.describe(first.execution_id).await;
    assert_eq!((record.state.public_state, record.delay_until), (PublicState::Resumable, None));
    assert_eq!(record.state.attempt_state, AttemptProgress::AttemptInterrupted);
    let second = world.claim_one().await;
    assert_eq!((second.attempt_id, second.attempt_index), (first.attempt_id, 0));
    assert_eq!((second.attempt_type, second.lease_epoch), (first.attempt_type, 2));
    assert_eq!((second.handle.kind, second.retry_count), (HandleKind::Resumed, 0));
    assert_eq!(world.describe(first.execution_id).await.total_attempt_count, 1);
    use EventKind::{Claimed, Delayed, Eligible, Submitted};
    assert_eq!(
        world.history(first.execution_id).await,
        [Submitted, Claimed, Delayed, Eligible, Claimed]
    );
}

pub async fn a_delay_that_is_not_in_the_future_is_resumable_at_once(world: &World) {
    let now = world.now().await;
    for until in [now, TimestampMs(now.0 - 1), TimestampMs(0)] {
        let task = world.start(world.work()).await;
        let reply = world.act(delay_at(&task, until)).await;
        assert_eq!((reply.delay_until, reply.public_state), (until, PublicState::Resumable));
        let record = world.describe(task.execution_id).await;
        assert_eq!((record.state.public_state, record.delay_until), (PublicState::Resumable, None));
        assert_eq!(record.state, StateVector::put_aside(reply.public_state));
        assert_eq!(world.claim_one().await.attempt_id, task.attempt_id);
    }
}

pub async fn time_under_lease_adds_up_over_delays(world: &World) {
    let task = world.start(world.work()).await;
    world.advance(100).await;
    world.act(delay(&task, 10_000)).await;
    world.pass(10_000).await;
    let task = world.claim_one().await;
    world.advance(30).await;
    world.complete(&task).await.unwrap();
    let [attempt] = world.attempts(task.execution_id).await.try_into().unwrap();
    assert_eq!(attempt.active_ms, 130);
}

pub async fn a_delay_is_one_event_that_says_until_when(world: &World) {
    let task = world.start(world.work()).await;
    world.act(delay(&task, 7)).await;
    let until = world.now().await.after(7);
    let event = world.events(task.execution_id).await.pop().unwrap();
    assert_eq!(event.kind, EventKind::Delayed);
    assert_eq!(event.data["delay_until"], Detail::from(until));
    assert_eq!((event.attempt_index, event.lease_epoch), (Some(0), Some(1)));
    assert_eq!(event.worker_instance_id.as_deref(), Some("pool-1"));
}

pub async fn a_delay_has_limits(world: &World) {
    let task = world.start(world.work()).await;
    for bad in [
        delay(&task, limits::DURATION_MAX_MS + 1),
        delay(&task, u64::MAX),
        delay_at(&task, TimestampMs(-1)),
        delay_at(&task, TimestampMs(limits::TIME_MAX_MS + 1)),
        delay_at(&task, TimestampMs(i64::MAX)),
    ] {
        world.refuses(bad, Code::InvalidInput).await;
    }
    let last = TimestampMs(limits::TIME_MAX_MS);
    assert_eq!(world.act(delay_at(&task, last)).await.delay_until, last);
    let task = world.start(world.work()).await;
    let longest = world.now().await.after(limits::DURATION_MAX_MS);
    let reply = world.act(delay(&task, limits::DURATION_MAX_MS)).await;
    assert_eq!(reply.delay_until, longest);
}
