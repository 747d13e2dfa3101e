//! Who may append: the holder of the live lease, and nobody else.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::id::{AttemptId, LeaseId};
use ff_core::limits;
use ff_core::operation::{MarkLeaseExpired, Task};
use ff_core::state::{AttemptState, LifecyclePhase, OwnershipState};
use uuid::Uuid;

use crate::output::{append, bodies, fleeting, frame, patch};
use crate::waits::{resume, suspend, wildcard};
use crate::world::{World, cancel, delay, fail, renew, revoke};

const TTL: i64 = limits::LEASE_TTL_MS.cast_signed();

/// Frames of every mode with this fence are refused with `code` and change nothing.
async fn refused(world: &World, task: &Task, code: Code) {
    for frame in [frame("x"), fleeting("x"), patch("{}")] {
        world.refuses(append(task, vec![frame]), code).await;
    }
}

pub async fn an_execution_that_does_not_exist_is_not_found(world: &World) {
    let task = world.start(world.work()).await;
    let partition = task.execution_id.partition();
    let nobody = ff_core::id::ExecutionId::new(partition, Uuid::now_v7());
    refused(world, &Task { execution_id: nobody, ..task.clone() }, Code::ExecutionNotFound).await;
    let nowhere = ff_core::id::ExecutionId::new(u16::MAX, Uuid::now_v7());
    let nowhere = append(&Task { execution_id: nowhere, ..task }, vec![frame("x")]);
    let refusal = world.command(nowhere.into()).await.expect_err("there is no such partition");
    assert_eq!(refusal.code(), Code::InvalidInput);
}

pub async fn an_ended_execution_takes_no_frame_whatever_the_fence(world: &World) {
    let lost = world.start(world.work()).await;
    world.pass(TTL).await;
    let task = world.claim_one().await;
    world.complete(&task).await.unwrap();
    refused(world, &task, Code::StreamClosed).await;
    refused(world, &lost, Code::StreamClosed).await;
    let task = world.start(world.work()).await;
    world.act(fail(&task, "permanent")).await;
    refused(world, &task, Code::StreamClosed).await;
    let task = world.start(world.work()).await;
    world.act(cancel(task.execution_id)).await;
    refused(world, &task, Code::StreamClosed).await;
}

pub async fn an_execution_that_is_not_active_takes_no_frame(world: &World) {
    let suspended = world.start(world.work()).await;
    world.act(suspend(&suspended, wildcard("go"))).await;
    refused(world, &suspended, Code::StreamClosed).await;
    world.act(resume(suspended.execution_id)).await;
    refused(world, &suspended, Code::StreamClosed).await;
    world.act(cancel(suspended.execution_id)).await;
    let delayed = world.start(world.work()).await;
    world.act(delay(&delayed, 1_000)).await;
    refused(world, &delayed, Code::StreamClosed).await;
    world.pass(1_000).await;
    refused(world, &delayed, Code::StreamClosed).await;
    world.act(cancel(delayed.execution_id)).await;
    let failed = world.start(world.work()).await;
    world.act(fail(&failed, "transient")).await;
    refused(world, &failed, Code::StreamClosed).await;
    let unclaimed = world.submit(world.work()).await;
    refused(world, &Task { execution_id: unclaimed, ..failed }, Code::StreamClosed).await;
}

pub async fn a_lost_lease_appends_no_more(world: &World) {
    let late = world.start(world.work()).await;
    world.print(&late, "in time").await;
    world.pass(TTL).await;
    refused(world, &late, Code::StaleOwnerCannotAppend).await;
    let revoked = world.claim_one().await;
    world.act(revoke(revoked.execution_id)).await;
    refused(world, &revoked, Code::StaleOwnerCannotAppend).await;
    // Another lease was lost since: this one is of no account any more.
    refused(world, &late, Code::StreamClosed).await;
    assert_eq!(bodies(&world.output(late.execution_id, 0).await.frames)[0], "in time");
}

pub async fn every_part_of_the_fence_must_match(world: &World) {
    let first = world.start(world.work()).await;
    world.act(revoke(first.execution_id)).await;
    let live = world.claim_one().await;
    let wrong = [
        first,
        Task { lease_id: LeaseId::new(Uuid::max()), ..live.clone() },
        Task { lease_epoch: 1, ..live.clone() },
        Task { lease_epoch: 3, ..live.clone() },
        Task { attempt_id: AttemptId::new(Uuid::max()), ..live.clone() },
    ];
    for task in &wrong {
        refused(world, task, Code::StaleOwnerCannotAppend).await;
    }
    world.print(&live, "mine").await;
    assert_eq!(world.output(live.execution_id, live.attempt_index).await.count, 1);
}

pub async fn a_late_append_leaves_the_expiry_to_others(world: &World) {
    let task = world.start(world.work()).await;
    world.advance(TTL - 1).await;
    world.print(&task, "just in time").await;
    world.advance(1).await;
    let history = world.history(task.execution_id).await;
    refused(world, &task, Code::StaleOwnerCannotAppend).await;
    assert_eq!(world.history(task.execution_id).await, history);
    let state = world.describe(task.execution_id).await.state;
    assert_eq!(state.lifecycle_phase, LifecyclePhase::Active);
    assert_eq!(state.ownership_state, OwnershipState::LeaseExpiredReclaimable);
    assert_eq!(world.output(task.execution_id, 0).await.closed, None, "it ends with the attempt");
    world.act(MarkLeaseExpired { execution_id: task.execution_id }).await;
    let [attempt] = world.attempts(task.execution_id).await.try_into().unwrap();
    assert_eq!(attempt.state, AttemptState::InterruptedReclaimed);
}

pub async fn a_renewed_lease_goes_on_appending(world: &World) {
    let task = world.start(world.work()).await;
    for n in 1..=3 {
        world.advance(TTL - 1).await;
        world.act(renew(&task)).await;
        assert_eq!(world.append(&task, vec![frame("x")]).await[0].count, n);
    }
}

pub async fn the_lease_that_goes_on_appends_and_the_one_before_does_not(world: &World) {
    let first = world.start(world.work()).await;
    world.print(&first, "a").await;
    world.act(delay(&first, 0)).await;
    let second = world.claim_one().await;
    refused(world, &first, Code::StaleOwnerCannotAppend).await;
    assert_eq!(world.append(&second, vec![frame("b")]).await[0].count, 2);
    assert_eq!(bodies(&world.output(first.execution_id, 0).await.frames), ["a", "b"]);
}

pub async fn a_refusal_tells_what_is_true_now(world: &World) {
    let task = world.start(world.work()).await;
    world.act(delay(&task, 1_000)).await;
    let error = world.backend.call(append(&task, vec![frame("x")])).await.unwrap_err();
    let current =
        error.refusal().and_then(|refusal| refusal.current.clone()).expect("what is true");
    assert_eq!((current.phase, current.lease_epoch), (LifecyclePhase::Runnable, 1));
    assert_eq!((current.attempt_id, current.terminal_outcome), (Some(task.attempt_id), None));
}
