//! A worker as it runs in production: layers around its handlers, limits for each kind of work, and
//! a stop on SIGTERM that lets running work end.

use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser as _;
use flowfabric::layers::{CircuitBreaker, Metrics, RateLimit, TraceTasks};
use flowfabric::runtime::{
    Failure, HandlerOptions, Payload, Task, TaskCall, TaskLayer, TaskService,
};
use flowfabric::{Client, Submission, WorkerConfig, WorkerRuntime};
use flowfabric_examples::StoreArgs;
use tower::ServiceExt as _;

const LANE: &str = "shop";

async fn resize(Payload(image): Payload<u32>) -> String {
    tokio::time::sleep(Duration::from_millis(20)).await;
    format!("image {image}")
}

async fn mail(Payload(to): Payload<String>) -> String {
    format!("mail to {to}")
}

/// Takes longer than anybody wants to wait for: told to stop, the runtime lets it end.
async fn report(task: Task) -> Result<&'static str, Failure> {
    println!("report begins");
    for percent in (0..=100).step_by(5) {
        task.update_progress(percent, "adding up").await?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    println!("report is done");
    Ok("all is well")
}

/// A layer of one's own: whatever a handler answers passes through it.
fn stopwatch() -> impl TaskLayer {
    tower::layer::layer_fn(|inner: TaskService| {
        tower::service_fn(move |call: TaskCall| {
            let (inner, kind) = (inner.clone(), call.info().kind().clone());
            async move {
                let begun = Instant::now();
                let answer = inner.oneshot(call).await;
                println!("{kind} took {} ms", begun.elapsed().as_millis());
                answer
            }
        })
    })
}

#[tokio::main]
async fn main() -> Result<()> {
    let store = StoreArgs::parse().open()?;
    let client = store.connect().await?;
    submit(&client).await?;
    let metrics = Metrics::default();
    let config = WorkerConfig::new("shop").lane(LANE).max_concurrent_tasks(8);
    let worker = WorkerRuntime::with_client(&client, config)
        .grace(Duration::from_secs(30))
        .layer(TraceTasks)
        .metrics(&metrics)
        .layer(CircuitBreaker::new())
        .layer(stopwatch())
        .on_with("resize", resize, HandlerOptions::new().concurrency(2))
        .on_with("mail", mail, HandlerOptions::new().layer(RateLimit::per_second(20.0)))
        .on_with("report", report, HandlerOptions::new().timeout(Duration::from_secs(60)));

    println!("process {} works; SIGTERM or Ctrl-C stops it", std::process::id());
    worker.run_until_stopped().await?;
    println!("stopped: nothing runs any more, and what was not begun waits for another worker");
    for line in metrics.text()?.lines() {
        if line.starts_with("ff_handler_duration_seconds_count") {
            println!("{line}");
        }
    }
    client.close().await?;
    Ok(())
}

async fn submit(client: &Client) -> Result<()> {
    let work = |kind: &str| Submission::new(kind).lane(LANE);
    for image in 1..=4 {
        client.submit(work("resize").json(&image)?).await?;
    }
    for person in ["ada", "ben"] {
        client.submit(work("mail").json(person)?).await?;
    }
    client.submit(work("report")).await?;
    Ok(())
}
