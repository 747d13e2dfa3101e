//! How pending waitpoints end: by their own time, and with their attempt.

use ff_core::error::Code;
use ff_core::event::{Detail, EventKind};
use ff_core::limits;
use ff_core::operation::{
    Binding, Command, CreatePendingWaitpoint, Settled, Suspend, Task, Tick, Ticked,
};
use ff_core::read::WaitingFilter;
use ff_core::state::{Condition, DueKind, Matcher, PublicState, SignalEffect};

use crate::signalling::{
    close, issue, pending, remint, signal, suspend, suspend_on, waitpoint_key,
};
use crate::world::{World, cancel, cancel_held, complete, delay, fail, revoke};

const TTL: i64 = limits::LEASE_TTL_MS.cast_signed();

fn tick() -> Tick {
    Tick { home: None, most: 100 }
}

/// A pending waitpoint that closes so many milliseconds from now.
async fn expiring(world: &World, task: &Task, key: &str, ms: u64) -> CreatePendingWaitpoint {
    let expires_at = Some(world.now().await.after(ms));
    CreatePendingWaitpoint { expires_at, ..pending(task, key) }
}

fn suspend_using(task: &Task, create: &CreatePendingWaitpoint) -> Suspend {
    let condition = Condition::Single { waitpoint: create.key.clone(), name: Matcher::Wildcard };
    let binding = Binding::UsePending { waitpoint_id: create.waitpoint_id };
    suspend_on(task, vec![binding], condition)
}

pub async fn an_unused_waitpoint_closes_at_its_time(world: &World) {
    let (task, other) = world.start_with("other").await;
    let id = task.execution_id;
    let create = expiring(world, &task, "k", 5_000).await;
    let unused = world.act(create.clone()).await;
    world.advance(4_999).await;
    assert_eq!(world.act(tick()).await.total(), 0);
    world.deliver(signal(id, &unused, "x")).await;
    world.advance(1).await;
    // Its time is over before anyone acts.
    world.turns_away(signal(id, &unused, "x"), Code::WaitpointClosed).await;
    world.turns_away(suspend_using(&task, &create), Code::PendingWaitpointExpired).await;
    let ticked = world.act(tick()).await;
    assert_eq!(
        ticked,
        Ticked {
            fired: vec![(DueKind::PendingWaitpointExpiry, 1)],
            more: false,
            ..Ticked::default()
        }
    );
    assert_eq!(DueKind::PendingWaitpointExpiry.scanner(), "pending_wp_expiry");
    let event = world.events(id).await.pop().unwrap();
    assert_eq!(event.kind, EventKind::WaitpointClosed);
    assert_eq!(event.data["reason"], Detail::from("never_committed"));
    assert_eq!(event.data["waitpoint_key"], Detail::from("k"));
    world.turns_away(signal(id, &unused, "x"), Code::WaitpointClosed).await;
    world.turns_away(suspend_using(&task, &create), Code::PendingWaitpointExpired).await;
    let record = world.describe(id).await;
    assert_eq!(record.waitpoint_ids, [other.waitpoint_id]);
    assert_eq!(record.lease_id, Some(task.lease_id));
}

pub async fn what_is_answered_does_not_depend_on_the_tick(world: &World) {
    let (task, closed) = world.start_with("closed").await;
    let id = task.execution_id;
    world.act(close(id, "closed")).await;
    let create = expiring(world, &task, "k", 5_000).await;
    let unused = world.act(create.clone()).await;
    world.advance(5_000).await;
    for when in ["before", "after"] {
        world.turns_away(issue(id, "k"), Code::WaitpointClosed).await;
        world.turns_away(remint(id, "k"), Code::WaitpointClosed).await;
        for waitpoint in [&closed, &unused] {
            world.turns_away(signal(id, waitpoint, when), Code::TargetNotSignalable).await;
        }
        world.turns_away(suspend_using(&task, &create), Code::PendingWaitpointExpired).await;
        world.settle().await;
    }
}

pub async fn past_its_time_its_key_is_free_at_once(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    let create = expiring(world, &task, "k", 5_000).await;
    let unused = world.act(create.clone()).await;
    world.advance(5_000).await;
    world.turns_away(create, Code::WaitpointAlreadyExists).await;
    let second = world.act(pending(&task, "k")).await;
    assert_eq!(world.describe(id).await.waitpoint_ids, [second.waitpoint_id]);
    let kinds = world.history(id).await;
    use EventKind::{WaitpointClosed, WaitpointCreated};
    assert_eq!(kinds[kinds.len() - 3..], [WaitpointCreated, WaitpointClosed, WaitpointCreated]);
    let reasons = world.told(id, WaitpointClosed, "reason").await;
    assert_eq!(reasons, [Detail::from("never_committed")]);
    assert_eq!(world.act(tick()).await.total(), 0, "nothing is left for time to do");
    world.turns_away(signal(id, &unused, "x"), Code::WaitpointClosed).await;
    world.deliver(signal(id, &second, "x")).await;
    // A suspend that makes one of the same name is no different.
    let create = expiring(world, &task, "l", 1).await;
    world.act(create).await;
    world.advance(1).await;
    world.act(suspend(&task, "l")).await;
    assert_eq!(world.waitpoints(id).await.len(), 2);
}

pub async fn past_its_time_it_takes_no_room(world: &World) {
    let task = world.start(world.work()).await;
    for n in 0..limits::WAITPOINTS {
        let create = expiring(world, &task, &format!("k{n}"), 1_000 + n as u64).await;
        world.act(create).await;
    }
    world.turns_away(pending(&task, "more"), Code::ResourceExhausted).await;
    world.advance(1_000).await;
    world.act(pending(&task, "more")).await;
    world.turns_away(pending(&task, "one more"), Code::ResourceExhausted).await;
    world.advance(limits::WAITPOINTS as i64).await;
    world.act(suspend(&task, "last")).await;
    assert_eq!(world.waitpoints(task.execution_id).await.len(), 2);
}

pub async fn past_its_time_it_is_closed_already(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    let create = expiring(world, &task, "k", 5_000).await;
    world.act(create.clone()).await;
    world.advance(5_000).await;
    for _ in ["before", "after"] {
        assert_eq!(world.leaves_alone(close(id, "k")).await, Settled::AlreadySatisfied);
        world.settle().await;
    }
    // Whatever changes the execution first closes it as time would have done.
    let create = expiring(world, &task, "l", 5_000).await;
    world.act(create).await;
    world.advance(5_000).await;
    world.complete(&task).await.unwrap();
    let reasons = world.told(id, EventKind::WaitpointClosed, "reason").await;
    assert_eq!(reasons, ["never_committed", "never_committed"].map(Detail::from));
    assert_eq!(world.history(id).await.last(), Some(&EventKind::Completed));
}

pub async fn past_its_time_it_is_listed_nowhere(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    let create = expiring(world, &task, "k", 5_000).await;
    world.act(create.clone()).await;
    world.advance(4_999).await;
    assert_eq!(world.waitpoints(id).await.len(), 1);
    assert_eq!(world.describe(id).await.waitpoint_ids, [create.waitpoint_id]);
    world.advance(1).await;
    assert_eq!(world.waitpoints(id).await, []);
    assert_eq!(world.describe(id).await.waitpoint_ids, []);
    assert_eq!(world.inbox(&WaitingFilter::default(), 10).await, []);
}

pub async fn waitpoints_that_are_due_together_close_together(world: &World) {
    let task = world.start(world.work()).await;
    for (key, ms) in [("a", 3), ("b", 1), ("c", 2), ("d", 10)] {
        let create = expiring(world, &task, key, ms).await;
        world.act(create).await;
    }
    world.pass(3).await;
    let closed = world.told(task.execution_id, EventKind::WaitpointClosed, "waitpoint_key").await;
    assert_eq!(closed.len(), 3);
    let [left] = world.waitpoints(task.execution_id).await.try_into().unwrap();
    assert_eq!(left.key, waitpoint_key("d"));
}

pub async fn a_time_in_the_past_closes_it_with_the_next_tick(world: &World) {
    let task = world.start(world.work()).await;
    let create = expiring(world, &task, "k", 0).await;
    let issued = world.act(create).await;
    world.act(pending(&task, "other")).await;
    world.turns_away(signal(task.execution_id, &issued, "x"), Code::WaitpointClosed).await;
    world.settle().await;
    assert_eq!(world.waitpoints(task.execution_id).await.len(), 1);
}

pub async fn a_waitpoint_that_a_suspend_uses_does_not_close_by_time(world: &World) {
    let task = world.start(world.work()).await;
    let create = expiring(world, &task, "k", 5_000).await;
    let issued = world.act(create.clone()).await;
    world.act(suspend_using(&task, &create)).await;
    world.pass(60_000).await;
    assert_eq!(world.waitpoints(task.execution_id).await.len(), 1);
    let effect = world.deliver(signal(task.execution_id, &issued, "x")).await;
    assert_eq!(effect, SignalEffect::ResumeConditionSatisfied);
}

/// What ends the attempt of a task in the named way; none: time does.
fn ending(task: &Task, how: &str) -> Option<Command> {
    match how {
        "complete" => Some(complete(task).into()),
        "fail" => Some(fail(task, "permanent").into()),
        "retry" => Some(fail(task, "transient").into()),
        "cancel" => Some(cancel(task.execution_id).into()),
        "cancel by the holder" => Some(cancel_held(task).into()),
        "revoke" => Some(revoke(task.execution_id).into()),
        _ => None,
    }
}

pub async fn pending_waitpoints_close_when_their_attempt_ends(world: &World) {
    let deadline = r#"{"timeout_policy":{"execution_deadline_ms":30000}}"#;
    let timeout = r#"{"timeout_policy":{"attempt_timeout_ms":30000}}"#;
    let no_reclaim = r#"{"timeout_policy":{"max_reclaim_count":0}}"#;
    for (how, policy, then) in [
        ("complete", "{}", PublicState::Completed),
        ("fail", "{}", PublicState::Failed),
        ("retry", "{}", PublicState::Delayed),
        ("cancel", "{}", PublicState::Cancelled),
        ("cancel by the holder", "{}", PublicState::Cancelled),
        ("revoke", "{}", PublicState::Waiting),
        ("revoke", no_reclaim, PublicState::Failed),
        ("lost lease", "{}", PublicState::Waiting),
        ("lost lease", no_reclaim, PublicState::Failed),
        ("deadline", deadline, PublicState::Expired),
        ("attempt timeout", timeout, PublicState::Delayed),
    ] {
        let task = world.start(world.work_with(policy)).await;
        let id = task.execution_id;
        let a = world.act(pending(&task, "a")).await;
        world.act(pending(&task, "b")).await;
        match ending(&task, how) {
            Some(command) => drop(world.command(command).await.unwrap()),
            None => world.pass(TTL).await,
        }
        assert_eq!(world.public_state(id).await, then, "{how}");
        assert_eq!(world.waitpoints(id).await, [], "{how}");
        let reasons = world.told(id, EventKind::WaitpointClosed, "reason").await;
        assert_eq!(reasons, ["attempt_ended", "attempt_ended"].map(Detail::from), "{how}");
        world.turns_away(signal(id, &a, "x"), Code::TargetNotSignalable).await;
        // Out of the way of the next one.
        drop(world.command(cancel(id).into()).await);
    }
}

pub async fn a_lost_lease_closes_them_and_the_next_attempt_has_its_own(world: &World) {
    let (first, before) = world.start_with("k").await;
    world.pass(TTL).await;
    let second = world.claim_one().await;
    assert_eq!(second.attempt_index, 1);
    let after = world.act(pending(&second, "k")).await;
    world.turns_away(signal(first.execution_id, &before, "x"), Code::WaitpointClosed).await;
    world.deliver(signal(first.execution_id, &after, "x")).await;
}

pub async fn pending_waitpoints_stay_over_a_delay(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    let kept = pending(&task, "kept");
    let issued = world.act(kept.clone()).await;
    let short = expiring(world, &task, "short", 500).await;
    world.act(short).await;
    world.act(delay(&task, 1_000)).await;
    assert_eq!(world.waitpoints(id).await.len(), 2);
    let effect = world.deliver(signal(id, &issued, "x")).await;
    assert_eq!(effect, SignalEffect::BufferedForPendingWaitpoint);
    world.pass(500).await;
    assert_eq!(world.describe(id).await.waitpoint_ids, [kept.waitpoint_id]);
    assert_eq!(world.public_state(id).await, PublicState::Delayed);
    world.pass(500).await;
    let resumed = world.claim_one().await;
    assert_eq!(resumed.attempt_id, task.attempt_id);
    let suspended = world.act(suspend_using(&resumed, &kept)).await;
    assert!(suspended.already_satisfied, "the signal was kept for it");
}

pub async fn pending_waitpoints_stay_over_a_suspension(world: &World) {
    let (task, left) = world.start_with("left").await;
    let id = task.execution_id;
    let suspended = world.act(suspend(&task, "bound")).await;
    let effect = world.deliver(signal(id, &left, "x")).await;
    assert_eq!(effect, SignalEffect::BufferedForPendingWaitpoint);
    assert_eq!(world.public_state(id).await, PublicState::Suspended);
    world.deliver(signal(id, &suspended.waitpoints[0], "x")).await;
    assert_eq!(world.describe(id).await.waitpoint_ids, [left.waitpoint_id]);
    let resumed = world.claim_one().await;
    world.deliver(signal(id, &left, "y")).await;
    world.complete(&resumed).await.unwrap();
    let reasons = world.told(id, EventKind::WaitpointClosed, "reason").await;
    assert_eq!(reasons, ["resumed", "attempt_ended"].map(Detail::from));
}

pub async fn a_claim_takes_what_has_a_waitpoint_past_its_time(world: &World) {
    let task = world.start(world.work()).await;
    let create = expiring(world, &task, "k", 500).await;
    world.act(create).await;
    world.act(delay(&task, 0)).await;
    world.advance(500).await;
    assert_eq!(world.claim_ids(1).await, [task.execution_id]);
}

pub async fn an_attempt_that_goes_on_keeps_the_time_of_its_waitpoints(world: &World) {
    let timeout = r#"{"timeout_policy":{"attempt_timeout_ms":10000}}"#;
    let task = world.start(world.work_with(timeout)).await;
    let create = expiring(world, &task, "k", 500).await;
    world.act(create).await;
    world.act(delay(&task, 0)).await;
    let resumed = world.claim_one().await;
    world.pass(500).await;
    assert_eq!(world.waitpoints(resumed.execution_id).await, []);
}
