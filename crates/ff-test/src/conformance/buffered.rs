//! Signals that came before the suspend: they are kept, and weighed when it comes.

use ff_core::event::EventKind;
use ff_core::operation::{IssuedWaitpoint, Suspend, Task};
use ff_core::state::{
    AttemptState, Condition, CountKind, PublicState, ResumePolicy, SetMode, SignalEffect,
};

use crate::waits::{count, fresh, named, names, set, suspend_on, use_pending, wildcard, within};
use crate::world::{World, delay};

/// A task with a pending waitpoint of each name.
async fn with_pending(world: &World, keys: &[&str]) -> (Task, Vec<IssuedWaitpoint>) {
    let task = world.start(world.work()).await;
    let mut waitpoints = Vec::new();
    for name in keys {
        waitpoints.push(world.pending(&task, name).await);
    }
    (task, waitpoints)
}

/// A suspend that binds all of them.
fn on_all(task: &Task, waitpoints: &[IssuedWaitpoint], condition: Condition) -> Suspend {
    suspend_on(task, waitpoints.iter().map(use_pending).collect(), condition)
}

/// Sends every signal before the suspend, each to the waitpoint of that place.
async fn send(world: &World, task: &Task, at: &[IssuedWaitpoint], signals: &[(usize, &str)]) {
    for (place, name) in signals {
        let effect = world.signal(task, &at[*place], name).await;
        assert_eq!(effect, SignalEffect::BufferedForPendingWaitpoint);
    }
}

/// A condition over waitpoints `a` and `b`, with signals of which the last one meets it, each with
/// the place of its waitpoint, and the names of those that count.
struct Form(Condition, &'static [(usize, &'static str)], &'static [&'static str]);

fn forms() -> Vec<Form> {
    let on_a = |condition| Condition::AllOf(vec![condition, wildcard("b")]);
    let nested = Condition::AllOf(vec![named("a", "x"), Condition::AllOf(vec![named("b", "y")])]);
    let any = set("a", &["x", "y"], SetMode::Any);
    let all = set("a", &["x", "y"], SetMode::All);
    let two = set("a", &["x", "y", "z"], SetMode::Count(2));
    let tallies = Condition::AllOf(vec![
        count(2, CountKind::DistinctSignals, &["a", "b"]),
        count(1, CountKind::DistinctSources, &["b"]),
    ]);
    let waitpoints = count(2, CountKind::DistinctWaitpoints, &["a", "b"]);
    let signals = count(3, CountKind::DistinctSignals, &["a", "b"]);
    vec![
        Form(on_a(named("a", "x")), &[(0, "no"), (1, "go"), (0, "x")], &["go", "x"]),
        Form(on_a(wildcard("a")), &[(1, "go"), (0, "whatever")], &["go", "whatever"]),
        Form(on_a(any), &[(0, "no"), (1, "go"), (0, "y")], &["go", "y"]),
        Form(on_a(all), &[(1, "go"), (0, "y"), (0, "y"), (0, "x")], &["go", "y", "x"]),
        Form(on_a(two), &[(1, "go"), (0, "z"), (0, "z"), (0, "x")], &["go", "z", "x"]),
        Form(nested, &[(1, "y"), (1, "x"), (0, "x")], &["y", "x"]),
        Form(waitpoints, &[(0, "1"), (0, "2"), (1, "3")], &["1", "3"]),
        Form(signals, &[(0, "1"), (1, "2"), (0, "3")], &["1", "2", "3"]),
        Form(tallies, &[(0, "1"), (0, "2"), (1, "3")], &["1", "2", "3"]),
    ]
}

pub async fn every_form_is_met_by_signals_that_came_before(world: &World) {
    for Form(condition, signals, counted) in forms() {
        let (task, at) = with_pending(world, &["a", "b"]).await;
        send(world, &task, &at, signals).await;
        let reply = world.act(on_all(&task, &at, condition.clone())).await;
        assert!(reply.already_satisfied, "{condition:?}");
        assert_eq!(names(&world.observe(&task).await), counted, "{condition:?}");
        world.complete(&task).await.unwrap();
    }
}

pub async fn every_form_is_completed_by_a_signal_that_comes_later(world: &World) {
    for Form(condition, signals, counted) in forms() {
        let (task, at) = with_pending(world, &["a", "b"]).await;
        let ((place, last), before) = signals.split_last().unwrap();
        send(world, &task, &at, before).await;
        let waitpoints = world.suspend(on_all(&task, &at, condition.clone())).await;
        assert_eq!(waitpoints, at, "{condition:?}");
        let effect = world.signal(&task, &at[*place], last).await;
        assert_eq!(effect, SignalEffect::ResumeConditionSatisfied, "{condition:?}");
        let task = world.claim_one().await;
        assert_eq!(names(&task.extras.resume_signals), counted, "{condition:?}");
        world.complete(&task).await.unwrap();
    }
}

pub async fn what_was_counted_at_suspend_is_nothing_new_later(world: &World) {
    let (task, at) = with_pending(world, &["a"]).await;
    send(world, &task, &at, &[(0, "x"), (0, "no")]).await;
    world.suspend(on_all(&task, &at, set("a", &["x", "y"], SetMode::All))).await;
    let effect = world.signal(&task, &at[0], "x").await;
    assert_eq!(effect, SignalEffect::AppendedToWaitpointDuplicate);
    assert_eq!(world.signal(&task, &at[0], "no").await, SignalEffect::IgnoredMatcherFailed);
    assert_eq!(world.describe(task.execution_id).await.signal_count, 4);
}

pub async fn an_already_satisfied_suspend_keeps_the_lease(world: &World) {
    let (task, at) = with_pending(world, &["a"]).await;
    send(world, &task, &at, &[(0, "x")]).await;
    world.advance(100).await;
    let asked = on_all(&task, &at, wildcard("a"));
    let asked = within(50, Default::default(), asked);
    let reply = world.act(asked.clone()).await;
    assert!(reply.already_satisfied && !reply.replayed, "{reply:?}");
    assert_eq!((reply.suspension_id, &reply.waitpoints), (asked.suspension_id, &at));
    assert_eq!(reply.handle, task.handle);
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.state.public_state, PublicState::Active);
    assert_eq!((record.lease_id, record.lease_epoch), (Some(task.lease_id), 1));
    assert_eq!(record.lease_expires_at, Some(task.expires_at));
    assert_eq!((record.suspension_id, record.waitpoint_ids), (None, vec![]));
    let [attempt] = world.attempts(task.execution_id).await.try_into().unwrap();
    assert_eq!((attempt.state, attempt.active_ms), (AttemptState::Started, 0));
    world.pass(1_000).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Active, "no timeout");
    world.complete(&task).await.unwrap();
    use EventKind::{
        Claimed, Completed, SignalAccepted, Submitted, WaitpointClosed, WaitpointCreated,
    };
    assert_eq!(
        world.history(task.execution_id).await,
        [Submitted, Claimed, WaitpointCreated, SignalAccepted, WaitpointClosed, Completed]
    );
}

pub async fn the_task_that_goes_on_gets_the_signals(world: &World) {
    let (task, at) = with_pending(world, &["a"]).await;
    assert_eq!(world.observe(&task).await, []);
    send(world, &task, &at, &[(0, "x"), (0, "y")]).await;
    assert_eq!(world.observe(&task).await, [], "before the suspend");
    let metadata = Some(b"page 7".as_slice().into());
    let asked = on_all(&task, &at, set("a", &["x", "y"], SetMode::All));
    world.act(Suspend { metadata, ..asked }).await;
    let heard = world.observe(&task).await;
    assert_eq!(names(&heard), ["x", "y"]);
    world.act(delay(&task, 0)).await;
    let next = world.claim_one().await;
    assert_eq!(next.attempt_id, task.attempt_id);
    assert_eq!(next.extras.resume_signals, heard);
    assert_eq!(next.extras.metadata.as_deref(), Some(b"page 7".as_slice()));
    assert_eq!(world.observe(&next).await, heard);
}

pub async fn a_resume_delay_does_not_hold_up_what_never_stopped(world: &World) {
    let (task, at) = with_pending(world, &["a"]).await;
    send(world, &task, &at, &[(0, "x")]).await;
    let resume_policy = ResumePolicy { resume_delay_ms: 5_000, ..ResumePolicy::default() };
    let asked = on_all(&task, &at, wildcard("a"));
    assert!(world.act(Suspend { resume_policy, ..asked }).await.already_satisfied);
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Active);
}

pub async fn a_task_may_suspend_again_and_again_without_losing_its_lease(world: &World) {
    let (task, at) = with_pending(world, &["a", "b"]).await;
    send(world, &task, &at, &[(0, "x"), (1, "y")]).await;
    assert!(world.act(on_all(&task, &at[..1], wildcard("a"))).await.already_satisfied);
    assert_eq!(names(&world.observe(&task).await), ["x"]);
    assert!(world.act(on_all(&task, &at[1..], wildcard("b"))).await.already_satisfied);
    assert_eq!(names(&world.observe(&task).await), ["y"]);
    let [last] =
        world.suspend(suspend_on(&task, vec![fresh("c")], wildcard("c"))).await.try_into().unwrap();
    world.signal(&task, &last, "z").await;
    assert_eq!(names(&world.claim_one().await.extras.resume_signals), ["z"]);
}

pub async fn signals_of_a_waitpoint_that_is_not_bound_are_not_weighed(world: &World) {
    let (task, at) = with_pending(world, &["a", "b"]).await;
    send(world, &task, &at, &[(0, "x")]).await;
    world.suspend(on_all(&task, &at[1..], wildcard("b"))).await;
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Suspended);
    world.signal(&task, &at[1], "y").await;
    let task = world.claim_one().await;
    assert_eq!(names(&task.extras.resume_signals), ["y"]);
    assert!(world.act(on_all(&task, &at[..1], wildcard("a"))).await.already_satisfied);
}
