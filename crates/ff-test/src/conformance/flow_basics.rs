//! Flows as records: made, tagged, listed, counted, and closed to claims.

use std::collections::BTreeSet;

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::id::{Authority, FlowId, Kind, Namespace};
use ff_core::operation::{
    CancelFlow, CreateFlow, FlowCreated, InFlow, Operation, ReplayFlow, SetFlowTags, Submit,
    SubmitFlow, WaitChildren,
};
use ff_core::read::{
    DescribeEdge, Eligibility, EvaluateEligibility, FlowFilter, FlowSnapshot, ListFlowEdges,
    ListFlowMembers, ListFlows,
};
use ff_core::state::{CancelPolicy, EdgeState, FlowState, PublicState};
use tokio::task::JoinSet;

use crate::graphs::{Drawn, create_flow, name};
use crate::world::{World, code, complete, revoke, tags};

/// More members than one step of a flow looks at.
const MANY: usize = 150;

fn set_tags(flow_id: FlowId, pairs: &[(&str, &str)]) -> SetFlowTags {
    SetFlowTags { flow_id, tags: tags(pairs), expected_revision: None }
}

async fn made(world: &World, kind: &str, pairs: &[(&str, &str)]) -> FlowId {
    let kind = Kind::new(kind).expect("a kind");
    let flow = CreateFlow { kind, tags: tags(pairs), ..create_flow() };
    let id = flow.flow_id;
    assert_eq!(world.act(flow).await, FlowCreated::Created);
    id
}

/// All flows that a filter finds, page by page.
async fn listed(world: &World, filter: &FlowFilter, limit: u32) -> Vec<FlowSnapshot> {
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let list = ListFlows { filter: filter.clone(), cursor, limit };
        let page = world.backend.ask(list).await.expect("a page");
        assert!(page.items.len() <= limit as usize);
        found.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return found;
        }
    }
}

/// A flow of members that wait for nothing.
async fn flat(world: &World, members: usize) -> Drawn {
    let names: Vec<String> = (0..members).map(|n| format!("m{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    world.submit_flow(world.draw(&names, &[])).await
}

/// Carries operations out at the same time.
async fn at_once<O: Operation + 'static>(world: &World, operations: impl Iterator<Item = O>) {
    let mut calls = JoinSet::new();
    for operation in operations {
        let backend = world.backend.clone();
        calls.spawn(async move { backend.call(operation).await.map(|_| ()) });
    }
    for outcome in calls.join_all().await {
        outcome.expect("an answer");
    }
}

pub async fn a_flow_is_made_once(world: &World) {
    let flow = CreateFlow { tags: tags(&[("team", "a")]), retention_ms: Some(5), ..create_flow() };
    assert!(world.find_flow(flow.flow_id).await.is_none());
    assert_eq!(world.act(flow.clone()).await, FlowCreated::Created);
    let found = world.flow(flow.flow_id).await;
    assert_eq!((found.state, found.node_count, found.edge_count), (FlowState::Open, 0, 0));
    assert_eq!((&found.kind, found.retention_ms), (&flow.kind, 5));
    assert_eq!((&found.tags, found.created_at), (&flow.tags, world.now().await));
    let again = CreateFlow { tags: tags(&[]), ..flow.clone() };
    assert_eq!(world.act(again).await, FlowCreated::AlreadySatisfied);
    assert_eq!(world.flow(flow.flow_id).await, found);
    assert_eq!(world.flow_history(flow.flow_id).await, [EventKind::FlowCreated]);
}

pub async fn tags_of_a_flow_are_merged(world: &World) {
    let id = made(world, "graph", &[("plain", "1"), ("a.b", "old")]).await;
    let set = world.act(set_tags(id, &[("a.b", "new"), ("a.c", "")])).await;
    assert_eq!((set.count, set.revision), (3, world.flow(id).await.revision));
    let expected = tags(&[("plain", "1"), ("a.b", "new"), ("a.c", "")]);
    assert_eq!(world.flow(id).await.tags, expected);
    assert_eq!(world.act(set_tags(id, &[("a.c", "")])).await, set);
    let made_and_tagged = [EventKind::FlowCreated, EventKind::FlowChanged];
    assert_eq!(world.flow_history(id).await, made_and_tagged);
    for (refused, expected) in [
        (set_tags(id, &[("nodot", "")]), Code::InvalidTagKey),
        (set_tags(id, &[]), Code::InvalidInput),
        (set_tags(FlowId::mint(), &[("a.b", "")]), Code::FlowNotFound),
    ] {
        assert_eq!(code(world.backend.call(refused).await), expected);
    }
    assert_eq!(world.flow(id).await.tags, expected);
}

pub async fn an_event_tells_what_its_flow_is(world: &World) {
    let id = made(world, "report", &[("team", "a")]).await;
    world.act(set_tags(id, &[("team.lead", "b")])).await;
    let log = world.log().await;
    let about = log.iter().map(|envelope| envelope.about.clone().expect("a flow"));
    for about in about {
        assert_eq!((about.flow_id, about.kind), (Some(id), Kind::new("report").ok()));
        assert_eq!(about.tags, tags(&[("team", "a"), ("team.lead", "b")]));
    }
    let seqs: Vec<_> = log.iter().map(|envelope| envelope.event.seq).collect();
    assert_eq!(seqs, [1, 2]);
    assert!(log.iter().all(|envelope| envelope.event.lane.is_none()));
}

pub async fn flows_are_listed_newest_first(world: &World) {
    let mut ids = Vec::new();
    for n in 0..25 {
        let kind = if n % 2 == 0 { "even" } else { "odd" };
        ids.push(made(world, kind, &[("n", &n.to_string())]).await);
        world.advance(1).await;
    }
    ids.reverse();
    let all = listed(world, &FlowFilter::default(), 7).await;
    assert_eq!(all.iter().map(|flow| flow.flow_id).collect::<Vec<_>>(), ids);
    let odd =
        FlowFilter { kinds: vec![Kind::new("odd").expect("a kind")], ..FlowFilter::default() };
    let odd = listed(world, &odd, 5).await;
    assert_eq!(odd.len(), 12);
    assert!(odd.is_sorted_by_key(|flow| std::cmp::Reverse(flow.created_at)));
    let one = FlowFilter { tags: vec![("n".to_owned(), "3".to_owned())], ..FlowFilter::default() };
    let one = listed(world, &one, 100).await;
    assert_eq!(one.iter().map(|flow| flow.flow_id).collect::<Vec<_>>(), [ids[21]]);
    let open = FlowFilter { states: vec![FlowState::Completed], ..FlowFilter::default() };
    assert!(listed(world, &open, 100).await.is_empty());
}

pub async fn flows_of_one_instant_are_each_listed_once(world: &World) {
    let mut ids = BTreeSet::new();
    for _ in 0..20 {
        ids.insert(made(world, "graph", &[]).await);
    }
    let found = listed(world, &FlowFilter::default(), 3).await;
    assert_eq!(found.len(), ids.len());
    assert_eq!(found.iter().map(|flow| flow.flow_id).collect::<BTreeSet<_>>(), ids);
}

pub async fn a_flow_counts_its_members_by_state(world: &World) {
    let drawn = flat(world, 5).await;
    let counts = world.flow(drawn.flow_id).await.counts;
    assert_eq!((counts.of(PublicState::Waiting), counts.started), (5, 0));
    let tasks = world.claim(3).await;
    let flow = world.flow(drawn.flow_id).await;
    assert_eq!(flow.state, FlowState::Running);
    assert_eq!((flow.counts.of(PublicState::Active), flow.counts.started), (3, 3));
    assert_eq!(flow.counts.of(PublicState::Waiting), 2);
    world.complete(&tasks[0]).await.expect("a completion");
    world.fail(&tasks[1], "permanent").await.expect("a failure");
    world.act(revoke(tasks[2].execution_id)).await;
    let counts = world.flow(drawn.flow_id).await.counts;
    let of =
        [PublicState::Completed, PublicState::Failed, PublicState::Active].map(|s| counts.of(s));
    assert_eq!((of, counts.started), ([1, 1, 0], 3));
}

pub async fn many_at_once_end_the_members_of_one_flow(world: &World) {
    let drawn = flat(world, 60).await;
    let tasks = world.claim(60).await;
    assert_eq!(tasks.len(), 60);
    at_once(world, tasks.iter().map(complete)).await;
    let flow = world.flow(drawn.flow_id).await;
    assert_eq!(flow.state, FlowState::Completed);
    assert_eq!((flow.counts.of(PublicState::Completed), flow.counts.started), (60, 60));
    let ended = world.flow_history(drawn.flow_id).await;
    assert_eq!(ended.iter().filter(|kind| **kind == EventKind::FlowCompleted).count(), 1);
}

pub async fn many_at_once_join_one_flow(world: &World) {
    let drawn = flat(world, 1).await;
    let joining = (0..40).map(|_| {
        let within = Some(InFlow { flow_id: drawn.flow_id, name: None });
        Submit { within, ..world.member_of(drawn.flow_id) }
    });
    at_once(world, joining).await;
    let flow = world.flow(drawn.flow_id).await;
    assert_eq!((flow.node_count, flow.counts.of(PublicState::Waiting)), (41, 41));
}

pub async fn a_member_is_of_the_flows_namespace(world: &World) {
    let drawn = flat(world, 1).await;
    let within = Some(InFlow { flow_id: drawn.flow_id, name: None });
    let namespace = Namespace::new("other").expect("a name");
    let stranger = Submit { within, namespace, ..world.member_of(drawn.flow_id) };
    world.refuses(stranger, Code::FlowNotFound).await;
    assert_eq!(world.flow(drawn.flow_id).await.node_count, 1);
}

pub async fn a_cancelled_flow_lets_no_member_be_claimed(world: &World) {
    let drawn = flat(world, MANY).await;
    world.advance(10).await;
    let outside = world.submit(world.work()).await;
    world.act(drawn.cancel(CancelPolicy::CancelAll)).await;
    // Most members are not cancelled yet: they stand before the one that may be claimed.
    assert_eq!(world.claim_ids(10).await, [outside]);
    world.settle().await;
    let flow = world.flow(drawn.flow_id).await;
    assert_eq!(flow.state, FlowState::Cancelled);
    assert_eq!(flow.counts.of(PublicState::Cancelled), MANY as u32);
}

pub async fn a_member_that_waited_for_children_goes_on(world: &World) {
    let drawn = flat(world, 4).await;
    let parent = world.take(&drawn, "m0").await;
    let children = ["m1", "m2", "m3"].map(|name| drawn.id(name));
    let waiting = WaitChildren {
        execution_id: parent.execution_id,
        authority: Authority::Fence(parent.fence()),
        children: Some(children.to_vec()),
    };
    assert_eq!(world.act(waiting).await.unresolved, 3);
    let tasks = world.claim(10).await;
    assert_eq!(tasks.len(), 3);
    at_once(world, tasks.iter().map(complete)).await;
    world.settle().await;
    let counts = world.flow(drawn.flow_id).await.counts;
    assert_eq!((counts.of(PublicState::Resumable), counts.of(PublicState::Completed)), (1, 3));
    let resumed = world.claim_one().await;
    assert_eq!((resumed.execution_id, resumed.extras.inputs.len()), (parent.execution_id, 3));
    let counts = world.flow(drawn.flow_id).await.counts;
    assert_eq!((counts.of(PublicState::Active), counts.of(PublicState::Resumable)), (1, 0));
    assert_eq!(counts.started, 4);
    world.complete(&resumed).await.expect("a completion");
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn a_graph_is_shown_in_pages(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &["a>b", "a>c", "b>c"])).await;
    let flow_id = drawn.flow_id;
    let (mut names, mut from) = (Vec::new(), Some(0));
    while let Some(number) = from {
        let page = ListFlowMembers { flow_id, from: number, limit: 2 };
        let page = world.backend.ask(page).await.expect("a page");
        names.extend(page.items.into_iter().filter_map(|member| member.name));
        from = page.next;
    }
    assert_eq!(names, ["a", "b", "c"].map(name));
    world.run(&drawn, "a").await;
    let (mut edges, mut from) = (Vec::new(), Some((0, 0)));
    while let Some(place) = from {
        let page = ListFlowEdges { flow_id, from: place, limit: 2 };
        let page = world.backend.ask(page).await.expect("a page");
        edges.extend(page.items);
        from = page.next;
    }
    let states: Vec<_> = edges.iter().map(|edge| edge.state).collect();
    assert_eq!(states, [EdgeState::Satisfied, EdgeState::Satisfied, EdgeState::Pending]);
    let described = DescribeEdge { flow_id, edge_id: edges[2].edge_id };
    assert_eq!(world.backend.ask(described).await.expect("an edge"), edges[2]);
    for (name, expected) in [
        ("a", Eligibility::Terminal),
        ("b", Eligibility::Eligible),
        ("c", Eligibility::BlockedByDependencies),
    ] {
        let asked = EvaluateEligibility { flow_id, execution_id: drawn.id(name) };
        assert_eq!(world.backend.ask(asked).await.expect("an answer"), expected, "{name}");
    }
}

pub async fn a_flow_that_failed_is_replayed(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &["a>b", "b>c"])).await;
    world.break_down(&drawn, "a").await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Failed);
    world.act(ReplayFlow { flow_id: drawn.flow_id, members: None }).await;
    world.settle().await;
    let flow = world.flow(drawn.flow_id).await;
    assert_eq!(flow.counts.of(PublicState::Waiting), 1);
    assert_eq!(flow.counts.of(PublicState::WaitingChildren), 2);
    for name in ["a", "b", "c"] {
        let task = world.claim_one().await;
        assert_eq!(task.execution_id, drawn.id(name));
        world.complete(&task).await.expect("a completion");
        world.settle().await;
    }
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn a_flow_goes_with_all_its_members(world: &World) {
    let drawn = flat(world, MANY).await;
    loop {
        let tasks = world.claim(50).await;
        if tasks.is_empty() {
            break;
        }
        at_once(world, tasks.iter().map(complete)).await;
    }
    world.settle().await;
    let flow = world.flow(drawn.flow_id).await;
    assert_eq!(flow.state, FlowState::Completed);
    world.pass(flow.retention_ms.cast_signed() - 1).await;
    assert!(world.find_flow(drawn.flow_id).await.is_some());
    world.pass(1).await;
    assert!(world.find_flow(drawn.flow_id).await.is_none());
    for name in ["m0", "m77", "m149"] {
        assert!(world.find(drawn.id(name)).await.is_none());
    }
    assert!(listed(world, &FlowFilter::default(), 10).await.is_empty());
}

pub async fn a_cancelled_flow_without_members_goes(world: &World) {
    let flow = create_flow();
    world.act(flow.clone()).await;
    let (flow_id, policy) = (flow.flow_id, CancelPolicy::CancelAll);
    world.act(CancelFlow { flow_id, policy, reason: String::new() }).await;
    assert_eq!(world.flow_state(flow_id).await, FlowState::Cancelled);
    world.pass(90_000_000).await;
    assert!(world.find_flow(flow_id).await.is_none());
}

pub async fn a_graph_that_is_refused_leaves_nothing(world: &World) {
    let drawing = world.draw(&["a", "b"], &["a>b", "b>a"]);
    let submit: SubmitFlow = drawing.submit;
    let id = submit.flow.flow_id;
    assert!(world.backend.call(submit).await.is_err());
    assert!(world.find_flow(id).await.is_none());
    assert!(world.claim(10).await.is_empty());
    assert!(world.log().await.is_empty());
}
