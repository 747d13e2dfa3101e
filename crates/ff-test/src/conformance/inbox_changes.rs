//! What enters the lists of who waits, and what leaves them.

use ff_core::id::{ExecutionId, Namespace};
use ff_core::limits;
use ff_core::operation::{CreatePendingWaitpoint, Delete, Replay, Suspend, Task};
use ff_core::read::WaitingFilter;
use ff_core::state::{ResumePolicy, TimeoutBehavior};

use crate::signalling::{close, pending, signal, suspend};
use crate::waits::{resume, within};
use crate::world::{World, cancel, complete, delay, fail, revoke};

/// Keys that are listed in the default namespace, and executions that are suspended there.
async fn listed(world: &World) -> (Vec<String>, Vec<ExecutionId>) {
    let filter = WaitingFilter { namespace: Namespace::default(), ..WaitingFilter::default() };
    let waitpoints = world.inbox(&filter, limits::PAGE_MAX).await;
    let suspended = world.all_suspended(&filter, limits::PAGE_MAX).await;
    (
        waitpoints.iter().map(|waitpoint| waitpoint.key.to_string()).collect(),
        suspended.iter().map(|listed| listed.execution_id).collect(),
    )
}

async fn nothing_is_listed(world: &World, why: &str) {
    assert_eq!(listed(world).await, (vec![], vec![]), "{why}");
    world.audit().await;
}

/// A suspended execution with one pending waitpoint that the suspension does not wait for.
async fn stopped(world: &World, how: impl Fn(Suspend) -> Suspend) -> Task {
    let (task, _) = world.start_with("pending").await;
    world.advance(1).await;
    world.act(how(suspend(&task, "bound"))).await;
    let keys = ["pending", "bound"].map(str::to_owned).to_vec();
    assert_eq!(listed(world).await, (keys, vec![task.execution_id]));
    task
}

pub async fn a_resume_takes_the_suspension_and_its_waitpoints(world: &World) {
    let task = stopped(world, |suspend| suspend).await;
    world.act(resume(task.execution_id)).await;
    assert_eq!(listed(world).await, (vec!["pending".to_owned()], vec![]));
    let resumed = world.claim_one().await;
    assert_eq!(listed(world).await, (vec!["pending".to_owned()], vec![]), "a claim changes none");
    world.complete(&resumed).await.unwrap();
    nothing_is_listed(world, "completed").await;
}

pub async fn a_signal_that_resumes_takes_them_too(world: &World) {
    let (task, waitpoint) = world.listening("k").await;
    world.deliver(signal(task.execution_id, &waitpoint, "x")).await;
    nothing_is_listed(world, "resumed").await;
}

pub async fn a_waitpoint_that_stays_pending_stays_listed(world: &World) {
    let task = world.start(world.work()).await;
    let resume_policy = ResumePolicy { close_waitpoint_on_resume: false, ..Default::default() };
    let suspended = world.act(Suspend { resume_policy, ..suspend(&task, "k") }).await;
    let before = world.waitpoints(task.execution_id).await;
    world.advance(10).await;
    world.deliver(signal(task.execution_id, &suspended.waitpoints[0], "x")).await;
    assert_eq!(listed(world).await, (vec!["k".to_owned()], vec![]));
    let after = world.inbox(&WaitingFilter::default(), 10).await;
    assert_eq!(after[0].created_at, before[0].created_at, "it keeps its place");
    let resumed = world.claim_one().await;
    world.act(delay(&resumed, 0)).await;
    assert_eq!(listed(world).await.0, ["k"]);
}

pub async fn a_close_takes_the_waitpoint_only(world: &World) {
    let task = stopped(world, |suspend| suspend).await;
    let id = task.execution_id;
    world.act(close(id, "bound")).await;
    assert_eq!(listed(world).await, (vec!["pending".to_owned()], vec![id]));
    world.act(close(id, "pending")).await;
    assert_eq!(listed(world).await, (vec![], vec![id]));
    let [left] = world.all_suspended(&WaitingFilter::default(), 10).await.try_into().unwrap();
    assert_eq!(left.waitpoint_keys, [], "nobody can signal it any more");
}

pub async fn every_end_takes_all_of_it(world: &World) {
    let task = stopped(world, |suspend| suspend).await;
    world.act(cancel(task.execution_id)).await;
    nothing_is_listed(world, "cancelled").await;
    world.act(Replay { execution_id: task.execution_id, descendants: false }).await;
    nothing_is_listed(world, "replayed").await;
    world.act(cancel(task.execution_id)).await;
    for how in ["complete", "fail", "retry", "revoke", "lost lease"] {
        let (task, _) = world.start_with("k").await;
        assert_eq!(listed(world).await.0, ["k"]);
        match how {
            "complete" => drop(world.act(complete(&task)).await),
            "fail" => drop(world.act(fail(&task, "permanent")).await),
            "retry" => drop(world.act(fail(&task, "transient")).await),
            "revoke" => drop(world.act(revoke(task.execution_id)).await),
            _ => world.pass(limits::LEASE_TTL_MS.cast_signed()).await,
        }
        nothing_is_listed(world, how).await;
        drop(world.command(cancel(task.execution_id).into()).await);
    }
}

pub async fn a_timeout_that_ends_it_takes_all_of_it(world: &World) {
    for behavior in TimeoutBehavior::ALL {
        let task = stopped(world, |suspend| within(1_000, behavior, suspend)).await;
        let id = task.execution_id;
        world.pass(999).await;
        assert_eq!(listed(world).await.1, [id], "{behavior}");
        world.pass(1).await;
        match behavior {
            TimeoutBehavior::Fail | TimeoutBehavior::Cancel | TimeoutBehavior::Expire => {}
            TimeoutBehavior::AutoResume => {
                assert_eq!(listed(world).await, (vec!["pending".to_owned()], vec![]));
                world.act(cancel(id)).await;
            }
            TimeoutBehavior::Escalate => {
                let keys = ["pending", "bound"].map(str::to_owned).to_vec();
                assert_eq!(listed(world).await, (keys, vec![id]));
                let all = world.all_suspended(&WaitingFilter::default(), 10).await;
                assert_eq!((all[0].escalated, all[0].timeout_at), (true, None));
                world.act(cancel(id)).await;
            }
        }
        nothing_is_listed(world, behavior.as_str()).await;
    }
}

pub async fn a_deadline_takes_all_of_it(world: &World) {
    let deadline = r#"{"timeout_policy":{"execution_deadline_ms":5000}}"#;
    let task = world.start(world.work_with(deadline)).await;
    world.act(suspend(&task, "k")).await;
    world.pass(5_000).await;
    nothing_is_listed(world, "expired").await;
}

pub async fn a_removed_execution_leaves_nothing(world: &World) {
    let retention = r#"{"retention":{"cancelled_ms":1000}}"#;
    for how in ["delete", "retention"] {
        let task = world.start(world.work_with(retention)).await;
        let id = task.execution_id;
        world.act(suspend(&task, "k")).await;
        world.act(cancel(id)).await;
        match how {
            "delete" => drop(world.act(Delete { execution_id: id }).await),
            _ => world.pass(1_000).await,
        }
        assert_eq!(world.find(id).await, None, "{how}");
        nothing_is_listed(world, how).await;
    }
}

pub async fn a_later_suspension_has_a_later_place(world: &World) {
    let (first, waitpoint) = world.listening("a").await;
    world.advance(10).await;
    let second = world.listening("b").await.0;
    world.advance(10).await;
    world.deliver(signal(first.execution_id, &waitpoint, "x")).await;
    let resumed = world.claim_one().await;
    world.act(suspend(&resumed, "a")).await;
    let keys = ["b", "a"].map(str::to_owned).to_vec();
    assert_eq!(listed(world).await, (keys, vec![second.execution_id, first.execution_id]));
}

pub async fn an_unused_waitpoint_leaves_at_its_time(world: &World) {
    let task = world.start(world.work()).await;
    let expires_at = Some(world.now().await.after(5_000));
    world.act(CreatePendingWaitpoint { expires_at, ..pending(&task, "k") }).await;
    world.advance(4_999).await;
    assert_eq!(listed(world).await.0, ["k"]);
    world.advance(1).await;
    nothing_is_listed(world, "before the tick").await;
    world.settle().await;
    nothing_is_listed(world, "after the tick").await;
}
