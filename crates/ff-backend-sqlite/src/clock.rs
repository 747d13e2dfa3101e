//! The one clock of the store: the process clock, never backwards, or one that a test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use ff_core::time::TimestampMs;

/// Where the store's time comes from.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    #[default]
    System,
    Manual(ManualClock),
}

/// A clock that stands until it is moved.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    pub fn at(now: TimestampMs) -> Self {
        Self(Arc::new(AtomicI64::new(now.0)))
    }

    pub fn advance(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }

    pub fn now(&self) -> TimestampMs {
        TimestampMs(self.0.load(Ordering::SeqCst))
    }
}

/// A clock with the memory that keeps it from going backwards, also over a restart.
#[derive(Debug)]
pub(crate) struct SteadyClock {
    source: Clock,
    latest: AtomicI64,
}

impl SteadyClock {
    /// Starts no earlier than `latest`, the newest instant that the store has recorded.
    pub(crate) fn new(source: Clock, latest: TimestampMs) -> Self {
        Self { source, latest: AtomicI64::new(latest.0) }
    }

    pub(crate) fn now(&self) -> TimestampMs {
        let read = match &self.source {
            Clock::Manual(clock) => clock.now().0,
            Clock::System => {
                let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
            }
        };
        TimestampMs(self.latest.fetch_max(read, Ordering::SeqCst).max(read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_goes_back() {
        let manual = ManualClock::at(TimestampMs(1000));
        let clock = SteadyClock::new(Clock::Manual(manual.clone()), TimestampMs(1500));
        assert_eq!(clock.now(), TimestampMs(1500));
        manual.advance(1000);
        assert_eq!(clock.now(), TimestampMs(2000));
        manual.advance(-700);
        assert_eq!(clock.now(), TimestampMs(2000));
    }
}
