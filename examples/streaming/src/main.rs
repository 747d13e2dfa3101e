//! A worker that writes as it works, and a reader that follows.
//!
//! `cargo run -p streaming [FILE]`

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use ff_backend_sqlite::SqliteStore;
use ff_core::backend::{Backend, BackendExt, Upkeep};
use ff_core::content::Content;
use ff_core::id::{Authority, ExecutionId, Kind, LaneId, WorkerId, WorkerInstanceId};
use ff_core::operation::{AppendFrames, Claim, Complete, NewFrame, RegisterWorker, Submit, Task};
use ff_core::read::{ReadSummary, StreamPage, Tail};
use ff_core::state::{FrameId, FrameMode};
use uuid::Uuid;

const ANSWER: &str = "the store keeps what the worker said";

#[tokio::main]
async fn main() -> Result<()> {
    let file = std::env::args().nth(1).unwrap_or_else(|| "streaming.db".to_owned());
    let store = Arc::new(SqliteStore::open_url(&format!("sqlite:{file}"))?);
    let id = submit(&*store).await?;
    let task = claim(&*store).await?;

    let reader = tokio::spawn(follow(Arc::clone(&store) as Arc<dyn Backend>, id));
    answer(&*store, &task).await?;
    let end = reader.await??;

    let reason = end.closed.map_or("open", |closed| closed.reason.as_str());
    println!("closed: {reason} after {} frames", end.count);
    let summary = store.ask(ReadSummary { execution_id: id, attempt_index: 0 }).await?;
    println!("summary version {}: {}", summary.version, summary.document);
    store.shutdown_prepare(Duration::from_secs(10)).await?;
    Ok(())
}

/// Prints frames as they come, until the stream ends. A reader that stops can go on behind the last
/// id it has seen, in any process.
async fn follow(store: Arc<dyn Backend>, id: ExecutionId) -> Result<StreamPage> {
    let mut after = FrameId::FIRST;
    loop {
        let page = store.tail(Tail::after(id, 0, after), Duration::from_secs(30)).await?;
        for frame in &page.frames {
            after = frame.id;
            if frame.frame_type == "token" {
                print!("{} ", String::from_utf8_lossy(&frame.content.bytes));
                std::io::stdout().flush()?;
            }
        }
        if page.frames.is_empty() && page.closed.is_some() {
            println!();
            return Ok(page);
        }
    }
}

/// Writes word by word, keeps a summary, and completes.
async fn answer(store: &dyn Backend, task: &Task) -> Result<()> {
    say(store, task, vec![patch(r#"{"model":"demo","words":0}"#)]).await?;
    for word in ANSWER.split(' ') {
        say(store, task, vec![NewFrame::new("token", Content::new(word))]).await?;
    }
    let words = ANSWER.split(' ').count();
    say(store, task, vec![patch(&format!(r#"{{"words":{words}}}"#))]).await?;
    let done = Complete {
        execution_id: task.execution_id,
        authority: Authority::Fence(task.fence()),
        result: Some(Content::new(ANSWER)),
        next: None,
    };
    store.call(done).await?;
    Ok(())
}

async fn say(store: &dyn Backend, task: &Task, frames: Vec<NewFrame>) -> Result<()> {
    let (execution_id, fence) = (task.execution_id, task.fence());
    store.call(AppendFrames { execution_id, fence, frames }).await?;
    Ok(())
}

/// A JSON merge patch of the attempt's summary.
fn patch(json: &str) -> NewFrame {
    NewFrame::new("summary", Content::json(json.to_owned())).with_mode(FrameMode::DurableSummary)
}

async fn submit(store: &dyn Backend) -> Result<ExecutionId> {
    let id = ExecutionId::solo(Uuid::now_v7(), &store.settings().partitions);
    store.call(Submit::new(id, LaneId::new("chat")?, Kind::new("answer")?)).await?;
    Ok(id)
}

async fn claim(store: &dyn Backend) -> Result<Task> {
    let claim = Claim::new(
        WorkerId::new("talker")?,
        WorkerInstanceId::new("talker-1")?,
        [LaneId::new("chat")?],
    );
    store.call(RegisterWorker::for_claim(&claim, "example", 60_000)).await?;
    let tasks = store.claim(claim, Duration::from_secs(10)).await?;
    tasks.into_iter().next().context("there is a question to answer")
}
