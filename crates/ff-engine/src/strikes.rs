//! Who fails again and again, so that the others need not wait for them.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use ff_core::error::{Code, EngineError};

/// So many failures in a row, and it is skipped.
const FAILURES_MOST: u32 = 3;

/// For so many cycles.
const SKIPPED_CYCLES: u32 = 10;

/// Items that are remembered. One that fails beyond these is tried in every cycle.
const REMEMBERED: usize = 10_000;

/// Items of one scanner that fail. One that has failed is left alone for a cycle; one that has failed
/// three times in a row, for ten.
#[derive(Debug)]
pub(crate) struct Strikes<K> {
    cycle: Duration,
    failing: HashMap<K, Failing>,
}

#[derive(Debug, Clone, Copy)]
struct Failing {
    failures: u32,
    until: Instant,
}

/// What to do about an item in this cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    Try,
    /// It has just failed.
    Rest,
    /// It has failed too often.
    Skip,
}

impl<K: Eq + Hash + Clone> Strikes<K> {
    pub(crate) fn new(cycle: Duration) -> Self {
        Self { cycle, failing: HashMap::new() }
    }

    pub(crate) fn turn(&self, item: &K, now: Instant) -> Turn {
        match self.failing.get(item) {
            Some(failing) if now < failing.until => {
                if failing.failures < FAILURES_MOST {
                    Turn::Rest
                } else {
                    Turn::Skip
                }
            }
            _ => Turn::Try,
        }
    }

    /// A store that is away is no fault of the item: it rests, and no failure is counted.
    pub(crate) fn failed(&mut self, item: &K, error: &EngineError, now: Instant) {
        if self.failing.len() >= REMEMBERED && !self.failing.contains_key(item) {
            // Those whose time is over have not come back since, or are as well tried now.
            self.failing.retain(|_, failing| now < failing.until);
            if self.failing.len() >= REMEMBERED {
                return;
            }
        }
        let none = Failing { failures: 0, until: now };
        let failing = self.failing.entry(item.clone()).or_insert(none);
        let counts = u32::from(error.code() != Code::Unavailable);
        failing.failures = failing.failures.saturating_add(counts);
        let cycles = if failing.failures < FAILURES_MOST { 1 } else { SKIPPED_CYCLES };
        failing.until = now + self.cycle * cycles;
    }

    pub(crate) fn succeeded(&mut self, item: &K) {
        // Nearly always there is nobody to forget.
        if !self.failing.is_empty() {
            self.failing.remove(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CYCLE: Duration = Duration::from_secs(1);

    fn poisoned() -> EngineError {
        EngineError::bug("poisoned")
    }

    #[test]
    fn the_third_failure_in_a_row_costs_ten_cycles() {
        let (mut strikes, begin) = (Strikes::new(CYCLE), Instant::now());
        for failure in 0..3 {
            let now = begin + CYCLE * failure;
            assert_eq!(strikes.turn(&"bad", now), Turn::Try);
            strikes.failed(&"bad", &poisoned(), now);
            let rests = if failure < 2 { Turn::Rest } else { Turn::Skip };
            assert_eq!(strikes.turn(&"bad", now + CYCLE / 2), rests);
            assert_eq!(strikes.turn(&"good", now), Turn::Try);
        }
        let third = begin + CYCLE * 2;
        assert_eq!(strikes.turn(&"bad", third + CYCLE * 9), Turn::Skip);
        assert_eq!(strikes.turn(&"bad", third + CYCLE * 10), Turn::Try);
        strikes.failed(&"bad", &poisoned(), third + CYCLE * 10);
        assert_eq!(strikes.turn(&"bad", third + CYCLE * 19), Turn::Skip, "the row goes on");
    }

    #[test]
    fn success_ends_the_row() {
        let (mut strikes, now) = (Strikes::new(CYCLE), Instant::now());
        for _ in 0..5 {
            strikes.failed(&1, &poisoned(), now);
            strikes.failed(&1, &poisoned(), now);
            assert_eq!(strikes.turn(&1, now), Turn::Rest);
            strikes.succeeded(&1);
            assert_eq!(strikes.turn(&1, now), Turn::Try);
        }
    }

    #[test]
    fn a_store_that_is_away_skips_nobody() {
        let (mut strikes, begin) = (Strikes::new(CYCLE), Instant::now());
        for failure in 0..10 {
            let now = begin + CYCLE * failure;
            assert_eq!(strikes.turn(&1, now), Turn::Try);
            strikes.failed(&1, &EngineError::unavailable("no server"), now);
            assert_eq!(strikes.turn(&1, now), Turn::Rest);
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut strikes, now) = (Strikes::new(CYCLE), Instant::now());
        for item in 0..=REMEMBERED {
            strikes.failed(&item, &poisoned(), now);
        }
        assert_eq!(strikes.failing.len(), REMEMBERED);
        assert_eq!(strikes.turn(&REMEMBERED, now), Turn::Try);
        strikes.failed(&REMEMBERED, &poisoned(), now + CYCLE);
        assert_eq!(strikes.failing.len(), 1, "those whose rest is over make room");
    }
}
