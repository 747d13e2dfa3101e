//! A constant rate for a long time: does it stay as fast as it was at the beginning?

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use ff_core::backend::BackendExt as _;
use ff_core::error::Code;
use ff_core::id::ExecutionId;
use ff_core::operation::Submit;
use ff_core::policy::Policy;
use ff_engine::Shutdown;
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::command::{Named, OnStore};
use super::crew::{PATIENCE, engine};
use super::target::{complete, payload};
use super::{Faults, Latencies, Measured, Target, progress};

/// The first and the last of so many parts of a run are compared.
const PARTS: u64 = 5;
/// Tasks under way at once. A store that falls so far behind cannot keep up with the rate.
const UNDER_WAY_MOST: usize = 20_000;

/// A constant rate for a long time: drift of latencies, deadlines that were missed
#[derive(Debug, Clone, Args, Serialize)]
#[command(
    after_help = "A latency is from the moment at which a task was to be submitted to its completion. \
    Each task has a deadline;\nwhat has not ended by then expires and counts under missed_deadlines. \
    first_… and last_… are of the first and\nthe last fifth of the run, drift is last_p50_ms divided \
    by first_p50_ms.\n\n\
    Example: ff bench steady --store valkey://127.0.0.1:6379 --rate 1000 --seconds 60"
)]
pub(crate) struct Steady {
    /// Submits a second
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,
    /// How long
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Workers that wait for work
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1000))]
    workers: u32,
    /// Time from submit to completion after which a task expires
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    deadline_ms: u64,
    /// Size of each payload
    #[arg(long, default_value_t = 100)]
    payload_bytes: usize,
}

impl Named for Steady {
    const NAME: &'static str = "steady";
}

/// What a worker did with a task, and when.
struct Ended {
    id: ExecutionId,
    at: Instant,
    is_in_time: bool,
}

impl OnStore for Steady {
    async fn run(&self, target: &Target) -> anyhow::Result<Measured> {
        target.check(&payload(self.payload_bytes), 1)?;
        let faults = Arc::new(Faults::default());
        let (sender, ends) = unbounded_channel();
        let (stop, shutdown) = Shutdown::channel();
        // Ends with this future: a run that breaks off leaves nobody who writes.
        let mut running = JoinSet::new();
        running.spawn(engine(target, shutdown.clone()));
        for _ in 0..self.workers {
            let (sender, faults) = (sender.clone(), Arc::clone(&faults));
            running.spawn(work(target.clone(), sender, faults, shutdown.clone()));
        }
        let mut course = Course::new(self)?;
        let begun = Instant::now();
        course.run(target, ends, &faults).await?;
        let duration = begun.elapsed();
        stop.send_replace(true);
        while let Some(ended) = running.join_next().await {
            ended??;
        }
        course.measured(duration, faults.count())
    }
}

/// One run: what is under way, and what was found.
struct Course<'a> {
    steady: &'a Steady,
    /// Tasks that have not ended: their number, and when they were to be submitted.
    under_way: HashMap<ExecutionId, (u64, Instant)>,
    parts: Vec<Latencies>,
    missed: u64,
}

impl<'a> Course<'a> {
    fn new(steady: &'a Steady) -> anyhow::Result<Self> {
        let parts = (0..PARTS).map(|_| Latencies::new()).collect::<Result<_, _>>()?;
        Ok(Self { steady, under_way: HashMap::new(), parts, missed: 0 })
    }

    fn tasks(&self) -> u64 {
        u64::from(self.steady.rate) * self.steady.seconds
    }

    /// Submits by the clock, whatever becomes of those before, and hears of ends meanwhile.
    async fn run(
        &mut self,
        target: &Target,
        mut ends: UnboundedReceiver<Ended>,
        faults: &Faults,
    ) -> anyhow::Result<()> {
        let mut policy = Policy::default();
        policy.timeout.execution_deadline_ms = Some(self.steady.deadline_ms);
        let policy = Arc::new(policy);
        let content = payload(self.steady.payload_bytes);
        let bar = progress::bar("going on", self.tasks());
        let mut submits = JoinSet::new();
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / self.steady.rate);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut begun = 0;
        while begun < self.tasks() || !self.under_way.is_empty() {
            let is_last = begun == self.tasks();
            tokio::select! {
                due = ticks.tick(), if !is_last => {
                    let submit = Submit { policy: Arc::clone(&policy), ..target.submit(&content) };
                    self.under_way.insert(submit.execution_id, (begun, due.into_std()));
                    ensure!(
                        self.under_way.len() <= UNDER_WAY_MOST,
                        "the store does not keep up with {} submits a second",
                        self.steady.rate
                    );
                    begun += 1;
                    let backend = Arc::clone(&target.backend);
                    submits.spawn(async move { backend.call(submit).await });
                    bar.inc(1);
                }
                Some(submitted) = submits.join_next(), if !submits.is_empty() => {
                    if let Err(error) = submitted? {
                        faults.note(&error);
                    }
                }
                ended = ends.recv() => self.note(&ended.context("the workers are gone")?),
                // What expired before anybody took it is told by nobody.
                () = tokio::time::sleep(self.patience()), if is_last => break,
            }
        }
        bar.finish_and_clear();
        self.missed += self.under_way.len() as u64;
        Ok(())
    }

    /// After this long nothing is under way that has not expired.
    fn patience(&self) -> Duration {
        Duration::from_millis(self.steady.deadline_ms) + Duration::from_secs(5)
    }

    fn note(&mut self, ended: &Ended) {
        let Some((number, due)) = self.under_way.remove(&ended.id) else { return };
        self.missed += u64::from(!ended.is_in_time);
        let part = usize::try_from(number * PARTS / self.tasks()).unwrap_or_default();
        if let Some(latencies) = self.parts.get_mut(part).filter(|_| ended.is_in_time) {
            latencies.record(ended.at.saturating_duration_since(due));
        }
    }

    fn measured(&self, duration: Duration, errors: u64) -> anyhow::Result<Measured> {
        let mut all = Latencies::new()?;
        for part in &self.parts {
            all.add(part)?;
        }
        let of = |part: Option<&Latencies>| part.map(Latencies::percentiles).unwrap_or_default();
        let (first, last) = (of(self.parts.first()), of(self.parts.last()));
        let drift = last.p50_ms.zip(first.p50_ms).map(|(last, first)| last / first);
        Ok(Measured {
            duration,
            throughput_per_s: Some(self.tasks() as f64 / duration.as_secs_f64()),
            latency: all.percentiles(),
            errors,
            own: vec![
                ("missed_deadlines", Some(self.missed as f64)),
                ("first_p50_ms", first.p50_ms),
                ("last_p50_ms", last.p50_ms),
                ("first_p99_ms", first.p99_ms),
                ("last_p99_ms", last.p99_ms),
                ("drift", drift),
            ],
            ..Measured::default()
        })
    }
}

/// One worker that always waits, and completes what it gets at once.
async fn work(
    target: Target,
    ends: UnboundedSender<Ended>,
    faults: Arc<Faults>,
    mut shutdown: Shutdown,
) -> anyhow::Result<()> {
    while let Some(tasks) = shutdown.or(target.backend.claim(target.claim(1), PATIENCE)).await {
        for task in tasks? {
            let completed = target.backend.call(complete(&task)).await;
            let is_in_time = completed.is_ok();
            match completed {
                Err(error) if error.code() != Code::ExecutionNotActive => faults.note(&error),
                _ => {}
            }
            ends.send(Ended { id: task.execution_id, at: Instant::now(), is_in_time })?;
        }
    }
    Ok(())
}
