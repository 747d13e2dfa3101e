//! A lease-ending operation sent again gets its first reply and changes nothing.

use ff_core::capability::Capabilities;
use ff_core::content::Content;
use ff_core::error::Code;
use ff_core::id::Authority;
use ff_core::limits;
use ff_core::operation::{
    Cancel, Cancelled, ClaimNext, Complete, Completed, Delay, DelayUntil, Delayed, Fail, Failed,
    LaneOrder, LaneShare, Operation, Replay, Task,
};
use ff_core::state::{FailureClass, PublicState};
use ff_core::time::TimestampMs;
use uuid::Uuid;

use crate::world::{World, cancel, cancel_held, complete, delay, fail, lane, revoke};

const TTL: i64 = limits::LEASE_TTL_MS.cast_signed();

const COMPLETED_AGAIN: Completed = Completed { tasks: Vec::new(), replayed: true };

/// Sends an operation whose first reply was lost, and checks that it changes nothing.
async fn again<O: Operation>(world: &World, operation: O) -> O::Reply {
    let id = operation.execution_id().unwrap();
    let (before, events) = (world.describe(id).await, world.events(id).await);
    let reply = world.act(operation).await;
    assert_eq!(world.describe(id).await, before);
    assert_eq!(world.events(id).await, events);
    reply
}

/// Fails once; gives the task and the reply that a repetition must get.
async fn failed_once(world: &World) -> (Task, Failed) {
    let task = world.start(world.work()).await;
    match world.fail(&task, "transient").await.unwrap() {
        Failed::RetryScheduled { delay_until, retry_count, replayed: false } => {
            (task, Failed::RetryScheduled { delay_until, retry_count, replayed: true })
        }
        other => panic!("{other:?}"),
    }
}

pub async fn a_repeated_complete_is_completed(world: &World) {
    let task = world.start(world.work()).await;
    let result = Some(Content::new(b"first".as_slice()));
    let first = world.act(Complete { result: result.clone(), ..complete(&task) }).await;
    assert_eq!(first, Completed { tasks: Vec::new(), replayed: false });
    world.advance(5_000).await;
    let other = Some(Content::json(b"second".as_slice()));
    assert_eq!(again(world, Complete { result: other, ..complete(&task) }).await, COMPLETED_AGAIN);
    assert_eq!(world.result(task.execution_id).await.ok(), result);
}

pub async fn a_repeated_fail_answers_the_same_retry(world: &World) {
    let (task, reply) = failed_once(world).await;
    world.advance(100).await;
    let other = Fail {
        reason: "another".to_owned(),
        class: Some(FailureClass::Permanent),
        retry_after_ms: Some(99_000),
        ..fail(&task, "permanent")
    };
    assert_eq!(again(world, other).await, reply);
    assert_eq!(world.describe(task.execution_id).await.retry_count, 1);
}

pub async fn a_repeated_last_fail_is_terminal_again(world: &World) {
    let task = world.start(world.work()).await;
    let first = world.fail(&task, "permanent").await.unwrap();
    assert_eq!(first, Failed::TerminalFailed { replayed: false });
    let reply = again(world, fail(&task, "transient")).await;
    assert_eq!(reply, Failed::TerminalFailed { replayed: true });
}

pub async fn a_repeated_delay_answers_the_same_time(world: &World) {
    let task = world.start(world.work()).await;
    let first = world.act(delay(&task, 1_000)).await;
    world.advance(10).await;
    let reply = again(world, delay(&task, 70_000)).await;
    assert_eq!(reply, Delayed { replayed: true, ..first });
    world.pass(990).await;
    let reply = again(world, Delay { until: DelayUntil::At(TimestampMs(0)), ..delay(&task, 0) });
    assert_eq!(reply.await, Delayed { replayed: true, ..first }, "also when the delay is over");
}

pub async fn a_repeated_cancel_of_the_holder_answers_the_same_state(world: &World) {
    let task = world.start(world.work()).await;
    let first = world.act(cancel_held(&task)).await;
    assert_eq!(first, Cancelled { from: PublicState::Active, replayed: false });
    let other = Cancel { reason: "another".to_owned(), ..cancel_held(&task) };
    assert_eq!(again(world, other).await, Cancelled { from: PublicState::Active, replayed: true });
}

pub async fn another_operation_with_that_fence_is_refused(world: &World) {
    let done = world.finish(world.work()).await;
    world.refuses(fail(&done, "transient"), Code::ExecutionNotActive).await;
    world.refuses(delay(&done, 1), Code::ExecutionNotActive).await;
    world.refuses(cancel_held(&done), Code::ExecutionNotActive).await;
    let (failed, _) = failed_once(world).await;
    world.refuses(complete(&failed), Code::ExecutionNotActive).await;
    world.pass(1_000).await;
    world.claim_one().await;
    world.refuses(complete(&failed), Code::StaleLease).await;
}

pub async fn the_memory_outlives_claims_losses_operators_and_replays(world: &World) {
    let (task, reply) = failed_once(world).await;
    let id = task.execution_id;
    world.pass(1_000).await;
    world.claim_one().await;
    assert_eq!(again(world, fail(&task, "transient")).await, reply, "after a claim");
    world.pass(TTL).await;
    assert_eq!(again(world, fail(&task, "transient")).await, reply, "after a lost lease");
    let live = world.claim_one().await;
    world.act(revoke(id)).await;
    assert_eq!(again(world, fail(&task, "transient")).await, reply, "after a revocation");
    world.claim_one().await;
    world.act(Delay { authority: Authority::Override, ..delay(&live, 0) }).await;
    assert_eq!(again(world, fail(&task, "transient")).await, reply, "after an operator's delay");
    world.act(cancel(id)).await;
    assert_eq!(again(world, fail(&task, "transient")).await, reply, "after a cancel");
    world.act(Replay { execution_id: id, descendants: false }).await;
    assert_eq!(again(world, fail(&task, "transient")).await, reply, "after a replay");
}

pub async fn the_memory_of_a_holders_cancel_outlives_a_replay(world: &World) {
    let task = world.start(world.work()).await;
    world.act(cancel_held(&task)).await;
    world.act(Replay { execution_id: task.execution_id, descendants: false }).await;
    let first = Cancelled { from: PublicState::Active, replayed: true };
    assert_eq!(again(world, cancel_held(&task)).await, first);
    world.claim_one().await;
    assert_eq!(again(world, cancel_held(&task)).await, first);
}

pub async fn the_memory_outlives_a_timeout(world: &World) {
    let submit = world.work_with(r#"{"timeout_policy":{"attempt_timeout_ms":50}}"#);
    let task = world.start(submit).await;
    let first = world.act(delay(&task, 0)).await;
    world.claim_one().await;
    world.pass(50).await;
    assert_eq!(world.describe(task.execution_id).await.retry_count, 1);
    assert_eq!(again(world, delay(&task, 0)).await, Delayed { replayed: true, ..first });
}

pub async fn the_next_lease_ending_operation_of_a_worker_replaces_the_memory(world: &World) {
    let (first, reply) = failed_once(world).await;
    world.pass(1_000).await;
    let second = world.claim_one().await;
    assert_eq!(again(world, fail(&first, "transient")).await, reply);
    world.act(delay(&second, 0)).await;
    world.refuses(fail(&first, "transient"), Code::ExecutionNotActive).await;
    let third = world.claim_one().await;
    world.refuses(fail(&first, "transient"), Code::StaleLease).await;
    world.complete(&third).await.unwrap();
    world.refuses(delay(&second, 0), Code::ExecutionNotActive).await;
    assert_eq!(again(world, complete(&third)).await, COMPLETED_AGAIN);
}

pub async fn an_operators_ending_leaves_no_memory(world: &World) {
    let task = world.start(world.work()).await;
    world.act(Complete { authority: Authority::Override, ..complete(&task) }).await;
    world.refuses(complete(&task), Code::ExecutionNotActive).await;
    let by_operator = Complete { authority: Authority::Override, ..complete(&task) };
    world.refuses(by_operator, Code::ExecutionNotActive).await;
}

pub async fn a_refused_operation_leaves_no_memory(world: &World) {
    let task = world.start(world.work()).await;
    world.pass(TTL).await;
    world.refuses(complete(&task), Code::LeaseExpired).await;
    world.refuses(complete(&task), Code::LeaseExpired).await;
}

pub async fn a_repeated_complete_claims_nothing(world: &World) {
    let task = world.start(world.work()).await;
    let next = || ClaimNext {
        max: 10,
        lanes: vec![LaneShare::new(lane("work"))],
        order: LaneOrder::Weighted,
        capabilities: Capabilities::default(),
        lease_ttl_ms: limits::LEASE_TTL_MS,
        seed: Uuid::now_v7(),
    };
    let with_next = || Complete { next: Some(next()), ..complete(&task) };
    world.act(with_next()).await;
    let waiting = world.submit(world.work()).await;
    assert_eq!(again(world, with_next()).await, COMPLETED_AGAIN);
    assert_eq!(world.public_state(waiting).await, PublicState::Waiting);
}
