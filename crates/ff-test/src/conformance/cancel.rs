//! Cancel: from any phase, once.

use ff_core::error::Code;
use ff_core::event::{Detail, EventKind};
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::operation::{Cancel, Cancelled, Release, Submit};
use ff_core::state::{AttemptProgress, AttemptState, CancelSource, Outcome, PublicState};

use crate::world::{World, cancel, cancel_held, delay, fail, hold, revoke};

/// An execution in every state that a cancel can meet, with the public state it is cancelled from.
async fn everywhere(world: &World) -> Vec<(ExecutionId, PublicState)> {
    let later = Some(world.now().await.after(60_000));
    let running = world.start(world.work()).await.execution_id;
    let retrying = world.start(world.work()).await;
    world.act(fail(&retrying, "transient")).await;
    let aside = world.start(world.work()).await;
    world.act(delay(&aside, 60_000)).await;
    let resumable = world.start(world.work()).await;
    world.act(delay(&resumable, 0)).await;
    world.act(hold(resumable.execution_id)).await;
    let lost = world.start(world.work()).await;
    world.act(revoke(lost.execution_id)).await;
    world.act(hold(lost.execution_id)).await;
    world.act(Release { execution_id: resumable.execution_id }).await;
    let delayed = world.submit(Submit { delay_until: later, ..world.work() }).await;
    let held = world.submit(Submit { held: true, ..world.work() }).await;
    let waiting = world.submit(world.work()).await;
    vec![
        (running, PublicState::Active),
        (retrying.execution_id, PublicState::Delayed),
        (aside.execution_id, PublicState::Delayed),
        (resumable.execution_id, PublicState::Resumable),
        (lost.execution_id, PublicState::Waiting),
        (delayed, PublicState::Delayed),
        (held, PublicState::Waiting),
        (waiting, PublicState::Waiting),
    ]
}

pub async fn a_cancel_ends_the_execution_from_any_phase(world: &World) {
    for (id, from) in everywhere(world).await {
        assert_eq!(world.act(cancel(id)).await, Cancelled { from, replayed: false }, "{from:?}");
        let record = world.describe(id).await;
        assert_eq!(record.state.terminal_outcome, Some(Outcome::Cancelled), "{from:?}");
        assert_eq!(record.cancellation_reason.as_deref(), Some("not wanted"));
        assert_eq!(record.cancelled_by.as_deref(), Some("operator_override"));
        assert_eq!(record.completed_at, Some(world.now().await));
        assert_eq!((record.lease_id, record.delay_until), (None, None));
        let history = world.history(id).await;
        assert_eq!(history.last(), Some(&EventKind::Cancelled), "{from:?}");
    }
    world.pass(120_000).await;
    assert_eq!(world.claim_ids(10).await, []);
}

pub async fn a_cancel_that_is_repeated_tells_the_first_state(world: &World) {
    for (id, from) in everywhere(world).await {
        world.act(cancel(id)).await;
        let before = world.describe(id).await;
        let other = Cancel { reason: "another".to_owned(), ..cancel(id) };
        assert_eq!(world.act(other).await, Cancelled { from, replayed: true });
        assert_eq!(world.describe(id).await, before);
    }
}

pub async fn a_cancelled_execution_answers_any_fence(world: &World) {
    let task = world.start(world.work()).await;
    world.act(cancel(task.execution_id)).await;
    let from = PublicState::Active;
    assert_eq!(world.act(cancel_held(&task)).await, Cancelled { from, replayed: true });
}

pub async fn an_execution_that_ended_otherwise_is_not_cancelled(world: &World) {
    let done = world.finish(world.work()).await;
    world.refuses(cancel(done.execution_id), Code::ExecutionNotActive).await;
    let failed = world.start(world.work()).await;
    world.fail(&failed, "permanent").await.unwrap();
    world.refuses(cancel(failed.execution_id), Code::ExecutionNotActive).await;
    let past = Some(world.now().await);
    let expired = world.submit(Submit { execution_deadline_at: past, ..world.work() }).await;
    world.settle().await;
    world.refuses(cancel(expired), Code::ExecutionNotActive).await;
}

pub async fn the_holder_cancels_with_its_fence(world: &World) {
    let task = world.start(world.work()).await;
    world.advance(500).await;
    world.act(cancel_held(&task)).await;
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.cancelled_by.as_deref(), Some("lease_holder"));
    assert_eq!(record.state.attempt_state, AttemptProgress::AttemptTerminal);
    let [attempt] = world.attempts(task.execution_id).await.try_into().unwrap();
    assert_eq!((attempt.state, attempt.active_ms), (AttemptState::EndedCancelled, 500));
}

pub async fn an_attempt_that_had_ended_stays_as_it_ended(world: &World) {
    let failed = world.start(world.work()).await;
    world.act(fail(&failed, "transient")).await;
    let lost = world.start(world.work()).await;
    world.act(revoke(lost.execution_id)).await;
    let aside = world.start(Submit { priority: 1, ..world.work() }).await;
    world.act(delay(&aside, 1_000)).await;
    for (id, state) in [
        (failed.execution_id, AttemptState::EndedFailure),
        (lost.execution_id, AttemptState::InterruptedReclaimed),
        (aside.execution_id, AttemptState::EndedCancelled),
    ] {
        world.act(cancel(id)).await;
        let [attempt] = world.attempts(id).await.try_into().unwrap();
        assert_eq!(attempt.state, state);
        assert_eq!(world.describe(id).await.state.attempt_state, AttemptProgress::AttemptTerminal);
    }
    let unstarted = world.submit(world.work()).await;
    world.act(cancel(unstarted)).await;
    assert_eq!(world.attempts(unstarted).await, []);
    assert_eq!(world.describe(unstarted).await.state.attempt_state, AttemptProgress::None);
}

pub async fn the_source_is_recorded(world: &World) {
    for (source, text) in [
        (CancelSource::OperatorOverride, "operator_override"),
        (CancelSource::FlowCascade, "flow_cascade"),
        (CancelSource::SystemTimeout, "system_timeout"),
        (CancelSource::Custom("nightly cleanup".to_owned()), "nightly cleanup"),
    ] {
        assert_eq!(CancelSource::parse(text).as_ref(), Ok(&source));
        let id = world.submit(world.work()).await;
        world.act(Cancel { source, ..cancel(id) }).await;
        assert_eq!(world.describe(id).await.cancelled_by.as_deref(), Some(text));
        let event = world.events(id).await.pop().unwrap();
        assert_eq!(event.data["source"], Detail::from(text));
        assert_eq!(event.data["reason"], Detail::from("not wanted"));
        assert_eq!(event.data["from"], Detail::from("waiting"));
    }
}

pub async fn what_a_cancel_says_has_limits(world: &World) {
    let id = world.submit(world.work()).await;
    let reason = |bytes| Cancel { reason: "x".repeat(bytes), ..cancel(id) };
    let source = |bytes| Cancel { source: CancelSource::Custom("x".repeat(bytes)), ..cancel(id) };
    world.refuses(reason(limits::REASON_BYTES + 1), Code::InvalidInput).await;
    world.refuses(source(limits::CATEGORY_BYTES + 1), Code::InvalidInput).await;
    let largest = source(limits::CATEGORY_BYTES).source;
    world.act(Cancel { source: largest, ..reason(limits::REASON_BYTES) }).await;
    assert_eq!(world.public_state(id).await, PublicState::Cancelled);
}
