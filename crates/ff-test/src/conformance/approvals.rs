//! An operator's yes or no: a signal without a token.

use ff_core::error::Code;
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::operation::{
    Decision, DeliverApproval, DeliverSignal, Message, Signalled, Suffix, WaitpointRef,
};
use ff_core::state::{PublicState, SignalEffect};
use uuid::Uuid;

use crate::signalling::{
    approval, close, keyed, message, pending, signal, signal_key, signal_name,
};
use crate::world::{World, lane};

/// JSON of the two fields in either order.
fn is_payload(payload: &[u8], decision: &str, comment: &str) -> bool {
    let payload = std::str::from_utf8(payload).unwrap();
    let (decision, comment) =
        (format!(r#""decision":"{decision}""#), format!(r#""comment":{comment}"#));
    payload == format!("{{{decision},{comment}}}") || payload == format!("{{{comment},{decision}}}")
}

pub async fn a_decision_is_a_signal_of_the_operator(world: &World) {
    for (decision, name, word, comment, shown) in [
        (Decision::Approve, "approved", "approve", None, "null"),
        (Decision::Deny, "denied", "deny", Some("no \"way\"\n ä"), r#""no \"way\"\n ä""#),
        (Decision::Approve, "approved", "approve", Some(""), r#""""#),
    ] {
        let (task, waitpoint) = world.listening("k").await;
        let id = task.execution_id;
        let comment = comment.map(str::to_owned);
        let decide = DeliverApproval { decision, comment, ..approval(id, "k") };
        let effect = SignalEffect::ResumeConditionSatisfied;
        let accepted = Signalled::Accepted { signal_id: decide.signal_id, effect };
        assert_eq!(world.act(decide.clone()).await, accepted);
        assert_eq!(world.public_state(id).await, PublicState::Resumable);
        let [listed] = world.signals(id).await.try_into().unwrap();
        assert_eq!((listed.waitpoint_id, listed.effect), (waitpoint.waitpoint_id, effect));
        let kept = listed.signal;
        assert_eq!((kept.signal_id, kept.name.as_str()), (decide.signal_id, name));
        assert_eq!((kept.category.as_str(), kept.correlation_id.as_deref()), ("approval", None));
        assert_eq!(
            (kept.source_type.as_str(), kept.source_identity.as_str()),
            ("operator", "grace")
        );
        assert_eq!(kept.content_type.as_str(), "application/json");
        assert!(is_payload(kept.payload.as_ref().unwrap(), word, shown), "{kept:?}");
        let resumed = world.claim_one().await;
        assert_eq!(resumed.extras.resume_signals, [kept]);
    }
}

pub async fn a_waitpoint_is_named_by_its_id_or_by_its_key(world: &World) {
    let (task, waitpoint) = world.start_with("k").await;
    let id = task.execution_id;
    let by_id = WaitpointRef::Id(waitpoint.waitpoint_id);
    for (waitpoint, suffix) in [(keyed("k"), "1"), (by_id, "2")] {
        let suffix = Suffix::Text(suffix.to_owned());
        world.act(DeliverApproval { waitpoint, suffix, ..approval(id, "k") }).await;
    }
    assert_eq!(world.signals(id).await.len(), 2);
}

pub async fn a_repeated_decision_is_a_duplicate(world: &World) {
    let (task, waitpoint) = world.start_with("k").await;
    let id = task.execution_id;
    let Signalled::Accepted { signal_id, effect } = world.act(approval(id, "k")).await else {
        panic!("not accepted");
    };
    let first = Signalled::Duplicate { signal_id, effect };
    let with = |name: Option<&str>, suffix: Option<&str>| DeliverApproval {
        name: name.map(signal_name),
        suffix: suffix.map_or_else(Suffix::default, |text| Suffix::Text(text.to_owned())),
        ..approval(id, "k")
    };
    let commented = DeliverApproval { comment: Some("again".to_owned()), ..approval(id, "k") };
    let denied = DeliverApproval { decision: Decision::Deny, ..with(Some("approved"), None) };
    for again in [approval(id, "k"), commented, with(Some("approved"), Some("0")), denied] {
        assert_eq!(world.leaves_alone(again).await, first);
    }
    // Its key is that of any other signal of the execution.
    let keyed = |key: &str| DeliverSignal {
        signal: Message { idempotency_key: signal_key(key), ..message("x") },
        ..signal(id, &waitpoint, "x")
    };
    assert_eq!(world.leaves_alone(keyed("approval:approved:0")).await, first);
    let deny = DeliverApproval { decision: Decision::Deny, ..approval(id, "k") };
    for other in [with(None, Some("1")), with(Some("signed off"), None), deny] {
        let reply = world.act(other.clone()).await;
        assert!(matches!(reply, Signalled::Accepted { .. }), "{other:?}: {reply:?}");
    }
    for key in ["approval:approved:1", "approval:signed off:0", "approval:denied:0"] {
        let reply = world.leaves_alone(keyed(key)).await;
        assert!(matches!(reply, Signalled::Duplicate { .. }), "{key}: {reply:?}");
    }
}

pub async fn the_lane_must_match_if_it_is_given(world: &World) {
    let (task, _) = world.start_with("k").await;
    let on =
        |name: &str| DeliverApproval { lane: Some(lane(name)), ..approval(task.execution_id, "k") };
    world.turns_away(on("elsewhere"), Code::LaneMismatch).await;
    let unknown = DeliverApproval { waitpoint: keyed("unknown"), ..on("elsewhere") };
    world.turns_away(unknown, Code::LaneMismatch).await;
    world.act(on("work")).await;
}

pub async fn an_unknown_waitpoint_is_not_found(world: &World) {
    let (task, _) = world.start_with("k").await;
    let (_, theirs) = world.start_with("theirs").await;
    let id = task.execution_id;
    for waitpoint in [keyed("unknown"), keyed("theirs"), WaitpointRef::Id(theirs.waitpoint_id)] {
        let wrong = DeliverApproval { waitpoint, ..approval(id, "k") };
        world.turns_away(wrong, Code::WaitpointNotFound).await;
    }
    let nobody = ExecutionId::solo(Uuid::now_v7(), &world.backend.settings().partitions);
    world.refuses(approval(nobody, "k"), Code::ExecutionNotFound).await;
}

pub async fn what_takes_no_signal_takes_no_decision(world: &World) {
    let task = world.start(world.work_with(r#"{"max_signals_per_execution":1}"#)).await;
    let id = task.execution_id;
    world.act(pending(&task, "a")).await;
    world.act(pending(&task, "b")).await;
    world.act(close(id, "a")).await;
    world.turns_away(approval(id, "a"), Code::WaitpointClosed).await;
    world.act(approval(id, "b")).await;
    let second = DeliverApproval { suffix: Suffix::Text("1".to_owned()), ..approval(id, "b") };
    world.turns_away(second.clone(), Code::SignalLimitExceeded).await;
    world.complete(&task).await.unwrap();
    world.turns_away(second, Code::TargetNotSignalable).await;
    let again = world.leaves_alone(approval(id, "b")).await;
    assert!(matches!(again, Signalled::Duplicate { .. }), "{again:?}");
}

pub async fn what_a_decision_says_has_limits(world: &World) {
    let (task, _) = world.start_with("k").await;
    let id = task.execution_id;
    let text = |bytes: usize| "x".repeat(bytes);
    let comment = |bytes| DeliverApproval { comment: Some(text(bytes)), ..approval(id, "k") };
    let operator = |bytes| DeliverApproval {
        operator: text(bytes),
        suffix: Suffix::Text("o".to_owned()),
        ..approval(id, "k")
    };
    let room = limits::IDEMPOTENCY_KEY_BYTES - "approval:approved:".len();
    let suffix = |bytes| DeliverApproval { suffix: Suffix::Text(text(bytes)), ..approval(id, "k") };
    let reserved = DeliverApproval { name: Some(signal_name("__approved")), ..approval(id, "k") };
    for over in [
        comment(limits::REASON_BYTES + 1),
        operator(limits::CATEGORY_BYTES + 1),
        suffix(room + 1),
        reserved,
    ] {
        world.turns_away(over, Code::InvalidInput).await;
    }
    for border in [comment(limits::REASON_BYTES), operator(limits::CATEGORY_BYTES), suffix(room)] {
        world.act(border).await;
    }
}
