//! From the submit call to the start of a handler that was waiting for work.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use ff_core::backend::BackendExt as _;
use ff_core::id::ExecutionId;
use ff_engine::Shutdown;
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::command::{Named, OnStore};
use super::target::{complete, payload};
use super::{Faults, Latencies, Measured, Target, progress};

/// Longer than any start takes on a store that works.
const PATIENCE: Duration = Duration::from_secs(30);

/// Submit call to start of a handler, with one worker waiting for work
#[derive(Debug, Clone, Args, Serialize)]
#[command(after_help = "Example: ff bench start_latency --store sqlite::memory: --samples 500")]
pub(crate) struct StartLatency {
    /// How many starts to time
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    samples: u64,
    /// Submits a second; slow enough that the worker is idle again for each
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
}

impl Named for StartLatency {
    const NAME: &'static str = "start_latency";
}

/// A handler begins.
type Start = (ExecutionId, Instant);

impl OnStore for StartLatency {
    async fn run(&self, target: &Target) -> anyhow::Result<Measured> {
        let (sender, mut starts) = unbounded_channel();
        let (stop, shutdown) = Shutdown::channel();
        // Ends with this future: a run that breaks off leaves nobody who writes.
        let mut worker = JoinSet::new();
        worker.spawn(work(target.clone(), sender, shutdown));
        let faults = Faults::default();
        let sampling = self.sample(target, &mut starts, &faults);
        let measured = target.timed(self.samples, sampling).await?;
        stop.send_replace(true);
        while let Some(ended) = worker.join_next().await {
            ended??;
        }
        Ok(Measured { errors: faults.count(), ..measured })
    }
}

impl StartLatency {
    async fn sample(
        &self,
        target: &Target,
        starts: &mut UnboundedReceiver<Start>,
        faults: &Faults,
    ) -> anyhow::Result<Latencies> {
        let mut latencies = Latencies::new()?;
        let bar = progress::bar("starting", self.samples);
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / self.rate);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick comes at once; the worker needs a moment to begin to wait.
        ticks.tick().await;
        for _ in 0..self.samples {
            ticks.tick().await;
            let submit = target.submit(&payload(0));
            let id = submit.execution_id;
            let begun = Instant::now();
            if let Err(error) = target.backend.call(submit).await {
                faults.note(&error);
                continue;
            }
            let start = tokio::time::timeout(PATIENCE, starts.recv()).await;
            match start.context("a submitted execution was not started")? {
                Some((started, at)) if started == id => latencies.record(at - begun),
                other => faults.note(&format!("started {other:?} instead of {id}")),
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(latencies)
    }
}

/// One worker that always waits, and completes what it gets at once.
async fn work(
    target: Target,
    starts: UnboundedSender<Start>,
    mut shutdown: Shutdown,
) -> anyhow::Result<()> {
    while let Some(tasks) = shutdown.or(target.backend.claim(target.claim(1), PATIENCE)).await {
        let at = Instant::now();
        for task in tasks? {
            starts.send((task.execution_id, at))?;
            target.backend.call(complete(&task)).await?;
        }
    }
    Ok(())
}
