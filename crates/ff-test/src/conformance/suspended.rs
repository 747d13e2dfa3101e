//! What may be done to an execution before and while it is suspended, and by whom.

use ff_core::error::Code;
use ff_core::event::{Detail, EventKind};
use ff_core::id::LeaseId;
use ff_core::limits;
use ff_core::operation::{
    Cancelled, ChangePriority, Delete, Release, Replay, Submit, Suspend, SuspendTimeout,
};
use ff_core::state::{AttemptProgress, AttemptState, Outcome, OwnershipState, PublicState};

use crate::waits::{pending, signal, suspend, wildcard};
use crate::world::{World, cancel, code, fenced, hold, revoke, set_tags};

const TTL: i64 = limits::LEASE_TTL_MS.cast_signed();

pub async fn only_the_live_lease_suspends(world: &World) {
    let task = world.start(world.work()).await;
    let asked = || suspend(&task, wildcard("door"));
    let mut other = asked();
    other.fence.lease_id = LeaseId::mint();
    world.refuses(other, Code::StaleLease).await;
    let mut other = asked();
    other.fence.lease_epoch += 1;
    world.refuses(other, Code::StaleLease).await;
    world.act(revoke(task.execution_id)).await;
    world.refuses(asked(), Code::LeaseRevoked).await;
    let second = world.claim_one().await;
    world.refuses(asked(), Code::StaleLease).await;
    world.complete(&second).await.unwrap();
    world.refuses(suspend(&second, wildcard("door")), Code::ExecutionNotActive).await;
}

pub async fn a_late_suspend_is_refused_and_performs_the_expiry(world: &World) {
    let task = world.start(world.work()).await;
    world.advance(TTL).await;
    let late = suspend(&task, wildcard("door"));
    assert_eq!(code(world.command(late.clone().into()).await), Code::LeaseExpired);
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.state.ownership_state, OwnershipState::LeaseExpiredReclaimable);
    assert_eq!((record.lease_reclaim_count, record.waitpoint_ids), (1, vec![]));
    world.refuses(late, Code::LeaseExpired).await;
}

pub async fn a_suspended_execution_is_not_active(world: &World) {
    let (task, _) = world.suspended(wildcard("door")).await;
    for command in fenced(&task) {
        world.refuses(command, Code::ExecutionNotActive).await;
    }
    world.refuses(pending(&task, "other"), Code::ExecutionNotActive).await;
    world.refuses(revoke(task.execution_id), Code::ExecutionNotActive).await;
    let mut other = suspend(&task, wildcard("other"));
    other.fence.lease_epoch += 1;
    world.refuses(other, Code::ExecutionNotActive).await;
}

pub async fn only_runnable_and_ended_executions_are_held_replayed_and_deleted(world: &World) {
    let (task, _) = world.suspended(wildcard("door")).await;
    let execution_id = task.execution_id;
    world.refuses(hold(execution_id), Code::ExecutionNotEligible).await;
    world.refuses(Release { execution_id }, Code::ExecutionNotEligible).await;
    world.refuses(Replay { execution_id, descendants: false }, Code::ExecutionNotTerminal).await;
    world.refuses(Delete { execution_id }, Code::ExecutionNotTerminal).await;
}

pub async fn tags_and_priority_change_while_suspended(world: &World) {
    let first = world.submit(world.work()).await;
    world.advance(1).await;
    world.claim_one().await;
    let (task, waitpoints) = world.suspended(wildcard("door")).await;
    world.advance(1).await;
    let other = world.submit(Submit { priority: 5, ..world.work() }).await;
    world.act(set_tags(task.execution_id, &[("a.b", "c")])).await;
    world.act(ChangePriority { execution_id: task.execution_id, priority: 9 }).await;
    assert_eq!(world.claim_ids(1).await, [other], "a suspended execution has no place");
    let next = world.submit(Submit { priority: 8, ..world.work() }).await;
    world.signal(&task, &waitpoints[0], "knock").await;
    let tasks = world.claim(2).await;
    assert_eq!(tasks[0].execution_id, task.execution_id);
    assert_eq!((tasks[0].tags.get("a.b"), tasks[0].priority), (Some("c"), 9));
    assert_eq!(tasks[1].execution_id, next);
    assert_eq!(world.public_state(first).await, PublicState::Active);
}

pub async fn a_cancel_ends_a_suspension(world: &World) {
    let (task, waitpoints) = world.suspended(wildcard("door")).await;
    let reply = world.act(cancel(task.execution_id)).await;
    assert_eq!(reply, Cancelled { from: PublicState::Suspended, replayed: false });
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.state.terminal_outcome, Some(Outcome::Cancelled));
    assert_eq!(record.state.attempt_state, AttemptProgress::AttemptTerminal);
    assert_eq!((record.suspension_id, record.waitpoint_ids), (None, vec![]));
    let [attempt] = world.attempts(task.execution_id).await.try_into().unwrap();
    assert_eq!(attempt.state, AttemptState::EndedCancelled);
    assert_eq!(attempt.ended_at, Some(world.now().await));
    let events = world.events(task.execution_id).await;
    let [.., closed, cancelled] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((closed.kind, cancelled.kind), (EventKind::WaitpointClosed, EventKind::Cancelled));
    let id = waitpoints[0].waitpoint_id.to_string();
    assert_eq!(closed.data["waitpoint_id"], Detail::from(id.as_str()));
    let late = signal(task.execution_id, &waitpoints[0], "knock");
    world.refuses(late, Code::TargetNotSignalable).await;
}

pub async fn a_deadline_ends_a_suspension(world: &World) {
    let submit = world.work_with(r#"{"timeout_policy":{"execution_deadline_ms":1000}}"#);
    let task = world.start(submit).await;
    let asked = suspend(&task, wildcard("door"));
    let far = Some(SuspendTimeout::For(5_000));
    let [door] = world.suspend(Suspend { timeout: far, ..asked }).await.try_into().unwrap();
    world.pass(999).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Suspended);
    world.pass(1).await;
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.state.terminal_outcome, Some(Outcome::Expired));
    assert_eq!(record.failure_reason.as_deref(), Some("execution_deadline"));
    assert_eq!((record.suspension_id, record.waitpoint_ids), (None, vec![]));
    let [attempt] = world.attempts(task.execution_id).await.try_into().unwrap();
    assert_eq!((attempt.state, attempt.active_ms), (AttemptState::EndedFailure, 0));
    assert_eq!(attempt.failure_reason.as_deref(), Some("execution_deadline"));
    let late = signal(task.execution_id, &door, "knock");
    world.refuses(late, Code::TargetNotSignalable).await;
    let history = world.history(task.execution_id).await;
    world.pass(10_000).await;
    assert_eq!(world.history(task.execution_id).await, history, "its timeout went with it");
}

pub async fn a_replay_begins_without_what_the_last_generation_waited_for(world: &World) {
    let (task, waitpoints) = world.suspended(wildcard("door")).await;
    world.signal(&task, &waitpoints[0], "knock").await;
    let resumed = world.claim_one().await;
    let [_] = world.suspend(suspend(&resumed, wildcard("door"))).await.try_into().unwrap();
    world.act(cancel(task.execution_id)).await;
    world.act(Replay { execution_id: task.execution_id, descendants: false }).await;
    let again = world.claim_one().await;
    assert_eq!((again.attempt_index, again.extras.resume_signals.len()), (1, 0));
    assert_eq!(world.waitpoints(task.execution_id).await, []);
    let [door] = world.suspend(suspend(&again, wildcard("door"))).await.try_into().unwrap();
    world.signal(&again, &door, "knock").await;
    assert_eq!(world.claim_one().await.attempt_id, again.attempt_id);
}
