//! Edge kinds, joins, and what becomes of those that can no longer run.

use ff_core::operation::{Complete, GraphEdge, StageEdge, Submit};
use ff_core::state::{EdgeKind, FlowState, Join, OnSatisfied, Outcome, PublicState};

use crate::graphs::{Drawn, any_of, let_run, quorum, stage};
use crate::world::{World, cancel, complete, delay};

use PublicState::{
    Active, Cancelled, Completed, Expired, Failed, Skipped, Waiting, WaitingChildren,
};

/// Ends `a` in every way that there is: a name for it, and the drawing with `a>b` of this kind.
async fn end_in_every_way(world: &World, kind: EdgeKind) -> Vec<(PublicState, PublicState)> {
    let mut outcomes = Vec::new();
    for way in 0..5 {
        let drawing = world.draw(&["z", "a", "b"], &["z>a", "a>b"]).kind("a>b", kind);
        let drawing = drawing.with("a", |submit| {
            submit.policy = crate::world::policy(
                r#"{"retry_policy":{"max_retries":0},"timeout_policy":{"execution_deadline_ms":1000}}"#,
            );
        });
        let drawn = world.submit_flow(drawing).await;
        match way {
            4 => world.break_down(&drawn, "z").await,
            _ => world.run(&drawn, "z").await,
        }
        match way {
            0 => world.run(&drawn, "a").await,
            1 => world.break_down(&drawn, "a").await,
            2 => drop(world.act(cancel(drawn.id("a"))).await),
            3 => world.pass(1_000).await,
            _ => {}
        }
        world.settle().await;
        let states = world.states(&drawn, &["a", "b"]).await;
        outcomes.push((states[0], states[1]));
    }
    outcomes
}

pub async fn success_only_needs_success(world: &World) {
    let outcomes = end_in_every_way(world, EdgeKind::SuccessOnly).await;
    assert_eq!(
        outcomes,
        [
            (Completed, Waiting),
            (Failed, Skipped),
            (Cancelled, Skipped),
            (Expired, Skipped),
            (Skipped, Skipped),
        ]
    );
}

pub async fn always_takes_any_outcome(world: &World) {
    let outcomes = end_in_every_way(world, EdgeKind::Always).await;
    let expected = [Completed, Failed, Cancelled, Expired, Skipped].map(|state| (state, Waiting));
    assert_eq!(outcomes, expected);
}

pub async fn failure_only_needs_a_failure(world: &World) {
    let outcomes = end_in_every_way(world, EdgeKind::FailureOnly).await;
    assert_eq!(
        outcomes,
        [
            (Completed, Skipped),
            (Failed, Waiting),
            (Cancelled, Skipped),
            (Expired, Waiting),
            (Skipped, Skipped),
        ]
    );
}

async fn three_to_one(world: &World, join: Join) -> Drawn {
    let drawing = world.draw(&["a", "b", "c", "d"], &["a>d", "b>d", "c>d"]);
    world.submit_flow(drawing.join("d", join)).await
}

pub async fn all_of_needs_every_edge(world: &World) {
    let drawn = three_to_one(world, Join::AllOf).await;
    world.run(&drawn, "a").await;
    world.run(&drawn, "b").await;
    assert_eq!(world.states(&drawn, &["d"]).await, [WaitingChildren]);
    world.run(&drawn, "c").await;
    assert_eq!(world.states(&drawn, &["d"]).await, [Waiting]);
}

pub async fn all_of_is_impossible_with_the_first_that_is(world: &World) {
    let drawn = three_to_one(world, Join::AllOf).await;
    world.break_down(&drawn, "b").await;
    assert_eq!(
        world.states(&drawn, &["a", "b", "c", "d"]).await,
        [Waiting, Failed, Waiting, Skipped]
    );
    world.run(&drawn, "a").await;
    world.run(&drawn, "c").await;
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Failed);
}

pub async fn any_of_takes_the_first(world: &World) {
    let drawn = three_to_one(world, any_of()).await;
    world.break_down(&drawn, "a").await;
    assert_eq!(world.states(&drawn, &["d"]).await, [WaitingChildren]);
    world.run(&drawn, "b").await;
    assert_eq!(world.states(&drawn, &["c", "d"]).await, [Cancelled, Waiting]);
}

pub async fn a_quorum_is_impossible_when_too_few_are_left(world: &World) {
    let drawn = three_to_one(world, quorum(2)).await;
    world.break_down(&drawn, "a").await;
    assert_eq!(world.states(&drawn, &["d"]).await, [WaitingChildren]);
    world.break_down(&drawn, "b").await;
    assert_eq!(world.states(&drawn, &["c", "d"]).await, [Cancelled, Skipped]);
    let record = world.describe(drawn.id("c")).await;
    assert_eq!(record.cancellation_reason.as_deref(), Some("sibling_quorum_impossible"));
    assert_eq!(record.cancelled_by.as_deref(), Some("operator_override"));
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Failed);
}

pub async fn a_quorum_above_the_edges_is_impossible_with_the_first(world: &World) {
    let drawn = three_to_one(world, quorum(4)).await;
    assert_eq!(world.states(&drawn, &["d"]).await, [WaitingChildren]);
    world.run(&drawn, "a").await;
    assert_eq!(world.states(&drawn, &["d"]).await, [Skipped]);
}

pub async fn running_siblings_are_cancelled_too(world: &World) {
    let drawn = three_to_one(world, quorum(1)).await;
    let running = world.take(&drawn, "c").await;
    world.act(delay(&world.take(&drawn, "b").await, 60_000)).await;
    world.run(&drawn, "a").await;
    assert_eq!(world.states(&drawn, &["b", "c"]).await, [Cancelled, Cancelled]);
    world.refuses(complete(&running), ff_core::error::Code::ExecutionNotActive).await;
}

pub async fn let_run_touches_nobody(world: &World) {
    let drawn = three_to_one(world, Join::Quorum(1, OnSatisfied::LetRun)).await;
    let running = world.take(&drawn, "c").await;
    world.run(&drawn, "a").await;
    assert_eq!(world.states(&drawn, &["b", "c", "d"]).await, [Waiting, Active, Waiting]);
    world.complete(&running).await.unwrap();
    world.break_down(&drawn, "b").await;
    world.run(&drawn, "d").await;
    // The failure led to a group that was satisfied anyway.
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Completed);
}

pub async fn a_group_decides_once(world: &World) {
    let drawn = three_to_one(world, Join::Quorum(2, OnSatisfied::LetRun)).await;
    world.run(&drawn, "a").await;
    world.run(&drawn, "b").await;
    let task = world.take(&drawn, "d").await;
    world.break_down(&drawn, "c").await;
    assert_eq!(world.states(&drawn, &["d"]).await, [Active]);
    world.complete(&task).await.unwrap();
    assert_eq!(world.states(&drawn, &["d"]).await, [Completed]);
}

pub async fn more_siblings_than_one_step_takes_are_all_cancelled(world: &World) {
    let drawn = world.submit_flow(world.draw_in(150).join("x", quorum(1))).await;
    world.run(&drawn, "m77").await;
    let counts = world.flow(drawn.flow_id).await.counts;
    let counted = [Cancelled, Completed, Waiting].map(|state| counts.of(state));
    assert_eq!(counted, [149, 1, 1]);
}

pub async fn more_edges_than_one_step_takes_are_all_resolved(world: &World) {
    let drawn = world.submit_flow(world.draw_out(150)).await;
    let task = world.take(&drawn, "x").await;
    world.act(complete(&task)).await;
    let counts = world.flow(drawn.flow_id).await.counts;
    assert_eq!((counts.of(Waiting), counts.of(WaitingChildren)), (64, 86), "in the same step");
    world.settle().await;
    let counts = world.flow(drawn.flow_id).await.counts;
    assert_eq!((counts.of(Waiting), counts.of(WaitingChildren)), (150, 0));
}

pub async fn a_skip_goes_to_any_depth(world: &World) {
    let names: Vec<String> = (0..100).map(|n| format!("m{n}")).collect();
    let edges: Vec<String> = (1..100).map(|n| format!("m{}>m{n}", n - 1)).collect();
    let members: Vec<&str> = names.iter().map(String::as_str).collect();
    let edges: Vec<&str> = edges.iter().map(String::as_str).collect();
    let drawn = world.submit_flow(world.draw(&members, &edges)).await;
    world.break_down(&drawn, "m0").await;
    assert_eq!(world.flow(drawn.flow_id).await.counts.of(Skipped), 99);
    assert_eq!(world.flow_state(drawn.flow_id).await, FlowState::Failed);
}

pub async fn a_delay_goes_on_under_the_edges(world: &World) {
    let later = |ms| move |submit: &mut Submit| submit.delay_until = Some(ms);
    let now = world.now().await;
    let drawing = world.draw(&["a", "b", "c"], &["a>b", "a>c"]);
    let drawing = drawing.with("b", later(now.after(500))).with("c", later(now.after(5_000)));
    let drawn = world.submit_flow(drawing).await;
    assert_eq!(world.states(&drawn, &["b", "c"]).await, [WaitingChildren, WaitingChildren]);
    world.pass(1_000).await;
    world.run(&drawn, "a").await;
    assert_eq!(world.states(&drawn, &["b", "c"]).await, [Waiting, PublicState::Delayed]);
    world.pass(4_000).await;
    assert_eq!(world.states(&drawn, &["c"]).await, [Waiting]);
}

pub async fn a_result_is_not_lost_when_the_end_resolves_edges(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &["a>b"])).await;
    let task = world.take(&drawn, "a").await;
    let result = Some(ff_core::content::Content::new("kept"));
    world.act(Complete { result: result.clone(), ..complete(&task) }).await;
    assert_eq!(world.result(drawn.id("a")).await.ok(), result);
}

pub async fn an_edge_that_is_not_satisfied_passes_no_payload(world: &World) {
    let drawing = world.draw(&["a", "c", "d"], &["a>d", "c>d"]).join("d", let_run(1));
    let passing = |edge: &mut GraphEdge| {
        edge.data_passing_ref = Some("payload".to_owned());
        edge.kind = EdgeKind::FailureOnly;
    };
    let drawn = world.submit_flow(drawing.edge("a>d", passing)).await;
    world.run(&drawn, "a").await;
    world.run(&drawn, "c").await;
    assert_eq!(world.take(&drawn, "d").await.payload, "");
}

pub async fn inputs_of_many_that_are_claimed_at_once_are_all_told(world: &World) {
    let members = ["a", "s", "b", "x", "d"];
    let drawing = world.draw(&members, &["a>s", "a>x"]).kind("a>x", EdgeKind::Always);
    let drawn = world.submit_flow(drawing).await;
    for name in ["a", "b"] {
        world.act(cancel(drawn.id(name))).await;
    }
    for (edge, apply) in [("s>d", true), ("b>d", false)] {
        let mut staged = stage(&drawn, edge);
        staged.edge.kind = EdgeKind::Always;
        world.act(StageEdge { apply, ..staged }).await;
    }
    let tasks = world.claim(50).await;
    let task = tasks.iter().find(|task| task.execution_id == drawn.id("d")).expect("d is claimed");
    assert_eq!(task.extras.inputs["s"].outcome, Outcome::Skipped);
}
