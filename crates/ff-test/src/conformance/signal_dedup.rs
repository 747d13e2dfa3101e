//! A signal's idempotency key: one key, one signal, within its execution and for a day.

use ff_core::backend::BackendExt;
use ff_core::content::Content;
use ff_core::error::Code;
use ff_core::id::{ExecutionId, SignalId};
use ff_core::limits;
use ff_core::operation::{DeliverSignal, IssuedWaitpoint, Message, Replay, Signalled};
use ff_core::state::{Condition, Matcher, SignalEffect};

use crate::signalling::{
    close, fresh, message, pending, signal, signal_key, signal_name, signal_once, suspend_on,
    waitpoint_key,
};
use crate::world::{World, cancel};

/// The first delivery of a key, which must be accepted; what a repetition is answered.
async fn first(world: &World, deliver: DeliverSignal) -> Signalled {
    match world.act(deliver).await {
        Signalled::Accepted { signal_id, effect } => Signalled::Duplicate { signal_id, effect },
        other @ Signalled::Duplicate { .. } => panic!("{other:?}"),
    }
}

fn is_new(reply: Signalled) -> bool {
    matches!(reply, Signalled::Accepted { .. })
}

/// Suspends until a signal `go`.
async fn waiting(world: &World) -> (ExecutionId, IssuedWaitpoint) {
    let task = world.start(world.work()).await;
    let name = Matcher::ByName(signal_name("go"));
    let condition = Condition::Single { waitpoint: waitpoint_key("k"), name };
    let suspended = world.act(suspend_on(&task, vec![fresh("k")], condition)).await;
    let [waitpoint] = suspended.waitpoints.try_into().unwrap();
    (task.execution_id, waitpoint)
}

pub async fn a_repeated_key_answers_the_first_id_and_effect(world: &World) {
    let (task, a) = world.start_with("a").await;
    let id = task.execution_id;
    let b = world.act(pending(&task, "b")).await;
    let answer = first(world, signal_once(id, &a, "once")).await;
    world.advance(1).await;
    let other = Message {
        idempotency_key: signal_key("once"),
        category: "another".to_owned(),
        source_identity: "somebody else".to_owned(),
        content: Content::json(b"{}".as_slice()),
        correlation_id: Some("c".to_owned()),
        ..message("another")
    };
    for again in [
        signal_once(id, &a, "once"),
        signal_once(id, &b, "once"),
        DeliverSignal { signal: other, ..signal(id, &a, "x") },
    ] {
        assert_eq!(world.leaves_alone(again).await, answer);
    }
    assert!(is_new(world.act(signal_once(id, &a, "Once")).await), "another key");
}

pub async fn each_effect_is_remembered(world: &World) {
    let (id, waitpoint) = waiting(world).await;
    let named = |name: &str| {
        let deliver = signal_once(id, &waitpoint, name);
        let signal = Message { name: signal_name(name), ..deliver.signal };
        DeliverSignal { signal, ..deliver }
    };
    let ignored = first(world, named("stay")).await;
    let resumed = first(world, named("go")).await;
    for (name, answer, expected) in [
        ("stay", ignored, SignalEffect::IgnoredMatcherFailed),
        ("go", resumed, SignalEffect::ResumeConditionSatisfied),
    ] {
        let Signalled::Duplicate { effect, .. } = answer else { panic!("{answer:?}") };
        assert_eq!(effect, expected);
        assert_eq!(world.leaves_alone(named(name)).await, answer);
    }
}

pub async fn a_key_is_known_after_the_resume_and_after_the_end(world: &World) {
    let (task, waitpoint) = world.listening("k").await;
    let id = task.execution_id;
    let again = || signal_once(id, &waitpoint, "once");
    let answer = first(world, again()).await;
    assert_eq!(world.leaves_alone(again()).await, answer, "resumed");
    let resumed = world.claim_one().await;
    assert_eq!(world.leaves_alone(again()).await, answer, "running");
    world.complete(&resumed).await.unwrap();
    assert_eq!(world.leaves_alone(again()).await, answer, "ended");
    world.turns_away(signal(id, &waitpoint, "x"), Code::TargetNotSignalable).await;
    world.act(Replay { execution_id: id, descendants: false }).await;
    assert_eq!(world.leaves_alone(again()).await, answer, "replayed");
    world.act(cancel(id)).await;
    assert_eq!(world.leaves_alone(again()).await, answer, "ended again");
}

pub async fn a_key_is_forgotten_after_a_day(world: &World) {
    let (id, waitpoint) = waiting(world).await;
    let again = || signal_once(id, &waitpoint, "once");
    let answer = first(world, again()).await;
    world.pass(limits::SIGNAL_DEDUP_MS.cast_signed() - 1).await;
    // A repetition does not move the window, which counts from the first signal.
    assert_eq!(world.leaves_alone(again()).await, answer);
    world.pass(1).await;
    let answer = first(world, again()).await;
    world.pass(limits::SIGNAL_DEDUP_MS.cast_signed() - 1).await;
    assert_eq!(world.leaves_alone(again()).await, answer);
    assert_eq!((limits::SIGNAL_DEDUP_MS, world.signals(id).await.len()), (86_400_000, 2));
}

pub async fn keys_of_different_executions_are_apart(world: &World) {
    let (here, a) = world.start_with("k").await;
    let (there, b) = world.start_with("k").await;
    for (task, waitpoint) in [(here, a), (there, b)] {
        let reply = world.act(signal_once(task.execution_id, &waitpoint, "once")).await;
        assert!(is_new(reply), "{reply:?}");
    }
}

pub async fn without_a_key_nothing_is_a_duplicate(world: &World) {
    let (task, waitpoint) = world.start_with("k").await;
    let plain = signal(task.execution_id, &waitpoint, "x");
    for _ in 0..3 {
        assert!(is_new(world.act(plain.clone()).await), "not even with the same id");
    }
    assert_eq!(world.describe(task.execution_id).await.signal_count, 3);
}

pub async fn a_repetition_needs_the_token_too(world: &World) {
    let (task, waitpoint) = world.start_with("k").await;
    let id = task.execution_id;
    let once = signal_once(id, &waitpoint, "once");
    world.act(once.clone()).await;
    world.turns_away(DeliverSignal { token: None, ..once.clone() }, Code::MissingToken).await;
    let other = world.act(pending(&task, "other")).await;
    let wrong = DeliverSignal { token: Some(other.token), ..once };
    world.turns_away(wrong, Code::InvalidToken).await;
}

pub async fn a_refused_signal_leaves_its_key_free(world: &World) {
    let (task, a) = world.start_with("a").await;
    let id = task.execution_id;
    let b = world.act(pending(&task, "b")).await;
    world.act(close(id, "a")).await;
    world.turns_away(signal_once(id, &a, "once"), Code::WaitpointClosed).await;
    assert!(is_new(world.act(signal_once(id, &b, "once")).await));
}

pub async fn of_many_at_once_with_one_key_one_is_accepted(world: &World) {
    let (task, waitpoint) = world.start_with("k").await;
    let id = task.execution_id;
    let sending = (0..8).map(|_| {
        let (backend, deliver) = (world.backend.clone(), signal_once(id, &waitpoint, "once"));
        tokio::spawn(async move { backend.call(deliver).await })
    });
    let mut accepted: Vec<SignalId> = Vec::new();
    let mut ids: Vec<SignalId> = Vec::new();
    for sent in sending.collect::<Vec<_>>() {
        match sent.await.unwrap().unwrap() {
            Signalled::Accepted { signal_id, .. } => {
                accepted.push(signal_id);
                ids.push(signal_id);
            }
            Signalled::Duplicate { signal_id, .. } => ids.push(signal_id),
        }
    }
    assert_eq!(accepted.len(), 1);
    assert!(ids.iter().all(|id| *id == accepted[0]), "{ids:?}");
    assert_eq!(world.signals(id).await.len(), 1);
}
