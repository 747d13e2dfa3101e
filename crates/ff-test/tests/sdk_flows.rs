//! Flows of the SDK, from the builder to the end of the last step.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::collections::BTreeMap;
use std::time::Duration;

use ff_core::error::Code;
use ff_core::operation::NewEdge;
use ff_core::state::{CancelPolicy, EdgeKind, FailureClass, FlowState, Join, OnSatisfied, Outcome};
use ff_sdk::runtime::{Failure, Task};
use ff_sdk::{Flow, FlowFabricWorker, Submission, WorkerRuntime};
use ff_test::sdk::Workshop;
use ff_test::world::PATIENCE;

ff_test::on_every_way! {
    results_go_from_step_to_step
    a_handler_reads_its_inputs
    the_first_answer_cancels_the_others
    a_quorum_lets_the_rest_run
    failures_are_handled_and_the_rest_is_skipped
    a_key_finds_the_first_flow
    a_cancelled_flow_has_ended_for_its_steps
    a_cancel_that_a_running_step_outlasts_is_a_timeout
    a_failed_flow_is_replayed
    a_flow_grows_step_by_step
    what_is_no_graph_is_never_sent
}

fn work(kind: &str) -> Submission {
    Submission::new(kind).lane("work")
}

/// Completes the next task with what it is of.
async fn complete_next(worker: &FlowFabricWorker) -> String {
    let task = worker.claim_next().await.unwrap().unwrap();
    let kind = task.execution_kind().to_string();
    task.complete(Some(format!("{kind} done").into())).await.unwrap();
    kind
}

async fn results_go_from_step_to_step(workshop: &Workshop) {
    let (client, worker) = (workshop.client(), workshop.worker().await);
    let media = Flow::new("media")
        .tag("film", "42")
        .step("probe", work("probe").payload("film.mov"))
        .step("video", work("video"))
        .after("probe")
        .as_payload()
        .step("sound", work("sound"))
        .after("probe")
        .input_as("source")
        .step("publish", work("publish"))
        .all_of(["video", "sound"]);
    let flow = client.submit_flow(media).await.unwrap();
    assert_eq!(flow.steps().len(), 4);
    assert!(flow.step("nobody").is_none());
    let waiting = tokio::spawn({
        let flow = flow.clone();
        async move { flow.wait(PATIENCE).await }
    });
    assert_eq!(complete_next(&worker).await, "probe");
    for _ in 0..2 {
        let task = worker.claim_next().await.unwrap().unwrap();
        let (kind, input) = (task.execution_kind().to_string(), task.inputs().clone());
        match kind.as_str() {
            "video" => assert_eq!(&task.input_payload()[..], b"probe done"),
            _ => assert!(input.contains_key("source"), "{input:?}"),
        }
        task.complete(Some(format!("{kind} done").into())).await.unwrap();
    }
    let publish = worker.claim_next().await.unwrap().unwrap();
    let inputs: Vec<&String> = publish.inputs().keys().collect();
    assert_eq!(inputs, ["sound", "video"]);
    publish.complete(None).await.unwrap();
    let finished = waiting.await.unwrap().unwrap();
    assert!(finished.is_success());
    assert_eq!(finished.flow.tags.get("film"), Some("42"));
}

/// Five of them are more than a claim brings along.
const LARGE: usize = 1_000_000;
const LARGES: [&str; 5] = ["large-1", "large-2", "large-3", "large-4", "large-5"];

async fn a_handler_reads_its_inputs(workshop: &Workshop) {
    async fn seven() -> u32 {
        7
    }
    async fn large() -> String {
        "x".repeat(LARGE)
    }
    async fn nothing() {}
    async fn sum(task: Task) -> Result<String, Failure> {
        let (mut came_along, mut bytes) = (0, 0);
        for name in LARGES {
            came_along += usize::from(task.info().inputs()[name].inline);
            bytes += task.input::<String>(name).await?.len();
        }
        let (seven, none): (u32, Option<u32>) = (task.input("n").await?, task.input("none").await?);
        let wrong = task.input::<u32>("large-1").await.unwrap_err();
        let stranger = task.input::<u32>("stranger").await.unwrap_err();
        let classes = [wrong.class(), stranger.class()];
        assert_eq!(classes, [FailureClass::Permanent; 2], "{wrong}, {stranger}");
        assert!(wrong.reason().len() < 200, "what stands there is not told");
        Ok(format!("{bytes} {} {seven} {none:?}", came_along < LARGES.len()))
    }
    let client = workshop.client();
    let worker = WorkerRuntime::with_client(&client, workshop.config())
        .on("seven", seven)
        .on("large", large)
        .on("nothing", nothing)
        .on("sum", sum)
        .spawn();
    let mut flow = Flow::new("sum").step("seven", work("seven")).step("none", work("nothing"));
    for name in LARGES {
        flow = flow.step(name, work("large"));
    }
    let flow = flow.step("sum", work("sum").max_retries(0)).all_of(LARGES);
    let flow = flow.after("none").after("seven").input_as("n");
    let flow = client.submit_flow(flow).await.unwrap();
    let sum: String = flow.step("sum").unwrap().wait_for_result(PATIENCE).await.unwrap();
    assert_eq!(sum, "5000000 true 7 None");
    worker.stop().await.unwrap();
}

async fn the_first_answer_cancels_the_others(workshop: &Workshop) {
    let (client, worker) = (workshop.client(), workshop.worker().await);
    let race = Flow::new("race")
        .step("large", work("large").priority(9))
        .step("small", work("small"))
        .step("answer", work("answer"))
        .any_of(["large", "small"])
        .cancel_remaining();
    let flow = client.submit_flow(race).await.unwrap();
    assert_eq!(complete_next(&worker).await, "large");
    workshop.pass(0).await;
    assert_eq!(complete_next(&worker).await, "answer");
    let finished = flow.wait(PATIENCE).await.unwrap();
    let small = flow.step("small").unwrap().wait(PATIENCE).await.unwrap();
    assert_eq!(small.outcome, Outcome::Cancelled);
    assert_eq!(finished.flow.node_count, 3);
}

async fn a_quorum_lets_the_rest_run(workshop: &Workshop) {
    let (client, worker) = (workshop.client(), workshop.worker().await);
    let vote = ["a", "b", "c"]
        .into_iter()
        .fold(Flow::new("vote"), |flow, name| flow.step(name, work("vote").priority(5)))
        .step("count", work("count").priority(9))
        .quorum(2, ["a", "b", "c"])
        .let_run();
    let flow = client.submit_flow(vote).await.unwrap();
    let mut kinds = Vec::new();
    for _ in 0..4 {
        kinds.push(complete_next(&worker).await);
    }
    assert_eq!(kinds, ["vote", "vote", "count", "vote"]);
    assert!(flow.wait(PATIENCE).await.unwrap().is_success());
}

async fn failures_are_handled_and_the_rest_is_skipped(workshop: &Workshop) {
    let (client, worker) = (workshop.client(), workshop.worker().await);
    let deploy = Flow::new("deploy")
        .step("build", work("build").max_retries(0))
        .step("ship", work("ship"))
        .after("build")
        .step("undo", work("undo"))
        .after_failure_of("build")
        .step("tell", work("tell"))
        .after_end_of("undo");
    let flow = client.submit_flow(deploy).await.unwrap();
    let build = worker.claim_next().await.unwrap().unwrap();
    build.fail("no space", "permanent").await.unwrap();
    assert_eq!(complete_next(&worker).await, "undo");
    assert_eq!(complete_next(&worker).await, "tell");
    flow.wait(PATIENCE).await.unwrap();
    let ship = flow.step("ship").unwrap().wait(PATIENCE).await.unwrap();
    assert_eq!(ship.outcome, Outcome::Skipped);
}

async fn a_key_finds_the_first_flow(workshop: &Workshop) {
    let client = workshop.client();
    let flow = |kind: &str| Flow::new(kind).idempotency_key("k").step("a", work("a"));
    let first = client.submit_flow(flow("one")).await.unwrap();
    let again = client.submit_flow(flow("one")).await.unwrap();
    assert_eq!((first.id(), first.steps()), (again.id(), again.steps()));
    assert!(!first.was_there_already() && again.was_there_already());
    let other = client.submit_flow(flow("two")).await.unwrap_err();
    assert_eq!(other.code(), Some(Code::IdempotencyMismatch));
}

async fn a_cancelled_flow_has_ended_for_its_steps(workshop: &Workshop) {
    let client = workshop.client();
    let flow = Flow::new("two").step("a", work("a")).step("b", work("b")).after("a");
    let flow = client.submit_flow(flow).await.unwrap();
    let policy = CancelPolicy::CancelAll;
    client.cancel_flow(flow.id(), policy, "enough", PATIENCE).await.unwrap();
    assert!(flow.cancel("again").await.unwrap().replayed);
    let finished = flow.wait(PATIENCE).await.unwrap();
    assert_eq!(finished.state, FlowState::Cancelled);
    for name in ["a", "b"] {
        let step = flow.step(name).unwrap().wait(PATIENCE).await.unwrap();
        assert_eq!(step.outcome, Outcome::Cancelled, "{name}");
    }
    assert!(!client.list_flow_events(flow.id(), 0).await.unwrap().items.is_empty());
    client.delete_flow(flow.id()).await.unwrap();
    let gone = flow.describe().await.unwrap_err();
    assert_eq!(gone.code(), Some(Code::FlowNotFound));
}

async fn a_cancel_that_a_running_step_outlasts_is_a_timeout(workshop: &Workshop) {
    let (client, worker) = (workshop.client(), workshop.worker().await);
    let flow = client.submit_flow(Flow::new("one").step("a", work("a"))).await.unwrap();
    let task = worker.claim_next().await.unwrap().unwrap();
    let (policy, short) = (CancelPolicy::CancelPending, Duration::from_millis(50));
    let late = client.cancel_flow(flow.id(), policy, "enough", short).await.unwrap_err();
    assert_eq!(late.code(), Some(Code::Timeout));
    assert_eq!(flow.describe().await.unwrap().state, FlowState::Cancelled, "the cancel stands");
    task.complete(None).await.unwrap();
    client.cancel_flow(flow.id(), policy, "enough", PATIENCE).await.unwrap();
}

async fn a_failed_flow_is_replayed(workshop: &Workshop) {
    let (client, worker) = (workshop.client(), workshop.worker().await);
    let flow = Flow::new("one").step("a", work("a").max_retries(0));
    let flow = client.submit_flow(flow).await.unwrap();
    let task = worker.claim_next().await.unwrap().unwrap();
    task.fail("no", "permanent").await.unwrap();
    assert_eq!(flow.wait(PATIENCE).await.unwrap().state, FlowState::Failed);
    client.replay_flow(flow.id(), None).await.unwrap();
    assert_eq!(complete_next(&worker).await, "a");
    assert!(flow.wait(PATIENCE).await.unwrap().is_success());
}

async fn a_flow_grows_step_by_step(workshop: &Workshop) {
    let (client, worker) = (workshop.client(), workshop.worker().await);
    let flow = client.create_flow("grown", BTreeMap::new()).await.unwrap();
    let first = client.submit_to_flow(flow, Some("first"), work("first")).await.unwrap();
    let second = client.submit_to_flow(flow, Some("second"), work("second").held()).await.unwrap();
    let edge = NewEdge {
        upstream: first.id(),
        downstream: second.id(),
        kind: EdgeKind::SuccessOnly,
        name: None,
        data_passing_ref: None,
    };
    let any = Join::AnyOf(OnSatisfied::LetRun);
    worker.set_edge_group_policy(flow, second.id(), any).await.unwrap();
    client.add_edge(flow, edge.clone()).await.unwrap();
    let again = client.add_edge(flow, edge).await.unwrap_err();
    assert_eq!(again.code(), Some(Code::DependencyAlreadyExists));
    client.release(second.id()).await.unwrap();
    assert_eq!(complete_next(&worker).await, "first");
    assert_eq!(complete_next(&worker).await, "second");
    assert!(client.wait_for_flow(flow, PATIENCE).await.unwrap().is_success());
    assert_eq!(client.list_flow_members(flow, 0).await.unwrap().items.len(), 2);
    assert_eq!(client.list_edges(flow, (0, 0)).await.unwrap().items.len(), 1);
    assert_eq!(worker.describe_flow(flow).await.unwrap().edge_count, 1);
}

async fn what_is_no_graph_is_never_sent(workshop: &Workshop) {
    let client = workshop.client();
    let circle =
        Flow::new("circle").step("a", work("a")).after("b").step("b", work("b")).after("a");
    let refused = client.submit_flow(circle).await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::CycleDetected));
    let unknown = Flow::new("unknown").step("a", work("a")).after("nobody");
    let refused = client.submit_flow(unknown).await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::ExecutionNotInFlow));
    assert!(refused.to_string().contains("nobody"), "{refused}");
    let found = client.list_flows(Default::default(), None, 50).await.unwrap();
    assert!(found.items.is_empty());
}
