//! Changes on condition: only of what the caller has seen, whatever the store.

use ff_core::backend::BackendExt as _;
use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::id::Namespace;
use ff_core::limits;
use ff_core::operation::{
    Command, QuotaChange, SetFlowTags, SetLane, SetNamespace, SetTags, UpdateBudget,
    UpdateQuotaPolicy,
};
use ff_core::policy::Retention;
use ff_core::read::{DescribeNamespace, ListFlowEvents, NamespaceSnapshot};
use ff_core::state::LaneState;

use crate::fleet::{set_lane, set_namespace};
use crate::graphs::create_flow;
use crate::limits::{budget, cap, limits_of, rate, usage};
use crate::world::{World, code, set_tags, tags};

/// A revision that nothing has.
const FAR: Option<u64> = Some(1_000_000);

async fn namespace(world: &World) -> NamespaceSnapshot {
    let question = DescribeNamespace { namespace: Namespace::default() };
    *world.backend.ask(question).await.expect("an answer")
}

/// The operation is refused with this code.
async fn refused(world: &World, operation: impl Into<Command>, expected: Code) {
    let refused = world.command(operation.into()).await;
    assert_eq!(code(refused), expected);
}

pub async fn tags_of_an_execution_on_condition(world: &World) {
    let id = world.submit(world.work()).await;
    let seen = world.describe(id).await.revision;
    let set =
        |value, expected_revision| SetTags { expected_revision, ..set_tags(id, &[("a.b", value)]) };
    world.refuses(set("far", FAR), Code::PreconditionFailed).await;
    let first = world.act(set("1", Some(seen))).await;
    assert_eq!(first.revision, world.describe(id).await.revision);
    world.refuses(set("2", Some(seen)), Code::PreconditionFailed).await;
    world.refuses(set("1", Some(seen)), Code::PreconditionFailed).await;
    assert_eq!(world.describe(id).await.tags.get("a.b"), Some("1"));
    world.act(set("2", Some(first.revision))).await;
    assert_eq!(world.describe(id).await.tags.get("a.b"), Some("2"));
}

pub async fn tags_of_a_flow_on_condition(world: &World) {
    let flow = create_flow();
    let flow_id = flow.flow_id;
    world.act(flow).await;
    let seen = world.flow(flow_id).await.revision;
    let set = |value, expected_revision| {
        let tags = tags(&[("a.b", value)]);
        SetFlowTags { flow_id, tags, expected_revision }
    };
    refused(world, set("far", FAR), Code::PreconditionFailed).await;
    let first = world.act(set("1", Some(seen))).await;
    assert_eq!(first.revision, world.flow(flow_id).await.revision);
    refused(world, set("2", Some(seen)), Code::PreconditionFailed).await;
    assert_eq!(world.flow(flow_id).await.tags.get("a.b"), Some("1"));
}

pub async fn a_budget_changes_on_condition(world: &World) {
    let id = world.budget(budget(&[("tokens", 10, 0)])).await;
    let seen = world.status(id).await.expect("a budget").revision;
    let raise = |hard, expected_revision| UpdateBudget {
        dimensions: limits_of(&[("tokens", hard, 0)]),
        expected_revision,
        ..UpdateBudget::new(id)
    };
    refused(world, raise(20, FAR), Code::PreconditionFailed).await;
    world.act(usage(id, &[("tokens", 3)])).await;
    world.act(raise(20, Some(seen))).await;
    refused(world, raise(30, Some(seen)), Code::PreconditionFailed).await;
    let status = world.status(id).await.expect("a budget");
    assert!(status.dimensions.values().all(|counter| counter.limits.hard == 20));
    assert!(status.revision > seen);
}

pub async fn a_quota_policy_changes_in_part_and_on_condition(world: &World) {
    let id = world.quota(rate(6, 60)).await;
    let seen = world.describe_quota(id).await.policy;
    let change = |max_concurrent, expected_revision| UpdateQuotaPolicy {
        quota_policy_id: id,
        change: QuotaChange { max_concurrent: Some(max_concurrent), ..QuotaChange::default() },
        expected_revision,
    };
    refused(world, change(2, FAR), Code::PreconditionFailed).await;
    world.admit(id).await;
    world.act(change(2, Some(seen.revision))).await;
    refused(world, change(3, Some(seen.revision)), Code::PreconditionFailed).await;
    let now = world.describe_quota(id).await.policy;
    assert_eq!(now.spec.max_concurrent, 2);
    assert_eq!(now.spec.max_requests_per_window, seen.spec.max_requests_per_window);
    // What is left of the spec must be sound as well.
    let no_window = QuotaChange { window_seconds: Some(0), ..QuotaChange::default() };
    let update = UpdateQuotaPolicy { change: no_window, ..UpdateQuotaPolicy::new(id, cap(1)) };
    refused(world, update, Code::InvalidQuotaSpec).await;
}

pub async fn a_lane_changes_on_condition(world: &World) {
    let set = |state, expected_revision| SetLane { expected_revision, ..set_lane("work", state) };
    assert_eq!(world.lane("work").await.revision, 0, "nobody has said anything of it");
    refused(world, set(LaneState::Paused, FAR), Code::PreconditionFailed).await;
    let first = world.act(set(LaneState::Paused, Some(0))).await;
    refused(world, set(LaneState::Active, Some(0)), Code::PreconditionFailed).await;
    assert_eq!(world.lane("work").await.state, LaneState::Paused);
    world.act(set(LaneState::Active, Some(first.revision))).await;
}

pub async fn a_namespace_changes_on_condition(world: &World) {
    let kept = |ms| Some(Retention { success_ms: Some(ms), ..Retention::default() });
    let set = |ms, expected_revision| SetNamespace {
        retention: kept(ms),
        expected_revision,
        ..set_namespace()
    };
    assert_eq!(namespace(world).await.revision, 0, "nobody has said anything of it");
    refused(world, set(1_000, FAR), Code::PreconditionFailed).await;
    let first = world.act(set(1_000, Some(0))).await;
    refused(world, set(2_000, Some(0)), Code::PreconditionFailed).await;
    let now = namespace(world).await;
    assert_eq!((now.record, now.revision), (first.record, first.revision));
    assert_eq!(now.revision, 1);
}

pub async fn events_of_a_flow_come_in_pages(world: &World) {
    let flow = create_flow();
    let flow_id = flow.flow_id;
    let question = |after_seq, limit| ListFlowEvents { flow_id, after_seq, limit };
    let unknown = world.backend.ask(question(0, 1)).await.unwrap_err();
    assert_eq!(unknown.code(), Code::FlowNotFound);
    world.act(flow).await;
    for value in ["1", "2", "3"] {
        let tags = tags(&[("a.b", value)]);
        world.act(SetFlowTags { flow_id, tags, expected_revision: None }).await;
    }
    let all = world.backend.ask(question(0, limits::PAGE_MAX)).await.expect("events");
    let kinds: Vec<EventKind> = all.items.iter().map(|item| item.event.kind).collect();
    assert_eq!(kinds, world.flow_history(flow_id).await);
    assert_eq!((kinds.len(), all.next, all.gap), (4, None, false));
    let about = all.items[0].about.as_ref().expect("it is still there");
    assert_eq!(about.flow_id, Some(flow_id));
    let page = world.backend.ask(question(1, 2)).await.expect("events");
    let seqs: Vec<u64> = page.items.iter().map(|item| item.event.seq).collect();
    assert_eq!((seqs, page.next, page.gap), (vec![2, 3], Some(3), false));
    let rest = world.backend.ask(question(3, 2)).await.expect("events");
    assert_eq!((rest.items.len(), rest.next), (1, None));
}
