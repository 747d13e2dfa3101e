//! Waitpoint tokens: which one opens a waitpoint, for how long, and how it is made again.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::event::{Detail, EventKind};
use ff_core::id::{ExecutionId, WaitpointId};
use ff_core::limits;
use ff_core::operation::{
    Binding, CreatePendingWaitpoint, DeliverSignal, IssueToken, IssuedWaitpoint, Remint, Task,
    WaitpointRef,
};
use ff_core::token::WaitpointToken;
use uuid::Uuid;

use crate::signalling::{
    close, issue, keyed, pending, remint, signal, suspend, suspend_on, waitpoint_key,
};
use crate::world::World;

fn parts(token: &WaitpointToken) -> [&str; 3] {
    let parts: Vec<_> = token.expose().split(':').collect();
    parts.try_into().unwrap()
}

fn parsed(text: &str) -> Result<WaitpointToken, Code> {
    WaitpointToken::parse(text).map_err(|refusal| refusal.code)
}

/// A signal that shows another token than the waitpoint's.
fn showing(id: ExecutionId, to: &IssuedWaitpoint, token: WaitpointToken) -> DeliverSignal {
    DeliverSignal { token: Some(token), ..signal(id, to, "x") }
}

/// A pending waitpoint whose token lives so long.
async fn short_lived(world: &World, task: &Task, key: &str, ttl_ms: u64) -> IssuedWaitpoint {
    world.act(CreatePendingWaitpoint { token_ttl_ms: Some(ttl_ms), ..pending(task, key) }).await
}

pub async fn a_token_is_kid_expiry_and_signature(world: &World) {
    let (task, endless) = world.start_with("endless").await;
    let short = short_lived(world, &task, "short", 5_000).await;
    let until = world.now().await.after(5_000).to_string();
    for (token, expiry) in [(&endless.token, "0"), (&short.token, until.as_str())] {
        let [kid, said, signature] = parts(token);
        assert_eq!((kid, said, signature.len()), ("k1", expiry, 64));
        assert!(signature.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')));
        for shown in [format!("{token}"), format!("{token:?}"), format!("{short:?}")] {
            assert!(!shown.contains(signature), "{shown}");
        }
    }
    assert_ne!(parts(&endless.token)[2], parts(&short.token)[2]);
}

pub async fn a_token_with_any_character_changed_is_refused(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    let waitpoint = short_lived(world, &task, "k", 60_000).await;
    let text = waitpoint.token.expose();
    let before = world.shown(id).await;
    for place in 0..text.len() {
        for other in ["0", "f"] {
            let mut changed = text.to_owned();
            changed.replace_range(place..=place, other);
            if changed == text {
                continue;
            }
            let refused = match parsed(&changed) {
                Ok(token) => world.backend.call(showing(id, &waitpoint, token)).await,
                Err(code) => {
                    assert_eq!(code, Code::InvalidToken);
                    continue;
                }
            };
            let error = refused.expect_err("a changed token");
            assert_eq!(error.code(), Code::InvalidToken, "{place} {other}");
            assert!(!format!("{error:?} {error}").contains(&text[20..]), "{error:?}");
        }
    }
    assert_eq!(world.shown(id).await, before);
    world.deliver(signal(id, &waitpoint, "the right one")).await;
}

pub async fn a_text_of_another_form_is_no_token(world: &World) {
    let (_, waitpoint) = world.start_with("k").await;
    let text = waitpoint.token.expose();
    let [kid, expiry, signature] = parts(&waitpoint.token);
    let mut texts = vec![
        format!("{signature}:{expiry}:{kid}"),
        format!("{kid}:{signature}:{expiry}"),
        format!("{kid}:{expiry}:{}", signature.to_uppercase()),
        format!("{kid}:+{expiry}:{signature}"),
        format!("{kid}:00:{signature}"),
        format!("{kid}::{signature}"),
        format!(":{expiry}:{signature}"),
        format!("{text} "),
        format!("{text}:"),
    ];
    texts.extend((0..text.len()).map(|end| text[..end].to_owned()));
    for text in texts {
        assert_eq!(parsed(&text).unwrap_err(), Code::InvalidToken, "{text}");
    }
}

pub async fn parts_of_different_tokens_do_not_make_one(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    let a = short_lived(world, &task, "a", 1_000).await;
    let b = short_lived(world, &task, "b", 2_000).await;
    let [kid, expiry_a, signature_a] = parts(&a.token);
    let [_, expiry_b, signature_b] = parts(&b.token);
    for (expiry, signature) in
        [(expiry_a, signature_b), (expiry_b, signature_a), ("0", signature_a), ("0", signature_b)]
    {
        let mixed = parsed(&format!("{kid}:{expiry}:{signature}")).unwrap();
        for waitpoint in [&a, &b] {
            let mixed = showing(id, waitpoint, mixed.clone());
            world.turns_away(mixed, Code::InvalidToken).await;
        }
    }
}

pub async fn a_token_opens_its_own_waitpoint_only(world: &World) {
    let (task, a) = world.start_with("a").await;
    let id = task.execution_id;
    let b = world.act(pending(&task, "b")).await;
    // The same waitpoint id and key in another execution.
    let (other, _) = world.start_with("elsewhere").await;
    let same = CreatePendingWaitpoint { waitpoint_id: a.waitpoint_id, ..pending(&other, "a") };
    let foreign = world.act(same).await;
    assert_eq!((foreign.waitpoint_id, &foreign.key), (a.waitpoint_id, &a.key));
    for (id, waitpoint, token) in [
        (id, &a, &b.token),
        (id, &b, &a.token),
        (id, &a, &foreign.token),
        (other.execution_id, &foreign, &a.token),
    ] {
        let wrong = showing(id, waitpoint, token.clone());
        world.turns_away(wrong.clone(), Code::InvalidToken).await;
        let by_key = WaitpointRef::Key(waitpoint.key.clone());
        world.turns_away(DeliverSignal { waitpoint: by_key, ..wrong }, Code::InvalidToken).await;
    }
    world.deliver(signal(id, &a, "x")).await;
    world.deliver(signal(other.execution_id, &foreign, "x")).await;
}

pub async fn without_a_token_no_signal_is_delivered(world: &World) {
    let (task, waitpoint) = world.listening("k").await;
    let bare = DeliverSignal { token: None, ..signal(task.execution_id, &waitpoint, "x") };
    world.turns_away(bare.clone(), Code::MissingToken).await;
    let unknown = DeliverSignal { waitpoint: keyed("unknown"), ..bare };
    world.turns_away(unknown, Code::MissingToken).await;
}

pub async fn an_unknown_waitpoint_or_kid_looks_like_a_wrong_token(world: &World) {
    let (task, a) = world.start_with("a").await;
    let id = task.execution_id;
    let b = world.act(pending(&task, "b")).await;
    let right = signal(id, &a, "x");
    let [_, expiry, signature] = parts(&a.token);
    let unknown_kid = parsed(&format!("k9:{expiry}:{signature}")).unwrap();
    let by_id = WaitpointRef::Id(WaitpointId::mint());
    let mut errors = Vec::new();
    for wrong in [
        showing(id, &a, b.token),
        showing(id, &a, unknown_kid),
        DeliverSignal { waitpoint: keyed("unknown"), ..right.clone() },
        DeliverSignal { waitpoint: by_id, ..right },
    ] {
        world.turns_away(wrong.clone(), Code::InvalidToken).await;
        errors.push(world.backend.call(wrong).await.unwrap_err());
    }
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
}

pub async fn a_token_lives_for_its_time(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    let early = short_lived(world, &task, "early", 5_000).await;
    let fresh = Binding::Fresh {
        waitpoint_id: WaitpointId::mint(),
        key: waitpoint_key("late"),
        token_ttl_ms: Some(6_000),
    };
    let until = suspend(&task, "late").condition;
    let suspended = world.act(suspend_on(&task, vec![fresh], until)).await;
    let late = &suspended.waitpoints[0];
    world.advance(4_999).await;
    world.deliver(signal(id, &early, "x")).await;
    world.advance(1).await;
    world.turns_away(signal(id, &early, "x"), Code::TokenExpired).await;
    world.advance(999).await;
    world.turns_away(issue(id, "early"), Code::TokenExpired).await;
    world.advance(1).await;
    world.turns_away(signal(id, late, "x"), Code::TokenExpired).await;
    let anew = world.act(remint(id, "late")).await;
    world.deliver(signal(id, &anew, "x")).await;
}

pub async fn issuing_signs_the_same_token_again(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    let first = short_lived(world, &task, "k", 60_000).await;
    world.advance(10).await;
    let by_id = WaitpointRef::Id(first.waitpoint_id);
    for waitpoint in [keyed("k"), by_id] {
        let again = IssueToken { execution_id: id, waitpoint, remint: None };
        assert_eq!(world.act(again).await, first);
    }
    let event = world.events(id).await.pop().unwrap();
    assert_eq!((event.kind, event.data.len()), (EventKind::TokenIssued, 2));
    let name = first.waitpoint_id.to_string();
    assert_eq!(event.data["waitpoint_id"], Detail::from(name.as_str()));
    world.act(remint(id, "k")).await;
    let reminted = world.told(id, EventKind::TokenIssued, "reminted").await;
    assert_eq!(reminted, [0, 0, 1].map(|n: u32| Detail::from(n)));
}

pub async fn a_reminted_token_replaces_the_one_before(world: &World) {
    let (task, first) = world.listening("k").await;
    let id = task.execution_id;
    let second = world.act(remint(id, "k")).await;
    let third = world.act(remint(id, "k")).await;
    assert_eq!(world.act(issue(id, "k")).await, third);
    for old in [&first, &second] {
        assert_eq!((old.waitpoint_id, &old.key), (third.waitpoint_id, &third.key));
        world.turns_away(signal(id, old, "x"), Code::InvalidToken).await;
    }
    let ttl = Remint { token_ttl_ms: Some(1_000) };
    let fourth = world.act(IssueToken { remint: Some(ttl), ..issue(id, "k") }).await;
    let until = world.now().await.after(1_000).to_string();
    assert_eq!(parts(&fourth.token)[1], until);
    world.turns_away(signal(id, &third, "x"), Code::InvalidToken).await;
    world.deliver(signal(id, &fourth, "x")).await;
    // Closed by the resume: its last token is still told from a wrong one.
    world.turns_away(signal(id, &third, "x"), Code::InvalidToken).await;
    world.turns_away(signal(id, &fourth, "x"), Code::TargetNotSignalable).await;
}

pub async fn a_closed_or_unknown_waitpoint_has_no_token(world: &World) {
    let (task, _) = world.start_with("k").await;
    let id = task.execution_id;
    world.act(pending(&task, "other")).await;
    world.act(close(id, "k")).await;
    for ask in [issue(id, "k"), remint(id, "k")] {
        world.turns_away(ask, Code::WaitpointClosed).await;
    }
    let (_, theirs) = world.start_with("theirs").await;
    for waitpoint in [keyed("unknown"), keyed("theirs"), WaitpointRef::Id(theirs.waitpoint_id)] {
        for ask in [issue(id, "k"), remint(id, "k")] {
            let unknown = IssueToken { waitpoint: waitpoint.clone(), ..ask };
            world.turns_away(unknown, Code::WaitpointNotFound).await;
        }
    }
    world.complete(&task).await.unwrap();
    world.turns_away(issue(id, "other"), Code::WaitpointClosed).await;
    let nobody = ExecutionId::solo(Uuid::now_v7(), &world.backend.settings().partitions);
    world.refuses(issue(nobody, "k"), Code::ExecutionNotFound).await;
}

pub async fn the_time_of_a_new_token_has_a_range(world: &World) {
    let (task, _) = world.start_with("k").await;
    let ttl = |ms| IssueToken {
        remint: Some(Remint { token_ttl_ms: Some(ms) }),
        ..issue(task.execution_id, "k")
    };
    for ms in [0, limits::DURATION_MAX_MS + 1, u64::MAX] {
        world.turns_away(ttl(ms), Code::InvalidInput).await;
    }
    for ms in [1, limits::DURATION_MAX_MS] {
        world.act(ttl(ms)).await;
    }
}
