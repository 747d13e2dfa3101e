//! A member that waits for others.

use ff_core::backend::BackendExt as _;
use ff_core::content::Content;
use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::operation::{InFlow, Replay, Submit, Task};
use ff_core::state::{CancelPolicy, Outcome, PublicState, StateVector};

use crate::graphs::{let_run, stage, wait_children};
use crate::world::{World, cancel, code};

use PublicState::{Resumable, WaitingChildren};

pub async fn the_parent_goes_on_when_every_child_has_ended(world: &World) {
    let drawn = world.submit_flow(world.draw(&["p", "a", "b"], &[])).await;
    let task = world.take(&drawn, "p").await;
    let children = Some(vec![drawn.id("a"), drawn.id("b")]);
    let reply = world.act(wait_children(&task, children)).await;
    assert_eq!((reply.unresolved, reply.public_state), (2, WaitingChildren));
    let record = world.describe(drawn.id("p")).await;
    assert_eq!(record.state, StateVector::put_aside(WaitingChildren));
    assert_eq!(world.history(drawn.id("p")).await.last(), Some(&EventKind::Released));
    world.run(&drawn, "a").await;
    assert_eq!(world.public_state(drawn.id("p")).await, WaitingChildren);
    world.break_down(&drawn, "b").await;
    assert_eq!(world.public_state(drawn.id("p")).await, Resumable);
    let again = world.take(&drawn, "p").await;
    assert_eq!((again.attempt_index, again.lease_epoch), (0, 2));
    let inputs = &again.extras.inputs;
    assert_eq!(inputs["a"].result, Some(Content::new("result of a")));
    assert_eq!(inputs["b"].outcome, Outcome::Failed);
}

pub async fn children_that_have_ended_already_are_not_waited_for(world: &World) {
    let drawn = world.submit_flow(world.draw(&["p", "a", "b"], &[])).await;
    world.run(&drawn, "a").await;
    world.act(cancel(drawn.id("b"))).await;
    let task = world.take(&drawn, "p").await;
    let reply = world.act(wait_children(&task, Some(vec![drawn.id("a"), drawn.id("b")]))).await;
    assert_eq!((reply.unresolved, reply.public_state), (0, Resumable));
    let again = world.take(&drawn, "p").await;
    assert_eq!(again.extras.inputs.len(), 2);
}

pub async fn a_child_that_was_replayed_meanwhile_is_not_told(world: &World) {
    let drawn = world.submit_flow(world.draw(&["p", "a", "b"], &[])).await;
    let task = world.take(&drawn, "p").await;
    world.act(wait_children(&task, Some(vec![drawn.id("a"), drawn.id("b")]))).await;
    world.run(&drawn, "a").await;
    world.act(cancel(drawn.id("b"))).await;
    assert_eq!(world.public_state(drawn.id("p")).await, Resumable);
    world.act(Replay { execution_id: drawn.id("b"), descendants: false }).await;
    let tasks = world.claim(10).await;
    let again = tasks.iter().find(|task| task.execution_id == drawn.id("p")).expect("it goes on");
    let told: Vec<&str> = again.extras.inputs.keys().map(String::as_str).collect();
    assert_eq!(told, ["a"], "the other one has not ended");
}

pub async fn without_children_it_goes_on_at_once(world: &World) {
    let drawn = world.submit_flow(world.draw(&["p"], &[])).await;
    for children in [None, Some(Vec::new())] {
        let task = world.take(&drawn, "p").await;
        let reply = world.act(wait_children(&task, children)).await;
        assert_eq!((reply.unresolved, reply.public_state), (0, Resumable));
    }
}

pub async fn an_upstream_has_the_name_of_its_edge_however_it_ended(world: &World) {
    let drawing = world.draw(&["a", "b", "p"], &["a>p", "b>p"]);
    let drawing = drawing.edge("b>p", |edge| edge.name = Some("second".to_owned()));
    let drawn = world.submit_flow(drawing.join("p", let_run(1))).await;
    world.run(&drawn, "a").await;
    let task = world.take(&drawn, "p").await;
    world.act(wait_children(&task, None)).await;
    world.break_down(&drawn, "b").await;
    let again = world.take(&drawn, "p").await;
    let inputs = &again.extras.inputs;
    assert_eq!(inputs.keys().collect::<Vec<_>>(), ["a", "second"]);
    assert_eq!(inputs["second"].outcome, Outcome::Failed);
}

pub async fn by_default_it_waits_for_its_upstreams(world: &World) {
    let drawing = world.draw(&["a", "b", "p"], &["a>p", "b>p"]);
    let drawn = world.submit_flow(drawing.join("p", crate::graphs::let_run(1))).await;
    world.run(&drawn, "a").await;
    let task = world.take(&drawn, "p").await;
    let reply = world.act(wait_children(&task, None)).await;
    assert_eq!((reply.unresolved, reply.public_state), (1, WaitingChildren));
    world.run(&drawn, "b").await;
    assert_eq!(world.public_state(drawn.id("p")).await, Resumable);
}

pub async fn a_parent_may_make_its_children(world: &World) {
    let drawn = world.submit_flow(world.draw(&["p"], &[])).await;
    let task = world.take(&drawn, "p").await;
    let mut children = Vec::new();
    for _ in 0..150 {
        let within = Some(InFlow { flow_id: drawn.flow_id, name: None });
        children.push(world.submit(Submit { within, ..world.member_of(drawn.flow_id) }).await);
    }
    let reply = world.act(wait_children(&task, Some(children.clone()))).await;
    assert_eq!((reply.unresolved, reply.public_state), (150, WaitingChildren));
    // Some end before they know that they are waited for.
    let tasks = world.claim(1000).await;
    assert_eq!(tasks.len(), 150);
    for task in tasks.iter().rev().take(100) {
        world.complete(task).await.unwrap();
    }
    world.settle().await;
    assert_eq!(world.public_state(drawn.id("p")).await, WaitingChildren);
    for task in tasks.iter().rev().skip(100) {
        world.complete(task).await.unwrap();
    }
    world.settle().await;
    assert_eq!(world.public_state(drawn.id("p")).await, Resumable);
    assert_eq!(world.take(&drawn, "p").await.extras.inputs.len(), 150);
}

pub async fn a_wait_that_is_repeated_answers_as_the_first(world: &World) {
    let drawn = world.submit_flow(world.draw(&["p", "a"], &[])).await;
    let task = world.take(&drawn, "p").await;
    let first = world.act(wait_children(&task, Some(vec![drawn.id("a")]))).await;
    world.run(&drawn, "a").await;
    let again = world.act(wait_children(&task, None)).await;
    assert!(again.replayed);
    assert_eq!((again.unresolved, again.public_state), (first.unresolved, first.public_state));
}

pub async fn who_cannot_be_waited_for_is_refused(world: &World) {
    let drawn = world.submit_flow(world.draw(&["p", "a", "b"], &["p>a", "a>b"])).await;
    let other = world.submit_flow(world.draw(&["x"], &[])).await;
    let task = world.take(&drawn, "p").await;
    for (child, code) in [
        (drawn.id("p"), Code::CycleDetected),
        (drawn.id("b"), Code::CycleDetected),
        (other.id("x"), Code::InvalidDependency),
    ] {
        world.refuses(wait_children(&task, Some(vec![child])), code).await;
    }
    let solo = world.submit(world.work_on("solo")).await;
    let mut claim = world.claim_request(1);
    claim.lanes = vec![ff_core::operation::LaneShare::new(crate::world::lane("solo"))];
    let task = world.claim_as(claim).await.remove(0);
    assert_eq!(task.execution_id, solo);
    world.refuses(wait_children(&task, None), Code::ExecutionNotInFlow).await;
}

pub async fn those_who_wait_for_each_other_are_refused(world: &World) {
    let drawn = world.submit_flow(world.draw(&["p", "q", "r"], &[])).await;
    let waits = |task: &Task, child: &str| wait_children(task, Some(vec![drawn.id(child)]));
    let (p, q, r) = (
        world.take(&drawn, "p").await,
        world.take(&drawn, "q").await,
        world.take(&drawn, "r").await,
    );
    world.act(waits(&p, "q")).await;
    world.refuses(waits(&q, "p"), Code::CycleDetected).await;
    world.act(waits(&q, "r")).await;
    world.refuses(waits(&r, "p"), Code::CycleDetected).await;
    let edge = world.backend.call(stage(&drawn, "p>q")).await;
    assert_eq!(code(edge), Code::CycleDetected);
    // A wait that is over holds nobody.
    world.complete(&r).await.expect("completed");
    let q = world.take(&drawn, "q").await;
    world.complete(&q).await.expect("completed");
    assert_eq!(world.public_state(drawn.id("p")).await, Resumable);
}

pub async fn those_who_wait_over_edges_and_children_are_refused(world: &World) {
    let drawn = world.submit_flow(world.draw(&["p", "q", "u", "s"], &["p>q"])).await;
    let u = world.take(&drawn, "u").await;
    world.act(wait_children(&u, Some(vec![drawn.id("q")]))).await;
    let edge = world.backend.call(stage(&drawn, "u>p")).await;
    assert_eq!(code(edge), Code::CycleDetected, "u waits for q, which waits for p");
    let s = world.take(&drawn, "s").await;
    world.act(stage(&drawn, "s>p")).await;
    let wait = wait_children(&s, Some(vec![drawn.id("u")]));
    world.refuses(wait, Code::CycleDetected).await;
}

pub async fn a_cancelled_flow_ends_a_waiting_parent(world: &World) {
    let drawn = world.submit_flow(world.draw(&["p", "a"], &[])).await;
    let task = world.take(&drawn, "p").await;
    world.act(wait_children(&task, Some(vec![drawn.id("a")]))).await;
    world.act(drawn.cancel(CancelPolicy::CancelAll)).await;
    assert_eq!(world.public_state(drawn.id("p")).await, PublicState::Cancelled);
}

pub async fn an_edge_to_the_parent_does_not_count_twice(world: &World) {
    let drawn = world.submit_flow(world.draw(&["p", "a"], &[])).await;
    let task = world.take(&drawn, "p").await;
    world.act(stage(&drawn, "a>p")).await;
    world.act(wait_children(&task, Some(vec![drawn.id("a")]))).await;
    world.run(&drawn, "a").await;
    assert_eq!(world.public_state(drawn.id("p")).await, Resumable);
}

pub async fn an_upstream_that_is_waited_for_is_told_once(world: &World) {
    let drawing = world.draw(&["a", "b", "p"], &["a>p", "b>p"]).join("p", let_run(1));
    let drawn = world.submit_flow(drawing).await;
    world.run(&drawn, "a").await;
    let task = world.take(&drawn, "p").await;
    world.act(wait_children(&task, None)).await;
    world.run(&drawn, "b").await;
    let task = world.take(&drawn, "p").await;
    assert_eq!(task.extras.inputs.keys().collect::<Vec<_>>(), ["a", "b"]);
}
