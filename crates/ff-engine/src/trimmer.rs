//! The trimmer: removes events and records of repetition past their retention. Executions go by
//! their own timers.

use std::sync::Arc;

use ff_core::backend::Backend;
use ff_core::error::EngineError;
use ff_core::operation::Trim;
use ff_core::time::TimestampMs;

use crate::options::{EngineOptions, SHORTEST_INTERVAL};
use crate::report::Report;
use crate::service::Shutdown;

pub(crate) const NAME: &str = "retention_trimmer";

/// Rows of one step; steps follow each other until a round is done.
const STEP: u32 = 500;

pub(crate) async fn run(
    backend: Arc<dyn Backend>,
    report: Arc<Report>,
    options: EngineOptions,
    mut shutdown: Shutdown,
) {
    let mut ticks = tokio::time::interval(options.trim_interval.max(SHORTEST_INTERVAL));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while shutdown.or(ticks.tick()).await.is_some() {
        match shutdown.or(round(&*backend, &report, &options)).await {
            None => return,
            Some(Ok(())) => {}
            Some(Err(error)) => {
                report.add_error(NAME);
                tracing::warn!(%error, "retention could not be carried out; trying again later");
            }
        }
    }
}

async fn round(
    backend: &dyn Backend,
    report: &Report,
    options: &EngineOptions,
) -> Result<(), EngineError> {
    let now = backend.server_time_ms().await?;
    let kept = i64::try_from(options.event_retention_ms).unwrap_or(i64::MAX);
    let partitions = u64::from(backend.settings().partitions.flow);
    let trim = Trim {
        events_before: TimestampMs(now.0.saturating_sub(kept)),
        event_bytes: options.event_retention_bytes.saturating_mul(partitions),
        most: STEP,
    };
    loop {
        let trimmed = backend.trim(trim.clone()).await?;
        report.add(NAME, trimmed.dedup_records + trimmed.events + trimmed.frames);
        if !trimmed.more {
            return Ok(());
        }
    }
}
