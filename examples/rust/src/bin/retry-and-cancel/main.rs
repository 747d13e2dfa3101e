//! Two ways to end what is not wanted any more: between two attempts, and while it runs.

use std::sync::Arc;

use anyhow::Result;
use clap::Parser as _;
use flowfabric::core::event::EventKind;
use flowfabric::core::read::EventFilter;
use flowfabric::runtime::{Data, Failure, Task, TaskInfo};
use flowfabric::{Client, EventSubscription, StopReason, Submission, WorkerConfig, WorkerRuntime};
use flowfabric_examples::{PATIENCE, StoreArgs};
use tokio::sync::Notify;

const LANE: &str = "sync";
const POLICY: &str = r#"{"retry_policy": {"max_retries": 100, "backoff":
    {"type": "exponential", "initial_delay_ms": 50, "max_delay_ms": 60000, "multiplier": 4.0}}}"#;

/// A partner that is down, and stays down.
async fn fetch_orders(info: TaskInfo) -> Result<(), Failure> {
    println!("fetch-orders: attempt {} fails", info.attempt_index());
    Err(Failure::transient("the partner does not answer").category("partner_down"))
}

/// Runs until it is told not to, and cleans up behind itself.
async fn mirror(task: Task, tidied: Data<Arc<Notify>>) -> Result<(), Failure> {
    task.update_progress(10, "mirroring").await?;
    task.cancelled().await;
    if let Some(StopReason::Cancelled { reason }) = task.stop_reason() {
        println!("mirror: {reason}; removing what was copied");
    }
    tidied.notify_one();
    Err(Failure::transient("told to stop"))
}

#[tokio::main]
async fn main() -> Result<()> {
    let store = StoreArgs::parse().open()?;
    let client = store.connect().await?;
    let tidied = Arc::<Notify>::default();
    let worker = WorkerRuntime::with_client(&client, WorkerConfig::new("syncer").lane(LANE))
        .data(Arc::clone(&tidied))
        .on("fetch-orders", fetch_orders)
        .on("mirror", mirror)
        .spawn();

    let mut retries = events(&client, EventKind::RetryScheduled).await?;
    let fetch = Submission::new("fetch-orders").lane(LANE).policy_json(POLICY)?;
    let fetch = client.submit(fetch).await?;
    for _ in 0..3 {
        retries.next_about(fetch.id()).await?;
    }
    println!("fetch-orders: {}", fetch.explain().await?.summary);
    fetch.cancel("the partner is closed today").await?;
    println!("fetch-orders {}", fetch.wait(PATIENCE).await?);

    let mut begun = events(&client, EventKind::Progressed).await?;
    let mirror = client.submit(Submission::new("mirror").lane(LANE)).await?;
    begun.next_about(mirror.id()).await?;
    mirror.cancel("the disk is needed").await?;
    println!("mirror {}", mirror.wait(PATIENCE).await?);
    // The execution has ended at once; its handler hears of it within a second.
    tidied.notified().await;

    // A second thought: what has ended is run once more, as a new attempt.
    client.replay(mirror.id(), false).await?;
    begun.next_about(mirror.id()).await?;
    let attempts = mirror.describe().await?.total_attempt_count;
    println!("mirror runs again, in attempt {attempts} of its life");
    mirror.cancel("for good").await?;
    tidied.notified().await;

    worker.stop().await?;
    client.close().await?;
    Ok(())
}

/// Events of one kind, from now on.
async fn events(client: &Client, kind: EventKind) -> Result<EventSubscription> {
    let filter = EventFilter { kinds_of_event: vec![kind], ..EventFilter::default() };
    let mut events = client.subscribe(filter);
    events.begin().await?;
    Ok(events)
}
