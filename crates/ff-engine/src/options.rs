//! Settings of the engine.

use std::time::Duration;

use ff_core::limits;

/// A shorter interval, or none at all, would keep the store busy with nothing else.
pub(crate) const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// What the engine may be told; every field has a default that fits.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Longest time between two looks at the timers. A timer that is due sooner is pushed; this is
    /// the net under a lost push.
    pub timer_interval: Duration,
    /// Time between two rounds of the trimmer; at least 100 ms.
    pub trim_interval: Duration,
    /// Time between two looks at what no worker can run; at least 100 ms.
    pub route_interval: Duration,
    /// How long events are kept, in milliseconds.
    pub event_retention_ms: u64,
    /// How many bytes of events are kept for each partition.
    pub event_retention_bytes: u64,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            timer_interval: Duration::from_secs(1),
            trim_interval: Duration::from_secs(60),
            route_interval: Duration::from_secs(5),
            event_retention_ms: limits::EVENT_RETENTION_MS,
            event_retention_bytes: limits::EVENT_RETENTION_BYTES,
        }
    }
}
