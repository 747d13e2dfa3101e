//! What the engine, a store and waiting workers cost when there is nothing to do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use ff_core::backend::BackendExt;
use ff_core::error::EngineError;
use ff_core::limits;
use ff_engine::{Engine, EngineOptions, Shutdown};
use serde::Serialize;
use tokio::task::JoinSet;

use super::command::{Named, OnStore};
use super::host::cpu_time;
use super::store::Counts;
use super::{Faults, Measured, Target, progress};
use crate::stores::Store;

/// Time for everybody to begin to wait, before the measurement.
const SETTLING: Duration = Duration::from_millis(500);

/// Commands and processor time of an engine and workers with nothing to do
///
/// Processor time is that of this process and, where the store is on servers, of these.
#[derive(Debug, Clone, Args, Serialize)]
#[command(after_help = "Example: ff bench idle --seconds 10 --workers 100")]
pub(crate) struct Idle {
    /// How long to look
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Workers that wait for work
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    workers: u32,
}

impl Named for Idle {
    const NAME: &'static str = "idle";
}

impl OnStore for Idle {
    async fn run(&self, target: &Target) -> anyhow::Result<Measured> {
        let (stop, shutdown) = Shutdown::channel();
        let faults = Arc::new(Faults::default());
        let mut running = JoinSet::new();
        let backend = Arc::clone(&target.backend);
        running.spawn(Engine::new(backend, EngineOptions::default()).run(shutdown.clone()));
        for _ in 0..self.workers {
            running.spawn(wait_for_work(target.clone(), Arc::clone(&faults), shutdown.clone()));
        }
        tokio::time::sleep(SETTLING).await;
        let before = Sample::take(&target.store).await?;
        self.pass_time().await;
        let after = Sample::take(&target.store).await?;
        stop.send_replace(true);
        while let Some(ended) = running.join_next().await {
            ended?;
        }
        let duration = after.at - before.at;
        Ok(Measured {
            duration,
            errors: faults.count(),
            own: vec![
                ("commands_per_s", Some(after.commands_since(&before))),
                ("cpu_percent", after.cpu_percent_since(&before)),
            ],
            ..Measured::default()
        })
    }
}

impl Idle {
    async fn pass_time(&self) {
        let bar = progress::bar("idling", self.seconds);
        for _ in 0..self.seconds {
            tokio::time::sleep(Duration::from_secs(1)).await;
            bar.inc(1);
        }
        bar.finish_and_clear();
    }
}

async fn wait_for_work(target: Target, faults: Arc<Faults>, mut shutdown: Shutdown) {
    let longest = Duration::from_millis(limits::CLAIM_WAIT_MS);
    while let Some(tasks) = shutdown.or(target.backend.claim(target.claim(1), longest)).await {
        match tasks {
            Ok(tasks) if tasks.is_empty() => {}
            Ok(_) => faults.note(&"work came where none was submitted"),
            Err(error) => return faults.note(&error),
        }
    }
}

/// What was used up to an instant.
struct Sample {
    at: Instant,
    /// See [`Counts::calls`].
    calls: u64,
    /// Of this process, and of the servers where there are any.
    cpu: Option<Duration>,
}

impl Sample {
    async fn take(store: &Store) -> Result<Self, EngineError> {
        let server = store.server_cpu().await?.unwrap_or_default();
        let Counts { calls, .. } = store.counts().await?;
        Ok(Self { at: Instant::now(), calls, cpu: cpu_time().map(|here| here + server) })
    }

    fn commands_since(&self, before: &Self) -> f64 {
        (self.calls - before.calls) as f64 / (self.at - before.at).as_secs_f64()
    }

    fn cpu_percent_since(&self, before: &Self) -> Option<f64> {
        let used = self.cpu?.saturating_sub(before.cpu?);
        Some(used.as_secs_f64() / (self.at - before.at).as_secs_f64() * 100.0)
    }
}
