//! Idempotency keys, and ids that a caller gives.

use std::sync::Arc;

use ff_core::content::Content;
use ff_core::error::Code;
use ff_core::id::{ExecutionId, Kind};
use ff_core::limits;
use ff_core::operation::{Delete, Submit, Submitted};
use ff_core::policy::Policy;
use ff_core::state::PublicState;
use uuid::Uuid;

use crate::world::{World, cancel, lane, namespace, policy, tags};

fn duplicate(execution_id: ExecutionId, public_state: PublicState) -> Submitted {
    Submitted::Duplicate { execution_id, public_state: Some(public_state) }
}

/// Submits that say other work than `submit` under the same name.
fn other_content(submit: &Submit) -> Vec<Submit> {
    let json = Content::json(submit.payload.bytes.clone());
    vec![
        Submit { lane: lane("another"), ..submit.clone() },
        Submit { kind: Kind::new("another").unwrap(), ..submit.clone() },
        Submit { payload: Content::new(b"another".as_slice()), ..submit.clone() },
        Submit { payload: json, ..submit.clone() },
        Submit { policy: policy(r#"{"max_replay_count":1}"#), ..submit.clone() },
    ]
}

pub async fn the_same_key_and_content_is_a_duplicate_in_its_state_now(world: &World) {
    let first = world.work_keyed("k");
    let id = world.submit(first.clone()).await;
    let again = || world.work_keyed("k");
    assert_eq!(world.act(again()).await, duplicate(id, PublicState::Waiting));
    let task = world.claim_one().await;
    assert_eq!(world.act(again()).await, duplicate(id, PublicState::Active));
    world.complete(&task).await.unwrap();
    let before = world.describe(id).await;
    assert_eq!(world.act(again()).await, duplicate(id, PublicState::Completed));
    assert_eq!(world.describe(id).await, before);
}

pub async fn the_same_key_and_other_content_is_a_mismatch(world: &World) {
    let first = world.work_keyed("k");
    world.submit(first.clone()).await;
    for other in other_content(&first) {
        let execution_id = ExecutionId::new(other.execution_id.partition(), Uuid::now_v7());
        world.refuses(Submit { execution_id, ..other }, Code::IdempotencyMismatch).await;
    }
    assert_eq!(world.claim_ids(10).await, [first.execution_id]);
}

pub async fn what_is_not_content_may_differ(world: &World) {
    let id = world.submit(world.work_keyed("k")).await;
    let later = world.now().await.after(1_000);
    let again = Submit {
        priority: 9,
        creator_identity: "somebody else".to_owned(),
        tags: tags(&[("a", "b")]),
        delay_until: Some(later),
        execution_deadline_at: Some(later),
        held: true,
        trace_context: Some("trace".to_owned()),
        ..world.work_keyed("k")
    };
    assert_eq!(world.act(again).await, duplicate(id, PublicState::Waiting));
    assert_eq!(world.describe(id).await.priority, 0);
}

pub async fn a_policy_with_its_defaults_written_out_is_the_same_content(world: &World) {
    let id = world.submit(world.work_keyed("k")).await;
    for json in ["{}", r#"{"max_replay_count":10,"retry_policy":{"max_retries":3}}"#] {
        let again = Submit { policy: policy(json), ..world.work_keyed("k") };
        assert_eq!(world.act(again).await, duplicate(id, PublicState::Waiting), "{json}");
    }
}

pub async fn a_key_is_free_again_when_its_window_is_over(world: &World) {
    let day = limits::DEDUP_WINDOW_MS;
    for (window, key) in [(None, "default"), (Some(limits::DEDUP_WINDOW_MIN_MS), "short")] {
        let asked = Policy { dedup_window_ms: window.unwrap_or(day), ..Policy::default() };
        let keyed = || Submit { policy: Arc::new(asked.clone()), ..world.work_keyed(key) };
        let first = world.submit(keyed()).await;
        let length = window.unwrap_or(day).cast_signed();
        world.advance(length - 1).await;
        // A repetition does not move the window, which counts from the first submit.
        assert_eq!(world.act(keyed()).await, duplicate(first, PublicState::Waiting), "{key}");
        world.advance(1).await;
        let next = keyed();
        assert_eq!(world.submit(next.clone()).await, next.execution_id, "{key}");
    }
}

pub async fn a_key_outlives_its_execution(world: &World) {
    let task = world.finish(world.work_keyed("k")).await;
    world.act(Delete { execution_id: task.execution_id }).await;
    let gone = Submitted::Duplicate { execution_id: task.execution_id, public_state: None };
    assert_eq!(world.act(world.work_keyed("k")).await, gone);
    let other = Submit { kind: Kind::new("another").unwrap(), ..world.work_keyed("k") };
    world.refuses(other, Code::IdempotencyMismatch).await;
}

pub async fn keys_of_different_namespaces_are_apart(world: &World) {
    let here = world.submit(world.work_keyed("k")).await;
    let there = world.submit(world.keyed_in(namespace("elsewhere"), "k")).await;
    assert_ne!(here, there);
    let again = world.act(world.keyed_in(namespace("elsewhere"), "k")).await;
    assert_eq!(again, duplicate(there, PublicState::Waiting));
}

pub async fn a_key_must_stand_on_its_own_partition(world: &World) {
    let submit = world.work_keyed("k");
    let count = world.backend.settings().partitions.flow;
    let elsewhere = (submit.execution_id.partition() + 1) % count;
    let execution_id = ExecutionId::new(elsewhere, Uuid::now_v7());
    world.refuses(Submit { execution_id, ..submit }, Code::InvalidInput).await;
}

pub async fn the_same_id_and_content_is_a_duplicate_for_ever(world: &World) {
    let retention = r#"{"retention":{"cancelled_ms":315360000000}}"#;
    let submit = world.work_with(retention);
    let id = world.submit(submit.clone()).await;
    assert_eq!(world.act(submit.clone()).await, duplicate(id, PublicState::Waiting));
    world.act(cancel(id)).await;
    world.pass(limits::DEDUP_WINDOW_MAX_MS.cast_signed() + 1).await;
    assert_eq!(world.act(submit).await, duplicate(id, PublicState::Cancelled));
}

pub async fn the_same_id_and_other_content_is_a_mismatch(world: &World) {
    let submit = world.work();
    world.submit(submit.clone()).await;
    for other in other_content(&submit) {
        world.refuses(other, Code::IdempotencyMismatch).await;
    }
    let elsewhere = Submit { namespace: namespace("elsewhere"), ..submit };
    world.refuses(elsewhere, Code::IdempotencyMismatch).await;
}

pub async fn a_removed_id_is_free_again(world: &World) {
    let submit = world.work();
    let task = world.finish(submit.clone()).await;
    world.act(Delete { execution_id: task.execution_id }).await;
    let other = Submit { kind: Kind::new("another").unwrap(), ..submit };
    let id = world.submit(other).await;
    let record = world.describe(id).await;
    assert_eq!((record.kind.as_str(), record.lease_epoch), ("another", 0));
    assert_eq!(world.attempts(id).await, []);
}
