//! The state of a flow: what its members say, in the same step.

use std::collections::BTreeSet;
use std::time::Duration;

use ff_core::backend::BackendExt;
use ff_core::event::EventKind;
use ff_core::operation::{
    AddToFlow, Cancel, FlowReplayed, InFlow, Release, Replay, ReplayFlow, SetFlowTags, Submit,
};
use ff_core::read::{Cause, EventFilter, Filter, FlowFilter, Follow, From, ListFlows};
use ff_core::state::{BlockingReason, CancelPolicy, EdgeKind, FlowState, PublicState};

use crate::fleet::block;
use crate::graphs::{FLOW_EVENTS, create_flow};
use crate::waits::{suspend, wildcard};
use crate::world::{World, cancel, fail, hold, tags};

pub async fn a_flow_without_members_is_open(world: &World) {
    let flow = create_flow();
    world.act(flow.clone()).await;
    let found = world.flow(flow.flow_id).await;
    assert_eq!((found.state, found.node_count, found.completed_at), (FlowState::Open, 0, None));
    world.pass(90_000_000).await;
    assert_eq!(world.flow_state(flow.flow_id).await, FlowState::Open);
}

pub async fn open_running_blocked(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &["a>b"])).await;
    let state = async || world.flow_state(drawn.flow_id).await;
    assert_eq!(state().await, FlowState::Open);
    let task = world.take(&drawn, "a").await;
    assert_eq!(state().await, FlowState::Running);
    world.act(suspend(&task, wildcard("go"))).await;
    assert_eq!(state().await, FlowState::Running);
    world.act(crate::waits::resume(drawn.id("a"))).await;
    assert_eq!(state().await, FlowState::Running);
    world.run(&drawn, "a").await;
    world.act(hold(drawn.id("b"))).await;
    assert_eq!(state().await, FlowState::Blocked, "nobody may claim what is held");
    world.act(Release { execution_id: drawn.id("b") }).await;
    assert_eq!(state().await, FlowState::Running);
    world.act(block(drawn.id("b"), BlockingReason::WaitingForCapableWorker)).await;
    assert_eq!(state().await, FlowState::Blocked, "nobody can run it");
}

pub async fn a_flow_whose_members_all_wait_for_others_is_blocked(world: &World) {
    let drawn = world.submit_flow(world.draw_out(100)).await;
    world.complete(&world.take(&drawn, "x").await).await.unwrap();
    // The step released 64; the others wait for what it has left.
    for task in world.claim(1000).await {
        world.complete(&task).await.unwrap();
    }
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Blocked);
    world.settle().await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Running);
}

pub async fn counts_follow_every_member(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &["a>b"])).await;
    let counts = async || world.flow(drawn.flow_id).await.counts.iter().collect::<Vec<_>>();
    use PublicState::{Active, Completed, Delayed, Failed, Waiting, WaitingChildren};
    assert_eq!(counts().await, [(Waiting, 2), (WaitingChildren, 1)]);
    let task = world.take(&drawn, "a").await;
    assert_eq!(counts().await, [(Waiting, 1), (WaitingChildren, 1), (Active, 1)]);
    world.act(crate::world::delay(&task, 1_000)).await;
    assert_eq!(counts().await, [(Waiting, 1), (Delayed, 1), (WaitingChildren, 1)]);
    world.pass(1_000).await;
    world.run(&drawn, "a").await;
    world.act(fail(&world.take(&drawn, "c").await, "permanent")).await;
    assert_eq!(counts().await, [(Waiting, 1), (Completed, 1), (Failed, 1)]);
}

pub async fn a_handled_failure_does_not_fail_the_flow(world: &World) {
    let drawing = world.draw(&["a", "b", "h"], &["a>b", "a>h"]);
    let drawn = world.submit_flow(drawing.kind("a>h", EdgeKind::FailureOnly)).await;
    world.break_down(&drawn, "a").await;
    assert_eq!(world.states(&drawn, &["b"]).await, [PublicState::Skipped]);
    world.run(&drawn, "h").await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn a_handler_that_fails_fails_the_flow(world: &World) {
    let drawing = world.draw(&["a", "h"], &["a>h"]).kind("a>h", EdgeKind::Always);
    let drawn = world.submit_flow(drawing).await;
    world.break_down(&drawn, "a").await;
    world.break_down(&drawn, "h").await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Failed);
}

pub async fn a_failure_without_edges_fails_the_flow(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &[])).await;
    world.run(&drawn, "a").await;
    world.break_down(&drawn, "b").await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Failed);
    assert_eq!(world.flow_history(drawn.flow_id).await.last(), Some(&EventKind::FlowFailed));
}

pub async fn a_cancel_by_somebody_else_counts_as_a_failure(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &[])).await;
    world.run(&drawn, "a").await;
    world.act(cancel(drawn.id("b"))).await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Failed);
}

pub async fn a_cancel_in_the_words_of_a_group_counts_as_a_failure(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &[])).await;
    world.run(&drawn, "a").await;
    let reason = "sibling_quorum_satisfied".to_owned();
    world.act(Cancel { reason, ..cancel(drawn.id("b")) }).await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Failed);
}

pub async fn the_end_is_told_in_the_step_of_the_last_member(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a"], &[])).await;
    let task = world.take(&drawn, "a").await;
    world.advance(7).await;
    world.complete(&task).await.unwrap();
    let found = world.flow(drawn.flow_id).await;
    assert_eq!(found.state, FlowState::Completed);
    assert_eq!(found.completed_at, Some(world.now().await));
}

pub async fn a_member_that_is_added_reopens_an_ended_flow(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a"], &[])).await;
    world.run(&drawn, "a").await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
    let within = Some(InFlow { flow_id: drawn.flow_id, name: None });
    let submit = Submit { within, ..world.member_of(drawn.flow_id) };
    let id = world.submit(submit).await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Running);
    assert_eq!(world.flow_history(drawn.flow_id).await.last(), Some(&EventKind::FlowReopened));
    let task = world.claim_one().await;
    assert_eq!(task.execution_id, id);
    world.complete(&task).await.unwrap();
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn an_ended_execution_that_is_added_counts_as_it_ended(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a"], &[])).await;
    world.run(&drawn, "a").await;
    let solo = async |category| {
        let id = world.submit(Submit { within: None, ..world.member_of(drawn.flow_id) }).await;
        let task = world.claim_one().await;
        match category {
            None => drop(world.complete(&task).await.unwrap()),
            Some(category) => drop(world.act(fail(&task, category)).await),
        }
        id
    };
    let add = |execution_id| AddToFlow { flow_id: drawn.flow_id, execution_id, name: None };
    let done = solo(None).await;
    world.act(add(done)).await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
    let failed = solo(Some("permanent")).await;
    world.act(add(failed)).await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Failed);
    let replayed = world.act(ReplayFlow { flow_id: drawn.flow_id, members: None }).await;
    assert_eq!(replayed, FlowReplayed::Replayed { members: vec![failed], more: false });
    world.complete(&world.claim_one().await).await.unwrap();
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn flows_are_listed_newest_first_and_by_what_they_are(world: &World) {
    let mut flows = Vec::new();
    for n in 0..5 {
        world.advance(1).await;
        let mut drawing = world.draw(&["a"], &[]);
        drawing.submit.flow.tags = tags(&[("team", if n % 2 == 0 { "x" } else { "y" })]);
        flows.push(world.submit_flow(drawing).await);
    }
    world.run(&flows[2], "a").await;
    let list = |filter: FlowFilter, cursor, limit| ListFlows { filter, cursor, limit };
    let found = async |filter: FlowFilter| {
        let page = world.backend.ask(list(filter, None, 100)).await.unwrap();
        page.items.iter().map(|flow| flow.flow_id).collect::<Vec<_>>()
    };
    let all: Vec<_> = flows.iter().rev().map(|drawn| drawn.flow_id).collect();
    assert_eq!(found(FlowFilter::default()).await, all);
    let tagged = FlowFilter { tags: vec![("team".into(), "y".into())], ..Default::default() };
    assert_eq!(found(tagged).await, [flows[3].flow_id, flows[1].flow_id]);
    let ended = FlowFilter { states: vec![FlowState::Completed], ..Default::default() };
    assert_eq!(found(ended).await, [flows[2].flow_id]);
    let (mut walked, mut cursor) = (Vec::new(), None);
    loop {
        let page = world.backend.ask(list(FlowFilter::default(), cursor, 2)).await.unwrap();
        walked.extend(page.items.iter().map(|flow| flow.flow_id));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(walked, all);
}

pub async fn tags_of_a_flow_are_merged(world: &World) {
    let flow = create_flow();
    world.act(flow.clone()).await;
    let set =
        |pairs| SetFlowTags { flow_id: flow.flow_id, tags: tags(pairs), expected_revision: None };
    assert_eq!(world.act(set(&[("a.b", "1")])).await.count, 1);
    assert_eq!(world.act(set(&[("a.b", "2"), ("a.c", "3")])).await.count, 2);
    assert_eq!(world.flow(flow.flow_id).await.tags, tags(&[("a.b", "2"), ("a.c", "3")]));
    let kinds = world.flow_history(flow.flow_id).await;
    use EventKind::{FlowChanged, FlowCreated};
    assert_eq!(kinds, [FlowCreated, FlowChanged, FlowChanged]);
}

pub async fn every_event_of_flows_has_its_act(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "p"], &["a>b"])).await;
    let task = world.take(&drawn, "p").await;
    world.act(crate::graphs::wait_children(&task, None)).await;
    world.run(&drawn, "p").await;
    world.break_down(&drawn, "a").await;
    world.act(Replay { execution_id: drawn.id("a"), descendants: false }).await;
    world.run(&drawn, "a").await;
    world.run(&drawn, "b").await;
    let set = SetFlowTags {
        flow_id: drawn.flow_id,
        tags: tags(&[("a.b", "1")]),
        expected_revision: None,
    };
    world.act(set).await;
    let other = world.submit_flow(world.draw(&["a"], &[])).await;
    world.act(other.cancel(CancelPolicy::FlowOnly)).await;
    let seen: BTreeSet<_> = world.log().await.iter().map(|envelope| envelope.event.kind).collect();
    for kind in FLOW_EVENTS {
        assert!(seen.contains(&kind), "{kind:?}");
    }
}

pub async fn a_blocked_member_says_what_it_waits_for(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &["a>c", "b>c"])).await;
    world.run(&drawn, "a").await;
    let explain = async |name: &str| {
        let found = world.backend.explain(drawn.id(name)).await.unwrap();
        found.unwrap()
    };
    let why = explain("c").await;
    assert_eq!(why.cause, Cause::Dependencies);
    assert_eq!(why.summary, "1 of 2 edges to it are unresolved.");
    assert_eq!((&why.evidence["satisfied"], &why.evidence["unresolved"]), (&1.into(), &1.into()));
    let task = world.take(&drawn, "b").await;
    let within = Some(InFlow { flow_id: drawn.flow_id, name: None });
    let child = world.submit(Submit { within, ..world.member_of(drawn.flow_id) }).await;
    world.act(crate::graphs::wait_children(&task, Some(vec![child]))).await;
    assert_eq!(explain("b").await.summary, "It waits for 1 of 1 members.");
}

pub async fn members_and_events_are_found_by_their_flow(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &["a>b"])).await;
    let other = world.submit_flow(world.draw(&["a"], &[])).await;
    world.submit(world.work()).await;
    let filter = Filter { flow: Some(drawn.flow_id), ..Filter::default() };
    let found: BTreeSet<_> = world.search(filter).await.into_iter().collect();
    assert_eq!(found, BTreeSet::from([drawn.id("a"), drawn.id("b")]));
    world.run(&other, "a").await;
    world.run(&drawn, "a").await;
    let filter = EventFilter { flow: Some(drawn.flow_id), ..EventFilter::default() };
    let follow = Follow { filter, from: From::Start, limit: 100, each: false };
    let events = world.backend.events(follow, Duration::ZERO).await.unwrap().items;
    let own = events.iter().filter(|e| e.event.subject.execution_id().is_none()).count();
    let of_members = events.len() - own;
    assert_eq!((own, of_members), (2, 5), "created, resolved; submits, claim, end, release");
    let record = world.describe(drawn.id("b")).await;
    assert_eq!(record.flow_id, Some(drawn.flow_id));
    assert_eq!(record.member_name.as_deref(), Some("b"));
}
