//! Tags written to an existing execution.

use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::limits;
use ff_core::operation::{Submit, TagsSet};
use ff_core::tags::Tags;

use crate::world::{World, set_tags, tags};

pub async fn tags_are_put_over_the_ones_that_are_there(world: &World) {
    let submit = Submit { tags: tags(&[("plain", "1"), ("a.b", "old")]), ..world.work() };
    let id = world.submit(submit).await;
    let set = world.act(set_tags(id, &[("a.b", "new"), ("a.c", "")])).await;
    assert_eq!(set.count, 3);
    let expected = tags(&[("plain", "1"), ("a.b", "new"), ("a.c", "")]);
    assert_eq!(world.describe(id).await.tags, expected);
    assert_eq!(world.claim_one().await.tags, expected);
    assert_eq!(world.history(id).await[1], EventKind::Tagged);
}

pub async fn the_same_tags_again_change_nothing(world: &World) {
    let id = world.submit(world.work()).await;
    let set = || set_tags(id, &[("a.b", "c")]);
    let first = world.act(set()).await;
    let before = world.describe(id).await;
    assert_eq!(first, TagsSet { count: 1, revision: before.revision });
    assert_eq!(world.act(set()).await, first);
    assert_eq!(world.describe(id).await, before);
}

pub async fn an_execution_in_any_phase_takes_tags(world: &World) {
    let running = world.start(world.work()).await;
    let done = world.finish(world.work()).await;
    for id in [running.execution_id, done.execution_id] {
        let state = world.describe(id).await.state;
        world.act(set_tags(id, &[("ops.note", "seen")])).await;
        let record = world.describe(id).await;
        assert_eq!((record.tags, record.state), (tags(&[("ops.note", "seen")]), state));
    }
    world.complete(&running).await.unwrap();
}

pub async fn a_key_must_have_the_form_caller_dot_field(world: &World) {
    let id = world.submit(world.work()).await;
    for key in ["a", "a.", ".b", "A.b", "1a.b", "_a.b", "a.B", "a-b.c", "a..b", "a.b c", "ä.b"] {
        world.refuses(set_tags(id, &[("ok.ok", ""), (key, "")]), Code::InvalidTagKey).await;
    }
    for key in ["a.b", "billing.cost_centre", "a1_.0.x", "a.b.", "a._"] {
        world.act(set_tags(id, &[(key, "v")])).await;
        assert_eq!(world.describe(id).await.tags.get(key), Some("v"), "{key}");
    }
}

pub async fn no_tags_are_no_write(world: &World) {
    let id = world.submit(world.work()).await;
    world.refuses(set_tags(id, &[]), Code::InvalidInput).await;
}

pub async fn tags_are_limited_in_all(world: &World) {
    let pairs = |count: usize| {
        let pairs = (0..count).map(|n| (format!("a.t{n}"), "x".repeat(limits::TAG_VALUE_BYTES)));
        Tags::new(pairs)
    };
    let full = pairs(limits::TAGS).unwrap();
    let id = world.submit(Submit { tags: full.clone(), ..world.work() }).await;
    world.refuses(set_tags(id, &[("one.more", "")]), Code::InvalidInput).await;
    let over = set_tags(id, &[("a.t0", "changed")]);
    assert_eq!(world.act(over).await.count, limits::TAGS);
    assert_eq!(pairs(limits::TAGS + 1).unwrap_err().code, Code::InvalidInput);
}

pub async fn malformed_tags_are_refused(_world: &World) {
    let long_key = "k".repeat(limits::TAG_KEY_BYTES + 1);
    let long_value = "v".repeat(limits::TAG_VALUE_BYTES + 1);
    for (key, value) in [("", "v"), ("a\nb", "v"), (&long_key, "v"), ("k", &long_value)] {
        let refusal = Tags::new([(key.to_owned(), value.to_owned())]).unwrap_err();
        assert_eq!(refusal.code, Code::InvalidInput, "{key:?}");
    }
}
