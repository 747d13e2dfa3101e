//! Conditions: which signals an execution must hear, and what each signal does.

use ff_core::id::SignalId;
use ff_core::operation::{DeliverSignal, Message};
use ff_core::state::{
    Condition, Count, CountKind, Matcher, PublicState, SetMode, SignalEffect, TimeoutBehavior,
};

use crate::waits::{
    count, fresh, from_source, key, named, names, resume, set, signal, signal_name, suspend,
    suspend_on, wildcard, within,
};
use crate::world::World;

use SignalEffect::{
    AppendedToWaitpoint as Appended, AppendedToWaitpointDuplicate as NothingNew,
    BufferedForPendingWaitpoint as Buffered, IgnoredMatcherFailed as NoMatch,
    IgnoredNotInCondition as NotNamed, ResumeConditionSatisfied as Met,
};

/// Suspends on the condition and sends one signal after the other, each to the waitpoint of that
/// place: every one has the effect that is told here, and the last one resumes with `heard`.
async fn hears(
    world: &World,
    condition: Condition,
    signals: &[(usize, &str, SignalEffect)],
    heard: &[&str],
) {
    let (task, waitpoints) = world.suspended(condition).await;
    for (index, (place, name, effect)) in signals.iter().enumerate() {
        let state = world.public_state(task.execution_id).await;
        assert_eq!(state, PublicState::Suspended, "before {name}");
        let got = world.signal(&task, &waitpoints[*place], name).await;
        assert_eq!(got, *effect, "signal {index}, {name}");
    }
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Resumable);
    assert_eq!(names(&world.claim_one().await.extras.resume_signals), heard);
}

pub async fn single_waits_for_the_first_of_its_name(world: &World) {
    hears(
        world,
        named("a", "yes"),
        &[(0, "no", NoMatch), (0, "YES", NoMatch), (0, "yes ", NoMatch), (0, "yes", Met)],
        &["yes"],
    )
    .await;
}

pub async fn a_wildcard_takes_any_name(world: &World) {
    hears(world, wildcard("a"), &[(0, "whatever", Met)], &["whatever"]).await;
}

pub async fn any_of_a_set_is_one_of_its_names(world: &World) {
    let any = set("a", &["x", "y"], SetMode::Any);
    hears(world, any.clone(), &[(0, "z", NoMatch), (0, "y", Met)], &["y"]).await;
    hears(world, any, &[(0, "x", Met)], &["x"]).await;
}

pub async fn all_of_a_set_are_all_its_names(world: &World) {
    let signals = [
        (0, "y", Appended),
        (0, "y", NothingNew),
        (0, "w", NoMatch),
        (0, "x", Appended),
        (0, "x", NothingNew),
        (0, "z", Met),
    ];
    hears(world, set("a", &["x", "y", "z"], SetMode::All), &signals, &["y", "x", "z"]).await;
    let repeated = set("a", &["x", "x", "y"], SetMode::All);
    hears(world, repeated, &[(0, "x", Appended), (0, "y", Met)], &["x", "y"]).await;
}

pub async fn a_count_of_a_set_counts_different_names(world: &World) {
    let two = set("a", &["x", "y", "z"], SetMode::Count(2));
    let signals = [(0, "x", Appended), (0, "x", NothingNew), (0, "w", NoMatch), (0, "z", Met)];
    hears(world, two, &signals, &["x", "z"]).await;
    hears(world, set("a", &["x", "y"], SetMode::Count(1)), &[(0, "y", Met)], &["y"]).await;
}

pub async fn all_of_waits_for_every_member_in_any_order(world: &World) {
    let inner = Condition::AllOf(vec![named("b", "x"), set("c", &["p", "q"], SetMode::Any)]);
    let all = Condition::AllOf(vec![named("a", "x"), inner]);
    let signals = [
        (2, "q", Appended),
        (2, "p", NothingNew),
        (1, "p", NoMatch),
        (0, "x", Appended),
        (0, "x", NothingNew),
        (1, "x", Met),
    ];
    hears(world, all, &signals, &["q", "x", "x"]).await;
    let deep = (0..4).fold(named("a", "x"), |inner, _| Condition::AllOf(vec![inner]));
    hears(world, deep, &[(0, "y", NoMatch), (0, "x", Met)], &["x"]).await;
}

pub async fn one_signal_counts_in_every_node_that_listens(world: &World) {
    let same = Condition::AllOf(vec![named("a", "x"), wildcard("a")]);
    hears(world, same, &[(0, "x", Met)], &["x"]).await;
    let apart = Condition::AllOf(vec![named("a", "x"), wildcard("a")]);
    let signals = [(0, "y", Appended), (0, "y", NothingNew), (0, "x", Met)];
    hears(world, apart, &signals, &["y", "x"]).await;
    let kinds =
        [CountKind::DistinctSources, CountKind::DistinctSignals, CountKind::DistinctWaitpoints];
    let thrice = Condition::AllOf(kinds.map(|kind| count(1, kind, &["a", "b"])).to_vec());
    hears(world, thrice, &[(1, "go", Met)], &["go"]).await;
}

pub async fn different_waitpoints_are_counted(world: &World) {
    let two = count(2, CountKind::DistinctWaitpoints, &["a", "b", "c"]);
    let signals = [(1, "x", Appended), (1, "y", NothingNew), (2, "x", Met)];
    hears(world, two, &signals, &["x", "x"]).await;
}

pub async fn different_signals_are_counted_by_their_id(world: &World) {
    let three = count(3, CountKind::DistinctSignals, &["a", "b"]);
    let (task, waitpoints) = world.suspended(three).await;
    let first = signal(task.execution_id, &waitpoints[0], "x");
    assert_eq!(world.deliver(first.clone()).await, Appended);
    assert_eq!(world.deliver(first.clone()).await, NothingNew, "the same id");
    let elsewhere = DeliverSignal {
        signal: Message { signal_id: first.signal.signal_id, ..first.signal.clone() },
        ..signal(task.execution_id, &waitpoints[1], "y")
    };
    assert_eq!(world.deliver(elsewhere).await, NothingNew, "the same id on another waitpoint");
    let message = Message { signal_id: SignalId::mint(), ..first.signal.clone() };
    assert_eq!(world.deliver(DeliverSignal { signal: message, ..first }).await, Appended);
    assert_eq!(world.signal(&task, &waitpoints[1], "y").await, Met);
    assert_eq!(names(&world.claim_one().await.extras.resume_signals), ["x", "x", "y"]);
}

pub async fn different_sources_are_type_and_identity_together(world: &World) {
    let four = count(4, CountKind::DistinctSources, &["a", "b"]);
    let (task, waitpoints) = world.suspended(four).await;
    let say = |place: usize, kind: &str, who: &str| {
        from_source(kind, who, signal(task.execution_id, &waitpoints[place], "vote"))
    };
    for (vote, effect) in [
        (say(0, "user", "ann"), Appended),
        (say(1, "user", "ann"), NothingNew),
        (say(1, "user", "bob"), Appended),
        (say(0, "robot", "ann"), Appended),
        (say(0, "user", "bob"), NothingNew),
        (say(0, "us", "erann"), Met),
    ] {
        assert_eq!(world.deliver(vote).await, effect);
    }
    assert_eq!(world.claim_one().await.extras.resume_signals.len(), 4);
}

pub async fn a_count_may_listen_to_one_name(world: &World) {
    let name = Matcher::ByName(signal_name("ok"));
    let waitpoints = vec![key("a"), key("b")];
    let kind = CountKind::DistinctWaitpoints;
    let both = Condition::Count(Count { n: 2, kind, name, waitpoints });
    let signals = [(0, "no", NoMatch), (0, "ok", Appended), (1, "no", NoMatch), (1, "ok", Met)];
    hears(world, both, &signals, &["ok", "ok"]).await;
}

pub async fn every_count_has_its_own_tally(world: &World) {
    let two_of_each = Condition::AllOf(vec![
        count(2, CountKind::DistinctSignals, &["a", "b"]),
        count(2, CountKind::DistinctSignals, &["b", "c"]),
    ]);
    let signals = [(0, "1", Appended), (1, "2", Appended), (0, "3", NothingNew), (2, "4", Met)];
    hears(world, two_of_each, &signals, &["1", "2", "4"]).await;
    let of_two_kinds = Condition::AllOf(vec![
        count(2, CountKind::DistinctSignals, &["a", "b"]),
        count(2, CountKind::DistinctWaitpoints, &["a", "b"]),
    ]);
    let signals = [(0, "1", Appended), (0, "2", Appended), (0, "3", NothingNew), (1, "4", Met)];
    hears(world, of_two_kinds, &signals, &["1", "2", "4"]).await;
}

pub async fn no_signal_satisfies_what_waits_for_an_operator_or_for_time(world: &World) {
    for deaf in [Condition::OperatorOnly, Condition::TimeoutOnly] {
        let task = world.start(world.work()).await;
        let asked = suspend_on(&task, vec![fresh("a")], deaf);
        let asked = within(60_000, TimeoutBehavior::Fail, asked);
        let [door] = world.suspend(asked).await.try_into().unwrap();
        for name in ["timeout", "resume", "operator", "go"] {
            assert_eq!(world.signal(&task, &door, name).await, NotNamed);
        }
        let record = world.describe(task.execution_id).await;
        assert_eq!((record.state.public_state, record.signal_count), (PublicState::Suspended, 4));
    }
}

pub async fn no_signal_satisfies_a_member_that_hears_none(world: &World) {
    let all = Condition::AllOf(vec![named("a", "x"), Condition::OperatorOnly]);
    let (task, waitpoints) = world.suspended(all).await;
    assert_eq!(world.signal(&task, &waitpoints[0], "x").await, Appended);
    assert_eq!(world.signal(&task, &waitpoints[0], "x").await, NothingNew);
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Suspended);
    world.act(resume(task.execution_id)).await;
    assert_eq!(world.claim_ids(1).await, [task.execution_id]);
}

pub async fn a_pending_waitpoint_keeps_its_signals_while_another_is_waited_for(world: &World) {
    let task = world.start(world.work()).await;
    let spare = world.pending(&task, "spare").await;
    assert_eq!(world.signal(&task, &spare, "x").await, Buffered, "while it runs");
    let [a] = world.suspend(suspend(&task, wildcard("a"))).await.try_into().unwrap();
    assert_eq!(world.signal(&task, &spare, "x").await, Buffered, "while it is suspended");
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Suspended);
    assert_eq!(world.signal(&task, &a, "x").await, Met);
    assert_eq!(world.signal(&task, &spare, "x").await, Buffered, "while it waits for a worker");
    assert_eq!(world.claim_one().await.extras.resume_signals.len(), 1);
}
