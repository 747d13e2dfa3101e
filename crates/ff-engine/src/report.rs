//! What the engine has done so far, by scanner. Counters are read while they are written: nobody waits
//! for anybody, and a reader may see one of them before another.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ff_core::read::Violation;

use crate::table::{SCANNERS, place};

/// Upper bounds of the classes that durations of cycles are counted in; a last class has none.
pub const DURATION_BOUNDS: [Duration; 7] = [
    Duration::from_millis(1),
    Duration::from_millis(5),
    Duration::from_millis(25),
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_millis(2_500),
    Duration::from_secs(10),
];

/// Stands for a cycle that never was.
const NEVER: u64 = u64::MAX;

/// Counters of every scanner.
#[derive(Debug)]
pub struct Report {
    begun: Instant,
    scanners: [Counters; SCANNERS.len()],
    violations: Mutex<BTreeMap<&'static str, u64>>,
    edge_cancels: [AtomicU64; EdgeCancel::ALL.len()],
}

/// What a look at a flow, or at an entry that names one, came to for the cancels that decided groups
/// have left there. They are work of the flow, which only its timer leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeCancel {
    /// All is as it should be.
    NoOp,
    /// The flow was not listed or counted as its record says, and is now: what is left is carried on.
    CompletedDrain,
    /// An entry did not say what the flow says, or named one that is gone, and was removed.
    RemovedStale,
}

/// What one scanner has done so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScannerStatus {
    pub name: &'static str,
    /// Visits of the store.
    pub cycles: u64,
    pub processed: u64,
    pub errors: u64,
    /// Times that an item was passed over because it kept failing.
    pub skipped: u64,
    /// Visits that another engine had just made.
    pub left_to_others: u64,
    /// What must never be, found by it.
    pub violations: u64,
    /// Times that it broke and began again.
    pub restarts: u64,
    /// How late the oldest thing was that its last cycle carried out.
    pub lag: Duration,
    pub last_duration: Duration,
    /// How long ago its last cycle ended; none if there was none.
    pub last_cycle_ago: Option<Duration>,
    /// Cycles by their duration, see [`DURATION_BOUNDS`].
    pub durations: [u64; DURATION_BOUNDS.len() + 1],
    pub total_duration: Duration,
}

#[derive(Debug)]
struct Counters {
    cycles: AtomicU64,
    processed: AtomicU64,
    errors: AtomicU64,
    skipped: AtomicU64,
    left_to_others: AtomicU64,
    violations: AtomicU64,
    restarts: AtomicU64,
    lag_ms: AtomicU64,
    last_us: AtomicU64,
    total_us: AtomicU64,
    /// In milliseconds since the report began.
    last_cycle_at: AtomicU64,
    durations: [AtomicU64; DURATION_BOUNDS.len() + 1],
}

impl Default for Counters {
    fn default() -> Self {
        let zero = AtomicU64::default;
        Self {
            cycles: zero(),
            processed: zero(),
            errors: zero(),
            skipped: zero(),
            left_to_others: zero(),
            violations: zero(),
            restarts: zero(),
            lag_ms: zero(),
            last_us: zero(),
            total_us: zero(),
            last_cycle_at: AtomicU64::new(NEVER),
            durations: Default::default(),
        }
    }
}

impl Default for Report {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            scanners: std::array::from_fn(|_| Counters::default()),
            violations: Mutex::default(),
            edge_cancels: Default::default(),
        }
    }
}

impl EdgeCancel {
    pub const ALL: [Self; 3] = [Self::NoOp, Self::CompletedDrain, Self::RemovedStale];

    /// The label of metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoOp => "no_op",
            Self::CompletedDrain => "completed_drain",
            Self::RemovedStale => "sremmed_stale",
        }
    }
}

impl Report {
    /// Every scanner there is, in the order of the table.
    pub fn status(&self) -> Vec<ScannerStatus> {
        let now = self.begun.elapsed();
        SCANNERS.iter().zip(&self.scanners).map(|(known, of)| of.status(known.name, now)).collect()
    }

    pub fn processed(&self) -> BTreeMap<&'static str, u64> {
        self.status().into_iter().map(|status| (status.name, status.processed)).collect()
    }

    pub fn errors(&self) -> BTreeMap<&'static str, u64> {
        self.status().into_iter().map(|status| (status.name, status.errors)).collect()
    }

    /// What must never be, by the invariant that does not hold.
    pub fn violations(&self) -> BTreeMap<&'static str, u64> {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks of the reconcilers at flows, by what they came to.
    pub fn edge_cancels(&self) -> [(EdgeCancel, u64); EdgeCancel::ALL.len()] {
        let count = |came_to| self.edge_cancels[came_to as usize].load(Ordering::Relaxed);
        EdgeCancel::ALL.map(|came_to| (came_to, count(came_to)))
    }

    /// A cycle of so long has ended.
    pub(crate) fn add_cycle(&self, scanner: &str, lasted: Duration) {
        let Some(of) = self.of(scanner) else { return };
        let class = DURATION_BOUNDS.iter().position(|bound| lasted <= *bound);
        let class = class.unwrap_or(DURATION_BOUNDS.len());
        let us = u64::try_from(lasted.as_micros()).unwrap_or(u64::MAX);
        add(&of.durations[class], 1);
        add(&of.cycles, 1);
        add(&of.total_us, us);
        of.last_us.store(us, Ordering::Relaxed);
        of.last_cycle_at.store(millis(self.begun.elapsed()), Ordering::Relaxed);
    }

    pub(crate) fn add(&self, scanner: &str, count: u32) {
        self.count(scanner, |of| &of.processed, count);
    }

    pub(crate) fn add_errors(&self, scanner: &str, count: u32) {
        self.count(scanner, |of| &of.errors, count);
    }

    pub(crate) fn add_skipped(&self, scanner: &str, count: u32) {
        self.count(scanner, |of| &of.skipped, count);
    }

    pub(crate) fn add_left_to_others(&self, scanner: &str) {
        self.count(scanner, |of| &of.left_to_others, 1);
    }

    pub(crate) fn add_violations(&self, scanner: &str, found: &[Violation]) {
        let count = u32::try_from(found.len()).unwrap_or(u32::MAX);
        self.count(scanner, |of| &of.violations, count);
        let mut by_invariant = self.violations.lock().unwrap_or_else(PoisonError::into_inner);
        for violation in found {
            *by_invariant.entry(violation.invariant).or_default() += 1;
        }
    }

    pub(crate) fn add_edge_cancels(&self, came_to: EdgeCancel, count: u64) {
        add(&self.edge_cancels[came_to as usize], count);
    }

    pub(crate) fn add_restart(&self, scanner: &str) {
        self.count(scanner, |of| &of.restarts, 1);
    }

    /// The oldest thing of this cycle was so late.
    pub(crate) fn set_lag(&self, scanner: &str, lag: Duration) {
        if let Some(of) = self.of(scanner) {
            of.lag_ms.store(millis(lag), Ordering::Relaxed);
        }
    }

    fn count(&self, scanner: &str, counter: impl Fn(&Counters) -> &AtomicU64, count: u32) {
        if let Some(of) = self.of(scanner) {
            add(counter(of), u64::from(count));
        }
    }

    fn of(&self, scanner: &str) -> Option<&Counters> {
        place(scanner).map(|place| &self.scanners[place])
    }
}

impl Counters {
    fn status(&self, name: &'static str, now: Duration) -> ScannerStatus {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let last = Some(read(&self.last_cycle_at)).filter(|at| *at != NEVER);
        ScannerStatus {
            name,
            cycles: read(&self.cycles),
            processed: read(&self.processed),
            errors: read(&self.errors),
            skipped: read(&self.skipped),
            left_to_others: read(&self.left_to_others),
            violations: read(&self.violations),
            restarts: read(&self.restarts),
            lag: Duration::from_millis(read(&self.lag_ms)),
            last_duration: Duration::from_micros(read(&self.last_us)),
            last_cycle_ago: last.map(|at| now.saturating_sub(Duration::from_millis(at))),
            durations: std::array::from_fn(|class| read(&self.durations[class])),
            total_duration: Duration::from_micros(read(&self.total_us)),
        }
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(report: &Report, name: &str) -> ScannerStatus {
        report.status().into_iter().find(|status| status.name == name).expect("it is reported")
    }

    #[test]
    fn a_cycle_falls_into_the_class_of_its_duration() {
        let report = Report::default();
        assert_eq!(of(&report, "outbox").last_cycle_ago, None);
        for lasted in [Duration::ZERO, Duration::from_millis(5), Duration::from_secs(60)] {
            report.add_cycle("outbox", lasted);
        }
        let status = of(&report, "outbox");
        assert_eq!((status.cycles, status.durations), (3, [1, 1, 0, 0, 0, 0, 0, 1]));
        assert_eq!(status.last_duration, Duration::from_secs(60));
        assert_eq!(status.total_duration, Duration::from_millis(60_005));
        assert!(status.last_cycle_ago.is_some());
    }

    #[test]
    fn a_scanner_that_there_is_not_counts_nowhere() {
        let report = Report::default();
        report.add("nobody", 1);
        assert!(report.processed().values().all(|count| *count == 0));
    }
}
