//! The bare database, as a scenario of its own.

use std::time::Duration;

use clap::Args;
use ff_backend_sqlite::{Floor, FloorReport};
use serde::Serialize;

use super::command::Named;
use super::{Latencies, Measured, Place};

/// The bare database: the row writes of lifecycles without FlowFabric
///
/// Groups of executions are submitted in one transaction, claimed in a second and completed in a
/// third; latency is that of a group. It writes to a file of its own beside the store.
#[derive(Debug, Clone, Args, Serialize)]
#[command(after_help = "Example: ff bench floor --seconds 5 --batch 16 --payload-bytes 100")]
pub(crate) struct FloorScenario {
    /// How long to write
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Executions of one transaction
    #[arg(long, default_value_t = 99, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch: u32,
    /// Bytes of each payload
    #[arg(long, default_value_t = 4096)]
    payload_bytes: usize,
}

impl Named for FloorScenario {
    const NAME: &'static str = "floor";
}

impl FloorScenario {
    pub(crate) async fn run(&self, place: &Place) -> anyhow::Result<Measured> {
        let floor = Floor {
            duration: Duration::from_secs(self.seconds),
            group: self.batch as usize,
            payload_bytes: self.payload_bytes,
        };
        let report = place.run_floor(floor).await?;
        let per_s = report.lifecycles_per_s();
        Ok(Measured {
            duration: report.elapsed,
            throughput_per_s: Some(per_s),
            latency: group_latencies(&report)?.percentiles(),
            floor_per_s: Some(per_s),
            floor_ratio: Some(1.0),
            ..Measured::default()
        })
    }
}

fn group_latencies(report: &FloorReport) -> anyhow::Result<Latencies> {
    let mut latencies = Latencies::new()?;
    for group in &report.groups {
        latencies.record(*group);
    }
    Ok(latencies)
}
