//! Work that spends tokens from one budget: past the soft limit somebody is told, at the hard limit
//! everything waits, and a new period lets it go on.

use anyhow::{Result, bail};
use clap::Parser as _;
use flowfabric::core::event::EventKind;
use flowfabric::core::id::Subject;
use flowfabric::core::operation::UsageReported;
use flowfabric::core::read::EventFilter;
use flowfabric::runtime::{Failure, Payload, Task};
use flowfabric::{Client, Happened, NewBudget, Submission, Usage, WorkerConfig, WorkerRuntime};
use flowfabric_examples::{PATIENCE, StoreArgs};

const LANE: &str = "writers";
const CHAPTERS: u32 = 6;
const TOKENS: u64 = 150;

/// Reports what it used to every budget that the execution stands under. What was used is counted
/// even above the limit, since it was used.
async fn write_chapter(Payload(chapter): Payload<u32>, task: Task) -> Result<u32, Failure> {
    let usage = Usage::new().output_tokens(TOKENS);
    for (_, reported) in task.report_usage_to_all(&usage, None).await? {
        let told = match reported {
            UsageReported::Ok => "within all limits".to_owned(),
            UsageReported::AlreadyApplied => "counted before".to_owned(),
            UsageReported::SoftBreach(it) => format!("soft limit: {} of {}", it.current, it.limit),
            UsageReported::HardBreach(it) => format!("hard limit: {} of {}", it.current, it.limit),
        };
        println!("chapter {chapter}: {TOKENS} tokens, {told}");
    }
    Ok(chapter)
}

#[tokio::main]
async fn main() -> Result<()> {
    let store = StoreArgs::parse().open()?;
    let client = store.connect().await?;
    let book = NewBudget::new("book").soft_limit("output_tokens", 300).limit("output_tokens", 500);
    let budget = client.create_budget(book).await?;

    let filter = EventFilter { kinds_of_event: vec![EventKind::Blocked], ..EventFilter::default() };
    let mut blocks = client.subscribe(filter);
    blocks.begin().await?;
    let chapters = (1..=CHAPTERS).map(|chapter| {
        Ok(Submission::new("write-chapter").lane(LANE).budget(budget).json(&chapter)?)
    });
    let submitted = client.submit_batch(chapters.collect::<Result<Vec<_>>>()?).await?;
    let worker = WorkerRuntime::with_client(&client, WorkerConfig::new("writer").lane(LANE))
        .max_concurrent(1)
        .on("write-chapter", write_chapter)
        .spawn();

    // The next claim meets a budget that is used up, and sets the chapter aside.
    let Happened::Event(blocked) = blocks.next().await? else { bail!("events are missing") };
    let Subject::Execution(id) = blocked.event.subject else { bail!("not an execution") };
    let why = client.explain(id).await?;
    println!("{} ({})", why.summary, why.cause.as_str());
    show(&client, budget).await?;

    println!("a new period begins");
    client.reset_budget(budget).await?;
    for execution in submitted {
        execution?.wait(PATIENCE).await?;
    }
    show(&client, budget).await?;

    worker.stop().await?;
    client.close().await?;
    Ok(())
}

async fn show(client: &Client, budget: flowfabric::core::id::BudgetId) -> Result<()> {
    let status = client.budget_status(budget).await?;
    for (dimension, counter) in &status.dimensions {
        println!("{dimension}: {} of {} used", counter.used, counter.limits.hard);
    }
    Ok(())
}
