//! Signals: what is kept of them, in which order, and what they may say.

use bytes::Bytes;
use ff_core::backend::BackendExt;
use ff_core::content::Content;
use ff_core::error::Code;
use ff_core::event::{Detail, EventKind};
use ff_core::id::{ContentType, ExecutionId};
use ff_core::limits;
use ff_core::operation::{Delete, DeliverSignal, IssuedWaitpoint, Message, Replay, Signalled};
use ff_core::read::ListSignals;
use ff_core::state::SignalEffect;
use uuid::Uuid;

use crate::signalling::{
    keyed, message, pending, signal, signal_key, signal_name, signal_once, suspend,
};
use crate::world::{World, code};

/// A signal with this message.
fn saying(id: ExecutionId, to: &IssuedWaitpoint, message: Message) -> DeliverSignal {
    DeliverSignal { signal: message, ..signal(id, to, "x") }
}

fn body(bytes: impl Into<Bytes>) -> Message {
    Message { content: Content::new(bytes), ..message("x") }
}

/// A page of signals: their numbers, and where the next one begins.
async fn page(world: &World, id: ExecutionId, from: u32, limit: u32) -> (Vec<u32>, Option<u32>) {
    let page = world.backend.ask(ListSignals { execution_id: id, from, limit }).await.unwrap();
    (page.items.iter().map(|listed| listed.number).collect(), page.next)
}

pub async fn a_signal_is_kept_as_it_was_sent(world: &World) {
    let (task, waitpoint) = world.start_with("k").await;
    let id = task.execution_id;
    world.advance(17).await;
    let sent = Message {
        category: "kategorie ä".to_owned(),
        source_type: "webhook".to_owned(),
        source_identity: "https://example.com/?a=b".to_owned(),
        content: Content {
            content_type: ContentType::new("text/plain; charset=utf-8").unwrap(),
            bytes: Bytes::from_static(b"it is done"),
        },
        correlation_id: Some("order 66".to_owned()),
        idempotency_key: signal_key("first"),
        ..message("done")
    };
    let reply = world.act(saying(id, &waitpoint, sent.clone())).await;
    let effect = SignalEffect::BufferedForPendingWaitpoint;
    assert_eq!(reply, Signalled::Accepted { signal_id: sent.signal_id, effect });
    let [listed] = world.signals(id).await.try_into().unwrap();
    assert_eq!((listed.number, listed.effect), (0, effect));
    assert_eq!(
        (listed.waitpoint_id, &listed.waitpoint_key),
        (waitpoint.waitpoint_id, &waitpoint.key)
    );
    let kept = listed.signal;
    assert_eq!((kept.signal_id, kept.name), (sent.signal_id, sent.name));
    assert_eq!((kept.category, kept.correlation_id), (sent.category, sent.correlation_id));
    assert_eq!((kept.source_type, kept.source_identity), (sent.source_type, sent.source_identity));
    assert_eq!((kept.accepted_at, kept.bytes), (world.now().await, 10));
    let content = Content { content_type: kept.content_type, bytes: kept.payload.unwrap() };
    assert_eq!(content, sent.content);
}

pub async fn bodies_come_back_byte_for_byte(world: &World) {
    let (task, waitpoint) = world.start_with("k").await;
    let every_byte: Vec<u8> = (0..=255).collect();
    let bodies = [
        Vec::new(),
        vec![0],
        b"\r\n$-1\r\n*0\r\n\0'\"".to_vec(),
        every_byte.clone(),
        [every_byte.as_slice(), &[255]].concat(),
        every_byte.repeat(limits::SIGNAL_PAYLOAD_BYTES / 256),
    ];
    for bytes in &bodies {
        world.deliver(saying(task.execution_id, &waitpoint, body(bytes.clone()))).await;
    }
    let signals = world.signals(task.execution_id).await;
    assert_eq!(signals.len(), bodies.len());
    for (listed, sent) in signals.iter().zip(&bodies) {
        let kept = &listed.signal;
        assert_eq!(kept.bytes as usize, sent.len());
        assert!(kept.payload.as_deref() == Some(sent), "{} bytes differ", sent.len());
        assert_eq!(kept.content_type.as_str(), "application/octet-stream");
    }
}

pub async fn signals_are_numbered_in_their_order(world: &World) {
    let (task, a) = world.start_with("a").await;
    let id = task.execution_id;
    let b = world.act(pending(&task, "b")).await;
    assert_eq!(page(world, id, 0, 1).await, (vec![], None));
    for (n, waitpoint) in [&a, &b, &b, &a, &b, &a, &a].into_iter().enumerate() {
        world.deliver(signal(id, waitpoint, &format!("s{n}"))).await;
    }
    assert_eq!(world.describe(id).await.signal_count, 7);
    let names: Vec<_> = world.signals(id).await.into_iter().map(|s| s.signal.name).collect();
    assert_eq!(names, [0, 1, 2, 3, 4, 5, 6].map(|n| signal_name(&format!("s{n}"))));
    for size in 1..=8 {
        let (mut seen, mut from) = (Vec::new(), Some(0));
        while let Some(next) = from {
            let (numbers, then) = page(world, id, next, size).await;
            assert!(numbers.len() <= size as usize);
            seen.extend(numbers);
            from = then;
        }
        assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6], "pages of {size}");
    }
    assert_eq!(page(world, id, 7, 1).await, (vec![], None));
    assert_eq!(page(world, id, u32::MAX, limits::PAGE_MAX).await, (vec![], None));
}

pub async fn a_list_of_signals_has_its_limits(world: &World) {
    let (task, _) = world.start_with("k").await;
    let list = |execution_id, limit| ListSignals { execution_id, from: 0, limit };
    for limit in [0, limits::PAGE_MAX + 1] {
        let refused = world.backend.ask(list(task.execution_id, limit)).await;
        assert_eq!(code(refused), Code::InvalidInput);
    }
    let nobody = ExecutionId::solo(Uuid::now_v7(), &world.backend.settings().partitions);
    assert_eq!(code(world.backend.ask(list(nobody, 1)).await), Code::ExecutionNotFound);
}

pub async fn a_waitpoint_is_named_by_its_id_or_by_its_key(world: &World) {
    let (task, a) = world.start_with("a").await;
    let id = task.execution_id;
    world.act(pending(&task, "b")).await;
    world.deliver(signal(id, &a, "by id")).await;
    world.deliver(DeliverSignal { waitpoint: keyed("a"), ..signal(id, &a, "by key") }).await;
    let keys = world.signals(id).await.into_iter().map(|listed| listed.waitpoint_key);
    assert_eq!(keys.collect::<Vec<_>>(), [a.key.clone(), a.key]);
}

pub async fn names_that_begin_with_two_underscores_are_reserved(world: &World) {
    let (task, waitpoint) = world.start_with("k").await;
    for name in ["__", "__timeout__", "__x"] {
        let reserved = signal(task.execution_id, &waitpoint, name);
        world.turns_away(reserved, Code::InvalidInput).await;
    }
    for name in ["_", "_x", "x__", " __"] {
        world.deliver(signal(task.execution_id, &waitpoint, name)).await;
    }
}

pub async fn what_a_signal_says_has_limits(world: &World) {
    let (task, waitpoint) = world.start_with("k").await;
    let id = task.execution_id;
    let most = limits::CATEGORY_BYTES;
    let texts = |bytes: usize| {
        let text = || "x".repeat(bytes);
        [
            Message { category: text(), ..message("x") },
            Message { source_type: text(), ..message("x") },
            Message { source_identity: text(), ..message("x") },
            Message { correlation_id: Some(text()), ..message("x") },
        ]
    };
    for over in texts(most + 1) {
        world.turns_away(saying(id, &waitpoint, over), Code::InvalidInput).await;
    }
    let large = vec![7; limits::SIGNAL_PAYLOAD_BYTES + 1];
    world.turns_away(saying(id, &waitpoint, body(large)), Code::PayloadTooLarge).await;
    for border in texts(most).into_iter().chain(texts(0)) {
        world.deliver(saying(id, &waitpoint, border)).await;
    }
    let longest = Message {
        idempotency_key: signal_key(&"k".repeat(limits::IDEMPOTENCY_KEY_BYTES)),
        content: Content {
            content_type: ContentType::new("t".repeat(limits::CONTENT_TYPE_BYTES)).unwrap(),
            bytes: vec![7; limits::SIGNAL_PAYLOAD_BYTES].into(),
        },
        ..message(&"n".repeat(limits::SIGNAL_NAME_BYTES))
    };
    world.deliver(saying(id, &waitpoint, longest)).await;
    assert_eq!(limits::SIGNAL_PAYLOAD_BYTES, 256 * 1024);
}

pub async fn an_accepted_signal_is_one_event_without_its_payload(world: &World) {
    let (task, waitpoint) = world.listening("k").await;
    let id = task.execution_id;
    let sent = Message { content: Content::new(b"confidential".as_slice()), ..message("go") };
    let signal_id = sent.signal_id.to_string();
    world.deliver(saying(id, &waitpoint, sent)).await;
    let events = world.events(id).await;
    let accepted: Vec<_> =
        events.iter().filter(|event| event.kind == EventKind::SignalAccepted).collect();
    let [event] = accepted.as_slice() else { panic!("{accepted:?}") };
    let told = [
        ("effect", "resume_condition_satisfied"),
        ("name", "go"),
        ("signal_id", &signal_id),
        ("waitpoint_key", "k"),
    ];
    let told = told.map(|(name, text)| (name.to_owned(), Detail::from(text)));
    assert_eq!(event.data.clone().into_iter().collect::<Vec<_>>(), told);
    assert_eq!((&event.subject, event.attempt_index), (&id.into(), Some(0)));
    assert!(!format!("{:?}", world.log().await).contains("confidential"));
    use EventKind::{Claimed, Resumed, SignalAccepted, Submitted, Suspended};
    use EventKind::{WaitpointClosed, WaitpointCreated};
    assert_eq!(
        world.history(id).await,
        [Submitted, Claimed, WaitpointCreated, Suspended, SignalAccepted, WaitpointClosed, Resumed]
    );
}

pub async fn the_policy_limits_signals(world: &World) {
    let policy = r#"{"max_signals_per_execution":2}"#;
    let task = world.start(world.work_with(policy)).await;
    let id = task.execution_id;
    let a = world.act(pending(&task, "a")).await;
    let b = world.act(pending(&task, "b")).await;
    world.deliver(signal_once(id, &a, "first")).await;
    world.deliver(signal(id, &b, "x")).await;
    for waitpoint in [&a, &b] {
        world.turns_away(signal(id, waitpoint, "x"), Code::SignalLimitExceeded).await;
    }
    let again = world.leaves_alone(signal_once(id, &a, "first")).await;
    assert!(matches!(again, Signalled::Duplicate { .. }), "{again:?}");
    let none = world.start(world.work_with(r#"{"max_signals_per_execution":0}"#)).await;
    let deaf = world.act(pending(&none, "k")).await;
    world.turns_away(signal(none.execution_id, &deaf, "x"), Code::SignalLimitExceeded).await;
}

pub async fn signals_are_kept_with_their_execution(world: &World) {
    let (task, waitpoint) = world.listening("k").await;
    let id = task.execution_id;
    world.deliver(signal(id, &waitpoint, "first")).await;
    let kept = world.signals(id).await;
    let resumed = world.claim_one().await;
    world.complete(&resumed).await.unwrap();
    assert_eq!(world.signals(id).await, kept);
    world.act(Replay { execution_id: id, descendants: false }).await;
    let replayed = world.claim_one().await;
    assert_eq!(world.signals(id).await, kept);
    let suspended = world.act(suspend(&replayed, "k")).await;
    world.deliver(signal(id, &suspended.waitpoints[0], "second")).await;
    let numbers: Vec<_> = world.signals(id).await.iter().map(|listed| listed.number).collect();
    assert_eq!(numbers, [0, 1]);
    world.complete(&world.claim_one().await).await.unwrap();
    world.act(Delete { execution_id: id }).await;
    let gone = world.backend.ask(ListSignals { execution_id: id, from: 0, limit: 1 }).await;
    assert_eq!(code(gone), Code::ExecutionNotFound);
}

pub async fn the_next_execution_of_a_removed_id_has_none_of_its_signals(world: &World) {
    let submit = world.work();
    let task = world.start(submit.clone()).await;
    let id = task.execution_id;
    let old = world.act(pending(&task, "k")).await;
    world.deliver(signal_once(id, &old, "once")).await;
    world.deliver(saying(id, &old, body(vec![7; 1_000]))).await;
    world.complete(&task).await.unwrap();
    world.act(Delete { execution_id: id }).await;
    let task = world.start(submit).await;
    assert_eq!((world.signals(id).await, world.describe(id).await.signal_count), (vec![], 0));
    let new = world.act(pending(&task, "k")).await;
    world.turns_away(signal(id, &old, "x"), Code::InvalidToken).await;
    let reply = world.act(signal_once(id, &new, "once")).await;
    assert!(matches!(reply, Signalled::Accepted { .. }), "{reply:?}");
}
