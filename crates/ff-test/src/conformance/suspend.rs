//! Suspend: a stop that keeps the attempt, and the claim that goes on after it.

use ff_core::backend::BackendExt;
use ff_core::event::{Detail, EventKind};
use ff_core::id::HandleKind;
use ff_core::limits;
use ff_core::operation::{Suspend, SuspendTimeout};
use ff_core::read::{Due, Filter};
use ff_core::state::{
    AttemptProgress, AttemptState, BlockingReason, Condition, EligibilityState, LifecyclePhase,
    OwnershipState, PublicState, SuspensionReason, WaitpointState,
};

use crate::waits::{fresh, named, signal, suspend, suspend_on, use_pending, wildcard};
use crate::world::{World, complete, delay, fail};

fn because(reason: &str, suspend: Suspend) -> Suspend {
    Suspend { reason: SuspensionReason(reason.to_owned()), ..suspend }
}

pub async fn a_suspend_releases_the_lease_and_keeps_the_attempt(world: &World) {
    let task = world.start(world.work()).await;
    world.advance(300).await;
    let asked = suspend(&task, wildcard("door"));
    let reply = world.act(asked.clone()).await;
    assert_eq!((reply.suspension_id, reply.replayed), (asked.suspension_id, false));
    assert!(!reply.already_satisfied);
    let state = world.describe(task.execution_id).await.state;
    assert_eq!(state.lifecycle_phase, LifecyclePhase::Suspended);
    assert_eq!(state.ownership_state, OwnershipState::Unowned);
    assert_eq!(state.eligibility_state, EligibilityState::NotApplicable);
    assert_eq!(state.blocking_reason, BlockingReason::WaitingForSignal);
    assert_eq!(state.attempt_state, AttemptProgress::AttemptInterrupted);
    assert_eq!((state.public_state, state.terminal_outcome), (PublicState::Suspended, None));
    let [attempt] = world.attempts(task.execution_id).await.try_into().unwrap();
    assert_eq!((attempt.state, attempt.ended_at), (AttemptState::Suspended, None));
    assert_eq!((attempt.id, attempt.active_ms), (task.attempt_id, 300));
    assert_eq!(world.claim_ids(1).await, []);
    let states = vec![PublicState::Suspended];
    let found = world.search(Filter { states, ..Filter::default() }).await;
    assert_eq!(found, [task.execution_id]);
}

pub async fn the_record_tells_what_it_waits_for(world: &World) {
    let task = world.start(world.work()).await;
    let timeout_at = world.now().await.after(9_000);
    let timeout = Some(SuspendTimeout::At(timeout_at));
    let asked = because("step_boundary", suspend(&task, wildcard("door")));
    let asked = Suspend { timeout, ..asked };
    let [door] = world.suspend(asked.clone()).await.try_into().unwrap();
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.suspension_id, Some(asked.suspension_id));
    assert_eq!(record.suspension_reason.as_deref(), Some("step_boundary"));
    assert_eq!(record.suspension_timeout_at, Some(timeout_at));
    assert_eq!((record.waitpoint_ids, record.signal_count), (vec![door.waitpoint_id], 0));
    assert_eq!((record.lease_id, record.worker_id, record.worker_instance_id), (None, None, None));
    assert_eq!((record.lease_expires_at, record.lease_epoch), (None, 1));
    assert_eq!(record.current_attempt_id, Some(task.attempt_id));
    assert_eq!((record.retry_count, record.lease_reclaim_count), (0, 0));
    assert_eq!(record.last_transition_at, world.now().await);
    world.signal(&task, &door, "knock").await;
    let record = world.describe(task.execution_id).await;
    assert_eq!((record.suspension_id, record.suspension_reason), (None, None));
    assert_eq!((record.suspension_timeout_at, record.waitpoint_ids), (None, vec![]));
    assert_eq!(record.signal_count, 1);
}

pub async fn the_reason_is_told_as_a_blocking_reason(world: &World) {
    for (reason, blocking) in [
        ("waiting_for_signal", BlockingReason::WaitingForSignal),
        ("waiting_for_approval", BlockingReason::WaitingForApproval),
        ("waiting_for_callback", BlockingReason::WaitingForCallback),
        ("waiting_for_tool_result", BlockingReason::WaitingForToolResult),
        ("paused_by_policy", BlockingReason::PausedByPolicy),
        ("waiting_for_operator_review", BlockingReason::PausedByOperator),
        ("manual_pause", BlockingReason::PausedByOperator),
        ("paused_by_budget", BlockingReason::WaitingForBudget),
        ("step_boundary", BlockingReason::WaitingForSignal),
        ("tea", BlockingReason::WaitingForSignal),
    ] {
        let task = world.start(world.work()).await;
        world.suspend(because(reason, suspend(&task, wildcard("door")))).await;
        let record = world.describe(task.execution_id).await;
        assert_eq!(record.state.blocking_reason, blocking, "{reason}");
        assert_eq!(record.suspension_reason.as_deref(), Some(reason));
    }
}

pub async fn the_handle_names_the_lease_that_was_released(world: &World) {
    let task = world.start(world.work()).await;
    let handle = world.act(suspend(&task, wildcard("door"))).await.handle;
    assert_eq!((handle.kind, handle.fence()), (HandleKind::Suspended, task.fence()));
    assert_eq!((handle.execution_id, handle.attempt_index), (task.execution_id, 0));
    assert_eq!((handle.ttl_ms, &*handle.lane), (task.ttl_ms, "work"));
    assert_eq!((&*handle.worker_instance_id, &handle.store), ("pool-1", &task.handle.store));
}

pub async fn a_suspension_outlives_its_lease(world: &World) {
    let (task, _) = world.suspended(wildcard("door")).await;
    assert_eq!(world.backend.ask(Due).await.unwrap().items, [], "no timer is left");
    world.pass(10 * limits::LEASE_TTL_MS.cast_signed()).await;
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.state.public_state, PublicState::Suspended);
    assert_eq!(record.lease_reclaim_count, 0);
    let timed = world.start(world.work()).await;
    let timeout = Some(SuspendTimeout::For(5_000));
    world.suspend(Suspend { timeout, ..suspend(&timed, wildcard("door")) }).await;
    let [(_, at)] = world.backend.ask(Due).await.unwrap().items.try_into().unwrap();
    assert_eq!(at, world.now().await.after(5_000));
}

pub async fn every_change_is_one_event(world: &World) {
    let task = world.start(world.work()).await;
    let old = world.pending(&task, "old").await;
    let bindings = vec![use_pending(&old), fresh("new")];
    let both = Condition::AllOf(vec![named("old", "go"), named("new", "go")]);
    let asked = suspend_on(&task, bindings, both);
    let [_, new] = world.suspend(asked.clone()).await.try_into().unwrap();
    world.signal(&task, &old, "go").await;
    world.signal(&task, &new, "go").await;
    world.claim_one().await;
    use EventKind::{
        Claimed, Resumed, SignalAccepted, Submitted, Suspended, WaitpointClosed, WaitpointCreated,
    };
    let before = [Submitted, Claimed, WaitpointCreated, WaitpointCreated, Suspended];
    let after = [SignalAccepted, SignalAccepted, WaitpointClosed, WaitpointClosed, Resumed];
    let kinds = [before.as_slice(), &after, &[Claimed]].concat();
    assert_eq!(world.history(task.execution_id).await, kinds);
    let events = world.events(task.execution_id).await;
    for (event, waitpoint, name) in [(2, &old, "old"), (3, &new, "new")] {
        let id = waitpoint.waitpoint_id.to_string();
        for event in [&events[event], &events[event + 5]] {
            assert_eq!(event.data["waitpoint_id"], Detail::from(id.as_str()));
            assert_eq!(event.data["waitpoint_key"], Detail::from(name));
        }
        assert_eq!(events[event + 5].data["reason"], Detail::from("resumed"));
    }
    let suspension_id = asked.suspension_id.to_string();
    for event in [&events[4], &events[9]] {
        assert_eq!(event.data["suspension_id"], Detail::from(suspension_id.as_str()));
        assert_eq!((event.attempt_index, event.lease_epoch), (Some(0), Some(1)));
    }
    assert_eq!(events[4].data["reason"], Detail::from("waiting_for_signal"));
    assert_eq!(events[4].worker_instance_id.as_deref(), Some("pool-1"));
    for event in &events {
        for token in [&old.token, &new.token] {
            assert!(!format!("{event:?}").contains(token.expose()), "a token in {event:?}");
        }
    }
}

pub async fn the_next_claim_continues_the_attempt(world: &World) {
    let (first, waitpoints) = world.suspended(wildcard("door")).await;
    world.signal(&first, &waitpoints[0], "knock").await;
    let state = world.describe(first.execution_id).await.state;
    assert_eq!(state.lifecycle_phase, LifecyclePhase::Runnable);
    assert_eq!(state.ownership_state, OwnershipState::Unowned);
    assert_eq!(state.eligibility_state, EligibilityState::EligibleNow);
    assert_eq!(state.attempt_state, AttemptProgress::AttemptInterrupted);
    assert_eq!(state.public_state, PublicState::Resumable);
    let second = world.claim_one().await;
    assert_eq!((second.attempt_id, second.attempt_index), (first.attempt_id, 0));
    assert_eq!((second.attempt_type, second.lease_epoch), (first.attempt_type, 2));
    assert_eq!((second.handle.kind, second.retry_count), (HandleKind::Resumed, 0));
    assert_ne!(second.lease_id, first.lease_id);
    let [attempt] = world.attempts(first.execution_id).await.try_into().unwrap();
    assert_eq!((attempt.state, attempt.ended_at), (AttemptState::Started, None));
    assert_eq!(world.describe(first.execution_id).await.total_attempt_count, 1);
    world.complete(&second).await.unwrap();
    assert_eq!(world.public_state(first.execution_id).await, PublicState::Completed);
}

pub async fn time_while_suspended_is_not_time_of_the_attempt(world: &World) {
    let submit = world.work_with(r#"{"timeout_policy":{"attempt_timeout_ms":1000}}"#);
    let task = world.start(submit).await;
    world.advance(400).await;
    let [door] = world.suspend(suspend(&task, wildcard("door"))).await.try_into().unwrap();
    world.pass(60_000).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Suspended);
    world.signal(&task, &door, "knock").await;
    world.pass(60_000).await;
    let task = world.claim_one().await;
    assert_eq!(task.attempt_deadline_at, Some(world.now().await.after(600)));
    world.pass(599).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Active);
    world.pass(1).await;
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.failure_reason.as_deref(), Some("attempt_timeout"));
    let [attempt] = world.attempts(task.execution_id).await.try_into().unwrap();
    assert_eq!((attempt.state, attempt.active_ms), (AttemptState::EndedFailure, 1_000));
}

pub async fn metadata_goes_to_the_next_task_until_another_suspend_replaces_it(world: &World) {
    let task = world.start(world.work()).await;
    assert_eq!(task.extras.metadata, None);
    let metadata = Some(b"\x00page 7".as_slice().into());
    let leaving = Suspend { metadata, ..suspend(&task, wildcard("door")) };
    let [door] = world.suspend(leaving.clone()).await.try_into().unwrap();
    world.signal(&task, &door, "knock").await;
    let task = world.claim_one().await;
    assert_eq!(task.extras.metadata, leaving.metadata);
    world.act(delay(&task, 0)).await;
    let task = world.claim_one().await;
    assert_eq!(task.extras.metadata, leaving.metadata, "a delay is no suspend");
    let [door] = world.suspend(suspend(&task, wildcard("door"))).await.try_into().unwrap();
    world.signal(&task, &door, "knock").await;
    assert_eq!(world.claim_one().await.extras.metadata, None);
}

pub async fn signals_that_resumed_an_attempt_are_not_those_of_the_next(world: &World) {
    let (task, waitpoints) = world.suspended(wildcard("door")).await;
    let sent = signal(task.execution_id, &waitpoints[0], "knock");
    world.deliver(sent.clone()).await;
    let task = world.claim_one().await;
    let [heard] = world.observe(&task).await.try_into().unwrap();
    assert_eq!(task.extras.resume_signals.as_slice(), std::slice::from_ref(&heard));
    assert_eq!((heard.signal_id, heard.name), (sent.signal.signal_id, sent.signal.name));
    assert_eq!(heard.payload, Some(sent.signal.content.bytes));
    world.act(fail(&task, "transient")).await;
    world.pass(1_000).await;
    let retry = world.claim_one().await;
    assert_eq!((retry.attempt_index, retry.extras.resume_signals.len()), (1, 0));
    assert_eq!(world.observe(&retry).await, []);
    world.act(complete(&retry)).await;
}

pub async fn pending_waitpoints_that_were_not_bound_stay_pending(world: &World) {
    let task = world.start(world.work()).await;
    let spare = world.pending(&task, "spare").await;
    let [door] = world.suspend(suspend(&task, wildcard("door"))).await.try_into().unwrap();
    let states = async || {
        let listed = world.waitpoints(task.execution_id).await;
        listed.into_iter().map(|w| (w.waitpoint_id, w.state)).collect::<Vec<_>>()
    };
    let (open, pending) = (WaitpointState::Open, WaitpointState::Pending);
    assert_eq!(states().await, [(spare.waitpoint_id, pending), (door.waitpoint_id, open)]);
    world.signal(&task, &door, "knock").await;
    assert_eq!(states().await, [(spare.waitpoint_id, pending)]);
}
