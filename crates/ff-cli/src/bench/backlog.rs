//! Claim latency with a long queue, beside that with a short one.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use ff_core::backend::BackendExt as _;
use serde::Serialize;

use super::command::{Named, OnStore};
use super::target::{complete, payload};
use super::{Faults, Latencies, Measured, Target, progress};

/// What the long queue is compared with.
const SHORT_QUEUE: u64 = 1_000;
/// Claims on one queue before it is the other's turn.
const TURN: u64 = 20;

/// Claim latency with a long queue, compared with one of 1,000
///
/// One claim at a time; each task is completed and replaced, so that a queue keeps its length. The
/// short queue is in a store of its own beside the long one, and they are measured in turns: what
/// disturbs the machine meanwhile disturbs both.
#[derive(Debug, Clone, Args, Serialize)]
#[command(after_help = "Example: ff bench backlog --queued 100000")]
pub(crate) struct Backlog {
    /// Length of the long queue
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    queued: u64,
    /// Claims that are timed with each queue
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..))]
    samples: u64,
}

impl Named for Backlog {
    const NAME: &'static str = "backlog";
}

impl OnStore for Backlog {
    async fn run(&self, target: &Target) -> anyhow::Result<Measured> {
        let faults = Faults::default();
        let begun = Instant::now();
        let beside = Target::open(target.place.beside("short")?).await?;
        beside.fill(self.queued.min(SHORT_QUEUE), &payload(0), &faults).await?;
        target.fill(self.queued, &payload(0), &faults).await?;
        let (mut short, mut long) = (Queue::of(&beside)?, Queue::of(target)?);
        self.take_turns(&mut short, &mut long, &faults).await?;
        if beside.audit().await? > 0 {
            faults.note(&"the store of the short queue is not sound");
        }
        beside.close().await?;
        let (short_p99, long_p99) = (short.p99_ms(), long.p99_ms());
        Ok(Measured {
            duration: begun.elapsed(),
            throughput_per_s: Some(self.samples as f64 / long.time.as_secs_f64()),
            latency: long.latencies.percentiles(),
            commands_per_execution: Some(long.commands as f64 / self.samples as f64),
            errors: faults.count(),
            own: vec![
                ("small_p99_ms", short_p99),
                ("p99_ratio", long_p99.zip(short_p99).map(|(long, short)| long / short)),
            ],
            ..Measured::default()
        })
    }
}

impl Backlog {
    async fn take_turns(
        &self,
        short: &mut Queue<'_>,
        long: &mut Queue<'_>,
        faults: &Faults,
    ) -> anyhow::Result<()> {
        let bar = progress::bar("claiming", self.samples);
        let mut left = self.samples;
        while left > 0 {
            let turn = left.min(TURN);
            short.sample(turn, faults).await?;
            long.sample(turn, faults).await?;
            left -= turn;
            bar.inc(turn);
        }
        bar.finish_and_clear();
        Ok(())
    }
}

/// A filled queue and what was measured on it.
struct Queue<'a> {
    target: &'a Target,
    /// Of the claims alone.
    latencies: Latencies,
    /// Of the claims and all that keeps the queue as it is.
    time: Duration,
    /// Counted turn by turn: on a server both queues move the same counter.
    commands: u64,
}

impl<'a> Queue<'a> {
    fn of(target: &'a Target) -> anyhow::Result<Self> {
        Ok(Self { target, latencies: Latencies::new()?, time: Duration::ZERO, commands: 0 })
    }

    fn p99_ms(&self) -> Option<f64> {
        self.latencies.percentiles().p99_ms
    }

    async fn sample(&mut self, count: u64, faults: &Faults) -> anyhow::Result<()> {
        let Self { target, latencies, .. } = self;
        let before = target.store.counts().await?;
        let begun = Instant::now();
        for _ in 0..count {
            let claim = target.claim(1);
            let claim_begun = Instant::now();
            let tasks = target.backend.claim(claim, Duration::ZERO).await?;
            latencies.record(claim_begun.elapsed());
            let task = tasks.first().context("a claim on a filled queue found nothing")?;
            if let Err(error) = target.backend.call(complete(task)).await {
                faults.note(&error);
            }
            if let Err(error) = target.backend.call(target.submit(&payload(0))).await {
                faults.note(&error);
            }
        }
        self.time += begun.elapsed();
        self.commands += self.target.store.counts().await?.commands - before.commands;
        Ok(())
    }
}
