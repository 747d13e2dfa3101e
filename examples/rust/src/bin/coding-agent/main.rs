//! An agent plans, writes code, and stops until a person has looked at it. What the person does not
//! like it writes again.

use anyhow::{Result, bail};
use clap::Parser;
use flowfabric::core::event::EventKind;
use flowfabric::core::operation::ResumeSignal;
use flowfabric::core::read::EventFilter;
use flowfabric::runtime::{Failure, Outcome, Payload, Task, TaskInfo};
use flowfabric::{
    Client, EventSubscription, Execution, Submission, Suspension, WorkerConfig, WorkerRuntime,
};
use flowfabric_examples::{PATIENCE, Store, StoreArgs};
use serde::{Deserialize, Serialize};

const LANE: &str = "agents";

/// Stands for a model: its first draft, and what it writes once somebody has found fault with it.
const DRAFTS: [&str; 2] = [
    "fn mean(v: &[f64]) -> f64 { v.iter().sum::<f64>() / v.len() as f64 }",
    "fn mean(v: &[f64]) -> Option<f64> { (!v.is_empty()).then(|| sum(v) / v.len() as f64) }",
];

#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    store: StoreArgs,
    /// Wait for `ff approve` instead of playing the reviewer
    #[arg(long)]
    interactive: bool,
}

/// What the agent remembers while nobody runs it.
#[derive(Serialize, Deserialize)]
struct Draft {
    revision: u32,
    code: String,
}

/// Called again from its beginning after every review, on whichever worker.
async fn develop(
    Payload(wish): Payload<String>,
    task: Task,
    info: TaskInfo,
) -> Result<Outcome, Failure> {
    let (Some(review), Some(draft)) = (info.resume_signals().last(), info.metadata()) else {
        say(&task, &format!("plan: read the wish ({wish}), write it, have it reviewed")).await?;
        return propose(&task, &Draft { revision: 1, code: DRAFTS[0].to_owned() }).await;
    };
    let draft: Draft = serde_json::from_slice(draft)?;
    if review.name.as_str() == "approved" {
        say(&task, &format!("{} approves revision {}", review.source_identity, draft.revision))
            .await?;
        return Outcome::json(&draft);
    }
    say(&task, &format!("denied: {}", comment(review)?)).await?;
    propose(&task, &Draft { revision: draft.revision + 1, code: DRAFTS[1].to_owned() }).await
}

/// Lets go of the lease until somebody has answered; the draft waits with the execution.
async fn propose(task: &Task, draft: &Draft) -> Result<Outcome, Failure> {
    say(task, &format!("revision {}: {}", draft.revision, draft.code)).await?;
    let review = Suspension::approval("review")?
        .reason("waiting_for_approval")
        .metadata(serde_json::to_vec(draft)?);
    Ok(Outcome::suspend(review))
}

async fn say(task: &Task, line: &str) -> Result<(), Failure> {
    task.append_frame("log", line.to_owned(), None).await?;
    Ok(())
}

/// What the reviewer has said beside yes or no.
fn comment(review: &ResumeSignal) -> Result<String, Failure> {
    let body = review.payload.as_deref().unwrap_or(b"{}");
    let body: serde_json::Value = serde_json::from_slice(body)?;
    Ok(body["comment"].as_str().unwrap_or("no comment").to_owned())
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let store = arguments.store.open()?;
    if arguments.interactive && store.is_embedded() {
        bail!("`ff approve` needs a server: start `ff dev`, and say --store http://127.0.0.1:7171");
    }
    let client = store.connect().await?;
    let worker = WorkerRuntime::with_client(&client, WorkerConfig::new("agent").lane(LANE))
        .on("develop", develop)
        .spawn();

    let filter =
        EventFilter { kinds_of_event: vec![EventKind::Suspended], ..EventFilter::default() };
    let mut waits = client.subscribe(filter);
    waits.begin().await?;
    let work = Submission::new("develop").lane(LANE).json("the mean of numbers")?;
    let execution = client.submit(work).await?;

    let patience = if arguments.interactive { 60 * PATIENCE } else { PATIENCE };
    let reviewer = if arguments.interactive { None } else { Some(&client) };
    tokio::select! {
        reviewed = review(waits, &execution, &store, reviewer) => reviewed?,
        printed = print_log(&execution) => printed?,
    }
    let draft: Draft = execution.wait_for_result(patience).await?;
    println!("done in revision {}: {}", draft.revision, draft.code);

    worker.stop().await?;
    client.close().await?;
    Ok(())
}

/// Prints what the agent says. The output goes on over all reviews: it is one attempt.
async fn print_log(execution: &Execution) -> Result<()> {
    let mut tail = execution.tail().await?;
    while let Some(frame) = tail.next().await? {
        println!("{}", String::from_utf8_lossy(&frame.content.bytes));
    }
    Ok(())
}

/// Answers each time the agent waits: first no, then yes. Without a reviewer it tells the person at
/// the terminal what to do.
async fn review(
    mut waits: EventSubscription,
    execution: &Execution,
    store: &Store,
    reviewer: Option<&Client>,
) -> Result<()> {
    let id = execution.id();
    for round in 0.. {
        waits.next_about(id).await?;
        let Some(client) = reviewer else {
            let by = if store.is_server() { "--url" } else { "--store" };
            println!("waiting for you: ff approve '{id}' {by} {}", store.url());
            println!("or with --deny, and a comment that says what is wrong");
            continue;
        };
        for waitpoint in client.list_waitpoints(id).await? {
            let waitpoint = waitpoint.waitpoint_id;
            match round {
                0 => client.deny(id, waitpoint, "ada", Some("the mean of nothing?")).await?,
                _ => client.approve(id, waitpoint, "ada", None).await?,
            };
        }
    }
    Ok(())
}
