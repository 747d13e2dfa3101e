//! From the submit call to the start of a handler, when not every worker can run everything.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use ff_core::backend::BackendExt as _;
use ff_core::capability::Capabilities;
use ff_core::id::{ExecutionId, WorkerInstanceId};
use ff_core::operation::{Claim, RegisterWorker, Submit};
use ff_core::policy::Policy;
use ff_engine::Shutdown;
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use uuid::Uuid;

use super::command::{Named, OnStore};
use super::crew::{PATIENCE, engine};
use super::target::{REGISTERED_MS, complete, payload};
use super::{Faults, Latencies, Measured, Target, progress};

/// Submit call to start of a handler, with many sets of required capabilities in one lane
#[derive(Debug, Clone, Args, Serialize)]
#[command(after_help = "Example: ff bench capability --store sqlite::memory: --mode scarce")]
pub(crate) struct Capability {
    /// How many of the workers can run a task
    #[arg(long, value_enum, default_value_t = Mode::Partial)]
    mode: Mode,
    /// How many starts to time
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
    tasks: u64,
    /// Workers that wait for work
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(10..=1000))]
    workers: u32,
    /// Different requirements that tasks have
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=256))]
    classes: u32,
    /// Submits a second
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// All of them
    Happy,
    /// Half of them
    Partial,
    /// One in ten
    Scarce,
}

impl Mode {
    /// Whether a worker can run tasks of a class. Each class has somebody among any ten workers.
    const fn can(self, worker: u32, class: u32) -> bool {
        let one_in = match self {
            Self::Happy => 1,
            Self::Partial => 2,
            Self::Scarce => 10,
        };
        (worker + class).is_multiple_of(one_in)
    }
}

impl Named for Capability {
    const NAME: &'static str = "capability";
}

/// A handler begins, by which worker and when.
type Start = (ExecutionId, u32, Instant);

impl OnStore for Capability {
    async fn run(&self, target: &Target) -> anyhow::Result<Measured> {
        let (sender, mut starts) = unbounded_channel();
        let (stop, shutdown) = Shutdown::channel();
        // Ends with this future: a run that breaks off leaves nobody who writes.
        let mut running = JoinSet::new();
        running.spawn(engine(target, shutdown.clone()));
        for worker in 0..self.workers {
            let claim = self.claim(target, worker)?;
            let registration = RegisterWorker::for_claim(&claim, "bench", REGISTERED_MS);
            target.backend.call(registration).await?;
            let (target, sender) = (target.clone(), sender.clone());
            running.spawn(work(target, claim, worker, sender, shutdown.clone()));
        }
        let faults = Faults::default();
        let sampling = self.sample(target, &mut starts, &faults);
        let measured = target.timed(self.tasks, sampling).await?;
        stop.send_replace(true);
        while let Some(ended) = running.join_next().await {
            ended??;
        }
        Ok(Measured { errors: faults.count(), ..measured })
    }
}

impl Capability {
    fn claim(&self, target: &Target, worker: u32) -> anyhow::Result<Claim> {
        let classes = (0..self.classes).filter(|class| self.mode.can(worker, *class));
        Ok(Claim {
            worker_instance_id: WorkerInstanceId::new(format!("bench-c{worker}"))?,
            capabilities: Capabilities::new(classes.map(token))?,
            ..target.claim(1)
        })
    }

    /// Submits at the rate, and meanwhile hears of starts; then waits for the last of them.
    async fn sample(
        &self,
        target: &Target,
        starts: &mut UnboundedReceiver<Start>,
        faults: &Faults,
    ) -> anyhow::Result<Latencies> {
        let policies = (0..self.classes).map(policy).collect::<anyhow::Result<Vec<_>>>()?;
        let mut latencies = Latencies::new()?;
        let mut submitted: HashMap<ExecutionId, (u32, Instant)> = HashMap::new();
        let bar = progress::bar("starting", self.tasks);
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / self.rate);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut hear = |submitted: &mut HashMap<_, (u32, Instant)>, (id, worker, at): Start| {
            match submitted.remove(&id) {
                Some((class, begun)) if self.mode.can(worker, class) => {
                    latencies.record(at.saturating_duration_since(begun));
                }
                other => faults.note(&format!("worker {worker} began {id}: {other:?}")),
            }
            bar.inc(1);
        };
        let classes = (0..).zip(&policies).cycle();
        for (_, (class, policy)) in (0..self.tasks).zip(classes) {
            ticks.tick().await;
            let submit = Submit { policy: Arc::clone(policy), ..target.submit(&payload(0)) };
            submitted.insert(submit.execution_id, (class, Instant::now()));
            target.backend.call(submit).await?;
            while let Ok(start) = starts.try_recv() {
                hear(&mut submitted, start);
            }
        }
        while !submitted.is_empty() {
            let start = tokio::time::timeout(PATIENCE, starts.recv()).await;
            let start = start.context("a submitted execution was not started")?;
            hear(&mut submitted, start.context("the workers are gone")?);
        }
        bar.finish_and_clear();
        Ok(latencies)
    }
}

fn token(class: u32) -> String {
    format!("c{class}")
}

fn policy(class: u32) -> anyhow::Result<Arc<Policy>> {
    let required_capabilities = Capabilities::new([token(class)])?;
    Ok(Arc::new(Policy { required_capabilities, ..Policy::default() }))
}

/// One worker that always waits, and completes what it gets at once.
async fn work(
    target: Target,
    claim: Claim,
    worker: u32,
    starts: UnboundedSender<Start>,
    mut shutdown: Shutdown,
) -> anyhow::Result<()> {
    loop {
        let claim = Claim { seed: Uuid::now_v7(), ..claim.clone() };
        let Some(tasks) = shutdown.or(target.backend.claim(claim, PATIENCE)).await else {
            return Ok(());
        };
        let at = Instant::now();
        for task in tasks? {
            starts.send((task.execution_id, worker, at))?;
            target.backend.call(complete(&task)).await?;
        }
    }
}
