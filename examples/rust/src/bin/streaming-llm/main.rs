//! A model writes word by word; a reader sees each word when it is written.

use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Parser as _;
use flowfabric::core::state::FrameMode;
use flowfabric::runtime::{Data, Failure, Payload, Task};
use flowfabric::{Execution, Submission, WorkerConfig, WorkerRuntime};
use flowfabric_examples::{PATIENCE, StoreArgs};
use serde_json::json;

const LANE: &str = "chat";

/// Stands for a model that takes its time over every token.
struct Model {
    pace: Duration,
}

impl Model {
    fn tokens(&self, question: &str) -> impl Iterator<Item = String> + use<> {
        let answer = format!("You asked {question:?}. The store keeps what the worker has said.");
        answer.split_inclusive(' ').map(str::to_owned).collect::<Vec<_>>().into_iter()
    }
}

/// Each token is a frame of the attempt's output, and a summary beside it says how far it is:
/// whoever comes late reads the summary, whoever watches reads the frames.
async fn answer(
    Payload(question): Payload<String>,
    model: Data<Model>,
    task: Task,
) -> Result<u32, Failure> {
    let mut words = 0;
    for token in model.tokens(&question) {
        tokio::select! {
            () = tokio::time::sleep(model.pace) => {}
            () = task.cancelled() => return Err(Failure::transient("told to stop")),
        }
        task.append_frame("token", token, None).await?;
        words += 1;
        let summary = json!({ "model": "fake-1", "words": words }).to_string();
        let mode = FrameMode::DurableSummary;
        task.append_frame_with_mode("summary", summary, None, mode).await?;
    }
    Ok(words)
}

#[tokio::main]
async fn main() -> Result<()> {
    let store = StoreArgs::parse().open()?;
    let client = store.connect().await?;
    let worker = WorkerRuntime::with_client(&client, WorkerConfig::new("talker").lane(LANE))
        .data(Model { pace: Duration::from_millis(40) })
        .on("answer", answer)
        .spawn();

    let work = Submission::new("answer").lane(LANE).json("what is kept?")?;
    let execution = client.submit(work).await?;
    follow(&execution).await?;

    let words: u32 = execution.wait_for_result(PATIENCE).await?;
    println!("result: {words} words");
    let summary = client.read_summary(execution.id(), 0).await?;
    println!("summary version {}: {}", summary.version, summary.document);

    worker.stop().await?;
    client.close().await?;
    Ok(())
}

/// Prints words as they come. The tail waits for each of them and ends with the attempt; a reader
/// that lost its connection goes on behind `tail.cursor()`.
async fn follow(execution: &Execution) -> Result<()> {
    let (mut tail, mut first) = (execution.tail().await?, None);
    while let Some(frame) = tail.next().await? {
        if frame.frame_type == "token" {
            first.get_or_insert_with(Instant::now);
            print!("{}", String::from_utf8_lossy(&frame.content.bytes));
            std::io::stdout().flush()?;
        }
    }
    println!();
    let reason = tail.closed_reason().map_or("open", |end| end.as_str());
    println!("closed: {reason}");
    let early = first.context("a word")?.elapsed().as_millis();
    println!("the first word was read {early} ms before the end");
    Ok(())
}
