//! The keys that sign waitpoint tokens: seeded once, rotated, listed without secrets.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::id::Kid;
use ff_core::limits;
use ff_core::operation::{IssuedWaitpoint, RotateSecret, Rotated, SeedSecret, Settled, Trim};
use ff_core::read::{Kids, ListKids};
use ff_core::time::TimestampMs;
use ff_core::token::{KidInfo, Secret};

use crate::signalling::{issue, pending, remint, rotate, secret_of, signal};
use crate::stages;
use crate::world::{World, code};

fn kid(text: &str) -> Kid {
    Kid::new(text).unwrap()
}

async fn kids(world: &World) -> Kids {
    world.backend.ask(ListKids).await.unwrap()
}

/// The kids in their order, with the instants until which they are accepted.
async fn listed(world: &World) -> Vec<(String, Option<TimestampMs>)> {
    let kids = kids(world).await;
    assert_eq!(kids.kids[0], KidInfo { kid: kids.current_kid, accepted_until: None });
    kids.kids.into_iter().map(|info| (info.kid.to_string(), info.accepted_until)).collect()
}

pub async fn a_store_is_seeded_once(world: &World) {
    let seed = |name: &str, secret: Secret| SeedSecret { kid: kid(name), secret };
    let before = kids(world).await;
    assert_eq!(listed(world).await, [("k1".to_owned(), None)]);
    assert_eq!(world.act(seed("k1", stages::secret())).await, Settled::AlreadySatisfied);
    for other in [seed("k1", secret_of(1)), seed("k2", stages::secret()), seed("k2", secret_of(1))]
    {
        assert_eq!(code(world.backend.call(other).await), Code::RotationConflict);
    }
    assert_eq!(kids(world).await, before);
}

pub async fn new_tokens_carry_the_new_kid(world: &World) {
    let (task, old) = world.start_with("old").await;
    let id = task.execution_id;
    let rotated = world.act(rotate("k2", 2, 5_000)).await;
    assert_eq!(rotated, Rotated { current_kid: kid("k2"), rotated: true });
    let new = world.act(pending(&task, "new")).await;
    assert_eq!((old.token.kid(), new.token.kid()), (&kid("k1"), &kid("k2")));
    let shown: Vec<_> = world.waitpoints(id).await.into_iter().map(|w| w.kid).collect();
    assert_eq!(shown, [kid("k1"), kid("k2")]);
    world.deliver(signal(id, &old, "x")).await;
    world.deliver(signal(id, &new, "x")).await;
    // Signed again with the key that signed first; anew with the one that signs today.
    assert_eq!(world.act(issue(id, "old")).await, old);
    assert_eq!(world.act(remint(id, "old")).await.token.kid(), &kid("k2"));
}

pub async fn old_tokens_are_accepted_for_the_grace_and_no_longer(world: &World) {
    let (task, old) = world.start_with("k").await;
    let id = task.execution_id;
    world.act(rotate("k2", 2, 5_000)).await;
    world.advance(4_999).await;
    world.deliver(signal(id, &old, "x")).await;
    world.advance(1).await;
    world.turns_away(signal(id, &old, "x"), Code::InvalidToken).await;
    world.advance(1).await;
    world.turns_away(signal(id, &old, "x"), Code::InvalidToken).await;
}

pub async fn without_a_grace_old_tokens_are_refused_at_once(world: &World) {
    let (task, old) = world.start_with("k").await;
    let id = task.execution_id;
    world.act(rotate("k2", 2, 0)).await;
    world.turns_away(signal(id, &old, "x"), Code::InvalidToken).await;
    let new = world.act(remint(id, "k")).await;
    world.deliver(signal(id, &new, "x")).await;
}

pub async fn every_retired_kid_has_its_own_time(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    let first = world.act(pending(&task, "first")).await;
    world.act(rotate("k2", 2, 3_000)).await;
    let second = world.act(pending(&task, "second")).await;
    world.act(rotate("k3", 3, 1_000)).await;
    let now = world.now().await;
    let retired = |name: &str, ms| (name.to_owned(), Some(now.after(ms)));
    let expected = [("k3".to_owned(), None), retired("k2", 1_000), retired("k1", 3_000)];
    assert_eq!(listed(world).await, expected);
    world.advance(999).await;
    world.deliver(signal(id, &second, "x")).await;
    world.advance(1).await;
    world.turns_away(signal(id, &second, "x"), Code::InvalidToken).await;
    world.deliver(signal(id, &first, "x")).await;
    world.advance(2_000).await;
    world.turns_away(signal(id, &first, "x"), Code::InvalidToken).await;
}

pub async fn a_repeated_rotation_changes_nothing(world: &World) {
    let began = RotateSecret { kid: kid("k1"), secret: stages::secret(), grace_ms: 0 };
    assert_eq!(world.act(began).await, Rotated { current_kid: kid("k1"), rotated: false });
    world.act(rotate("k2", 2, 5_000)).await;
    let before = kids(world).await;
    world.advance(10).await;
    for grace_ms in [5_000, 0, 60_000] {
        let again = world.act(rotate("k2", 2, grace_ms)).await;
        assert_eq!(again, Rotated { current_kid: kid("k2"), rotated: false });
    }
    assert_eq!(kids(world).await, before);
}

pub async fn a_kid_keeps_its_secret(world: &World) {
    world.act(rotate("k2", 2, 5_000)).await;
    let before = kids(world).await;
    for other in [rotate("k2", 3, 0), rotate("k1", 3, 0), rotate("k1", 7, 0)] {
        assert_eq!(code(world.backend.call(other).await), Code::RotationConflict);
    }
    assert_eq!(kids(world).await, before);
}

pub async fn the_grace_has_a_range(world: &World) {
    let before = kids(world).await;
    for grace_ms in [limits::GRACE_MAX_MS + 1, u64::MAX] {
        let refused = world.backend.call(rotate("k2", 2, grace_ms)).await;
        assert_eq!(code(refused), Code::InvalidGraceMs);
    }
    assert_eq!((kids(world).await, limits::GRACE_MAX_MS), (before, 1 << 53));
    let (task, old) = world.start_with("k").await;
    world.act(rotate("k2", 2, limits::GRACE_MAX_MS)).await;
    world.deliver(signal(task.execution_id, &old, "x")).await;
}

pub async fn a_kid_and_a_secret_have_their_form(world: &World) {
    for text in ["", "a:b", "a b", "ä", &"k".repeat(limits::KID_BYTES + 1)] {
        assert_eq!(Kid::parse(text).unwrap_err().code, Code::InvalidKid, "{text}");
    }
    let hex = |bytes: usize| "5a".repeat(bytes);
    let (short, long) = (hex(limits::SECRET_BYTES_MIN - 1), hex(limits::SECRET_BYTES_MAX + 1));
    for text in ["", "xyz", &short, &long, &format!("{}5", hex(32)), &format!("{}5g", hex(32))] {
        assert_eq!(Secret::from_hex(text).unwrap_err().code, Code::InvalidSecretHex, "{text}");
    }
    let longest = "k".repeat(limits::KID_BYTES);
    for (name, bytes) in [("_-9", limits::SECRET_BYTES_MIN), (&longest, limits::SECRET_BYTES_MAX)] {
        let secret = Secret::from_hex(&hex(bytes)).unwrap();
        let rotation = RotateSecret { kid: kid(name), secret, grace_ms: 0 };
        world.act(rotation).await;
        let (task, issued) = world.start_with("k").await;
        assert_eq!(issued.token.kid().as_str(), name);
        world.deliver(signal(task.execution_id, &issued, "x")).await;
    }
}

pub async fn kids_are_listed_without_secrets(world: &World) {
    let text = "a secret of exactly 32 bytes ...";
    let secret = Secret::from_bytes(text.as_bytes().to_vec()).unwrap();
    let rotation = RotateSecret { kid: kid("k2"), secret, grace_ms: 10 };
    let said =
        format!("{rotation:?} {:?} {:?}", world.act(rotation.clone()).await, kids(world).await);
    let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    let bytes = format!("{:?}", text.as_bytes());
    for form in [text, &hex, &bytes[1..bytes.len() - 1]] {
        assert!(!said.contains(form), "{said}");
    }
}

pub async fn a_token_whose_key_is_gone_is_not_signed_again(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    let create = pending(&task, "k");
    let old = world.act(create.clone()).await;
    world.act(rotate("k2", 2, 5_000)).await;
    world.advance(4_999).await;
    assert_eq!(world.act(issue(id, "k")).await, old);
    let again = IssuedWaitpoint { replayed: true, ..old };
    assert_eq!(world.leaves_alone(create.clone()).await, again);
    world.advance(1).await;
    world.turns_away(issue(id, "k"), Code::TokenExpired).await;
    world.turns_away(create, Code::TokenExpired).await;
    let new = world.act(remint(id, "k")).await;
    world.deliver(signal(id, &new, "x")).await;
}

pub async fn a_retired_kid_is_removed_by_a_rotation_after_its_time(world: &World) {
    world.act(rotate("k2", 2, 1_000)).await;
    world.act(rotate("k3", 3, 5_000)).await;
    world.advance(1_000).await;
    world.act(rotate("k4", 4, 5_000)).await;
    let names: Vec<_> = listed(world).await.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["k4", "k3", "k2"]);
}

pub async fn two_rotations_at_once_follow_one_another(world: &World) {
    let (task, old) = world.start_with("k").await;
    let (a, b) = (rotate("a", 2, 60_000), rotate("b", 3, 60_000));
    let (a, b) = tokio::join!(world.backend.call(a), world.backend.call(b));
    assert!(a.unwrap().rotated && b.unwrap().rotated);
    let mut names: Vec<_> = listed(world).await.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.pop().as_deref(), Some("k1"), "the oldest comes last");
    names.sort();
    assert_eq!(names, ["a", "b"]);
    world.deliver(signal(task.execution_id, &old, "x")).await;
}

pub async fn retention_removes_a_retired_kid_after_its_time(world: &World) {
    world.act(rotate("k2", 2, 1_000)).await;
    let trim = Trim { events_before: TimestampMs(0), event_bytes: u64::MAX, most: 10 };
    world.advance(999).await;
    world.backend.trim(trim.clone()).await.unwrap();
    assert_eq!(listed(world).await.len(), 2);
    world.advance(1).await;
    world.backend.trim(trim).await.unwrap();
    assert_eq!(listed(world).await, [("k2".to_owned(), None)]);
}
