//! A whole graph in one operation.

use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::operation::SubmitFlow;
use ff_core::state::{EdgeKind, FlowState, PublicState};

use crate::graphs::{Drawing, edge_of, quorum};
use crate::world::{World, code};
use ff_core::backend::BackendExt;

pub async fn a_chain_runs_in_order(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c"], &["a>b", "b>c"])).await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Open);
    for name in ["a", "b", "c"] {
        let task = world.claim(10).await.pop().unwrap();
        assert_eq!(task.execution_id, drawn.id(name));
        world.complete(&task).await.unwrap();
    }
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
    assert_eq!(world.flow_history(drawn.flow_id).await.last(), Some(&EventKind::FlowCompleted));
}

pub async fn a_diamond_waits_for_both_sides(world: &World) {
    let edges = ["a>b", "a>c", "b>d", "c>d"];
    let drawn = world.submit_flow(world.draw(&["a", "b", "c", "d"], &edges)).await;
    assert_eq!(world.claimable(&drawn).await, ["a"]);
    world.run(&drawn, "a").await;
    assert_eq!(world.claimable(&drawn).await, ["b", "c"]);
    world.run(&drawn, "b").await;
    assert_eq!(world.claimable(&drawn).await, ["c"]);
    assert_eq!(world.states(&drawn, &["d"]).await, [PublicState::WaitingChildren]);
    world.run(&drawn, "c").await;
    assert_eq!(world.claimable(&drawn).await, ["d"]);
    world.run(&drawn, "d").await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn a_failure_skips_all_that_follows(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b", "c", "x"], &["a>b", "b>c"])).await;
    world.break_down(&drawn, "a").await;
    let states = world.states(&drawn, &["a", "b", "c"]).await;
    assert_eq!(states, [PublicState::Failed, PublicState::Skipped, PublicState::Skipped]);
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Running);
    world.run(&drawn, "x").await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Failed);
}

pub async fn a_quorum_cancels_the_rest(world: &World) {
    let drawing = world.draw(&["a", "b", "c", "d"], &["a>d", "b>d", "c>d"]);
    let drawn = world.submit_flow(drawing.join("d", quorum(1))).await;
    world.run(&drawn, "b").await;
    let states = world.states(&drawn, &["a", "b", "c", "d"]).await;
    use PublicState::{Cancelled, Completed, Waiting};
    assert_eq!(states, [Cancelled, Completed, Cancelled, Waiting]);
    let record = world.describe(drawn.id("a")).await;
    assert_eq!(record.cancellation_reason.as_deref(), Some("sibling_quorum_satisfied"));
    world.run(&drawn, "d").await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn a_large_graph_unfolds(world: &World) {
    let names: Vec<String> = (0..200).map(|n| format!("m{n}")).collect();
    let mut members: Vec<&str> = names.iter().map(String::as_str).collect();
    members.extend(["first", "last"]);
    let edges: Vec<String> =
        names.iter().flat_map(|n| [format!("first>{n}"), format!("{n}>last")]).collect();
    let edges: Vec<&str> = edges.iter().map(String::as_str).collect();
    let drawn = world.submit_flow(world.draw(&members, &edges)).await;
    assert_eq!(world.flow(drawn.flow_id).await.counts.of(PublicState::WaitingChildren), 201);
    world.run(&drawn, "first").await;
    let tasks = world.claim(1000).await;
    assert_eq!(tasks.len(), 200);
    for task in &tasks {
        world.complete(task).await.unwrap();
    }
    world.settle().await;
    assert_eq!(world.claim_ids(10).await, [drawn.id("last")]);
}

pub async fn what_is_wrong_with_a_graph_is_told_and_nothing_is_written(world: &World) {
    let draw = |members: &[&str], edges: &[&str]| world.draw(members, edges);
    let mut twins = draw(&["a", "b"], &[]);
    twins.submit.members[1].submit.execution_id = twins.submit.members[0].submit.execution_id;
    let cases: [(Drawing, Code); 8] = [
        (twins, Code::InvalidInput),
        (draw(&["a", "b"], &["a>b", "b>a"]), Code::CycleDetected),
        (draw(&["a", "b", "c"], &["a>b", "b>c", "c>b"]), Code::CycleDetected),
        (draw(&["a"], &["a>a"]), Code::SelfReferencingEdge),
        (draw(&["a", "a"], &[]), Code::InvalidInput),
        (draw(&["a"], &["a>x"]), Code::ExecutionNotInFlow),
        (draw(&["a", "b"], &["a>b", "a>b"]), Code::DependencyAlreadyExists),
        (draw(&["a", "b"], &["a>b"]).join("b", quorum(0)), Code::InvalidInput),
    ];
    for (drawing, expected) in cases {
        let flow_id = drawing.submit.flow.flow_id;
        let member = drawing.submit.members[0].submit.execution_id;
        assert_eq!(code(world.backend.call(drawing.submit).await), expected);
        assert_eq!(world.find_flow(flow_id).await, None);
        assert_eq!(world.find(member).await, None);
    }
}

pub async fn the_same_graph_again_is_the_same_flow(world: &World) {
    let drawing = world.draw(&["a", "b"], &["a>b"]);
    let again = drawing.submit.clone();
    let drawn = world.submit_flow(drawing).await;
    let reply = world.act(again.clone()).await;
    assert!(reply.duplicate);
    assert_eq!((&reply.members, &reply.edges), (&drawn.reply.members, &drawn.reply.edges));
    let mut edges = again.edges.clone();
    edges[0].kind = EdgeKind::Always;
    let other = SubmitFlow { edges, ..again.clone() };
    assert_eq!(code(world.backend.call(other).await), Code::IdempotencyMismatch);
    let more = SubmitFlow { edges: vec![edge_of("b>a")], ..again };
    assert_eq!(code(world.backend.call(more).await), Code::IdempotencyMismatch);
}
