//! The fence: which code a worker gets in which state. Checks come in a fixed order.

use ff_core::backend::BackendExt;
use ff_core::error::{Code, Current, EngineError};
use ff_core::id::{AttemptId, Authority, LeaseFence, LeaseId};
use ff_core::limits;
use ff_core::operation::{Cancel, Command, Complete, Delay, Fail, Failed, Task};
use ff_core::state::{CancelSource, LifecyclePhase, Outcome, PublicState};
use uuid::Uuid;

use crate::world::{World, cancel, cancel_held, complete, delay, fail, fenced, revoke};

const TTL: i64 = limits::LEASE_TTL_MS.cast_signed();

/// Every fenced operation of this task is refused with `code` and changes nothing.
async fn all_refused(world: &World, task: &Task, code: Code) {
    for command in fenced(task) {
        world.refuses(command, code).await;
    }
}

/// A complete on an operator's word.
fn complete_by_operator(task: &Task) -> Complete {
    Complete { authority: Authority::Override, ..complete(task) }
}

pub async fn an_ended_execution_is_not_active_whatever_the_fence(world: &World) {
    let lost = world.start(world.work()).await;
    world.pass(TTL).await;
    let task = world.claim_one().await;
    world.act(complete_by_operator(&task)).await;
    all_refused(world, &task, Code::ExecutionNotActive).await;
    all_refused(world, &lost, Code::ExecutionNotActive).await;
}

pub async fn not_active_tells_what_is_true_now(world: &World) {
    let task = world.start(world.work()).await;
    world.act(complete_by_operator(&task)).await;
    let refusal = |error: EngineError| error.refusal().cloned().unwrap();
    let ended = refusal(world.fail(&task, "transient").await.unwrap_err());
    let expected = Current {
        terminal_outcome: Some(Outcome::Success),
        lease_epoch: 1,
        phase: LifecyclePhase::Terminal,
        attempt_id: Some(task.attempt_id),
    };
    assert_eq!(ended.current.as_deref(), Some(&expected));
    let task = world.start(world.work()).await;
    world.act(delay(&task, 1_000)).await;
    let aside = refusal(world.complete(&task).await.unwrap_err());
    let expected = Current {
        terminal_outcome: None,
        lease_epoch: 1,
        phase: LifecyclePhase::Runnable,
        attempt_id: Some(task.attempt_id),
    };
    assert_eq!(aside.code, Code::ExecutionNotActive);
    assert_eq!(aside.current.as_deref(), Some(&expected));
}

pub async fn the_last_lease_tells_that_it_ran_out(world: &World) {
    let task = world.start(world.work()).await;
    world.pass(TTL).await;
    all_refused(world, &task, Code::LeaseExpired).await;
}

pub async fn the_last_lease_tells_that_it_was_revoked(world: &World) {
    let task = world.start(world.work()).await;
    world.act(revoke(task.execution_id)).await;
    all_refused(world, &task, Code::LeaseRevoked).await;
}

pub async fn a_fence_that_is_not_of_the_lost_lease_is_not_active(world: &World) {
    let first = world.start(world.work()).await;
    world.act(revoke(first.execution_id)).await;
    let second = world.claim_one().await;
    world.pass(TTL).await;
    all_refused(world, &first, Code::ExecutionNotActive).await;
    all_refused(world, &second, Code::LeaseExpired).await;
}

pub async fn a_released_lease_is_not_active(world: &World) {
    let task = world.start(world.work()).await;
    world.act(Delay { authority: Authority::Override, ..delay(&task, 1_000) }).await;
    all_refused(world, &task, Code::ExecutionNotActive).await;
    world.pass(1_000).await;
    all_refused(world, &task, Code::ExecutionNotActive).await;
}

pub async fn a_lease_that_another_replaced_is_stale(world: &World) {
    let lost = world.start(world.work()).await;
    world.pass(TTL).await;
    let second = world.claim_one().await;
    all_refused(world, &lost, Code::StaleLease).await;
    world.act(revoke(lost.execution_id)).await;
    let third = world.claim_one().await;
    for stale in [&lost, &second] {
        all_refused(world, stale, Code::StaleLease).await;
    }
    world.complete(&third).await.unwrap();
}

pub async fn every_part_of_the_fence_must_match(world: &World) {
    let task = world.start(world.work()).await;
    let wrong = [
        Task { lease_id: LeaseId::new(Uuid::max()), ..task.clone() },
        Task { lease_epoch: 0, ..task.clone() },
        Task { lease_epoch: 2, ..task.clone() },
        Task { attempt_id: AttemptId::new(Uuid::max()), ..task.clone() },
    ];
    for task in &wrong {
        all_refused(world, task, Code::StaleLease).await;
    }
    // A stranger learns nothing of the expiry and does not perform it.
    world.advance(TTL).await;
    for task in &wrong {
        all_refused(world, task, Code::StaleLease).await;
    }
}

pub async fn an_execution_that_nobody_claimed_is_not_active(world: &World) {
    let stranger = world.start(world.work()).await;
    let id = world.submit(world.work()).await;
    all_refused(world, &Task { execution_id: id, ..stranger }, Code::ExecutionNotActive).await;
}

pub async fn a_fence_comes_whole_or_not_at_all(_world: &World) {
    let (lease, epoch, attempt) = (LeaseId::mint(), 1, AttemptId::new(Uuid::nil()));
    for (lease, epoch, attempt) in [
        (Some(lease), None, None),
        (None, Some(epoch), None),
        (None, None, Some(attempt)),
        (Some(lease), Some(epoch), None),
        (Some(lease), None, Some(attempt)),
        (None, Some(epoch), Some(attempt)),
    ] {
        let refusal = LeaseFence::from_parts(lease, epoch, attempt).unwrap_err();
        assert_eq!(refusal.code, Code::PartialFenceTriple);
    }
    assert_eq!(LeaseFence::from_parts(None, None, None), Ok(None));
}

pub async fn no_fence_needs_an_operator(world: &World) {
    assert_eq!(Authority::from_parts(None, false).unwrap_err().code, Code::FenceRequired);
    assert_eq!(Authority::from_parts(None, true), Ok(Authority::Override));
    let task = world.start(world.work()).await;
    let without = Cancel { fence: None, ..cancel_held(&task) };
    world.refuses(without, Code::FenceRequired).await;
}

pub async fn an_operator_acts_on_the_live_lease(world: &World) {
    let task = world.start(world.work()).await;
    world.act(complete_by_operator(&task)).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Completed);
    let task = world.start(world.work()).await;
    let failed =
        world.act(Fail { authority: Authority::Override, ..fail(&task, "permanent") }).await;
    assert_eq!(failed, Failed::TerminalFailed { replayed: false });
    let task = world.start(world.work()).await;
    world.act(Delay { authority: Authority::Override, ..delay(&task, 1_000) }).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Delayed);
}

pub async fn an_operator_without_a_live_lease_is_refused(world: &World) {
    let task = world.start(world.work()).await;
    let by_operator = || -> [Command; 3] {
        [
            complete_by_operator(&task).into(),
            Fail { authority: Authority::Override, ..fail(&task, "transient") }.into(),
            Delay { authority: Authority::Override, ..delay(&task, 1_000) }.into(),
        ]
    };
    world.act(delay(&task, 0)).await;
    for command in by_operator() {
        world.refuses(command, Code::ExecutionNotActive).await;
    }
    world.act(cancel(task.execution_id)).await;
    for command in by_operator() {
        world.refuses(command, Code::ExecutionNotActive).await;
    }
}

pub async fn an_operator_on_an_expired_lease_is_refused(world: &World) {
    let task = world.start(world.work()).await;
    world.advance(TTL).await;
    let error = world.backend.call(complete_by_operator(&task)).await.unwrap_err();
    assert_eq!(error.code(), Code::ExecutionNotActive);
    world.settle().await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Waiting);
    assert_eq!(world.describe(task.execution_id).await.lease_reclaim_count, 1);
}

pub async fn a_fence_with_an_operators_cancel_is_checked_too(world: &World) {
    let task = world.start(world.work()).await;
    let stale = Task { lease_epoch: 7, ..task.clone() };
    let operator = CancelSource::OperatorOverride;
    let wrong = Cancel { source: operator.clone(), ..cancel_held(&stale) };
    world.refuses(wrong, Code::StaleLease).await;
    world.act(Cancel { source: operator, ..cancel_held(&task) }).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Cancelled);
}
