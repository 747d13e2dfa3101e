//! Work that needs a GPU goes to workers that have one. While there is none, it says so.

use anyhow::Result;
use clap::Parser as _;
use flowfabric::runtime::{Data, Payload};
use flowfabric::{Client, Submission, WorkerConfig, WorkerRuntime};
use flowfabric_examples::{PATIENCE, StoreArgs};

const LANE: &str = "render";

/// The machine that a worker runs on.
struct Machine(&'static str);

async fn render(Payload(scene): Payload<String>, machine: Data<Machine>) -> String {
    format!("{scene} rendered by {}", machine.0)
}

/// A worker of one machine, with what that machine can do.
fn worker(client: &Client, machine: &'static str, capabilities: &[&str]) -> WorkerRuntime {
    let mut config = WorkerConfig::new(machine).lane(LANE);
    for capability in capabilities {
        config = config.capability(*capability);
    }
    WorkerRuntime::with_client(client, config).data(Machine(machine)).on("render", render)
}

#[tokio::main]
async fn main() -> Result<()> {
    let store = StoreArgs::parse().open()?;
    let client = store.connect().await?;
    let work = |scene: &str| Submission::new("render").lane(LANE).json(scene);
    let sketch = client.submit(work("a sketch")?).await?;
    let film = client.submit(work("a film")?.requires("gpu").requires("cuda-12")).await?;

    let cpu = worker(&client, "cpu-box", &["avx2"]).spawn();
    println!("{}", sketch.wait_for_result::<String>(PATIENCE).await?);

    let why = film.explain().await?;
    println!("the film waits: {}", why.summary);
    println!("cause: {}", why.cause.as_str());
    for action in &why.unblock {
        println!("what would help: {}", action.summary);
    }

    let gpu = worker(&client, "gpu-box", &["avx2", "cuda-12", "gpu"]).spawn();
    println!("{}", film.wait_for_result::<String>(PATIENCE).await?);

    cpu.stop().await?;
    gpu.stop().await?;
    client.close().await?;
    Ok(())
}
