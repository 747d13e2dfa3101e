//! What the store's clock says, without asking.
//!
//! The machine needs the time before it decides, and the store's clock is the one that counts. Every
//! reply brings it along, so a caller knows it up to the time a reply takes; the commit checks it
//! and refuses one that is too far off. An estimate lags behind and never leads, but for a clock
//! that was set back, and then the commit says so.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Instant;

use ff_core::id::{Home, PartitionFamily, PartitionKey};
use ff_core::partition::PartitionConfig;
use ff_core::time::TimestampMs;

use crate::options::LibraryClock;

/// How far the time of a decision may lie from the store's clock when it arrives there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) behind_ms: u32,
    pub(crate) ahead_ms: u32,
}

/// How old a decision may be when it arrives: older than a hiccup of the network, it is made again.
const BEHIND_MS: u32 = 250;

/// And how old over a network that is always slower than that. What is listed by time is in order up to
/// [`crate::item::DISORDER_MS`], which must be more.
const BEHIND_MOST_MS: u32 = 900;

/// How long a slow network is remembered.
const SLOW_MS: i64 = 60_000;

#[derive(Debug)]
pub(crate) struct Clock {
    kind: LibraryClock,
    origin: Instant,
    offsets: Offsets,
    behind_ms: AtomicU32,
    /// Until when it may be more than usual, counted from `origin`.
    slow_until: AtomicI64,
}

/// The store's time less the time since `origin`.
#[derive(Debug)]
enum Offsets {
    /// One node has one clock.
    One(AtomicI64),
    /// Nodes of a cluster have clocks of their own, and homes move between them.
    Each {
        config: PartitionConfig,
        partitions: Box<[AtomicI64]>,
        /// Of homes that are not counted.
        others: RwLock<HashMap<Home, AtomicI64>>,
    },
}

const UNKNOWN: i64 = i64::MIN;

impl Offsets {
    fn of_each(config: PartitionConfig) -> Self {
        let count: usize = config.fields().iter().map(|(_, count)| usize::from(*count)).sum();
        Self::Each {
            config,
            partitions: (0..count).map(|_| AtomicI64::new(UNKNOWN)).collect(),
            others: RwLock::default(),
        }
    }

    fn load(&self, home: &Home) -> i64 {
        let unknown = AtomicI64::new(UNKNOWN);
        match self {
            Self::One(offset) => offset.load(Ordering::Relaxed),
            Self::Each { config, partitions, others } => match home {
                Home::Partition(key) => {
                    let offset = partitions.get(place_of(config, *key)).unwrap_or(&unknown);
                    offset.load(Ordering::Relaxed)
                }
                other => {
                    let others = others.read().unwrap_or_else(PoisonError::into_inner);
                    others.get(other).unwrap_or(&unknown).load(Ordering::Relaxed)
                }
            },
        }
    }

    fn change(&self, home: &Home, change: impl FnOnce(&AtomicI64)) {
        match self {
            Self::One(offset) => change(offset),
            Self::Each { config, partitions, others } => match home {
                Home::Partition(key) => {
                    if let Some(offset) = partitions.get(place_of(config, *key)) {
                        change(offset);
                    }
                }
                other => {
                    let known = others.read().unwrap_or_else(PoisonError::into_inner);
                    if let Some(offset) = known.get(other) {
                        return change(offset);
                    }
                    drop(known);
                    let mut others = others.write().unwrap_or_else(PoisonError::into_inner);
                    change(others.entry(other.clone()).or_insert(AtomicI64::new(UNKNOWN)));
                }
            },
        }
    }
}

/// The place of a partition among all partitions.
fn place_of(config: &PartitionConfig, key: PartitionKey) -> usize {
    let before = PartitionFamily::ALL.into_iter().take_while(|family| *family != key.family);
    let before: usize = before.map(|family| usize::from(config.count(family))).sum();
    before + usize::from(key.index)
}

impl Clock {
    /// For a store on one node, or on a cluster with these partitions.
    pub(crate) fn new(kind: LibraryClock, cluster: Option<PartitionConfig>) -> Self {
        let one = Offsets::One(AtomicI64::new(UNKNOWN));
        let offsets = cluster.map_or(one, Offsets::of_each);
        let (behind_ms, slow_until) = (AtomicU32::new(BEHIND_MS), AtomicI64::new(0));
        Self { kind, origin: Instant::now(), offsets, behind_ms, slow_until }
    }

    pub(crate) fn window(&self) -> Window {
        match self.kind {
            LibraryClock::Server => Window { behind_ms: self.behind_ms(), ahead_ms: 10 },
            LibraryClock::Settable => Window { behind_ms: 0, ahead_ms: 0 },
        }
    }

    fn behind_ms(&self) -> u32 {
        match self.elapsed_ms() < self.slow_until.load(Ordering::Relaxed) {
            true => self.behind_ms.load(Ordering::Relaxed),
            false => BEHIND_MS,
        }
    }

    /// A decision came too late: the next ones may be older, or none would ever arrive in time where
    /// every call takes that long.
    pub(crate) fn widen(&self) {
        let wider = self.behind_ms().saturating_mul(2).min(BEHIND_MOST_MS);
        self.behind_ms.store(wider, Ordering::Relaxed);
        self.slow_until.store(self.elapsed_ms() + SLOW_MS, Ordering::Relaxed);
    }

    pub(crate) fn estimate(&self, home: &Home) -> Option<TimestampMs> {
        let offset = self.offsets.load(home);
        (offset != UNKNOWN).then(|| TimestampMs(offset + self.elapsed_ms()))
    }

    /// A reply said that it was `time` when it was made.
    pub(crate) fn note(&self, home: &Home, time: TimestampMs) {
        let offset = time.0 - self.elapsed_ms();
        self.offsets.change(home, |known| {
            match self.kind {
                // Replies take their time: the largest offset is the nearest to the truth.
                LibraryClock::Server => known.fetch_max(offset, Ordering::Relaxed),
                LibraryClock::Settable => known.swap(offset, Ordering::Relaxed),
            };
        });
    }

    /// The store found our time too far off and said its own.
    pub(crate) fn set(&self, home: &Home, time: TimestampMs) {
        let offset = time.0 - self.elapsed_ms();
        self.offsets.change(home, |known| known.store(offset, Ordering::Relaxed));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_network_is_given_more_time_and_not_all_of_it() {
        let clock = Clock::new(LibraryClock::Server, None);
        let mut allowed = Vec::new();
        for _ in 0..4 {
            allowed.push(clock.window().behind_ms);
            clock.widen();
        }
        assert_eq!(allowed, [250, 500, 900, 900]);
        assert!(i64::from(BEHIND_MOST_MS) < crate::item::DISORDER_MS);
        clock.slow_until.store(0, Ordering::Relaxed);
        assert_eq!(clock.window().behind_ms, 250, "it is not slow any more");
    }

    #[test]
    fn homes_of_a_cluster_have_clocks_of_their_own() {
        let config = PartitionConfig { flow: 2, budget: 1, quota: 1 };
        let clock = Clock::new(LibraryClock::Settable, Some(config));
        let homes = ["{fp:0}", "{fp:1}", "{b:0}", "{q:0}", "{w:a}", "{w:b}", "{g}"];
        let homes: Vec<Home> = homes.iter().filter_map(|home| home.parse().ok()).collect();
        for (at, home) in (1..).zip(&homes) {
            assert_eq!(clock.estimate(home), None, "{home}");
            clock.note(home, TimestampMs(at));
        }
        for (at, home) in (1..).zip(&homes) {
            assert_eq!(clock.estimate(home), Some(TimestampMs(at)), "{home}");
            clock.set(home, TimestampMs(-at));
            assert_eq!(clock.estimate(home), Some(TimestampMs(-at)), "{home}");
        }
    }

    #[test]
    fn one_node_has_one_clock() {
        let clock = Clock::new(LibraryClock::Settable, None);
        clock.note(&Home::Global, TimestampMs(7));
        assert_eq!(clock.estimate(&Home::partition(3)), Some(TimestampMs(7)));
    }
}
