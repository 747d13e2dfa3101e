//! Submit, claim and complete of many tasks by many callers at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use ff_core::backend::BackendExt as _;
use ff_core::content::Content;
use ff_core::id::ExecutionId;
use ff_core::operation::{Command, Submit, Task};
use ff_engine::Shutdown;
use indicatif::ProgressBar;
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::command::{Named, OnStore};
use super::floor::FloorPlan;
use super::target::{complete, payload};
use super::{Faults, Latencies, Measured, Target, progress};

/// Nothing found and nothing ended for so long means that work was lost.
const STALL: Duration = Duration::from_secs(30);
/// Submit, claim, complete.
const STEPS: u64 = 3;
/// Shares that the tasks are cut into, unless they get too small to tell anything.
const ROUNDS: u64 = 5;
const SHORTEST_ROUND: u64 = 1_000;
/// After each round the floor runs as long as the round did, within these bounds.
const FLOOR_SHORTEST: Duration = Duration::from_millis(200);
const FLOOR_LONGEST: Duration = Duration::from_secs(10);

/// Submit, claim and complete of many tasks: throughput, latency, and the floor beside it
///
/// Latency is that of one task, from the submit call to the acknowledged completion. The floor
/// runs in the same folder with the store's own average number of steps in a transaction, or on the
/// same server with the same batch and as many callers.
#[derive(Debug, Clone, Args, Serialize)]
#[command(after_help = "Example: ff bench lifecycle --tasks 50000 --batch 32 --workers 4")]
pub(crate) struct Lifecycle {
    /// Tasks in all
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    tasks: u64,
    /// Workers that claim and complete
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    workers: u32,
    /// Bytes of each payload
    #[arg(long, default_value_t = 4096)]
    payload_bytes: usize,
    /// Tasks that one call submits, claims or completes
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
    /// Callers that submit
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    concurrency: u32,
}

impl Named for Lifecycle {
    const NAME: &'static str = "lifecycle";
}

impl OnStore for Lifecycle {
    async fn run(&self, target: &Target) -> anyhow::Result<Measured> {
        let payload = payload(self.payload_bytes);
        target.check(&payload, self.batch)?;
        let mut total = Total::new()?;
        for round in self.rounds() {
            total.add(&round, target, payload.clone()).await?;
        }
        let throughput = self.tasks as f64 / total.duration.as_secs_f64();
        let floor = total.floor_lifecycles as f64 / total.floor_duration.as_secs_f64();
        Ok(Measured {
            duration: total.duration,
            throughput_per_s: Some(throughput),
            latency: total.latencies.percentiles(),
            commands_per_execution: Some(total.commands as f64 / self.tasks as f64),
            floor_per_s: Some(floor),
            floor_ratio: Some(throughput / floor),
            errors: total.errors,
            own: vec![("steps_per_batch", Some(steps_of_a_batch(self.tasks, total.batches)))],
        })
    }
}

/// How many steps of tasks the average transaction or call held. Commands of SQLite would mislead:
/// a look that finds nothing is one, and so is a claim of many.
fn steps_of_a_batch(tasks: u64, batches: u64) -> f64 {
    (STEPS * tasks) as f64 / batches.max(1) as f64
}

impl Lifecycle {
    /// The tasks in shares. After each the floor runs for as long: a disk that is slower for a
    /// while is slower for both.
    fn rounds(&self) -> impl Iterator<Item = Self> {
        let most = (self.tasks / SHORTEST_ROUND).clamp(1, ROUNDS);
        let share = move |round| (self.tasks + round) / most;
        (0..most).map(move |round| Self { tasks: share(round), ..self.clone() })
    }
}

/// What all rounds came to.
struct Total {
    duration: Duration,
    latencies: Latencies,
    errors: u64,
    /// Of the rounds alone: on a server those of the floor are counted by the same counter.
    commands: u64,
    batches: u64,
    floor_lifecycles: u64,
    floor_duration: Duration,
}

impl Total {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            duration: Duration::ZERO,
            latencies: Latencies::new()?,
            errors: 0,
            commands: 0,
            batches: 0,
            floor_lifecycles: 0,
            floor_duration: Duration::ZERO,
        })
    }

    async fn add(
        &mut self,
        round: &Lifecycle,
        target: &Target,
        payload: Content,
    ) -> anyhow::Result<()> {
        let before = target.store.counts().await?;
        let (race, finished) = Race::new(round, target, payload)?;
        let begun = Instant::now();
        race.run(finished).await?;
        let duration = begun.elapsed();
        let after = target.store.counts().await?;
        let batches = after.batches - before.batches;
        let steps = steps_of_a_batch(round.tasks, batches);
        let floor = FloorPlan {
            duration: duration.clamp(FLOOR_SHORTEST, FLOOR_LONGEST),
            group: target.store.floor_group(round.batch, steps),
            callers: (round.concurrency + round.workers) as usize,
            payload_bytes: round.payload_bytes,
        };
        let floor = floor.run(&target.place).await?;
        self.duration += duration;
        self.latencies.add(&race.latencies())?;
        self.errors += race.faults.count();
        self.commands += after.commands - before.commands;
        self.batches += batches;
        self.floor_lifecycles += floor.lifecycles;
        self.floor_duration += floor.elapsed;
        Ok(())
    }
}

/// What submitters and workers share.
struct Race {
    plan: Lifecycle,
    target: Target,
    payload: Content,
    to_submit: AtomicU64,
    /// Tasks that have not ended, well or badly.
    left: AtomicU64,
    begun: Mutex<HashMap<ExecutionId, Instant>>,
    latencies: Mutex<Latencies>,
    faults: Faults,
    finish: watch::Sender<bool>,
    bar: ProgressBar,
}

impl Race {
    fn new(
        plan: &Lifecycle,
        target: &Target,
        payload: Content,
    ) -> anyhow::Result<(Arc<Self>, Shutdown)> {
        let (finish, finished) = Shutdown::channel();
        let race = Self {
            plan: plan.clone(),
            target: target.clone(),
            payload,
            to_submit: AtomicU64::new(plan.tasks),
            left: AtomicU64::new(plan.tasks),
            begun: Mutex::default(),
            latencies: Mutex::new(Latencies::new()?),
            faults: Faults::default(),
            finish,
            bar: progress::bar("completing", plan.tasks),
        };
        Ok((Arc::new(race), finished))
    }

    async fn run(self: &Arc<Self>, finished: Shutdown) -> anyhow::Result<()> {
        let mut running = JoinSet::new();
        for _ in 0..self.plan.workers {
            running.spawn(Arc::clone(self).work(finished.clone()));
        }
        for _ in 0..self.plan.concurrency {
            running.spawn(Arc::clone(self).submit());
        }
        while let Some(ended) = running.join_next().await {
            ended??;
        }
        self.bar.finish_and_clear();
        Ok(())
    }

    /// Submits shares until all are taken.
    async fn submit(self: Arc<Self>) -> anyhow::Result<()> {
        while let Some(share) = self.take_share() {
            let submits = self.target.submits(share, &self.payload);
            self.note_begun(&submits);
            for reply in self.target.backend.submit_batch(submits).await? {
                if let Err(error) = reply {
                    self.faults.note(&error);
                    self.settle(1);
                }
            }
        }
        Ok(())
    }

    /// Claims and completes until every task has ended.
    async fn work(self: Arc<Self>, mut finished: Shutdown) -> anyhow::Result<()> {
        loop {
            let left = self.left.load(Ordering::Relaxed);
            let claim = self.target.claim(self.plan.batch);
            let Some(tasks) = finished.or(self.target.backend.claim(claim, STALL)).await else {
                return Ok(());
            };
            let tasks = tasks?;
            if tasks.is_empty() && self.left.load(Ordering::Relaxed) == left {
                bail!("{left} tasks are neither done nor to be found");
            }
            self.complete(&tasks).await;
            self.settle(tasks.len() as u64);
        }
    }

    async fn complete(&self, tasks: &[Task]) {
        if tasks.is_empty() {
            return;
        }
        let completes = tasks.iter().map(|task| Command::from(complete(task))).collect();
        let replies = self.target.backend.apply(completes).await;
        for (task, reply) in tasks.iter().zip(replies) {
            match (reply, self.begun(task.execution_id)) {
                (Ok(_), Some(begun)) => self.latencies().record(begun.elapsed()),
                (Ok(_), None) => self.faults.note(&"a task came that was not submitted, or twice"),
                (Err(error), _) => self.faults.note(&error),
            }
        }
    }

    /// How many to submit in the next call; none when all are under way.
    fn take_share(&self) -> Option<u64> {
        let share = |left: u64| left.min(self.plan.batch.into());
        let take = |left: u64| (left > 0).then(|| left - share(left));
        let left = self.to_submit.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        left.ok().map(share)
    }

    /// Noted before the call: the task may be done before the submit is answered.
    fn note_begun(&self, submits: &[Submit]) {
        let now = Instant::now();
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.extend(submits.iter().map(|submit| (submit.execution_id, now)));
    }

    /// When a task was submitted; told once.
    fn begun(&self, id: ExecutionId) -> Option<Instant> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)
    }

    fn latencies(&self) -> MutexGuard<'_, Latencies> {
        self.latencies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, count: u64) {
        self.bar.inc(count);
        if self.left.fetch_sub(count, Ordering::Relaxed) == count {
            self.finish.send_replace(true);
        }
    }
}
