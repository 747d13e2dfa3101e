//! A graph whose steps hand on results: probe a film, encode it three times side by side, package
//! what came out, and tidy up whatever happened.

use anyhow::{Context as _, Result};
use clap::Parser as _;
use flowfabric::runtime::{Failure, Payload, Task, TaskInfo};
use flowfabric::{Flow, Submission, WorkerConfig, WorkerRuntime};
use flowfabric_examples::{PATIENCE, StoreArgs};
use serde::{Deserialize, Serialize};

const LANE: &str = "media";
const HEIGHTS: [u64; 3] = [1080, 720, 480];

#[derive(Serialize, Deserialize)]
struct Film {
    title: String,
    seconds: u64,
}

#[derive(Serialize, Deserialize)]
struct Rendition {
    file: String,
    kilobytes: u64,
}

async fn probe(Payload(file): Payload<String>) -> Result<Film, Failure> {
    let title = file.strip_suffix(".mov").ok_or_else(|| Failure::permanent("not a film"))?;
    println!("probe: {file} is 90 s long");
    Ok(Film { title: title.to_owned(), seconds: 90 })
}

/// Its payload says how large; what to encode comes from the step before.
async fn encode(Payload(height): Payload<u64>, task: Task) -> Result<Rendition, Failure> {
    let film: Film = task.input("probe").await?;
    task.update_progress(50, format!("{height} lines")).await?;
    let rendition = Rendition {
        file: format!("{}-{height}p.mp4", film.title),
        kilobytes: film.seconds * height / 8,
    };
    println!("encode: {}, {} KB", rendition.file, rendition.kilobytes);
    Ok(rendition)
}

/// Gets the results of all that it waited for, by the names of the steps.
async fn package(task: Task, info: TaskInfo) -> Result<u64, Failure> {
    let mut kilobytes = 0;
    for step in info.inputs().keys() {
        let rendition: Rendition = task.input(step).await?;
        println!("package: + {}", rendition.file);
        kilobytes += rendition.kilobytes;
    }
    Ok(kilobytes)
}

async fn tidy(info: TaskInfo) {
    for (step, input) in info.inputs() {
        println!("tidy: {step} ended with {}", input.outcome.as_str());
    }
}

/// The graph as it reads.
fn pipeline(file: &str) -> Result<Flow> {
    let work = |kind: &str| Submission::new(kind).lane(LANE);
    let mut flow = Flow::new("film").tag("film", file).step("probe", work("probe").json(file)?);
    for height in HEIGHTS {
        flow = flow.step(format!("{height}p"), work("encode").json(&height)?).after("probe");
    }
    let renditions = HEIGHTS.map(|height| format!("{height}p"));
    Ok(flow
        .step("package", work("package"))
        .all_of(renditions)
        .step("tidy", work("tidy"))
        .after_end_of("package"))
}

#[tokio::main]
async fn main() -> Result<()> {
    let store = StoreArgs::parse().open()?;
    let client = store.connect().await?;
    let worker = WorkerRuntime::with_client(&client, WorkerConfig::new("studio").lane(LANE))
        .on("probe", probe)
        .on("encode", encode)
        .on("package", package)
        .on("tidy", tidy)
        .spawn();

    let flow = client.submit_flow(pipeline("summer.mov")?).await?;
    let finished = flow.wait(PATIENCE).await?;
    let package = flow.step("package").context("a step of the flow")?;
    println!("{} KB in one package", package.result::<u64>().await?);
    println!("the flow is {}", finished.state.as_str());

    worker.stop().await?;
    client.close().await?;
    Ok(())
}
