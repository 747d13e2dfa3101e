//! Settings of the engine.

use ff_core::limits;
use ff_core::operation::ScannerFilter;

use crate::table::Intervals;

/// What the engine may be told; every field has a default that fits.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Longest time between two visits of each scanner, at least 100 ms. What is due sooner is pushed;
    /// this is the net under a lost push.
    pub intervals: Intervals,
    /// What scanners that look for something to do are limited to. Timers, and what they tell, are
    /// carried out whatever they are of: a tick is of a home, which many share.
    pub filter: ScannerFilter,
    /// How long events are kept, in milliseconds.
    pub event_retention_ms: u64,
    /// How many bytes of events are kept for each partition.
    pub event_retention_bytes: u64,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            intervals: Intervals::default(),
            filter: ScannerFilter::default(),
            event_retention_ms: limits::EVENT_RETENTION_MS,
            event_retention_bytes: limits::EVENT_RETENTION_BYTES,
        }
    }
}
