//! How a stream ends: with its attempt, for a reason, and once.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::id::ExecutionId;
use ff_core::operation::{Delete, Submit, Task};
use ff_core::read::{ReadStream, ReadSummary};
use ff_core::state::{StreamEnd, TimeoutBehavior};

use crate::output::{append, bodies, fleeting, frame, patch};
use crate::waits::{resume, suspend, wildcard, within};
use crate::world::{World, cancel, cancel_held, code, delay, fail, revoke};

/// A running task that has said something.
async fn talking(world: &World, policy: &str) -> Task {
    let task = world.start(world.work_with(policy)).await;
    world.print(&task, "a").await;
    task
}

/// The stream of this attempt has just ended for this reason, and takes no more.
async fn ended(world: &World, task: &Task, reason: StreamEnd) {
    let (id, index) = (task.execution_id, task.attempt_index);
    let page = world.output(id, index).await;
    let closed = page.closed.expect("an end");
    assert_eq!((closed.reason, closed.at), (reason, world.now().await));
    assert_eq!((bodies(&page.frames), page.count), (vec!["a".to_owned()], 1));
    let refused = world.backend.call(append(task, vec![frame("b")])).await;
    let refused = code(refused);
    assert!(
        matches!(refused, Code::StreamClosed | Code::StaleOwnerCannotAppend),
        "{reason:?}: {refused}"
    );
    // Nothing that comes later changes it.
    world.pass(1_000).await;
    let _ = world.backend.call(cancel(id)).await;
    assert_eq!(world.output(id, index).await, page, "{reason:?}");
}

pub async fn the_outcome_of_an_attempt_ends_its_stream(world: &World) {
    let task = talking(world, "{}").await;
    world.complete(&task).await.unwrap();
    ended(world, &task, StreamEnd::AttemptSuccess).await;
    for category in ["transient", "permanent"] {
        let task = talking(world, "{}").await;
        world.act(fail(&task, category)).await;
        ended(world, &task, StreamEnd::AttemptFailure).await;
    }
}

pub async fn a_cancel_ends_it_from_any_state(world: &World) {
    let task = talking(world, "{}").await;
    world.act(cancel(task.execution_id)).await;
    ended(world, &task, StreamEnd::AttemptCancelled).await;
    let task = talking(world, "{}").await;
    world.act(cancel_held(&task)).await;
    ended(world, &task, StreamEnd::AttemptCancelled).await;
    let task = talking(world, "{}").await;
    world.act(suspend(&task, wildcard("go"))).await;
    world.act(cancel(task.execution_id)).await;
    ended(world, &task, StreamEnd::AttemptCancelled).await;
    let task = talking(world, "{}").await;
    world.act(delay(&task, 5_000)).await;
    world.act(cancel(task.execution_id)).await;
    ended(world, &task, StreamEnd::AttemptCancelled).await;
}

pub async fn a_lost_lease_ends_it(world: &World) {
    for policy in ["{}", r#"{"timeout_policy":{"max_reclaim_count":0}}"#] {
        let task = talking(world, policy).await;
        world.act(revoke(task.execution_id)).await;
        ended(world, &task, StreamEnd::Reclaimed).await;
        let task = talking(world, policy).await;
        world.pass(30_000).await;
        ended(world, &task, StreamEnd::LeaseExpired).await;
    }
}

pub async fn a_deadline_ends_it(world: &World) {
    let policy = r#"{"timeout_policy":{"execution_deadline_ms":2000}}"#;
    let task = talking(world, policy).await;
    world.pass(2_000).await;
    ended(world, &task, StreamEnd::Expired).await;
    let task = talking(world, policy).await;
    world.act(suspend(&task, wildcard("go"))).await;
    world.pass(2_000).await;
    ended(world, &task, StreamEnd::Expired).await;
}

pub async fn the_time_of_an_attempt_ends_it(world: &World) {
    let policy = |retries: u8| {
        format!(
            r#"{{"timeout_policy":{{"attempt_timeout_ms":1500}},
                "retry_policy":{{"max_retries":{retries}}}}}"#
        )
    };
    let task = talking(world, &policy(0)).await;
    world.pass(1_500).await;
    ended(world, &task, StreamEnd::Expired).await;
    // With a retry it is a failure like any other.
    let task = talking(world, &policy(1)).await;
    world.pass(1_500).await;
    ended(world, &task, StreamEnd::AttemptFailure).await;
}

pub async fn the_time_of_a_suspension_ends_it(world: &World) {
    for behavior in TimeoutBehavior::ALL {
        let task = talking(world, "{}").await;
        world.act(within(1_000, behavior, suspend(&task, wildcard("go")))).await;
        world.pass(1_000).await;
        if behavior.ends() {
            ended(world, &task, StreamEnd::SuspensionTimeout).await;
        } else {
            assert_eq!(world.stream_end(task.execution_id, 0).await, None, "{behavior}");
            world.act(cancel(task.execution_id)).await;
        }
    }
}

/// Appends as a lease of the same attempt that goes on.
async fn goes_on(world: &World, before: &Task) {
    let (id, index) = (before.execution_id, before.attempt_index);
    assert_eq!(world.stream_end(id, index).await, None, "the stream stays open");
    let task = world.claim_one().await;
    assert_eq!((task.execution_id, task.attempt_index), (id, index));
    let appended = world.append(&task, vec![frame("b"), fleeting("c")]).await;
    assert_eq!(appended[0].count, 2);
    let page = world.output(id, index).await;
    assert_eq!((bodies(&page.frames).concat(), page.count), ("abc".to_owned(), 3));
    assert!(page.frames.is_sorted_by(|a, b| a.id < b.id));
    world.complete(&task).await.unwrap();
    assert_eq!(world.stream_end(id, index).await, Some(StreamEnd::AttemptSuccess));
}

pub async fn a_suspend_keeps_it_open(world: &World) {
    let task = talking(world, "{}").await;
    let [waitpoint] =
        world.suspend(suspend(&task, wildcard("go"))).await.try_into().expect("a waitpoint");
    assert_eq!(world.output(task.execution_id, 0).await.closed, None);
    world.pass(100_000).await;
    world.signal(&task, &waitpoint, "go").await;
    goes_on(world, &task).await;
    let task = talking(world, "{}").await;
    world.act(suspend(&task, wildcard("go"))).await;
    world.act(resume(task.execution_id)).await;
    goes_on(world, &task).await;
}

pub async fn a_delay_keeps_it_open(world: &World) {
    for ms in [0, 100_000] {
        let task = talking(world, "{}").await;
        world.act(delay(&task, ms)).await;
        assert_eq!(world.output(task.execution_id, 0).await.closed, None);
        world.pass(ms.cast_signed()).await;
        goes_on(world, &task).await;
    }
}

pub async fn an_ended_stream_stays_readable(world: &World) {
    let task = talking(world, "{}").await;
    let id = task.execution_id;
    world.append(&task, vec![patch(r#"{"a":1}"#)]).await;
    world.complete(&task).await.unwrap();
    world.pass(3_600_000).await;
    assert_eq!(world.output(id, 0).await.frames.len(), 2);
    assert_eq!(world.summary(id, 0).await.document, r#"{"a":1}"#);
}

/// Nothing can be read of an attempt of this execution.
async fn nothing_left(world: &World, id: ExecutionId, expected: Code) {
    for index in 0..2 {
        assert_eq!(code(world.backend.ask(ReadStream::all(id, index)).await), expected);
        let summary = ReadSummary { execution_id: id, attempt_index: index };
        assert_eq!(code(world.backend.ask(summary).await), expected);
    }
}

pub async fn a_removed_execution_leaves_no_output(world: &World) {
    let submit = world.work();
    let said = || vec![frame("a"), fleeting("x"), patch(r#"{"a":1}"#)];
    let first = world.start(submit.clone()).await;
    let id = first.execution_id;
    world.append(&first, said()).await;
    world.act(fail(&first, "transient")).await;
    world.pass(60_000).await;
    let second = world.claim_one().await;
    world.append(&second, said()).await;
    world.complete(&second).await.unwrap();
    world.act(Delete { execution_id: id }).await;
    nothing_left(world, id, Code::ExecutionNotFound).await;
    world.audit().await;
    // The same id again begins with nothing.
    let again = Submit { idempotency_key: None, ..submit };
    world.submit(again).await;
    nothing_left(world, id, Code::AttemptNotFound).await;
    let task = world.claim_one().await;
    let page = world.output(id, 0).await;
    assert_eq!((page.frames, page.count, page.trimmed_before), (Vec::new(), 0, None));
    assert_eq!(world.summary(id, 0).await.version, 0);
    let appended = world.append(&task, vec![patch(r#"{"b":2}"#)]).await;
    assert_eq!((appended[0].count, appended[0].summary_version), (1, Some(1)));
    assert_eq!(world.summary(id, 0).await.document, r#"{"b":2}"#);
}

pub async fn output_goes_with_an_execution_whose_time_is_over(world: &World) {
    let policy = r#"{"retention":{"success_ms":1000}}"#;
    let task = talking(world, policy).await;
    world.complete(&task).await.unwrap();
    world.pass(1_000).await;
    nothing_left(world, task.execution_id, Code::ExecutionNotFound).await;
}
