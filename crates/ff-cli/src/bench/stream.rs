//! Frames a second, and from the append call to those who tail.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use ff_core::backend::BackendExt as _;
use ff_core::content::Content;
use ff_core::limits;
use ff_core::operation::{AppendFrames, NewFrame, Operation as _, Task};
use ff_core::read::Tail;
use ff_core::state::FrameId;
use ff_engine::Shutdown;
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::command::{Named, OnStore};
use super::target::{complete, payload};
use super::{Faults, Latencies, Measured, Target, progress};

/// Longer than any step takes on a store that works.
const PATIENCE: Duration = Duration::from_millis(limits::TAIL_BLOCK_MS);

/// Frames a second from many producers, then append call to tail with one frame at a time
///
/// Each producer writes the output of an execution of its own, batch after batch. Then one execution
/// is tailed by several readers, and every frame is timed from the append call until each has it.
#[derive(Debug, Clone, Args, Serialize)]
#[command(after_help = "Example: ff bench stream --store valkey://127.0.0.1:6379 --tails 100")]
pub(crate) struct Stream {
    /// Frames that all producers append together
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    frames: u64,
    /// Bytes of each frame
    #[arg(long, default_value_t = 256)]
    bytes: usize,
    /// Readers that tail one execution
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    tails: u32,
    /// Producers that append at once
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    producers: u32,
    /// Frames of one append
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100))]
    batch: u64,
    /// Frames that are timed on their way to the tails
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    samples: u64,
}

impl Named for Stream {
    const NAME: &'static str = "stream";
}

impl OnStore for Stream {
    async fn run(&self, target: &Target) -> anyhow::Result<Measured> {
        let faults = Faults::default();
        let before = target.store.counts().await?;
        let produced = self.produce(target, &faults).await?;
        let commands = target.store.counts().await?.commands - before.commands;
        let latencies = self.tailed(target, &faults).await?;
        Ok(Measured {
            duration: produced,
            throughput_per_s: Some(self.frames as f64 / produced.as_secs_f64()),
            latency: latencies.percentiles(),
            errors: faults.count(),
            own: vec![("commands_per_frame", Some(commands as f64 / self.frames as f64))],
            ..Measured::default()
        })
    }
}

impl Stream {
    /// All producers at once: how long they took.
    async fn produce(&self, target: &Target, faults: &Faults) -> anyhow::Result<Duration> {
        target.fill(self.producers.into(), &payload(0), faults).await?;
        let mut tasks = Vec::new();
        while tasks.len() < self.producers as usize {
            let claimed = target.backend.claim(target.claim(1000), PATIENCE).await?;
            ensure!(!claimed.is_empty(), "an execution was not claimed");
            tasks.extend(claimed);
        }
        let content = Content::new(vec![b'x'; self.bytes]);
        append(&tasks[0], &content, 1).check()?;
        let bar = progress::bar("appending", self.frames);
        let producers = u64::from(self.producers);
        let mut running = JoinSet::new();
        let begun = Instant::now();
        for (n, task) in (0..).zip(tasks) {
            // The first ones append what cannot be shared evenly.
            let mut left = self.frames / producers + u64::from(n < self.frames % producers);
            let (target, content, bar, batch) =
                (target.clone(), content.clone(), bar.clone(), self.batch);
            running.spawn(async move {
                while left > 0 {
                    let count = left.min(batch);
                    target.backend.call(append(&task, &content, count)).await?;
                    left -= count;
                    bar.inc(count);
                }
                Ok::<_, anyhow::Error>(task)
            });
        }
        let mut done = Vec::new();
        while let Some(ended) = running.join_next().await {
            done.push(ended??);
        }
        let duration = begun.elapsed();
        bar.finish_and_clear();
        for task in done {
            target.backend.call(complete(&task)).await?;
        }
        Ok(duration)
    }

    /// One execution with many tails: how long frames took to reach them.
    async fn tailed(&self, target: &Target, faults: &Faults) -> anyhow::Result<Latencies> {
        target.backend.call(target.submit(&payload(0))).await?;
        let task = target.backend.claim(target.claim(1), PATIENCE).await?;
        let task = task.into_iter().next().context("the execution was not claimed")?;
        let (sender, mut arrivals) = unbounded_channel();
        let (stop, shutdown) = Shutdown::channel();
        let mut tails = JoinSet::new();
        for _ in 0..self.tails {
            tails.spawn(tail(target.clone(), task.clone(), sender.clone(), shutdown.clone()));
        }
        let content = Content::new(vec![b'x'; self.bytes]);
        let mut latencies = Latencies::new()?;
        let bar = progress::bar("tailing", self.samples);
        for _ in 0..self.samples {
            let begun = Instant::now();
            let appended = target.backend.call(append(&task, &content, 1)).await?;
            let id = appended.frames.first().context("no frame was appended")?.id;
            for _ in 0..self.tails {
                match arrival(&mut arrivals).await? {
                    (arrived, at) if arrived == id => latencies.record(at - begun),
                    other => faults.note(&format!("{other:?} arrived instead of {id}")),
                }
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        stop.send_replace(true);
        target.backend.call(complete(&task)).await?;
        while let Some(ended) = tails.join_next().await {
            ended??;
        }
        Ok(latencies)
    }
}

/// A frame has reached a tail.
type Arrival = (FrameId, Instant);

async fn arrival(arrivals: &mut UnboundedReceiver<Arrival>) -> anyhow::Result<Arrival> {
    let arrived = tokio::time::timeout(PATIENCE, arrivals.recv()).await;
    arrived.context("a frame did not reach a tail")?.context("the tails are gone")
}

async fn tail(
    target: Target,
    task: Task,
    arrivals: UnboundedSender<Arrival>,
    mut shutdown: Shutdown,
) -> anyhow::Result<()> {
    let mut after = FrameId::FIRST;
    loop {
        let tail = Tail::after(task.execution_id, task.attempt_index, after);
        let Some(page) = shutdown.or(target.backend.tail(tail, PATIENCE)).await else {
            return Ok(());
        };
        let at = Instant::now();
        for frame in page?.frames {
            after = frame.id;
            arrivals.send((frame.id, at))?;
        }
    }
}

fn append(task: &Task, content: &Content, count: u64) -> AppendFrames {
    AppendFrames {
        execution_id: task.execution_id,
        fence: task.fence(),
        frames: (0..count).map(|_| NewFrame::new("stdout", content.clone())).collect(),
    }
}
