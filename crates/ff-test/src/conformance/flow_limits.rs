//! How large a graph may be, and what is found in a large one.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::limits;
use ff_core::state::FlowState;

use crate::graphs::{Drawing, stage};
use crate::world::{World, code};

/// Names of so many members.
fn names(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("m{n}")).collect()
}

fn draw(world: &World, members: &[String], edges: &[String]) -> Drawing {
    let members: Vec<_> = members.iter().map(String::as_str).collect();
    let edges: Vec<_> = edges.iter().map(String::as_str).collect();
    world.draw(&members, &edges)
}

/// Members one after another, each waiting for the one before.
fn chain(members: &[String]) -> Vec<String> {
    members.windows(2).map(|pair| format!("{}>{}", pair[0], pair[1])).collect()
}

/// It is refused, and nothing of it is there.
async fn is_refused(world: &World, drawing: Drawing, expected: Code) {
    let flow_id = drawing.submit.flow.flow_id;
    let members: Vec<_> = drawing.submit.members.iter().map(|it| it.submit.execution_id).collect();
    let log = world.log().await.len();
    assert_eq!(code(world.backend.call(drawing.submit).await), expected);
    world.settle().await;
    assert_eq!(world.find_flow(flow_id).await, None);
    for member in [members.first(), members.last()].into_iter().flatten() {
        assert_eq!(world.find(*member).await, None);
    }
    assert_eq!(world.log().await.len(), log, "nothing is told");
}

pub async fn more_members_than_a_submit_takes_are_refused(world: &World) {
    for count in [limits::FLOW_SUBMIT_MEMBERS + 1, limits::FLOW_MEMBERS as usize] {
        is_refused(world, draw(world, &names(count), &[]), Code::InvalidInput).await;
    }
}

pub async fn more_edges_than_a_submit_takes_are_refused(world: &World) {
    let names = names(200);
    let pairs = names
        .iter()
        .enumerate()
        .flat_map(|(n, from)| names[n + 1..].iter().map(move |to| format!("{from}>{to}")));
    let edges: Vec<_> = pairs.take(limits::FLOW_SUBMIT_EDGES + 1).collect();
    assert!(edges.len() > limits::FLOW_SUBMIT_EDGES);
    is_refused(world, draw(world, &names, &edges), Code::InvalidInput).await;
}

pub async fn cycles_are_found_in_a_large_graph(world: &World) {
    let names = names(500);
    let mut edges = chain(&names);
    edges.push("m499>m0".to_owned());
    is_refused(world, draw(world, &names, &edges), Code::CycleDetected).await;
    edges.pop();
    let drawn = world.submit_flow(draw(world, &names, &edges)).await;
    for text in ["m499>m0", "m499>m1", "m300>m299"] {
        let refused = world.backend.call(stage(&drawn, text)).await;
        assert_eq!(code(refused), Code::CycleDetected, "{text}");
    }
    // What leads the same way closes none.
    for text in ["m0>m499", "m1>m300"] {
        world.act(stage(&drawn, text)).await;
    }
    let flow = world.flow(drawn.flow_id).await;
    assert_eq!((flow.edge_count, flow.state), (501, FlowState::Open));
}
