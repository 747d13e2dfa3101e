//! A worker process is killed in the middle of its work. Another one takes over with an attempt of
//! its own, and nothing that was acknowledged is lost.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use clap::Parser;
use flowfabric::core::id::ExecutionId;
use flowfabric::core::read::StreamCursor;
use flowfabric::runtime::{Data, Failure, Task};
use flowfabric::{Client, Submission, WorkerConfig, WorkerRuntime};
use flowfabric_examples::{PATIENCE, Store, StoreArgs};

const LANE: &str = "backups";
const PIECES: u8 = 4;
/// A worker that is silent for so long has lost its task.
const LEASE_MS: u64 = 1_000;

#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    store: StoreArgs,
    /// Be the process that is killed
    #[arg(long, hide = true)]
    victim: bool,
}

/// Whether this process gets stuck half way, until it is killed.
struct GetsStuck(bool);

async fn back_up(task: Task, gets_stuck: Data<GetsStuck>) -> Result<u8, Failure> {
    let (attempt, epoch) = (task.info().attempt_index(), task.info().lease_epoch());
    println!("attempt {attempt} under lease {epoch} begins");
    for piece in 1..=PIECES {
        task.append_frame("piece", format!("piece {piece}"), None).await?;
        println!("piece {piece} of {PIECES} is saved");
        if gets_stuck.0 && piece == PIECES / 2 {
            println!("stuck");
            std::future::pending::<()>().await;
        }
    }
    Ok(PIECES)
}

fn worker(client: &Client, gets_stuck: bool) -> WorkerRuntime {
    let config = WorkerConfig::new("archivist").lane(LANE).lease_ttl_ms(LEASE_MS);
    WorkerRuntime::with_client(client, config).data(GetsStuck(gets_stuck)).on("back-up", back_up)
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let store = arguments.store.open()?;
    let client = store.connect().await?;
    if arguments.victim {
        return Ok(worker(&client, true).spawn().ended().await?);
    }
    let id = client.submit(Submission::new("back-up").lane(LANE)).await?.id();
    // An embedded store belongs to one process at a time, and now to the worker's.
    client.close().await?;
    lose_a_worker(&store)?;

    let client = store.connect().await?;
    let worker = worker(&client, false).spawn();
    println!("the backup {}", client.execution(id).wait(PATIENCE).await?);
    tell(&client, id).await?;
    worker.stop().await?;
    client.close().await?;
    Ok(())
}

/// Starts this program once more, as a worker, and kills it when it is half way.
fn lose_a_worker(store: &Store) -> Result<()> {
    let mut victim = Command::new(std::env::current_exe()?)
        .args(["--victim", "--store", store.url()])
        .stdout(Stdio::piped())
        .spawn()?;
    let said = victim.stdout.take().context("what the worker says")?;
    for line in BufReader::new(said).lines() {
        let line = line?;
        println!("process {}: {line}", victim.id());
        if line == "stuck" {
            break;
        }
    }
    victim.kill().context("it could not be killed")?;
    let status = victim.wait()?;
    println!("process {}: {status}", victim.id());
    Ok(())
}

/// What the store knows of both attempts. The output of the one that was lost is kept.
async fn tell(client: &Client, id: ExecutionId) -> Result<()> {
    let (start, end) = (StreamCursor::from_beginning(), StreamCursor::End);
    for attempt in client.list_attempts(id, None).await?.items {
        let stream = client.read_stream(id, attempt.index, start, end, 100).await?;
        let pieces = stream.frames.iter().filter(|frame| frame.frame_type == "piece").count();
        let ended = stream.closed_reason.map_or("open", |end| end.as_str());
        let (index, kind) = (attempt.index, attempt.kind.as_str());
        println!("attempt {index} ({kind}): {pieces} pieces, {ended}");
    }
    let record = client.describe(id).await?;
    println!("leases: {}, lost: {}", record.lease_epoch, record.lease_reclaim_count);
    Ok(())
}
