//! What members hand on: inputs by the names of edges, and payloads.

use ff_core::backend::BackendExt;
use ff_core::content::Content;
use ff_core::id::ContentType;
use ff_core::operation::Complete;
use ff_core::read::ReadContext;
use ff_core::state::{EdgeKind, Outcome};

use crate::graphs::any_of;
use crate::world::{World, complete};

fn some(text: &str) -> String {
    text.to_owned()
}

pub async fn a_task_gets_the_results_of_satisfied_edges_by_name(world: &World) {
    let drawing = world.draw(&["a", "b", "c", "d"], &["a>d", "b>d", "c>d"]);
    let drawing = drawing.edge("b>d", |edge| edge.name = Some(some("second")));
    let drawn = world.submit_flow(drawing.kind("c>d", EdgeKind::Always)).await;
    world.run(&drawn, "a").await;
    world.run(&drawn, "b").await;
    world.break_down(&drawn, "c").await;
    let task = world.take(&drawn, "d").await;
    assert_eq!(task.flow_id, Some(drawn.flow_id));
    assert_eq!(task.member_name.as_deref(), Some("d"));
    let inputs = &task.extras.inputs;
    assert_eq!(inputs.keys().collect::<Vec<_>>(), ["a", "c", "second"]);
    assert_eq!(inputs["a"].result, Some(Content::new("result of a")));
    assert_eq!(inputs["second"].result, Some(Content::new("result of b")));
    assert_eq!((inputs["c"].outcome, &inputs["c"].result), (Outcome::Failed, &None));
    assert!(inputs.values().all(|input| input.inline));
}

pub async fn only_satisfied_edges_are_inputs(world: &World) {
    let drawing = world.draw(&["a", "b", "d"], &["a>d", "b>d"]).join("d", any_of());
    let drawn = world.submit_flow(drawing).await;
    world.break_down(&drawn, "a").await;
    world.run(&drawn, "b").await;
    let task = world.take(&drawn, "d").await;
    assert_eq!(task.extras.inputs.keys().collect::<Vec<_>>(), ["b"]);
}

pub async fn a_claim_brings_the_same_inputs(world: &World) {
    let drawn = world.submit_flow(world.draw(&["a", "b"], &["a>b"])).await;
    world.run(&drawn, "a").await;
    let task = world.claim_one().await;
    assert_eq!(task.execution_id, drawn.id("b"));
    assert_eq!(task.extras.inputs["a"].result, Some(Content::new("result of a")));
    world.act(crate::world::revoke(task.execution_id)).await;
    let again = world.claim_one().await;
    assert_eq!(again.extras.inputs, task.extras.inputs);
}

pub async fn results_that_are_too_large_are_named_and_left_out(world: &World) {
    let names = ["a", "b", "c", "e", "f"];
    let mut members = names.to_vec();
    members.push("z");
    let drawn = world.submit_flow(world.draw(&members, &["a>z", "b>z", "c>z", "e>z", "f>z"])).await;
    for name in names {
        let task = world.take(&drawn, name).await;
        let result = Some(Content::new(vec![7_u8; 1 << 20]));
        world.act(Complete { result, ..complete(&task) }).await;
    }
    let task = world.take(&drawn, "z").await;
    let inputs = &task.extras.inputs;
    let inline: Vec<_> = names.iter().map(|name| inputs[*name].inline).collect();
    assert_eq!(inline, [true, true, true, true, false]);
    assert_eq!(inputs["f"].result, None);
    assert_eq!(inputs["f"].execution_id, drawn.id("f"));
}

pub async fn a_result_becomes_the_payload(world: &World) {
    let drawing = world.draw(&["a", "b", "c"], &["a>b", "a>c"]);
    let drawing = drawing.edge("a>b", |edge| edge.data_passing_ref = Some(some("payload")));
    let drawing = drawing.with("b", |submit| submit.payload = Content::new("before"));
    let drawn = world.submit_flow(drawing).await;
    let task = world.take(&drawn, "a").await;
    let json = ContentType::new("application/json").unwrap();
    let result = Content { content_type: json.clone(), bytes: "[1]".into() };
    world.act(Complete { result: Some(result), ..complete(&task) }).await;
    let task = world.take(&drawn, "b").await;
    assert_eq!((&task.payload[..], &task.content_type), (&b"[1]"[..], &json));
    let context = world.backend.ask(ReadContext { execution_id: drawn.id("b") }).await.unwrap();
    assert_eq!(context.map(|context| context.payload), Some("[1]".into()));
    assert!(world.take(&drawn, "c").await.payload.is_empty());
}

pub async fn without_a_result_the_payload_stays(world: &World) {
    let drawing = world.draw(&["a", "b"], &["a>b"]);
    let drawing = drawing.edge("a>b", |edge| edge.data_passing_ref = Some(some("payload")));
    let drawing = drawing.with("b", |submit| submit.payload = Content::new("before"));
    let drawn = world.submit_flow(drawing).await;
    world.complete(&world.take(&drawn, "a").await).await.unwrap();
    assert_eq!(&world.take(&drawn, "b").await.payload[..], b"before");
}

pub async fn the_same_name_twice_loses_nothing(world: &World) {
    let drawing = world.draw(&["a", "b", "c"], &["a>c", "b>c"]);
    let drawing = drawing.edge("a>c", |edge| edge.name = Some(some("x")));
    let drawn = world.submit_flow(drawing.edge("b>c", |edge| edge.name = Some(some("x")))).await;
    world.run(&drawn, "a").await;
    world.run(&drawn, "b").await;
    let task = world.take(&drawn, "c").await;
    let mut results: Vec<_> =
        task.extras.inputs.values().filter_map(|input| input.result.clone()).collect();
    results.sort_by(|a, b| a.bytes.cmp(&b.bytes));
    assert_eq!(results, [Content::new("result of a"), Content::new("result of b")]);
}
