//! Which waitpoints a suspend may bind: new ones and pending ones, in any mix.

use ff_core::error::Code;
use ff_core::id::WaitpointId;
use ff_core::limits;
use ff_core::operation::{
    Binding, CloseWaitpoint, CreatePendingWaitpoint, IssuedWaitpoint, Suspend, Task, WaitpointRef,
};
use ff_core::state::{CountKind, WaitpointState};

use crate::waits::{count, fresh, key, pending, suspend, suspend_on, use_pending, wildcard};
use crate::world::World;

/// A suspend on one waitpoint that is named `a`.
fn on(task: &Task, binding: Binding) -> Suspend {
    suspend_on(task, vec![binding], wildcard("a"))
}

fn close(task: &Task, waitpoint: &IssuedWaitpoint) -> CloseWaitpoint {
    CloseWaitpoint {
        execution_id: task.execution_id,
        waitpoint: WaitpointRef::Id(waitpoint.waitpoint_id),
        reason: "not needed".to_owned(),
    }
}

pub async fn pending_and_fresh_ones_mix_in_any_order(world: &World) {
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
        let task = world.start(world.work()).await;
        let (old, older) = (world.pending(&task, "a").await, world.pending(&task, "b").await);
        let all = [use_pending(&old), use_pending(&older), fresh("c"), fresh("d")];
        let bindings: Vec<_> = order.iter().map(|n| all[*n].clone()).collect();
        let four = count(4, CountKind::DistinctWaitpoints, &["a", "b", "c", "d"]);
        let waitpoints = world.suspend(suspend_on(&task, bindings.clone(), four)).await;
        let ids: Vec<_> = waitpoints.iter().map(|waitpoint| waitpoint.waitpoint_id).collect();
        let asked: Vec<_> = bindings.iter().map(Binding::waitpoint_id).collect();
        assert_eq!(ids, asked);
        for waitpoint in [&old, &older] {
            assert!(waitpoints.contains(waitpoint), "the same token again: {waitpoints:?}");
        }
        for listed in world.waitpoints(task.execution_id).await {
            assert_eq!(listed.state, WaitpointState::Open);
        }
        for waitpoint in &waitpoints {
            world.signal(&task, waitpoint, "go").await;
        }
        assert_eq!(world.claim_one().await.attempt_id, task.attempt_id);
    }
}

pub async fn an_unknown_waitpoint_is_not_found(world: &World) {
    let other = world.start(world.work()).await;
    let foreign = world.pending(&other, "a").await;
    let task = world.start(world.work()).await;
    world.refuses(on(&task, use_pending(&foreign)), Code::WaitpointNotFound).await;
    let waitpoint_id = WaitpointId::mint();
    let nobody = Binding::UsePending { waitpoint_id };
    world.refuses(on(&task, nobody), Code::WaitpointNotFound).await;
    assert_eq!(world.waitpoints(other.execution_id).await.len(), 1);
}

pub async fn a_closed_waitpoint_is_not_pending(world: &World) {
    let task = world.start(world.work()).await;
    let old = world.pending(&task, "a").await;
    world.act(close(&task, &old)).await;
    world.refuses(on(&task, use_pending(&old)), Code::WaitpointNotPending).await;
    let [used] = world.suspend(suspend(&task, wildcard("a"))).await.try_into().unwrap();
    world.signal(&task, &used, "go").await;
    let task = world.claim_one().await;
    world.refuses(on(&task, use_pending(&used)), Code::WaitpointNotPending).await;
}

pub async fn a_pending_waitpoint_past_its_time_is_expired(world: &World) {
    let task = world.start(world.work()).await;
    let expires_at = Some(world.now().await.after(100));
    let old = world.act(CreatePendingWaitpoint { expires_at, ..pending(&task, "a") }).await;
    world.advance(100).await;
    world.refuses(on(&task, use_pending(&old)), Code::PendingWaitpointExpired).await;
    world.settle().await;
    assert_eq!(world.waitpoints(task.execution_id).await, []);
    world.refuses(on(&task, use_pending(&old)), Code::PendingWaitpointExpired).await;
}

pub async fn a_waitpoint_that_was_bound_in_time_does_not_expire(world: &World) {
    let task = world.start(world.work()).await;
    let expires_at = Some(world.now().await.after(100));
    let old = world.act(CreatePendingWaitpoint { expires_at, ..pending(&task, "a") }).await;
    world.pass(99).await;
    world.suspend(on(&task, use_pending(&old))).await;
    world.pass(60_000).await;
    assert_eq!(world.waitpoints(task.execution_id).await.len(), 1);
    world.signal(&task, &old, "go").await;
    assert_eq!(world.claim_ids(1).await, [task.execution_id]);
}

pub async fn a_fresh_waitpoint_is_new(world: &World) {
    let task = world.start(world.work()).await;
    let old = world.pending(&task, "a").await;
    world.refuses(on(&task, fresh("a")), Code::WaitpointAlreadyExists).await;
    let same_id = |name: &str| Binding::Fresh {
        waitpoint_id: old.waitpoint_id,
        key: key(name),
        token_ttl_ms: None,
    };
    let renamed = suspend_on(&task, vec![same_id("b")], wildcard("b"));
    world.refuses(renamed, Code::WaitpointAlreadyExists).await;
    world.suspend(on(&task, use_pending(&old))).await;
    world.signal(&task, &old, "go").await;
    let task = world.claim_one().await;
    world.refuses(on(&task, same_id("a")), Code::WaitpointAlreadyExists).await;
    world.suspend(on(&task, fresh("a"))).await;
}

pub async fn one_bad_binding_leaves_the_others_as_they_are(world: &World) {
    let task = world.start(world.work()).await;
    let old = world.pending(&task, "a").await;
    let nobody = Binding::UsePending { waitpoint_id: WaitpointId::mint() };
    let three = count(3, CountKind::DistinctSignals, &["a", "b", "c"]);
    let bindings = vec![use_pending(&old), fresh("b"), nobody];
    world.refuses(suspend_on(&task, bindings, three), Code::WaitpointNotFound).await;
    let [left] = world.waitpoints(task.execution_id).await.try_into().unwrap();
    assert_eq!((left.waitpoint_id, left.state), (old.waitpoint_id, WaitpointState::Pending));
    world.suspend(on(&task, use_pending(&old))).await;
}

pub async fn an_execution_has_64_waitpoints_that_are_not_closed(world: &World) {
    let task = world.start(world.work()).await;
    let spare = world.pending(&task, "a").await;
    for n in 1..limits::WAITPOINTS {
        world.pending(&task, &format!("n{n}")).await;
    }
    world.refuses(pending(&task, "over"), Code::ResourceExhausted).await;
    let over = suspend(&task, wildcard("over"));
    world.refuses(over.clone(), Code::ResourceExhausted).await;
    let both = count(2, CountKind::DistinctSignals, &["a", "over"]);
    let bindings = vec![use_pending(&spare), fresh("over")];
    world.refuses(suspend_on(&task, bindings, both), Code::ResourceExhausted).await;
    world.act(close(&task, &spare)).await;
    world.suspend(over).await;
}
