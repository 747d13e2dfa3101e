//! How the runtime stops: one task, or all of them.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use ff_core::backend::BackendExt as _;
use ff_core::id::ExecutionId;
use ff_core::state::PublicState;
use ff_sdk::runtime::{Data, Failure, Task, WorkerRuntime};
use ff_sdk::{SdkError, StopReason, WorkerConfig};
use ff_test::sdk::{Running, Workshop};
use ff_test::world::{PATIENCE, cancel, revoke};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

ff_test::on_every_way! {
    a_cancel_reaches_the_handler_within_a_second
    a_handler_that_does_not_stop_is_dropped
    a_lease_that_is_lost_mid_handler
    a_shutdown_lets_tasks_end
    a_shutdown_gives_the_rest_to_others
    what_is_done_while_stopping_is_kept
    a_drained_worker_ends_its_runtime
    a_runtime_over_a_client_leaves_its_connection
    a_runtime_that_is_dropped_takes_its_handlers_along
}

/// What handlers say, and whether they may end.
#[derive(Clone)]
struct Stage {
    said: mpsc::UnboundedSender<&'static str>,
    may_end: Arc<Semaphore>,
}

struct Heard(mpsc::UnboundedReceiver<&'static str>);

impl Heard {
    async fn next(&mut self) -> &'static str {
        timeout(PATIENCE, self.0.recv()).await.expect("in time").expect("a handler")
    }
}

fn stage() -> (Stage, Heard) {
    let (said, heard) = mpsc::unbounded_channel();
    (Stage { said, may_end: Arc::new(Semaphore::new(0)) }, Heard(heard))
}

impl Stage {
    fn say(&self, what: &'static str) {
        let _ = self.said.send(what);
    }
}

/// Says that it has begun, and ends when it may.
async fn patient(stage: Data<Stage>) -> &'static str {
    stage.say("begun");
    stage.may_end.acquire().await.unwrap().forget();
    "done"
}

/// Stops when it is told to, and says why.
async fn obedient(stage: Data<Stage>, task: Task) -> Result<(), Failure> {
    stage.say("begun");
    task.cancelled().await;
    stage.say(match task.stop_reason() {
        Some(StopReason::Cancelled { .. }) => "cancelled",
        Some(StopReason::LeaseLost { .. }) => "lost",
        Some(StopReason::ShuttingDown) => "shutting down",
        None => "no reason",
    });
    Err(Failure::permanent("stopped"))
}

/// Does not stop, and says when it was dropped.
async fn stubborn(stage: Data<Stage>) {
    struct Gone(Data<Stage>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.say("dropped");
        }
    }
    stage.say("begun");
    let _gone = Gone(stage);
    std::future::pending::<()>().await;
}

async fn runtime(workshop: &Workshop, stage: Stage) -> WorkerRuntime {
    let runtime = workshop.runtime().await.data(stage);
    runtime.on("patient", patient).on("obedient", obedient).on("stubborn", stubborn)
}

async fn a_cancel_reaches_the_handler_within_a_second(workshop: &Workshop) {
    let (stage, mut heard) = stage();
    let running = Running::start(runtime(workshop, stage).await);
    let id = workshop.submit_kind("obedient").await;
    assert_eq!(heard.next().await, "begun");
    let begun = Instant::now();
    workshop.store().call(cancel(id)).await.unwrap();
    assert_eq!(heard.next().await, "cancelled");
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    running.stop().await;
    let record = workshop.describe(id).await;
    assert_eq!(record.state.public_state, PublicState::Cancelled);
    assert_eq!(record.failure_reason, None, "what it returned came too late");
}

async fn a_handler_that_does_not_stop_is_dropped(workshop: &Workshop) {
    let (stage, mut heard) = stage();
    let runtime = runtime(workshop, stage).await.stop_grace(Duration::from_millis(20));
    let running = Running::start(runtime);
    let id = workshop.submit_kind("stubborn").await;
    assert_eq!(heard.next().await, "begun");
    workshop.store().call(cancel(id)).await.unwrap();
    assert_eq!(heard.next().await, "dropped");
    running.stop().await;
}

async fn a_lease_that_is_lost_mid_handler(workshop: &Workshop) {
    let (stage, mut heard) = stage();
    let running = Running::start(runtime(workshop, stage.clone()).await);
    let id = workshop.submit_kind("obedient").await;
    assert_eq!(heard.next().await, "begun");
    workshop.store().call(revoke(id)).await.unwrap();
    // Claimable again at once, and taken up by the same worker, maybe before the other call hears
    // that its lease is lost.
    let mut both = [heard.next().await, heard.next().await];
    both.sort_unstable();
    assert_eq!(both, ["begun", "lost"]);
    let record = workshop.describe(id).await;
    assert_eq!((record.lease_reclaim_count, record.failure_reason), (1, None));
    workshop.store().call(cancel(id)).await.unwrap();
    assert_eq!(heard.next().await, "cancelled");
    running.stop().await;
}

async fn a_shutdown_lets_tasks_end(workshop: &Workshop) {
    let (stage, mut heard) = stage();
    let may_end = Arc::clone(&stage.may_end);
    let worker = workshop.worker().await;
    let runtime = WorkerRuntime::new(worker.clone()).data(stage).on("patient", patient);
    let running = Running::start(runtime);
    let id = workshop.submit_kind("patient").await;
    assert_eq!(heard.next().await, "begun");
    let stopping = tokio::spawn(running.stop());
    worker.drained().await;
    let late = workshop.submit_kind("patient").await;
    may_end.add_permits(1);
    stopping.await.unwrap();
    assert_eq!(workshop.result(id).await.as_deref(), Some(r#""done""#));
    let late = workshop.describe(late).await;
    assert_eq!(late.state.public_state, PublicState::Waiting, "nothing more is claimed");
}

/// Whether another worker can claim it at once.
async fn is_claimable(workshop: &Workshop, id: ExecutionId) {
    let other = workshop.worker().await;
    let task = other.claim_next().await.unwrap().expect("a task at once");
    assert_eq!(task.execution_id(), id);
    task.complete(None).await.unwrap();
}

async fn a_shutdown_gives_the_rest_to_others(workshop: &Workshop) {
    for kind in ["obedient", "stubborn"] {
        let (stage, mut heard) = stage();
        let runtime = runtime(workshop, stage).await.grace(Duration::ZERO);
        let running = Running::start(runtime.stop_grace(Duration::from_millis(20)));
        let id = workshop.submit_kind(kind).await;
        assert_eq!(heard.next().await, "begun");
        running.stop().await;
        let last = if kind == "obedient" { "shutting down" } else { "dropped" };
        assert_eq!(heard.next().await, last);
        is_claimable(workshop, id).await;
        assert_eq!(workshop.describe(id).await.failure_reason, None);
    }
}

async fn what_is_done_while_stopping_is_kept(workshop: &Workshop) {
    let finish = |stage: Data<Stage>, task: Task| async move {
        stage.say("begun");
        task.cancelled().await;
        "saved"
    };
    let (stage, mut heard) = stage();
    let runtime = workshop.runtime().await.data(stage).grace(Duration::ZERO);
    let running = Running::start(runtime.on("finish", finish));
    let id = workshop.submit_kind("finish").await;
    assert_eq!(heard.next().await, "begun");
    running.stop().await;
    assert_eq!(workshop.result(id).await.as_deref(), Some(r#""saved""#));
}

async fn a_drained_worker_ends_its_runtime(workshop: &Workshop) {
    let (stage, mut heard) = stage();
    let may_end = Arc::clone(&stage.may_end);
    let worker = workshop.worker().await;
    let runtime = WorkerRuntime::new(worker.clone()).data(stage).on("patient", patient);
    let running = Running::start(runtime.grace(Duration::ZERO));
    let id = workshop.submit_kind("patient").await;
    assert_eq!(heard.next().await, "begun");
    worker.drain();
    may_end.add_permits(1);
    running.end().await;
    assert_eq!(workshop.result(id).await.as_deref(), Some(r#""done""#), "it had its time");
}

/// The field that a runtime finds wrong.
async fn a_runtime_over_a_client_leaves_its_connection(workshop: &Workshop) {
    async fn work() -> &'static str {
        "done"
    }
    let client = workshop.client();
    for _ in 0..2 {
        let worker = WorkerRuntime::with_client(&client, workshop.config()).on("work", work);
        let worker = worker.spawn();
        let id = workshop.submit_kind("work").await;
        assert_eq!(client.wait_for_outcome(id, PATIENCE).await.unwrap().to_string(), "completed");
        worker.stop().await.unwrap();
        assert_eq!(client.list_workers(None).await.unwrap().items, [], "it has left");
    }
}

async fn a_runtime_that_is_dropped_takes_its_handlers_along(workshop: &Workshop) {
    let (stage, mut heard) = stage();
    let running = runtime(workshop, stage).await.spawn();
    workshop.submit_kind("stubborn").await;
    assert_eq!(heard.next().await, "begun");
    drop(running);
    assert_eq!(heard.next().await, "dropped");
}

async fn mistake(runtime: WorkerRuntime) -> &'static str {
    match runtime.run(std::future::ready(())).await {
        Err(SdkError::Config { field, .. }) => field,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn mistakes_are_told_before_anything_runs() {
    async fn work() {}
    let config = || WorkerConfig::new("w").url("sqlite::memory:");
    let new = || WorkerRuntime::connect(config());
    let none_at_a_time = ff_sdk::runtime::HandlerOptions::new().concurrency(0);
    for (runtime, field) in [
        (new(), "handlers"),
        (new().on("k", work).on("k", work), "kind"),
        (new().on("", work), "kind"),
        (new().on("k", work).max_concurrent(0), "max_concurrent"),
        (new().on_with("k", work, none_at_a_time), "concurrency"),
        (new().on("k", work).data(1u8).data(2u8), "data"),
        (
            WorkerRuntime::connect(config().max_concurrent_tasks(0)).on("k", work),
            "max_concurrent_tasks",
        ),
        (WorkerRuntime::connect(config().url("ftp://x")).on("k", work), "url"),
        (WorkerRuntime::connect(config().lanes([""; 0])).on("k", work), "lanes"),
    ] {
        assert_eq!(mistake(runtime).await, field);
    }
}

/// The first signal lets tasks end, the second does not.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_stops_at_once() {
    let (stage, mut heard) = stage();
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("ff.db").display());
    let config = WorkerConfig::new("w").url(&url).lane("work");
    let worker = ff_sdk::FlowFabricWorker::connect(config).await.unwrap();
    let id = ExecutionId::solo(uuid::Uuid::now_v7(), &worker.partition_config());
    let kind = ff_core::id::Kind::new("stubborn").unwrap();
    let submit = ff_core::operation::Submit::new(id, ff_test::world::lane("work"), kind);
    worker.backend().call(submit).await.unwrap();
    let runtime = WorkerRuntime::new(worker.clone()).data(stage).on("stubborn", stubborn);
    let ended = tokio::spawn(runtime.run_until_stopped());
    assert_eq!(heard.next().await, "begun");
    signal("TERM");
    worker.drained().await;
    signal("INT");
    assert_eq!(heard.next().await, "dropped");
    timeout(PATIENCE, ended).await.unwrap().unwrap().unwrap();
}

/// Sends a signal to this process.
#[cfg(unix)]
fn signal(name: &str) {
    let pid = std::process::id().to_string();
    let sent = std::process::Command::new("kill").args(["-s", name, &pid]).status();
    assert!(sent.unwrap().success());
}
