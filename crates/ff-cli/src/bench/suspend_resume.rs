//! From the signal call to the start of the handler that goes on.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use ff_core::backend::BackendExt as _;
use ff_core::id::{SignalName, WaitpointKey};
use ff_core::operation::{Binding, DeliverSignal, IssuedWaitpoint, Signalled, Suspend, Task};
use ff_core::state::{Condition, Matcher, SignalEffect};
use ff_engine::Shutdown;
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::command::{Named, OnStore};
use super::target::{complete, payload};
use super::{Faults, Latencies, Measured, Target, progress};

/// Longer than any step takes on a store that works.
const PATIENCE: Duration = Duration::from_secs(30);

/// Signal call to start of the resumed handler, with workers waiting for work
///
/// One execution after the other is started, suspended, signalled and completed; throughput is
/// that of whole cycles.
#[derive(Debug, Clone, Args, Serialize)]
#[command(after_help = "Example: ff bench suspend_resume --store sqlite::memory: --samples 500")]
pub(crate) struct SuspendResume {
    /// How many resumes to time
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    samples: u64,
    /// Workers that wait for work
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    workers: u32,
}

impl Named for SuspendResume {
    const NAME: &'static str = "suspend_resume";
}

/// What a worker tells: that it suspended, or that it went on at an instant.
enum Step {
    Suspended(Task, IssuedWaitpoint),
    WentOn(Task, Instant),
}

impl OnStore for SuspendResume {
    async fn run(&self, target: &Target) -> anyhow::Result<Measured> {
        let (sender, mut steps) = unbounded_channel();
        let (stop, shutdown) = Shutdown::channel();
        let mut workers = JoinSet::new();
        for _ in 0..self.workers {
            workers.spawn(work(target.clone(), sender.clone(), shutdown.clone()));
        }
        let faults = Faults::default();
        let sampling = self.sample(target, &mut steps, &faults);
        let measured = target.timed(self.samples, sampling).await?;
        stop.send_replace(true);
        while let Some(ended) = workers.join_next().await {
            ended??;
        }
        Ok(Measured { errors: faults.count(), ..measured })
    }
}

impl SuspendResume {
    async fn sample(
        &self,
        target: &Target,
        steps: &mut UnboundedReceiver<Step>,
        faults: &Faults,
    ) -> anyhow::Result<Latencies> {
        let mut latencies = Latencies::new()?;
        let bar = progress::bar("resuming", self.samples);
        for _ in 0..self.samples {
            match cycle(target, steps).await {
                Ok(latency) => latencies.record(latency),
                Err(error) => faults.note(&error),
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(latencies)
    }
}

/// One execution from submit to completion: how long its resume took.
async fn cycle(target: &Target, steps: &mut UnboundedReceiver<Step>) -> anyhow::Result<Duration> {
    target.backend.call(target.submit(&payload(0))).await?;
    let Step::Suspended(task, waitpoint) = next(steps).await? else {
        anyhow::bail!("a new execution went on instead of stopping");
    };
    let signal = DeliverSignal::new(task.execution_id, &waitpoint, SignalName::new("go")?);
    let begun = Instant::now();
    let signalled = target.backend.call(signal).await?;
    let effect = match signalled {
        Signalled::Accepted { effect, .. } | Signalled::Duplicate { effect, .. } => effect,
    };
    ensure!(
        effect == SignalEffect::ResumeConditionSatisfied,
        "the signal did not resume: {signalled:?}"
    );
    let Step::WentOn(resumed, at) = next(steps).await? else {
        anyhow::bail!("a signalled execution stopped again");
    };
    ensure!(resumed.execution_id == task.execution_id, "another execution went on");
    target.backend.call(complete(&resumed)).await?;
    Ok(at - begun)
}

async fn next(steps: &mut UnboundedReceiver<Step>) -> anyhow::Result<Step> {
    let step = tokio::time::timeout(PATIENCE, steps.recv()).await;
    step.context("no worker took it up")?.context("the workers are gone")
}

/// A worker that always waits; what it gets for the first time it suspends.
async fn work(
    target: Target,
    steps: UnboundedSender<Step>,
    mut shutdown: Shutdown,
) -> anyhow::Result<()> {
    while let Some(tasks) = shutdown.or(target.backend.claim(target.claim(1), PATIENCE)).await {
        let at = Instant::now();
        for task in tasks? {
            let step = if task.extras.resume_signals.is_empty() {
                let mut suspended = target.backend.call(suspend(&task)?).await?;
                Step::Suspended(task, suspended.waitpoints.remove(0))
            } else {
                Step::WentOn(task, at)
            };
            steps.send(step)?;
        }
    }
    Ok(())
}

fn suspend(task: &Task) -> anyhow::Result<Suspend> {
    let key = WaitpointKey::new("go")?;
    let condition = Condition::Single { waitpoint: key.clone(), name: Matcher::Wildcard };
    Ok(Suspend::new(task.execution_id, task.fence(), vec![Binding::fresh(key)], condition))
}
