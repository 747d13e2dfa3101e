//! Metrics that are kept elsewhere and read when somebody asks: the tally of the store, the report of
//! the engine, the state of lanes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use ff_core::backend::Backend;
use ff_core::event::EventKind;
use ff_core::read::LaneSnapshot;
use ff_core::tally::{
    AttemptEnd, Counted, Counts, SiblingDisposition, WAIT_BOUNDS_MS, Waits, labelled,
};
use ff_engine::{DURATION_BOUNDS, Report, ScannerStatus};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;

#[derive(Default)]
pub(crate) struct Collected {
    store: OnceLock<Arc<dyn Backend>>,
    engine: OnceLock<Arc<Report>>,
    lanes: Mutex<BTreeMap<String, LaneNow>>,
    cancel_backlog: AtomicU64,
}

#[derive(Default)]
struct LaneNow {
    /// By state.
    depth: BTreeMap<&'static str, u64>,
    oldest: Option<Duration>,
}

/// Attempts end in one of these ways.
const ENDS: [AttemptEnd; 5] = [
    AttemptEnd::Ok,
    AttemptEnd::Error,
    AttemptEnd::Timeout,
    AttemptEnd::Cancelled,
    AttemptEnd::Retry,
];

impl Collected {
    pub(crate) fn set_store(&self, store: Arc<dyn Backend>) {
        // A process has one; a second one would be shown nowhere.
        let _ = self.store.set(store);
    }

    pub(crate) fn set_engine(&self, engine: Arc<Report>) {
        let _ = self.engine.set(engine);
    }

    pub(crate) fn set_cancel_backlog(&self, members: u64) {
        self.cancel_backlog.store(members, Ordering::Relaxed);
    }

    pub(crate) fn set_lanes<'a>(&self, lanes: impl IntoIterator<Item = &'a LaneSnapshot>) {
        let mut now: BTreeMap<String, LaneNow> = BTreeMap::new();
        for lane in lanes {
            let of = labelled(&mut now, lane.lane.as_str());
            for (state, count) in lane.depth.iter() {
                *of.depth.entry(state.as_str()).or_default() += u64::from(count);
            }
            of.oldest = of.oldest.max(lane.oldest_age_ms.map(Duration::from_millis));
        }
        *self.lanes.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

impl fmt::Debug for Collected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Collected")
    }
}

impl Collector for Collected {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut to = Text(&mut encoder);
        let counts = self.store.get().map(|store| store.tally().counts()).unwrap_or_default();
        to.tally(&counts)?;
        let engine = self.engine.get();
        to.violations(&counts, engine.map(|it| it.violations()).unwrap_or_default())?;
        if let Some(engine) = engine {
            to.scanners(&engine.status())?;
            to.edge_cancels(engine)?;
        }
        let backlog = self.cancel_backlog.load(Ordering::Relaxed);
        let help = "Members of cancelled flows that are still to be cancelled";
        to.gauge("ff_cancel_backlog_depth", help, approximate(backlog))?;
        to.lanes(&self.lanes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Text<'a, 'b>(&'a mut DescriptorEncoder<'b>);

impl Text<'_, '_> {
    fn tally(&mut self, counts: &Counts) -> fmt::Result {
        let by_lane = |counted| counts.counted.get(&counted).into_iter().flatten();
        let attempts = ENDS.into_iter().flat_map(|end| {
            let counted = by_lane(Counted::Attempt(end));
            counted.map(move |(lane, n)| ([("lane", lane.as_str()), ("outcome", end.as_str())], *n))
        });
        self.counters("ff_attempt_outcome", "Attempts by how they ended", attempts)?;
        let one = |label: &'static str, counted| {
            by_lane(counted).map(move |(value, n)| ([(label, value.as_str())], *n))
        };
        let expired = one("lane", Counted::Event(EventKind::LeaseExpired));
        self.counters("ff_lease_expired", "Leases that ended by time", expired)?;
        let hits = one("dimension", Counted::BudgetHit);
        self.counters("ff_budget_hit", "Times that usage came to a hard limit", hits)?;
        let decided = one("policy", Counted::GroupDecided);
        self.counters("ff_edge_group_policy", "Groups of edges that decided", decided)?;
        let siblings = one("reason", Counted::SiblingDispatched);
        let help = "Upstreams that were to be cancelled because their group had decided";
        self.counters("ff_sibling_cancel_dispatched", help, siblings)?;
        let disposed = counts.counted.get(&Counted::SiblingDisposed);
        let disposed = SiblingDisposition::ALL.map(|end| {
            let count = disposed.and_then(|disposed| disposed.get(end.as_str()));
            ([("disposition", end.as_str())], count.copied().unwrap_or(0))
        });
        let help = "What became of them";
        self.counters("ff_sibling_cancel_disposition", help, disposed.into_iter())?;
        let events = counts.counted.iter().filter_map(|(counted, lanes)| match counted {
            Counted::Event(kind) => Some((kind.as_str(), lanes.values().sum())),
            _ => None,
        });
        let events = events.map(|(kind, count)| ([("type", kind)], count));
        self.counters("ff_execution_events", "Transitions of executions", events)?;
        self.waits(&counts.waits)
    }

    fn waits(&mut self, waits: &BTreeMap<String, Waits>) -> fmt::Result {
        let help = "Time from the moment an execution could be claimed to its claim";
        let bounds = WAIT_BOUNDS_MS.map(Duration::from_millis);
        let all = waits.iter().map(|(lane, waits)| {
            let total = Duration::from_millis(waits.total_ms);
            ([("lane", lane.as_str())], &waits.classes[..], total)
        });
        self.histograms("ff_start_latency_seconds", help, &bounds, all)
    }

    fn scanners(&mut self, scanners: &[ScannerStatus]) -> fmt::Result {
        let cycles = scanners.iter().map(|of| ([("scanner", of.name)], of.cycles));
        self.counters("ff_scanner_cycle", "Visits of scanners", cycles)?;
        let processed = scanners.iter().map(|of| ([("scanner", of.name)], of.processed));
        self.counters("ff_scanner_processed", "Items that scanners carried out", processed)?;
        let errors = scanners.iter().map(|of| ([("scanner", of.name)], of.errors));
        self.counters("ff_scanner_errors", "Items and visits that failed", errors)?;
        let durations = scanners
            .iter()
            .map(|of| ([("scanner", of.name)], &of.durations[..], of.total_duration));
        let help = "Time of a visit";
        self.histograms("ff_scanner_cycle_duration_seconds", help, &DURATION_BOUNDS, durations)?;
        let lags = scanners.iter().map(|of| ([("scanner", of.name)], of.lag.as_secs_f64()));
        self.gauges("ff_scanner_lag_seconds", "How late the last visit found its oldest item", lags)
    }

    /// What scanners found, and what the store met on the way.
    fn violations(&mut self, counts: &Counts, found: BTreeMap<&'static str, u64>) -> fmt::Result {
        let mut all: BTreeMap<&str, u64> = found;
        for (invariant, count) in counts.counted.get(&Counted::Violation).into_iter().flatten() {
            *all.entry(invariant).or_default() += count;
        }
        let found = all.iter().map(|(invariant, count)| ([("invariant", *invariant)], *count));
        self.counters("ff_invariant_violations", "Invariants found not to hold", found)
    }

    fn edge_cancels(&mut self, engine: &Report) -> fmt::Result {
        let looks = engine.edge_cancels();
        let looks = looks.map(|(came_to, count)| ([("action", came_to.as_str())], count));
        let help = "Looks at flows for cancels of upstreams that were left behind";
        self.counters("ff_sibling_cancel_reconcile", help, looks.into_iter())
    }

    fn lanes(&mut self, lanes: &BTreeMap<String, LaneNow>) -> fmt::Result {
        let depths = lanes.iter().flat_map(|(lane, now)| {
            let states = now.depth.iter();
            states.map(|(state, count)| {
                ([("lane", lane.as_str()), ("state", *state)], approximate(*count))
            })
        });
        self.gauges("ff_lane_depth", "Executions that have not ended", depths)?;
        let oldest = lanes.iter().map(|(lane, now)| {
            ([("lane", lane.as_str())], now.oldest.unwrap_or_default().as_secs_f64())
        });
        let help = "Age of the oldest execution that could be claimed; 0 if there is none";
        self.gauges("ff_lane_oldest_age_seconds", help, oldest)
    }

    fn counters<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl Iterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in values {
            let mut one = metric.encode_family(&labels)?;
            one.encode_counter::<NoLabelSet, _, f64>(&value, None)?;
        }
        Ok(())
    }

    /// One without labels.
    fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.0.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    }

    fn gauges<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl Iterator<Item = (L, f64)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in values {
            metric.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    /// Histograms whose values were counted in classes, the last of which has no upper bound.
    fn histograms<'a, L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        bounds: &[Duration],
        values: impl Iterator<Item = (L, &'a [u64], Duration)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        let bounds = bounds.iter().map(Duration::as_secs_f64).chain([f64::INFINITY]);
        let bounds: Vec<f64> = bounds.collect();
        for (labels, classes, total) in values {
            let buckets: Vec<_> = bounds.iter().copied().zip(classes.iter().copied()).collect();
            let count = classes.iter().sum();
            let mut one = metric.encode_family(&labels)?;
            one.encode_histogram::<NoLabelSet>(total.as_secs_f64(), count, &buckets, None)?;
        }
        Ok(())
    }
}

/// Exact up to four thousand millions; there it stops.
fn approximate(count: u64) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}
