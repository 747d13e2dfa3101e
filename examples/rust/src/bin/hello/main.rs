//! A worker that is one function, and a client that waits for its result.

use anyhow::Result;
use clap::Parser as _;
use flowfabric::runtime::Payload;
use flowfabric::{Submission, WorkerConfig, WorkerRuntime};
use flowfabric_examples::{PATIENCE, StoreArgs};

async fn greet(Payload(name): Payload<String>) -> String {
    format!("hello {name}")
}

#[tokio::main]
async fn main() -> Result<()> {
    let store = StoreArgs::parse().open()?;
    let client = store.connect().await?;
    let config = WorkerConfig::new("greeter").lane("hello");
    let worker = WorkerRuntime::with_client(&client, config).on("greet", greet).spawn();

    let work = Submission::new("greet").lane("hello").json("Ada")?;
    let execution = client.submit(work).await?;
    println!("submitted {}", execution.id());
    let greeting: String = execution.wait_for_result(PATIENCE).await?;
    println!("{greeting}");

    worker.stop().await?;
    client.close().await?;
    Ok(())
}
