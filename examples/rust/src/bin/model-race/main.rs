//! Three models are asked at once. The first answer counts, and the others are told to stop.

use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Parser as _;
use flowfabric::runtime::{Failure, Payload, Task, TaskInfo};
use flowfabric::{Flow, StopReason, Submission, WorkerConfig, WorkerRuntime};
use flowfabric_examples::{PATIENCE, StoreArgs};
use serde::{Deserialize, Serialize};

const LANE: &str = "models";
const MODELS: [(&str, u64); 3] = [("large", 50_000), ("medium", 40_000), ("small", 300)];

#[derive(Serialize, Deserialize)]
struct Question {
    model: String,
    takes_ms: u64,
}

/// A call of a model that costs money for as long as it runs: a loser ends it at once.
async fn ask(Payload(question): Payload<Question>, task: Task) -> Result<String, Failure> {
    let Question { model, takes_ms } = question;
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(takes_ms)) => {
            println!("{model} answers");
            Ok(format!("42, says {model}"))
        }
        () = task.cancelled() => {
            let why = match task.stop_reason() {
                Some(StopReason::Cancelled { reason }) => format!("cancelled: {reason}"),
                other => format!("{other:?}"),
            };
            println!("{model} stops ({why})");
            Err(Failure::transient("told to stop"))
        }
    }
}

/// Runs when the first of the models has answered, and is given that answer.
async fn publish(task: Task, info: TaskInfo) -> Result<String, Failure> {
    let winner = info.inputs().keys().next().ok_or("nobody has answered")?;
    task.input(winner).await
}

#[tokio::main]
async fn main() -> Result<()> {
    let store = StoreArgs::parse().open()?;
    let client = store.connect().await?;
    let worker = WorkerRuntime::with_client(&client, WorkerConfig::new("asker").lane(LANE))
        .on("ask", ask)
        .on("publish", publish)
        .spawn();

    let mut race = Flow::new("race");
    for (model, takes_ms) in MODELS {
        let question = Question { model: model.to_owned(), takes_ms };
        race = race.step(model, Submission::new("ask").lane(LANE).json(&question)?);
    }
    let models = MODELS.map(|(model, _)| model);
    let publish = Submission::new("publish").lane(LANE);
    let flow = race.step("publish", publish).any_of(models).cancel_remaining();
    let flow = client.submit_flow(flow).await?;

    let finished = flow.wait(PATIENCE).await?;
    let published = flow.step("publish").context("a step of the flow")?;
    println!("published: {}", published.result::<String>().await?);
    // The models that were too slow are told within a second, and the worker waits for them.
    worker.stop().await?;
    for model in models {
        let step = flow.step(model).context("a step of the flow")?;
        println!("{model}: {}", step.wait(PATIENCE).await?);
    }
    println!("the flow is {}", finished.state.as_str());
    client.close().await?;
    Ok(())
}
