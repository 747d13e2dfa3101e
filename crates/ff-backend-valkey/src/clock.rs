//! What the store's clock says, without asking.
//!
//! The machine needs the time before it decides, and the store's clock is the one that counts. Every
//! reply brings it along, so a caller knows it up to the time a reply takes; the commit checks it
//! and refuses one that is too far off. An estimate lags behind and never leads, but for a clock
//! that was set back, and then the commit says so.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use ff_core::id::Home;
use ff_core::time::TimestampMs;

use crate::options::LibraryClock;

/// How far the time of a decision may lie from the store's clock when it arrives there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) behind_ms: u32,
    pub(crate) ahead_ms: u32,
}

#[derive(Debug)]
pub(crate) struct Clock {
    kind: LibraryClock,
    origin: Instant,
    /// For each partition in a cluster, whose nodes have clocks of their own; else for all: the
    /// store's time less the time since `origin`.
    offsets: Box<[AtomicI64]>,
}

const UNKNOWN: i64 = i64::MIN;

impl Clock {
    pub(crate) fn new(kind: LibraryClock, clocks: u16) -> Self {
        let offsets = (0..clocks).map(|_| AtomicI64::new(UNKNOWN)).collect();
        Self { kind, origin: Instant::now(), offsets }
    }

    /// A decision that is older than a hiccup of the network is made again.
    pub(crate) fn window(&self) -> Window {
        match self.kind {
            LibraryClock::Server => Window { behind_ms: 250, ahead_ms: 10 },
            LibraryClock::Settable => Window { behind_ms: 0, ahead_ms: 0 },
        }
    }

    pub(crate) fn estimate(&self, home: &Home) -> Option<TimestampMs> {
        let offset = self.offset(home)?.load(Ordering::Relaxed);
        (offset != UNKNOWN).then(|| TimestampMs(offset + self.elapsed_ms()))
    }

    /// A reply said that it was `time` when it was made.
    pub(crate) fn note(&self, home: &Home, time: TimestampMs) {
        let Some(known) = self.offset(home) else { return };
        let offset = time.0 - self.elapsed_ms();
        match self.kind {
            // Replies take their time: the largest offset is the nearest to the truth.
            LibraryClock::Server => known.fetch_max(offset, Ordering::Relaxed),
            LibraryClock::Settable => known.swap(offset, Ordering::Relaxed),
        };
    }

    /// The store found our time too far off and said its own.
    pub(crate) fn set(&self, home: &Home, time: TimestampMs) {
        if let Some(known) = self.offset(home) {
            known.store(time.0 - self.elapsed_ms(), Ordering::Relaxed);
        }
    }

    /// None for a home whose node is not that of a partition: its time is read.
    fn offset(&self, home: &Home) -> Option<&AtomicI64> {
        match home.flow_partition() {
            Some(partition) => self.offsets.get(usize::from(partition) % self.offsets.len()),
            None if self.offsets.len() == 1 => self.offsets.first(),
            None => None,
        }
    }

    fn elapsed_ms(&self) -> i64 {
        match self.kind {
            LibraryClock::Server => {
                i64::try_from(self.origin.elapsed().as_millis()).unwrap_or(i64::MAX)
            }
            LibraryClock::Settable => 0,
        }
    }
}
