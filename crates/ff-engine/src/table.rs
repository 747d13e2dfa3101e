//! All scanners by name: the labels of logs, metrics and settings.

use std::time::Duration;

use ff_core::state::DueKind;

use crate::{errands, reconcile, routes, timers, trimmer, unblock};

/// A shorter interval, or none at all, would keep the store busy with nothing else.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// A scanner and what is known of it before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    pub name: &'static str,
    /// How long it rests at most when nothing wakes it.
    pub interval: Duration,
    /// Whether its work is done by the tick alone: then one look serves it and all the others that
    /// are timed, as often as the shortest of their intervals says.
    pub is_timed: bool,
}

const fn timed(kind: DueKind, interval_ms: u64) -> Known {
    Known { name: kind.scanner(), interval: Duration::from_millis(interval_ms), is_timed: true }
}

const fn own(name: &'static str, interval_ms: u64) -> Known {
    Known { name, interval: Duration::from_millis(interval_ms), is_timed: false }
}

/// Every scanner there is.
pub const SCANNERS: [Known; 24] = [
    own(timers::NAME, 1_000),
    timed(DueKind::LeaseExpiry, 1_000),
    timed(DueKind::DelayedPromoter, 1_000),
    timed(DueKind::AttemptTimeout, 1_000),
    timed(DueKind::ExecutionDeadline, 1_000),
    timed(DueKind::SuspensionTimeout, 1_000),
    timed(DueKind::PendingWaitpointExpiry, 5_000),
    timed(DueKind::GrantExpiry, 1_000),
    timed(DueKind::WorkerTtl, 1_000),
    timed(DueKind::BudgetReset, 15_000),
    timed(DueKind::FlowBuilder, 1_000),
    timed(DueKind::EdgeCancelDispatcher, 1_000),
    timed(DueKind::BulkRunner, 1_000),
    own(trimmer::NAME, 60_000),
    own(unblock::NAME, 5_000),
    own(routes::NAME, 5_000),
    own(errands::NAME, 1_000),
    own(reconcile::BUDGETS, 30_000),
    own(reconcile::QUOTAS, 30_000),
    own(reconcile::FLOWS, 15_000),
    own(DueKind::DependencyReconciler.scanner(), 15_000),
    own(DueKind::CancelReconciler.scanner(), 15_000),
    own(reconcile::EDGE_CANCELS, 10_000),
    own(reconcile::INDEXES, 45_000),
];

/// Its place in the table.
pub(crate) fn place(name: &str) -> Option<usize> {
    SCANNERS.iter().position(|known| known.name == name)
}

/// How long each scanner rests when nothing wakes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intervals([Duration; SCANNERS.len()]);

/// No scanner has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no scanner {0:?}")]
pub struct UnknownScanner(pub String);

impl Default for Intervals {
    fn default() -> Self {
        Self(SCANNERS.map(|known| known.interval))
    }
}

impl Intervals {
    /// The same for all.
    pub fn all(interval: Duration) -> Self {
        Self([interval.max(SHORTEST_INTERVAL); SCANNERS.len()])
    }

    /// At least 100 ms, whatever is asked for.
    pub fn set(&mut self, name: &str, interval: Duration) -> Result<(), UnknownScanner> {
        let place = place(name).ok_or_else(|| UnknownScanner(name.to_owned()))?;
        self.0[place] = interval.max(SHORTEST_INTERVAL);
        Ok(())
    }

    /// Without a limit where there is no such scanner.
    pub fn of(&self, name: &str) -> Duration {
        place(name).map_or(Duration::MAX, |place| self.0[place])
    }

    /// As often as the most urgent of what the tick does.
    pub(crate) fn of_timers(&self) -> Duration {
        let timed = SCANNERS.iter().zip(&self.0).filter(|(known, _)| known.is_timed);
        timed.map(|(_, interval)| *interval).fold(self.of(timers::NAME), Duration::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_due_has_a_scanner() {
        for kind in DueKind::ALL {
            assert!(place(kind.scanner()).is_some(), "{kind:?}");
        }
    }

    #[test]
    fn intervals_have_a_least_length_and_a_name() {
        let mut intervals = Intervals::default();
        assert_eq!(intervals.of("lease_expiry"), Duration::from_secs(1));
        intervals.set("lease_expiry", Duration::ZERO).expect("it is a scanner");
        assert_eq!(intervals.of("lease_expiry"), SHORTEST_INTERVAL);
        assert_eq!(intervals.of_timers(), SHORTEST_INTERVAL, "the most urgent says how often");
        let unknown = intervals.set("bulk", Duration::ZERO).expect_err("it is none");
        assert_eq!(unknown.to_string(), "there is no scanner \"bulk\"");
    }
}
