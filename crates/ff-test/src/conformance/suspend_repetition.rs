//! A suspend sent again gets its first reply and changes nothing.

use ff_core::error::Code;
use ff_core::id::{IdempotencyKey, SuspensionId};
use ff_core::limits;
use ff_core::operation::{Replay, Suspend, Suspended, Task};
use ff_core::state::{CountKind, PublicState, SignalEffect, TimeoutBehavior};

use crate::waits::{
    count, fresh, names, resume, suspend, suspend_on, use_pending, wildcard, within,
};
use crate::world::{World, cancel, complete, delay, fail, fenced};

fn keyed(key: &str, suspend: Suspend) -> Suspend {
    Suspend { idempotency_key: Some(IdempotencyKey::new(key).expect("a key")), ..suspend }
}

/// Sends a suspend whose first reply was lost: it gets that reply and changes nothing.
async fn assert_repeats(world: &World, again: Suspend, first: &Suspended, when: &str) {
    let id = again.execution_id;
    let (before, events) = (world.describe(id).await, world.events(id).await);
    let reply = world.act(again).await;
    assert_eq!(reply, Suspended { replayed: true, ..first.clone() }, "{when}");
    assert_eq!(world.describe(id).await, before, "{when}");
    assert_eq!(world.events(id).await, events, "{when}");
}

/// A suspended task and the reply to it.
async fn suspended(world: &World) -> (Task, Suspended) {
    let task = world.start(world.work()).await;
    let reply = world.act(suspend(&task, wildcard("a"))).await;
    assert!(!reply.replayed);
    (task, reply)
}

pub async fn the_same_fence_gets_the_first_reply(world: &World) {
    let (task, first) = suspended(world).await;
    world.advance(5_000).await;
    let other = suspend(&task, count(2, CountKind::DistinctSignals, &["b", "c"]));
    let other = keyed("another", within(7, TimeoutBehavior::Cancel, other));
    assert_repeats(world, other, &first, "whatever the other fields").await;
    let again = world.act(suspend(&task, wildcard("a"))).await;
    let effect = world.signal(&task, &again.waitpoints[0], "go").await;
    assert_eq!(effect, SignalEffect::ResumeConditionSatisfied, "its token works");
}

pub async fn the_reply_is_the_same_for_any_mix_of_bindings(world: &World) {
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
        let task = world.start(world.work()).await;
        let (a, b) = (world.pending(&task, "a").await, world.pending(&task, "b").await);
        let all = [use_pending(&a), use_pending(&b), fresh("c"), fresh("d")];
        let bindings = order.iter().map(|n| all[*n].clone()).collect();
        let four = count(4, CountKind::DistinctWaitpoints, &["a", "b", "c", "d"]);
        let asked = suspend_on(&task, bindings, four);
        let first = world.act(asked.clone()).await;
        assert_repeats(world, asked, &first, "in the order of the bindings").await;
        for waitpoint in &first.waitpoints {
            world.signal(&task, waitpoint, "go").await;
        }
        assert_eq!(world.claim_one().await.extras.resume_signals.len(), 4);
    }
}

pub async fn the_memory_outlives_what_happens_next(world: &World) {
    let (task, first) = suspended(world).await;
    let again = || suspend(&task, wildcard("a"));
    world.signal(&task, &first.waitpoints[0], "go").await;
    assert_repeats(world, again(), &first, "after the resume").await;
    world.claim_one().await;
    assert_repeats(world, again(), &first, "after a new claim").await;
    world.pass(limits::LEASE_TTL_MS.cast_signed()).await;
    assert_repeats(world, again(), &first, "after a lost lease").await;
    world.act(cancel(task.execution_id)).await;
    assert_repeats(world, again(), &first, "after a cancel").await;
    world.act(Replay { execution_id: task.execution_id, descendants: false }).await;
    assert_repeats(world, again(), &first, "after a replay").await;
}

pub async fn a_timeout_and_an_operator_leave_the_memory(world: &World) {
    let task = world.start(world.work()).await;
    let asked = within(100, TimeoutBehavior::Fail, suspend(&task, wildcard("a")));
    let first = world.act(asked.clone()).await;
    world.pass(100).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Failed);
    assert_repeats(world, asked, &first, "after its timeout").await;
    let (task, first) = suspended(world).await;
    world.act(resume(task.execution_id)).await;
    assert_repeats(world, suspend(&task, wildcard("a")), &first, "after a resume").await;
}

pub async fn another_operation_with_that_fence_is_refused(world: &World) {
    let (task, first) = suspended(world).await;
    for command in fenced(&task) {
        world.refuses(command, Code::ExecutionNotActive).await;
    }
    world.signal(&task, &first.waitpoints[0], "go").await;
    world.claim_one().await;
    for command in fenced(&task) {
        world.refuses(command, Code::StaleLease).await;
    }
}

pub async fn the_next_lease_ending_operation_replaces_the_memory(world: &World) {
    let (first, reply) = suspended(world).await;
    world.signal(&first, &reply.waitpoints[0], "go").await;
    let second = world.claim_one().await;
    world.act(delay(&second, 0)).await;
    world.refuses(suspend(&first, wildcard("a")), Code::ExecutionNotActive).await;
    let third = world.claim_one().await;
    world.refuses(suspend(&first, wildcard("a")), Code::StaleLease).await;
    let last = world.act(suspend(&third, wildcard("b"))).await;
    assert_ne!(last.suspension_id, reply.suspension_id);
    assert_repeats(world, suspend(&third, wildcard("a")), &last, "the last one").await;
}

pub async fn a_suspend_with_the_fence_of_another_operation_is_refused(world: &World) {
    let task = world.start(world.work()).await;
    world.act(fail(&task, "transient")).await;
    world.refuses(suspend(&task, wildcard("a")), Code::ExecutionNotActive).await;
    world.pass(1_000).await;
    let task = world.claim_one().await;
    world.act(complete(&task)).await;
    world.refuses(suspend(&task, wildcard("a")), Code::ExecutionNotActive).await;
}

pub async fn the_same_key_gets_the_first_reply_from_any_lease(world: &World) {
    let task = world.start(world.work()).await;
    let first = world.act(keyed("step 1", suspend(&task, wildcard("a")))).await;
    let again = |task: &Task| keyed("step 1", suspend(task, wildcard("b")));
    assert_repeats(world, again(&task), &first, "while suspended").await;
    world.signal(&task, &first.waitpoints[0], "go").await;
    let second = world.claim_one().await;
    assert_repeats(world, again(&second), &first, "from the next lease").await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Active);
    let other = world.act(keyed("step 2", suspend(&second, wildcard("b")))).await;
    assert!(!other.replayed);
    assert_repeats(world, again(&second), &first, "after another suspend").await;
    world.act(cancel(task.execution_id)).await;
    assert_repeats(world, again(&second), &first, "after the end").await;
    let elsewhere = world.start(world.work()).await;
    assert!(!world.act(again(&elsewhere)).await.replayed, "a key is of its execution");
}

/// A keyed suspend is repeated by key from a later lease until its window is over.
async fn window_ends_after(world: &World, window_ms: u64, asked: impl Fn(&Task) -> Suspend) {
    let task = world.start(world.work()).await;
    let first = world.act(keyed("step", asked(&task))).await;
    world.act(resume(task.execution_id)).await;
    world.pass(window_ms.cast_signed() - 1).await;
    let task = world.claim_one().await;
    assert_repeats(world, keyed("step", asked(&task)), &first, "the last instant").await;
    world.advance(1).await;
    let renewed = world.act(keyed("step", asked(&task))).await;
    assert!(!renewed.replayed, "the window is over after {window_ms} ms");
    assert_repeats(world, keyed("step", asked(&task)), &renewed, "a window of its own").await;
}

pub async fn a_key_is_known_a_minute_longer_than_the_timeout(world: &World) {
    let timed = |task: &Task| within(5_000, TimeoutBehavior::Fail, suspend(task, wildcard("a")));
    window_ends_after(world, 65_000, timed).await;
}

pub async fn a_key_is_known_seven_days_at_the_most(world: &World) {
    let week = 7 * 86_400_000;
    window_ends_after(world, week, |task| suspend(task, wildcard("a"))).await;
    let long = |task: &Task| within(2 * week, TimeoutBehavior::Fail, suspend(task, wildcard("a")));
    window_ends_after(world, week, long).await;
}

pub async fn the_same_suspension_id_gets_the_first_reply(world: &World) {
    let task = world.start(world.work()).await;
    let asked = suspend(&task, wildcard("a"));
    let first = world.act(asked.clone()).await;
    world.signal(&task, &first.waitpoints[0], "go").await;
    let second = world.claim_one().await;
    let again = |task: &Task, suspension_id: SuspensionId| {
        keyed("other", Suspend { suspension_id, ..suspend(task, wildcard("b")) })
    };
    assert_repeats(world, again(&second, asked.suspension_id), &first, "from a later lease").await;
    world.suspend(again(&second, SuspensionId::mint())).await;
}

pub async fn an_already_satisfied_suspend_is_repeated_by_its_id_or_key(world: &World) {
    let task = world.start(world.work()).await;
    let a = world.pending(&task, "a").await;
    world.signal(&task, &a, "go").await;
    let asked = keyed("step", suspend_on(&task, vec![use_pending(&a)], wildcard("a")));
    let first = world.act(asked.clone()).await;
    assert!(first.already_satisfied);
    let by_id = Suspend { idempotency_key: None, ..asked.clone() };
    assert_repeats(world, by_id, &first, "by its id").await;
    let by_key = Suspend { suspension_id: SuspensionId::mint(), ..asked };
    assert_repeats(world, by_key, &first, "by its key").await;
    assert_eq!(names(&world.observe(&task).await), ["go"]);
    let other = suspend(&task, wildcard("b"));
    assert!(!world.act(other).await.replayed, "the lease was kept, so its fence is free");
}

pub async fn a_refused_suspend_leaves_no_memory(world: &World) {
    let task = world.start(world.work()).await;
    let asked = keyed("step", suspend(&task, wildcard("a")));
    let bad = Suspend { bindings: vec![fresh("b")], ..asked.clone() };
    world.refuses(bad, Code::InvalidInput).await;
    assert!(!world.act(asked).await.replayed);
}
