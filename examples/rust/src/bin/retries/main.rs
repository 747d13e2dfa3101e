//! Three ways to fail: for a while, for good, and by a panic.

use anyhow::Result;
use clap::Parser as _;
use flowfabric::runtime::{Failure, Payload, TaskInfo};
use flowfabric::{Client, Execution, Submission, WorkerConfig, WorkerRuntime};
use flowfabric_examples::{PATIENCE, StoreArgs};

const LANE: &str = "retries";

/// The first retry after 100 ms, the next after 200 ms, and so on up to a second.
const POLICY: &str = r#"{"retry_policy": {"max_retries": 5, "backoff":
    {"type": "exponential", "initial_delay_ms": 100, "max_delay_ms": 1000, "multiplier": 2.0}}}"#;

/// The bank is busy twice. Every error is tried again unless it says otherwise.
async fn charge(info: TaskInfo) -> Result<String, Failure> {
    if info.attempt_index() < 2 {
        return Err(Failure::transient("the bank is busy").category("busy"));
    }
    Ok(format!("charged, after {} retries", info.retry_count()))
}

/// No retry brings back an order that never was.
async fn refund(Payload(order): Payload<u32>) -> Result<(), Failure> {
    Err(Failure::permanent(format!("there is no order {order}")).category("unknown_order"))
}

/// A panic ends the attempt and not the worker.
async fn print_receipt(info: TaskInfo) -> String {
    match info.previous_failure() {
        None => panic!("the printer is on fire"),
        Some(failure) => format!("printed, after {}", failure.category),
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let store = StoreArgs::parse().open()?;
    let client = store.connect().await?;
    let worker = WorkerRuntime::with_client(&client, WorkerConfig::new("shop").lane(LANE))
        .on("charge", charge)
        .on("refund", refund)
        .on("print-receipt", print_receipt)
        .spawn();

    for (kind, order) in [("charge", 16), ("refund", 17), ("print-receipt", 18)] {
        let work = Submission::new(kind).lane(LANE).json(&order)?.policy_json(POLICY)?;
        let execution = client.submit(work).await?;
        tell(&client, kind, &execution).await?;
    }

    worker.stop().await?;
    client.close().await?;
    Ok(())
}

/// Waits for the end, and shows every attempt on the way there.
async fn tell(client: &Client, kind: &str, execution: &Execution) -> Result<()> {
    let finished = execution.wait(PATIENCE).await?;
    println!("{kind} {finished}");
    let attempts = client.list_attempts(execution.id(), None).await?.items;
    let Some(first) = attempts.first().map(|attempt| attempt.started_at) else { return Ok(()) };
    for attempt in &attempts {
        let (number, kind) = (attempt.index, attempt.kind.as_str());
        let after = attempt.started_at.since(first);
        let ended = attempt.failure_reason.as_deref().unwrap_or("success");
        println!("  attempt {number} ({kind}) after {after} ms: {ended}");
    }
    if finished.is_success() {
        println!("  result: {}", execution.result::<String>().await?);
    }
    Ok(())
}
