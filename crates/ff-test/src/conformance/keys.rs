//! API keys: made, listed, taken away.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::id::{KeyId, LaneId};
use ff_core::operation::{CreateKey, DeleteKey, KeyCreated, Settled};
use ff_core::read::{GetKey, ListKeys};
use ff_core::state::{Access, ApiKey, Scope, SecretHash};
use ff_core::time::TimestampMs;

use crate::world::{World, code, lane, namespace};

pub(super) fn key(id: &str) -> CreateKey {
    let (namespaces, lanes) = (Some(vec![namespace("a")]), Some(vec![lane("mail")]));
    let scopes = vec![Scope::ExecutionsRead, Scope::ExecutionsWrite];
    CreateKey {
        key_id: KeyId::new(id).expect("a key id"),
        name: "reporting".to_owned(),
        secret: SecretHash([7; 32]),
        access: Access { scopes, namespaces, lanes },
        expires_at: Some(TimestampMs(4_000_000_000_000)),
    }
}

async fn get(world: &World, id: &str) -> Option<Box<ApiKey>> {
    let key_id = KeyId::new(id).expect("a key id");
    world.backend.ask(GetKey { key_id }).await.expect("an answer")
}

pub async fn a_key_is_what_it_was_made_as(world: &World) {
    assert_eq!(get(world, "abcdefgh").await, None);
    let made = key("abcdefgh");
    assert_eq!(world.act(made.clone()).await, KeyCreated::Created);
    let found = get(world, "abcdefgh").await.expect("a key");
    assert_eq!((&found.name, found.secret, &found.access), (&made.name, made.secret, &made.access));
    assert_eq!((found.expires_at, found.created_at), (made.expires_at, world.now().await));
    assert!(!found.is_over(TimestampMs(3_999_999_999_999)));
    assert!(found.is_over(TimestampMs(4_000_000_000_000)));
}

pub async fn made_again_it_is_the_same_or_another(world: &World) {
    world.act(key("abcdefgh")).await;
    world.advance(10).await;
    assert_eq!(world.act(key("abcdefgh")).await, KeyCreated::AlreadySatisfied);
    let other = CreateKey { secret: SecretHash([8; 32]), ..key("abcdefgh") };
    assert_eq!(code(world.backend.call(other).await), Code::IdempotencyMismatch);
    assert_eq!(get(world, "abcdefgh").await.expect("a key").secret, SecretHash([7; 32]));
}

pub async fn a_key_that_is_taken_away_is_gone(world: &World) {
    world.act(key("abcdefgh")).await;
    let delete = DeleteKey { key_id: KeyId::new("abcdefgh").expect("a key id") };
    assert_eq!(world.act(delete.clone()).await, Settled::Done);
    assert_eq!(get(world, "abcdefgh").await, None);
    assert_eq!(code(world.backend.call(delete).await), Code::KeyNotFound);
    assert_eq!(world.act(key("abcdefgh")).await, KeyCreated::Created, "its id is free");
}

pub async fn keys_are_listed_newest_first_in_pages(world: &World) {
    let ids = ["aaaaaaaa", "bbbbbbbb", "cccccccc"];
    for id in ids {
        world.act(key(id)).await;
        world.advance(1).await;
    }
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page =
            world.backend.ask(ListKeys { within: None, cursor, limit: 2 }).await.expect("a page");
        found.extend(page.items.into_iter().map(|key| key.key_id.to_string()));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(found, ["cccccccc", "bbbbbbbb", "aaaaaaaa"]);
    world.act(CreateKey { access: Access::all(), ..key("dddddddd") }).await;
    let within = |access: Access| async move {
        let question = ListKeys { within: Some(access), cursor: None, limit: 50 };
        world.backend.ask(question).await.expect("a page").items.len()
    };
    assert_eq!(within(Access::all()).await, 4);
    assert_eq!(within(key("any12345").access).await, 3, "the key of everything is more than that");
}

pub async fn a_malformed_key_is_refused(world: &World) {
    let made = key("abcdefgh");
    let access = |change: &dyn Fn(&mut Access)| {
        let mut access = made.access.clone();
        change(&mut access);
        CreateKey { access, ..made.clone() }
    };
    let lanes =
        |count: usize| Some((0..count).map(|n| lane(&n.to_string())).collect::<Vec<LaneId>>());
    for bad in [
        CreateKey { name: String::new(), ..made.clone() },
        CreateKey { name: "a\nb".to_owned(), ..made.clone() },
        CreateKey { name: "x".repeat(257), ..made.clone() },
        CreateKey { expires_at: Some(TimestampMs(-1)), ..made.clone() },
        access(&|access| access.scopes.clear()),
        access(&|access| access.scopes.reverse()),
        access(&|access| access.scopes = vec![Scope::Admin, Scope::Admin]),
        access(&|access| access.namespaces = Some(Vec::new())),
        access(&|access| access.lanes = lanes(0)),
        access(&|access| access.lanes = lanes(65)),
    ] {
        let shown = format!("{bad:?}");
        assert_eq!(code(world.backend.call(bad).await), Code::InvalidInput, "{shown}");
    }
    for text in ["", "abcdefg", "ABCDEFGH", "abcdefg_", &"a".repeat(33)] {
        assert!(KeyId::new(text).is_err(), "{text}");
    }
    assert_eq!(get(world, "abcdefgh").await, None, "nothing was made");
}
