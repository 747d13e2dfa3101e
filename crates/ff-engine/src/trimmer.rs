//! The trimmer: removes events and records of repetition past their retention. Executions go by
//! their own timers.

use std::time::Duration;

use ff_core::backend::{Backend, Pending};
use ff_core::error::EngineError;
use ff_core::operation::{ScannerFilter, Trim};
use ff_core::state::DueKind;
use ff_core::time::TimestampMs;

use crate::options::EngineOptions;
use crate::report::Report;
use crate::scanner::{ScanResult, Scanner};

pub(crate) const NAME: &str = DueKind::RetentionTrimmer.scanner();

/// Rows of one step; steps follow each other until a round is done.
const STEP: u32 = 500;

/// One step a visit; the log is of all namespaces, so no filter limits it.
pub(crate) struct Trimmer {
    interval: Duration,
    filter: ScannerFilter,
    event_retention_ms: u64,
    event_retention_bytes: u64,
}

impl Trimmer {
    pub(crate) fn new(options: &EngineOptions) -> Self {
        let EngineOptions { event_retention_ms, event_retention_bytes, .. } = *options;
        let (interval, filter) = (options.intervals.of(NAME), ScannerFilter::default());
        Self { interval, filter, event_retention_ms, event_retention_bytes }
    }

    async fn step(&self, backend: &dyn Backend) -> Result<ScanResult, EngineError> {
        let now = backend.server_time_ms().await?;
        let kept = i64::try_from(self.event_retention_ms).unwrap_or(i64::MAX);
        let partitions = u64::from(backend.settings().partitions.flow);
        let trim = Trim {
            events_before: TimestampMs(now.0.saturating_sub(kept)),
            event_bytes: self.event_retention_bytes.saturating_mul(partitions),
            most: STEP,
        };
        let trimmed = backend.trim(trim).await?;
        Ok(ScanResult {
            processed: trimmed.dedup_records + trimmed.events + trimmed.frames,
            next_in: trimmed.more.then_some(Duration::ZERO),
            ..ScanResult::default()
        })
    }
}

impl Scanner for Trimmer {
    fn name(&self) -> &'static str {
        NAME
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    fn filter(&self) -> &ScannerFilter {
        &self.filter
    }

    fn is_for_one(&self) -> bool {
        true
    }

    fn visit<'a>(
        &'a mut self,
        backend: &'a dyn Backend,
        _: &'a Report,
    ) -> Pending<'a, Result<ScanResult, EngineError>> {
        Box::pin(self.step(backend))
    }
}
