//! What the SDK's runtime adds to the bare calls of a backend.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use ff_core::backend::BackendExt as _;
use ff_core::operation::{Command, Task};
use ff_sdk::runtime::{Data, WorkerRuntime};
use ff_sdk::{FlowFabricWorker, WorkerConfig};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use super::command::{Named, OnStore};
use super::host::cpu_time;
use super::target::{complete, payload};
use super::{Faults, Latencies, Measured, Target, progress};

/// Longer than any task takes on a store that works.
const PATIENCE: Duration = Duration::from_secs(30);

const BETWEEN_STARTS: Duration = Duration::from_millis(10);

/// Processor time and latency that the SDK's runtime adds to bare calls
///
/// The same tasks are worked off three times: by claims and completions of whole batches, by claims
/// of batches and a completion for each task, and by a runtime with an empty handler and as many
/// slots. Latencies are of the runtime: submit call to start of the handler.
#[derive(Debug, Clone, Args, Serialize)]
#[command(after_help = "Example: ff bench runtime --tasks 50000 --slots 64")]
pub(crate) struct Runtime {
    /// Tasks that each way works off
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    tasks: u64,
    /// Tasks at a time
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    slots: u32,
    /// Starts to time, one after the other
    #[arg(long, default_value_t = 500)]
    samples: u64,
}

impl Named for Runtime {
    const NAME: &'static str = "runtime";
}

/// What working off the tasks took.
struct Used {
    wall: Duration,
    cpu: Option<Duration>,
}

impl Used {
    /// Begins to measure; the function that is given back ends it.
    fn measure() -> impl FnOnce() -> Self {
        let (begun, before) = (Instant::now(), cpu_time());
        move || {
            let cpu = cpu_time().zip(before).map(|(after, before)| after.saturating_sub(before));
            Self { wall: begun.elapsed(), cpu }
        }
    }

    fn cpu_us(&self, tasks: u64) -> Option<f64> {
        Some(self.cpu?.as_secs_f64() * 1e6 / tasks as f64)
    }

    fn per_s(&self, tasks: u64) -> Option<f64> {
        Some(tasks as f64 / self.wall.as_secs_f64())
    }
}

impl OnStore for Runtime {
    async fn run(&self, target: &Target) -> anyhow::Result<Measured> {
        let faults = Faults::default();
        let together = self.drain_bare(target, &faults, true).await?;
        let one_by_one = self.drain_bare(target, &faults, false).await?;
        let runtime = self.drain_by_runtime(target, &faults).await?;
        let latencies = self.time_starts(target).await?;
        let bare = one_by_one.cpu_us(self.tasks);
        let by_runtime = runtime.cpu_us(self.tasks);
        Ok(Measured {
            duration: runtime.wall,
            throughput_per_s: runtime.per_s(self.tasks),
            latency: latencies.percentiles(),
            errors: faults.count(),
            own: vec![
                ("together_cpu_us", together.cpu_us(self.tasks)),
                ("together_per_s", together.per_s(self.tasks)),
                ("bare_cpu_us", bare),
                ("bare_per_s", one_by_one.per_s(self.tasks)),
                ("runtime_cpu_us", by_runtime),
                ("added_cpu_us", by_runtime.zip(bare).map(|(runtime, bare)| runtime - bare)),
            ],
            ..Measured::default()
        })
    }
}

impl Runtime {
    /// Claims batches; completes each in one call, or each task in a call of its own.
    async fn drain_bare(
        &self,
        target: &Target,
        faults: &Faults,
        together: bool,
    ) -> anyhow::Result<Used> {
        target.fill(self.tasks, &payload(100), faults).await?;
        let bar = progress::bar("bare calls", self.tasks);
        let used = Used::measure();
        let mut left = self.tasks;
        while left > 0 {
            let tasks = target.backend.claim(target.claim(self.slots), PATIENCE).await?;
            anyhow::ensure!(!tasks.is_empty(), "{left} tasks cannot be found");
            left -= tasks.len() as u64;
            bar.inc(tasks.len() as u64);
            match together {
                true => complete_together(target, &tasks, faults).await,
                false => complete_one_by_one(target, tasks, faults).await?,
            }
        }
        let used = used();
        bar.finish_and_clear();
        Ok(used)
    }

    async fn drain_by_runtime(&self, target: &Target, faults: &Faults) -> anyhow::Result<Used> {
        target.fill(self.tasks, &payload(100), faults).await?;
        let bar = progress::bar("runtime", self.tasks);
        let used = Used::measure();
        let mut crew = Crew::start(self.slots, target).await?;
        for _ in 0..self.tasks {
            crew.next().await?;
        }
        // What has begun is completed when the runtime has ended.
        crew.stop().await?;
        let used = used();
        bar.finish_and_clear();
        Ok(used)
    }

    async fn time_starts(&self, target: &Target) -> anyhow::Result<Latencies> {
        let mut crew = Crew::start(self.slots, target).await?;
        let mut latencies = Latencies::new()?;
        // Slow enough that the runtime waits for work again.
        let mut ticks = tokio::time::interval(BETWEEN_STARTS);
        for _ in 0..self.samples {
            ticks.tick().await;
            let begun = Instant::now();
            target.backend.call(target.submit(&payload(0))).await?;
            latencies.record(crew.next().await? - begun);
        }
        crew.stop().await?;
        Ok(latencies)
    }
}

async fn complete_together(target: &Target, tasks: &[Task], faults: &Faults) {
    let completes = tasks.iter().map(|task| Command::from(complete(task))).collect();
    for reply in target.backend.apply(completes).await {
        if let Err(error) = reply {
            faults.note(&error);
        }
    }
}

async fn complete_one_by_one(
    target: &Target,
    tasks: Vec<Task>,
    faults: &Faults,
) -> anyhow::Result<()> {
    let mut completing = JoinSet::new();
    for task in tasks {
        let backend = Arc::clone(&target.backend);
        completing.spawn(async move { backend.call(complete(&task)).await });
    }
    while let Some(completed) = completing.join_next().await {
        if let Err(error) = completed? {
            faults.note(&error);
        }
    }
    Ok(())
}

/// A runtime whose handler only says that it was called.
struct Crew {
    starts: mpsc::UnboundedReceiver<Instant>,
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<(), ff_sdk::SdkError>>,
}

impl Crew {
    async fn start(slots: u32, target: &Target) -> anyhow::Result<Self> {
        let config = WorkerConfig::new("bench-runtime").lane(target.lane().as_str());
        let config = config.max_concurrent_tasks(slots as usize);
        let backend = Arc::clone(&target.backend);
        let worker = FlowFabricWorker::connect_with(config, backend, None).await?;
        let (said, starts) = mpsc::unbounded_channel::<Instant>();
        let (stop, stopped) = oneshot::channel();
        let handler = |said: Data<mpsc::UnboundedSender<Instant>>| async move {
            // Nobody listens when the run has broken off.
            let _ = said.send(Instant::now());
        };
        let runtime = WorkerRuntime::new(worker).max_concurrent(slots as usize).data(said);
        let running = tokio::spawn(runtime.on("bench", handler).run(async {
            let _ = stopped.await;
        }));
        Ok(Self { starts, stop, running })
    }

    /// When the next handler was called.
    async fn next(&mut self) -> anyhow::Result<Instant> {
        let start = tokio::time::timeout(PATIENCE, self.starts.recv()).await;
        start.context("a task was not started")?.context("the runtime has ended")
    }

    async fn stop(self) -> anyhow::Result<()> {
        let _ = self.stop.send(());
        Ok(self.running.await??)
    }
}
