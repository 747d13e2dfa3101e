//! A cancelled flow: its edges, and what members are told whose lease ends in it.

use std::collections::BTreeMap;

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::event::{Detail, EventKind};
use ff_core::limits;
use ff_core::operation::{CascadeCompletion, Command, Failed, ReplayFlow, Reply};
use ff_core::read::{EdgeSnapshot, ListFlowEdges, ListFlowMembers};
use ff_core::state::{
    AttemptState, CancelPolicy, EdgeKind, EdgeState, FlowState, GroupState, Outcome, PublicState,
    StateVector,
};

use crate::graphs::{Drawn, wait_children};
use crate::waits;
use crate::world::{World, complete, delay, fail, policy};

use PublicState::{Active, Cancelled, Completed};

impl World {
    async fn edges(&self, drawn: &Drawn) -> Vec<EdgeSnapshot> {
        let (mut edges, mut from) = (Vec::new(), Some((0, 0)));
        while let Some(place) = from {
            let list = ListFlowEdges { flow_id: drawn.flow_id, from: place, limit: 100 };
            let page = self.backend.ask(list).await.expect("a page");
            edges.extend(page.items);
            from = page.next;
        }
        edges
    }

    /// What events have told of edges: their states by their ids.
    async fn edges_told(&self, drawn: &Drawn) -> BTreeMap<String, Vec<String>> {
        let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for envelope in self.log().await {
            let event = envelope.event;
            let is_it = event.subject.to_string() == drawn.flow_id.to_string();
            if is_it && event.kind == EventKind::EdgeResolved {
                let [id, state] = ["edge_id", "state"].map(|field| match &event.data[field] {
                    Detail::Text(text) => text.clone(),
                    other => panic!("{field} is {other:?}"),
                });
                told.entry(id).or_default().push(state);
            }
        }
        told
    }

    /// Every edge that has resolved was told once, as it is shown; all have resolved.
    async fn check_edges(&self, drawn: &Drawn) {
        let (edges, told) = (self.edges(drawn).await, self.edges_told(drawn).await);
        let shown: BTreeMap<_, _> = edges
            .iter()
            .map(|edge| (edge.edge_id.to_string(), vec![edge.state.as_str().to_owned()]))
            .collect();
        assert_eq!(told, shown);
        assert!(edges.iter().all(|edge| edge.state != EdgeState::Pending), "{edges:?}");
        self.check_groups(drawn, &edges).await;
    }

    /// Groups have counted what edges say.
    async fn check_groups(&self, drawn: &Drawn, edges: &[EdgeSnapshot]) {
        let list = ListFlowMembers { flow_id: drawn.flow_id, from: 0, limit: limits::PAGE_MAX };
        for member in self.backend.ask(list).await.expect("a page").items {
            let into = edges.iter().filter(|edge| edge.downstream == member.execution_id);
            let satisfied = into.filter(|edge| edge.state == EdgeState::Satisfied).count();
            let group = member.group;
            assert_eq!((group.satisfied as usize, group.unresolved()), (satisfied, 0), "{group:?}");
        }
    }
}

pub async fn every_edge_is_told_when_it_resolves(world: &World) {
    for policy in CancelPolicy::ALL {
        let drawing = world.draw(&["a", "b", "c", "d", "e"], &["a>b", "a>c", "b>d", "c>d", "d>e"]);
        let drawn = world.submit_flow(drawing.kind("a>c", EdgeKind::Always)).await;
        let task = world.take(&drawn, "a").await;
        world.act(drawn.cancel(policy)).await;
        let told = world.edges_told(&drawn).await.len();
        match policy {
            CancelPolicy::CancelAll => assert_eq!(told, 5, "all have ended"),
            CancelPolicy::CancelPending => assert_eq!(told, 3, "a goes on"),
            CancelPolicy::FlowOnly => assert_eq!(told, 0, "all go on"),
        }
        if policy != CancelPolicy::CancelAll {
            world.act(complete(&task)).await;
        }
        if policy == CancelPolicy::FlowOnly {
            for name in ["b", "c", "d", "e"] {
                world.run(&drawn, name).await;
            }
        }
        world.check_edges(&drawn).await;
        assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Cancelled);
    }
}

pub async fn one_that_ends_by_itself_releases_nobody(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &["a>b", "b>c"])).await;
    let task = world.take(&drawn, "a").await;
    world.act(drawn.cancel(CancelPolicy::CancelPending)).await;
    world.act(complete(&task)).await;
    let states: Vec<_> = world.edges(&drawn).await.iter().map(|edge| edge.state).collect();
    assert_eq!(states, [EdgeState::Satisfied, EdgeState::Impossible]);
    assert_eq!(world.states(&drawn, &["a", "b", "c"]).await, [Completed, Cancelled, Cancelled]);
    let history = world.history(drawn.id("b")).await;
    assert_eq!(history, [EventKind::Submitted, EventKind::Cancelled]);
    world.check_edges(&drawn).await;
}

pub async fn more_edges_than_one_step_takes_are_told_step_by_step(world: &World) {
    let drawn = world.submit_flow(world.draw_out(200)).await;
    world.act(drawn.cancel(CancelPolicy::CancelAll)).await;
    let mut told = world.edges_told(&drawn).await.len();
    assert!(told <= limits::FLOW_STEP as usize, "{told} in one step");
    while world.act(CascadeCompletion { flow_id: drawn.flow_id }).await.more {
        let now = world.edges_told(&drawn).await.len();
        assert!(now - told <= limits::FLOW_STEP as usize, "{told} and then {now}");
        told = now;
    }
    assert_eq!(world.flow(drawn.flow_id).await.counts.of(Cancelled), 201);
    world.check_edges(&drawn).await;
}

/// No member waits for edges, and edges of many members go together.
pub async fn members_are_cancelled_before_their_edges_resolve(world: &World) {
    let names: Vec<String> = (0..150).map(|n| format!("m{n}")).collect();
    let to = |n: usize| ["x", "y", "z"].map(|to| format!("m{n}>{to}"));
    let edges: Vec<String> = (0..150).flat_map(to).collect();
    let edges: Vec<&str> = edges.iter().map(String::as_str).collect();
    let mut members: Vec<&str> = names.iter().map(String::as_str).collect();
    members.extend(["x", "y", "z"]);
    let drawn = world.submit_flow(world.draw(&members, &edges)).await;
    world.act(drawn.cancel(CancelPolicy::CancelAll)).await;
    let carry_on = CascadeCompletion { flow_id: drawn.flow_id };
    for _ in 0..2 {
        assert!(world.act(carry_on.clone()).await.more);
    }
    assert_eq!(world.flow(drawn.flow_id).await.counts.of(Cancelled), 153);
    let mut steps = 0;
    while world.act(carry_on.clone()).await.more {
        steps += 1;
    }
    assert!(steps <= 10, "{steps} steps for 450 edges");
    world.check_edges(&drawn).await;
}

pub async fn what_was_left_of_an_end_releases_nobody(world: &World) {
    let drawn = world.submit_flow(world.draw_out(200)).await;
    let task = world.take(&drawn, "x").await;
    world.act(complete(&task)).await;
    world.act(drawn.cancel(CancelPolicy::CancelPending)).await;
    world.settle().await;
    let history = world.history(drawn.id("m150")).await;
    assert_eq!(history, [EventKind::Submitted, EventKind::Cancelled]);
    world.check_edges(&drawn).await;
}

pub async fn a_graph_that_was_unfolding_tells_of_its_edges(world: &World) {
    let drawing = world.draw_out(150);
    let drawn = Drawn::of(world.act(drawing.submit).await);
    world.act(drawn.cancel(CancelPolicy::CancelAll)).await;
    world.settle().await;
    assert_eq!(world.flow(drawn.flow_id).await.counts.of(Cancelled), 151);
    world.check_edges(&drawn).await;
}

pub async fn a_replay_under_way_ends_with_its_flow(world: &World) {
    let names: Vec<String> = (0..40).map(|n| format!("m{n}")).collect();
    let members: Vec<&str> = names.iter().map(String::as_str).collect();
    let drawn = world.submit_flow(world.draw(&members, &[])).await;
    for name in &members {
        world.break_down(&drawn, name).await;
    }
    world.act(ReplayFlow { flow_id: drawn.flow_id, members: None }).await;
    world.act(drawn.cancel(CancelPolicy::CancelAll)).await;
    world.settle().await;
    let counts = world.flow(drawn.flow_id).await.counts;
    assert_eq!(counts.of(Cancelled) + counts.of(PublicState::Failed), 40, "{counts:?}");
    assert_eq!(world.flow_history(drawn.flow_id).await.last(), Some(&EventKind::FlowCancelled));
}

/// Edges of the generation before are still to be taken back when the flow is cancelled.
pub async fn edges_that_were_taken_back_resolve_anew(world: &World) {
    let drawn = world.submit_flow(world.draw_out(200)).await;
    world.break_down(&drawn, "x").await;
    world.act(ReplayFlow { flow_id: drawn.flow_id, members: None }).await;
    world.act(drawn.cancel(CancelPolicy::CancelAll)).await;
    world.settle().await;
    let counts = world.flow(drawn.flow_id).await.counts;
    assert_eq!(counts.of(Cancelled) + counts.of(PublicState::Skipped), 201, "{counts:?}");
    let edges = world.edges(&drawn).await;
    assert!(edges.iter().all(|edge| edge.state == EdgeState::Impossible));
    world.check_groups(&drawn, &edges).await;
    let told = world.edges_told(&drawn).await;
    assert_eq!((told.len(), told.values().all(|states| states.len() == 2)), (200, true));
}

/// Carries an operation out twice: the second answer is the first one, marked as such.
async fn twice(world: &World, operation: impl Into<Command>) -> (Reply, Reply) {
    let command = operation.into();
    let first = world.command(command.clone()).await.expect("an answer");
    (first, world.command(command).await.expect("the same answer"))
}

pub async fn a_failure_that_is_not_tried_again_is_told_so(world: &World) {
    let drawing = world.draw(&["a", "b"], &["a>b"]);
    let drawn = world.submit_flow(drawing.with("a", |a| a.policy = Default::default())).await;
    let task = world.take(&drawn, "a").await;
    world.act(drawn.cancel(CancelPolicy::CancelPending)).await;
    let (first, again) = twice(world, fail(&task, "transient")).await;
    let told = |replayed| Reply::Fail(Failed::TerminalFailed { replayed });
    assert_eq!((first, again), (told(false), told(true)));
    let record = world.describe(drawn.id("a")).await;
    assert_eq!(record.state.public_state, Cancelled);
    let attempts = world.attempts(drawn.id("a")).await;
    assert_eq!(attempts[0].state, AttemptState::EndedFailure, "what was reported is kept");
}

pub async fn a_delay_in_a_cancelled_flow_is_told_as_cancelled(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a"], &[])).await;
    let task = world.take(&drawn, "a").await;
    world.act(drawn.cancel(CancelPolicy::CancelPending)).await;
    let (first, again) = twice(world, delay(&task, 1_000)).await;
    let state = |reply| match reply {
        Reply::Delay(delayed) => (delayed.public_state, delayed.replayed),
        other => panic!("{other:?}"),
    };
    assert_eq!((state(first), state(again)), ((Cancelled, false), (Cancelled, true)));
    let record = world.describe(task.execution_id).await;
    assert_eq!(record.state, StateVector::put_aside(Cancelled));
}

pub async fn a_wait_in_a_cancelled_flow_is_told_as_cancelled(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &[])).await;
    let [task, _running] = [world.take(&drawn, "a").await, world.take(&drawn, "b").await];
    world.act(drawn.cancel(CancelPolicy::CancelPending)).await;
    let wait = wait_children(&task, Some(vec![drawn.id("b"), drawn.id("c")]));
    let (first, again) = twice(world, wait).await;
    let state = |reply| match reply {
        Reply::WaitChildren(waits) => (waits.public_state, waits.unresolved, waits.replayed),
        other => panic!("{other:?}"),
    };
    assert_eq!((state(first), state(again)), ((Cancelled, 1, false), (Cancelled, 1, true)));
    assert_eq!(world.states(&drawn, &["a", "b"]).await, [Cancelled, Active]);
}

/// It could never be resumed: no waitpoint is made, and no token given that nobody may use.
pub async fn a_suspend_in_a_cancelled_flow_is_refused_and_ends_it(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &["a>b"])).await;
    let task = world.take(&drawn, "a").await;
    world.act(drawn.cancel(CancelPolicy::CancelPending)).await;
    let suspend = waits::suspend(&task, waits::wildcard("go"));
    for _ in 0..2 {
        let refused = world.backend.call(suspend.clone()).await.expect_err("it cannot wait");
        assert_eq!(refused.code(), Code::ExecutionNotActive);
        let current = refused.refusal().and_then(|refusal| refusal.current.as_ref());
        let current = current.expect("what it is");
        assert_eq!(current.terminal_outcome, Some(Outcome::Cancelled));
    }
    assert_eq!(world.states(&drawn, &["a"]).await, [Cancelled]);
    assert_eq!(world.waitpoints(drawn.id("a")).await, []);
    let history = world.history(drawn.id("a")).await;
    let [.., claimed, last] = history[..] else { panic!("{history:?}") };
    assert_eq!((claimed, last), (EventKind::Claimed, EventKind::Cancelled));
    world.check_edges(&drawn).await;
}

pub async fn a_suspend_that_is_satisfied_already_goes_on(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a"], &[])).await;
    let task = world.take(&drawn, "a").await;
    let waitpoint = world.pending(&task, "go").await;
    world.signal(&task, &waitpoint, "now").await;
    world.act(drawn.cancel(CancelPolicy::CancelPending)).await;
    let bound = vec![waits::use_pending(&waitpoint)];
    let suspend = waits::suspend_on(&task, bound, waits::wildcard("go"));
    assert!(world.act(suspend).await.already_satisfied);
    assert_eq!(world.states(&drawn, &["a"]).await, [Active]);
}

/// An answer that was given before the cancel stays the answer.
pub async fn what_was_answered_before_the_cancel_is_answered_again(world: &World) {
    let drawing = world.draw(&["a"], &[]);
    let retries = policy(r#"{"retry_policy":{"max_retries":3}}"#);
    let drawn = world.submit_flow(drawing.with("a", |a| a.policy = retries)).await;
    let task = world.take(&drawn, "a").await;
    let first = world.act(fail(&task, "transient")).await;
    let Failed::RetryScheduled { delay_until, retry_count, .. } = first else {
        panic!("{first:?}")
    };
    world.pass(1_000).await;
    let _second = world.take(&drawn, "a").await;
    world.act(drawn.cancel(CancelPolicy::CancelPending)).await;
    world.pass(limits::LEASE_TTL_MS.cast_signed()).await;
    assert_eq!(world.states(&drawn, &["a"]).await, [Cancelled]);
    let again = world.act(fail(&task, "transient")).await;
    assert_eq!(again, Failed::RetryScheduled { delay_until, retry_count, replayed: true });
}

/// The group of a member that is cancelled before it decided says so, whatever is counted later.
pub async fn a_group_that_was_cancelled_stays_so(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &["a>b"])).await;
    let task = world.take(&drawn, "a").await;
    world.act(drawn.cancel(CancelPolicy::CancelPending)).await;
    world.act(complete(&task)).await;
    let list = ListFlowMembers { flow_id: drawn.flow_id, from: 1, limit: 1 };
    let page = world.backend.ask(list).await.expect("a page");
    assert_eq!(page.items[0].group.state, GroupState::Cancelled);
    world.check_edges(&drawn).await;
}
