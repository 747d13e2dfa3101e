//! Which signals are refused, and which of several reasons is told.

use ff_core::error::Code;
use ff_core::id::ExecutionId;
use ff_core::operation::{
    CreatePendingWaitpoint, DeliverSignal, IssuedWaitpoint, Message, Signalled, Task,
};
use ff_core::state::PublicState;
use uuid::Uuid;

use crate::signalling::{close, message, pending, signal, signal_key, signal_once, suspend};
use crate::world::{World, cancel, complete, delay, fail, hold};

fn nobody(world: &World) -> ExecutionId {
    ExecutionId::solo(Uuid::now_v7(), &world.backend.settings().partitions)
}

/// A running task that takes one signal, has taken it under the key `known`, and has a waitpoint
/// whose token lives for a second beside one whose token is endless.
async fn full(world: &World) -> (Task, IssuedWaitpoint, IssuedWaitpoint) {
    let task = world.start(world.work_with(r#"{"max_signals_per_execution":1}"#)).await;
    let endless = world.act(pending(&task, "endless")).await;
    let short = CreatePendingWaitpoint { token_ttl_ms: Some(1_000), ..pending(&task, "short") };
    let short = world.act(short).await;
    world.deliver(signal_once(task.execution_id, &endless, "known")).await;
    (task, endless, short)
}

pub async fn the_first_check_that_fails_is_the_answer(world: &World) {
    let (task, endless, short) = full(world).await;
    let id = task.execution_id;
    let all_wrong = DeliverSignal {
        execution_id: nobody(world),
        token: None,
        signal: Message { idempotency_key: signal_key("known"), ..message("__reserved") },
        ..signal(id, &short, "x")
    };
    world.refuses(all_wrong.clone(), Code::InvalidInput).await;
    let good_name = Message { idempotency_key: signal_key("known"), ..message("good") };
    let nowhere = DeliverSignal { signal: good_name, ..all_wrong };
    world.refuses(nowhere.clone(), Code::ExecutionNotFound).await;
    let missing = DeliverSignal { execution_id: id, ..nowhere };
    let wrong = DeliverSignal { token: Some(endless.token.clone()), ..missing.clone() };
    let expired = DeliverSignal { token: Some(short.token.clone()), ..missing.clone() };
    let known = signal_once(id, &endless, "known");
    let new = signal_once(id, &endless, "new");
    // An open waitpoint, then a closed one, then none that is open, then the end.
    world.advance(1_000).await;
    world.turns_away(new.clone(), Code::SignalLimitExceeded).await;
    for then in ["open", "one closed", "all closed", "ended"] {
        match then {
            "open" => {}
            "one closed" => drop(world.act(close(id, "endless")).await),
            "all closed" => drop(world.act(close(id, "short")).await),
            _ => drop(world.act(complete(&task)).await),
        }
        world.turns_away(missing.clone(), Code::MissingToken).await;
        world.turns_away(wrong.clone(), Code::InvalidToken).await;
        world.turns_away(expired.clone(), Code::TokenExpired).await;
        let reply = world.leaves_alone(known.clone()).await;
        assert!(matches!(reply, Signalled::Duplicate { .. }), "{then}: {reply:?}");
        let refusal = match then {
            "open" => Code::SignalLimitExceeded,
            "one closed" => Code::WaitpointClosed,
            _ => Code::TargetNotSignalable,
        };
        world.turns_away(new.clone(), refusal).await;
    }
}

pub async fn an_ended_execution_is_not_signalable(world: &World) {
    let expiring = r#"{"timeout_policy":{"execution_deadline_ms":1000}}"#;
    for (then, policy) in [
        (PublicState::Completed, "{}"),
        (PublicState::Failed, "{}"),
        (PublicState::Cancelled, "{}"),
        (PublicState::Expired, expiring),
    ] {
        let task = world.start(world.work_with(policy)).await;
        let id = task.execution_id;
        let waitpoint = world.act(pending(&task, "k")).await;
        match then {
            PublicState::Completed => drop(world.act(complete(&task)).await),
            PublicState::Failed => drop(world.act(fail(&task, "permanent")).await),
            PublicState::Cancelled => drop(world.act(cancel(id)).await),
            _ => world.pass(1_000).await,
        }
        assert_eq!(world.public_state(id).await, then);
        world.turns_away(signal(id, &waitpoint, "x"), Code::TargetNotSignalable).await;
    }
}

pub async fn a_suspension_that_was_resumed_takes_no_more(world: &World) {
    let (task, waitpoint) = world.listening("k").await;
    let id = task.execution_id;
    world.deliver(signal(id, &waitpoint, "x")).await;
    world.turns_away(signal(id, &waitpoint, "x"), Code::TargetNotSignalable).await;
    let resumed = world.claim_one().await;
    world.turns_away(signal(id, &waitpoint, "x"), Code::TargetNotSignalable).await;
    let next = world.act(suspend(&resumed, "k")).await;
    world.turns_away(signal(id, &waitpoint, "x"), Code::WaitpointClosed).await;
    world.deliver(signal(id, &next.waitpoints[0], "x")).await;
}

pub async fn a_closed_waitpoint_beside_a_pending_one_is_told_as_closed(world: &World) {
    let (task, a) = world.start_with("a").await;
    let id = task.execution_id;
    world.act(close(id, "a")).await;
    world.turns_away(signal(id, &a, "x"), Code::TargetNotSignalable).await;
    world.act(pending(&task, "b")).await;
    world.turns_away(signal(id, &a, "x"), Code::WaitpointClosed).await;
}

pub async fn a_held_or_delayed_execution_takes_signals(world: &World) {
    let (task, waitpoint) = world.start_with("k").await;
    let id = task.execution_id;
    world.act(delay(&task, 60_000)).await;
    world.deliver(signal(id, &waitpoint, "delayed")).await;
    world.act(hold(id)).await;
    world.deliver(signal(id, &waitpoint, "held")).await;
    assert_eq!(world.signals(id).await.len(), 2);
}
