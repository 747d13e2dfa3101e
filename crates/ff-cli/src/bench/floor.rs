//! The bare database: under a scenario that runs beside it, and as a scenario of its own.

use std::time::Duration;

use clap::Args;
use ff_backend_sqlite::SqliteOptions;
use ff_backend_valkey::{ValkeyOptions, ValkeyStore};
use ff_core::backend::Upkeep as _;
use ff_core::error::{EngineError, Refusal};
use ff_core::limits;
use serde::Serialize;

use super::command::Named;
use super::{Latencies, Measured, Place, progress};
use crate::stores::Options;

const SQLITE_BATCH: u32 = 99;
const SQLITE_PAYLOAD_BYTES: usize = 4096;
/// As many as `lifecycle` has of submitters and workers.
const VALKEY_CALLERS: u32 = 80;
const CLOSING: Duration = Duration::from_secs(5);

/// The bare database: the writes of lifecycles without FlowFabric
///
/// SQLite: groups of executions are submitted in one transaction, claimed in a second and completed
/// in a third, with the store's own row writes, in a file of its own beside the store. Valkey: three
/// function calls for a group of executions, each with one HSET of ten fields, one ZADD and one ZREM
/// per execution, from many callers at once. Latency is that of a group.
#[derive(Debug, Clone, Args, Serialize)]
#[command(after_help = "Example: ff bench floor --seconds 5 --batch 16 --payload-bytes 100")]
pub(crate) struct FloorScenario {
    /// How long to write
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Executions of one transaction (SQLite, 99) or of one call (Valkey, 1)
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch: Option<u32>,
    /// SQLite: bytes of each payload (4096)
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_bytes: Option<usize>,
    /// Valkey: calls that are under way at once (80)
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    callers: Option<u32>,
}

impl Named for FloorScenario {
    const NAME: &'static str = "floor";
}

impl FloorScenario {
    /// With the defaults of the store. Refuses what means nothing there.
    pub(crate) fn on(&self, place: &Place) -> Result<Self, EngineError> {
        let mut filled = self.clone();
        match &place.options {
            Options::Sqlite(_) => {
                refuse(self.callers.is_some(), "callers", "SQLite has one writer")?;
                filled.batch.get_or_insert(SQLITE_BATCH);
                filled.payload_bytes.get_or_insert(SQLITE_PAYLOAD_BYTES);
            }
            Options::Valkey(_) => {
                let too_many = self.batch.is_some_and(|batch| batch as usize > limits::BATCH_ITEMS);
                refuse(too_many, "batch", "one call takes up to 1000")?;
                refuse(self.payload_bytes.is_some(), "payload_bytes", "on Valkey it has none")?;
                filled.batch.get_or_insert(1);
                filled.callers.get_or_insert(VALKEY_CALLERS);
            }
        }
        Ok(filled)
    }

    pub(crate) async fn run(&self, place: &Place) -> anyhow::Result<Measured> {
        let plan = FloorPlan {
            duration: Duration::from_secs(self.seconds),
            group: self.batch.unwrap_or(1) as usize,
            callers: self.callers.unwrap_or(1) as usize,
            payload_bytes: self.payload_bytes.unwrap_or(0),
        };
        let run = plan.run(place).await?;
        let per_s = run.lifecycles as f64 / run.elapsed.as_secs_f64();
        let mut latencies = Latencies::new()?;
        for group in &run.groups {
            latencies.record(*group);
        }
        Ok(Measured {
            duration: run.elapsed,
            throughput_per_s: Some(per_s),
            latency: latencies.percentiles(),
            floor_per_s: Some(per_s),
            floor_ratio: Some(1.0),
            ..Measured::default()
        })
    }
}

fn refuse(wrong: bool, field: &'static str, why: &str) -> Result<(), EngineError> {
    if wrong { Err(Refusal::invalid(field, format!("{field}: {why}")).into()) } else { Ok(()) }
}

/// What a run of the floor does.
pub(super) struct FloorPlan {
    pub(super) duration: Duration,
    /// Executions of one transaction or one call.
    pub(super) group: usize,
    /// Calls at once; SQLite's writer is one.
    pub(super) callers: usize,
    /// What every row of SQLite's payloads holds.
    pub(super) payload_bytes: usize,
}

/// What it reached.
pub(super) struct FloorRun {
    pub(super) lifecycles: u64,
    pub(super) elapsed: Duration,
    /// How long each group took for its three steps.
    groups: Vec<Duration>,
}

impl FloorPlan {
    /// Runs beside the store, never on it.
    pub(super) async fn run(&self, place: &Place) -> anyhow::Result<FloorRun> {
        let beside = place.beside("floor")?;
        let spinner = progress::spinner("floor: the bare database, same writes");
        let run = match beside.options.clone() {
            Options::Sqlite(options) => self.on_sqlite(options).await,
            Options::Valkey(options) => self.on_valkey(options).await,
        };
        spinner.finish_and_clear();
        run
    }

    async fn on_sqlite(&self, options: SqliteOptions) -> anyhow::Result<FloorRun> {
        let Self { duration, group, payload_bytes, .. } = *self;
        let floor = ff_backend_sqlite::Floor { duration, group, payload_bytes };
        let report = tokio::task::spawn_blocking(move || floor.run(&options)).await??;
        let ff_backend_sqlite::FloorReport { lifecycles, elapsed, groups } = report;
        Ok(FloorRun { lifecycles, elapsed, groups })
    }

    async fn on_valkey(&self, options: ValkeyOptions) -> anyhow::Result<FloorRun> {
        let Self { duration, group: batch, callers, .. } = *self;
        let store = ValkeyStore::open(options).await?;
        let floor = ff_backend_valkey::Floor { duration, batch, callers };
        let report = floor.run(&store).await?;
        store.shutdown_prepare(CLOSING).await?;
        let ff_backend_valkey::FloorReport { lifecycles, elapsed, groups } = report;
        Ok(FloorRun { lifecycles, elapsed, groups })
    }
}
