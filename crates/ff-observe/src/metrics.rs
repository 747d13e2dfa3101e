//! All metrics of a process.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ff_core::backend::Backend;
use ff_core::layer::Layered;
use ff_core::read::LaneSnapshot;
use ff_engine::Report;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::collect::Collected;
use crate::labels::{Answered, Because, Called, Ended, Handled, Lane, Names, Route};
use crate::metered::Metered;

/// Of the text that [`Metrics::text`] gives.
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds of durations in seconds, from one call of an embedded store to the longest wait.
const SECONDS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 20.0, 60.0];
const ITEMS: [f64; 7] = [1.0, 2.0, 8.0, 32.0, 128.0, 512.0, 1_000.0];

type Durations<L> = Family<L, Histogram>;

/// All metrics of a process. Cloned handles are of the same.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    measured: Measured,
    collected: Arc<Collected>,
}

/// What is measured in passing.
pub(crate) struct Measured {
    requests: Family<Answered, Counter>,
    request_durations: Durations<Route>,
    pub(crate) call_durations: Durations<Called>,
    pub(crate) batches: Family<Called, Histogram>,
    pub(crate) claims: Durations<Lane>,
    pub(crate) grant_claims: Durations<Lane>,
    pub(crate) renewals: Family<Ended, Counter>,
    pub(crate) quota_hits: Family<Because, Counter>,
    shutdown_timeouts: Counter,
    at_capacity: Counter,
    handlers: Durations<Handled>,
    pub(crate) lanes: Names,
    kinds: Names,
}

fn durations<L: Clone + std::hash::Hash + Eq>() -> Durations<L> {
    Family::new_with_constructor(|| Histogram::new(SECONDS))
}

impl Default for Measured {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            request_durations: durations(),
            call_durations: durations(),
            batches: Family::new_with_constructor(|| Histogram::new(ITEMS)),
            claims: durations(),
            grant_claims: durations(),
            renewals: Family::default(),
            quota_hits: Family::default(),
            shutdown_timeouts: Counter::default(),
            at_capacity: Counter::default(),
            handlers: durations(),
            lanes: Names::default(),
            kinds: Names::default(),
        }
    }
}

impl Measured {
    /// Names end as the text form demands: counters get their `_total` there.
    fn register(&self, to: &mut Registry) {
        to.register("ff_http_requests", "Requests answered", self.requests.clone());
        let help = "Time from a request's head to its answer's head, waits included";
        to.register("ff_http_request_duration_seconds", help, self.request_durations.clone());
        let help = "Time of a call of the store";
        to.register("ff_store_call_duration_seconds", help, self.call_durations.clone());
        let help = "Operations of one kind that went to the store together";
        to.register("ff_store_batch_size", help, self.batches.clone());
        let help = "Time of a claim that got tasks, its wait for work included";
        to.register("ff_claim_duration_seconds", help, self.claims.clone());
        let help = "Time of a claim by a grant";
        to.register("ff_claim_from_grant_duration_seconds", help, self.grant_claims.clone());
        to.register("ff_lease_renewal", "Renewals of leases", self.renewals.clone());
        to.register("ff_quota_hit", "Claims kept back by a quota policy", self.quota_hits.clone());
        let help = "Stops that ran out of time before everything had ended";
        to.register("ff_shutdown_timeout", help, self.shutdown_timeouts.clone());
        let help = "Times that a worker could have claimed and had no permit for it";
        to.register("ff_worker_at_capacity", help, self.at_capacity.clone());
        let help = "Time of a call of a handler";
        to.register("ff_handler_duration_seconds", help, self.handlers.clone());
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let (mut registry, measured) = (Registry::default(), Measured::default());
        let collected = Arc::new(Collected::default());
        measured.register(&mut registry);
        registry.register_collector(Box::new(Arc::clone(&collected)));
        Self(Arc::new(Inner { registry, measured, collected }))
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// The same store, each of whose calls is measured from now on.
    pub fn around(&self, backend: Arc<dyn Backend>) -> Arc<dyn Backend> {
        self.0.collected.set_store(Arc::clone(&backend));
        Arc::new(Layered(Metered::new(backend, self.clone())))
    }

    /// Shows what this engine reports.
    pub fn watch(&self, engine: Arc<Report>) {
        self.0.collected.set_engine(engine);
    }

    /// How lanes stand at this moment; a lane of the same name in several namespaces is added up.
    pub fn set_lanes<'a>(&self, lanes: impl IntoIterator<Item = &'a LaneSnapshot>) {
        self.0.collected.set_lanes(lanes);
    }

    /// How many members of cancelled flows are still to be cancelled.
    pub fn set_cancel_backlog(&self, members: u64) {
        self.0.collected.set_cancel_backlog(members);
    }

    pub fn request(&self, method: &'static str, path: &'static str, status: u16, took: Duration) {
        let measured = self.measured();
        measured.requests.get_or_create(&Answered { method, path, status }).inc();
        let route = Route { method, path };
        measured.request_durations.get_or_create(&route).observe(took.as_secs_f64());
    }

    /// A stop ran out of time.
    pub fn shutdown_timeout(&self) {
        self.measured().shutdown_timeouts.inc();
    }

    /// A worker could have claimed, and had no permit for it.
    pub fn worker_at_capacity(&self) {
        self.measured().at_capacity.inc();
    }

    /// A handler of this kind ended so.
    pub fn handled(&self, kind: &str, outcome: &'static str, took: Duration) {
        let measured = self.measured();
        let handled = Handled { kind: measured.kinds.label(kind), outcome };
        measured.handlers.get_or_create(&handled).observe(took.as_secs_f64());
    }

    /// Everything, in the text form.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut all = String::new();
        text::encode(&mut all, &self.0.registry)?;
        Ok(all)
    }

    pub(crate) fn measured(&self) -> &Measured {
        &self.0.measured
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Metrics in which everything was measured once.
    fn everything() -> Metrics {
        let metrics = Metrics::default();
        metrics.request("GET", "/", 200, Duration::ZERO);
        metrics.shutdown_timeout();
        metrics.worker_at_capacity();
        metrics.handled("k", "completed", Duration::ZERO);
        let (measured, lane) = (metrics.measured(), Lane { lane: "l".into() });
        let called = Called { operation: "o" };
        measured.call_durations.get_or_create(&called).observe(0.0);
        measured.batches.get_or_create(&called).observe(1.0);
        measured.claims.get_or_create(&lane).observe(0.0);
        measured.grant_claims.get_or_create(&lane).observe(0.0);
        measured.renewals.get_or_create(&Ended { outcome: "ok" }).inc();
        measured.quota_hits.get_or_create(&Because { reason: "rate" }).inc();
        metrics.watch(Arc::default());
        metrics
    }

    /// Names as they stand in samples, without what a histogram appends.
    fn names() -> BTreeSet<String> {
        let text = everything().text().unwrap();
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        let names = types.map(|line| match line.split_once(' ').unwrap() {
            (name, "counter") => format!("{name}_total"),
            (name, _) => name.to_owned(),
        });
        names.collect()
    }

    fn mentioned(text: &str) -> BTreeSet<String> {
        let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '_'));
        let words = words.filter(|word| word.starts_with("ff_"));
        let bare = words.map(|word| {
            let of_histogram = ["_bucket", "_count", "_sum"];
            let stripped = of_histogram.iter().find_map(|end| word.strip_suffix(end));
            stripped.filter(|name| name.ends_with("_seconds")).unwrap_or(word).to_owned()
        });
        bare.collect()
    }

    fn read(path: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        std::fs::read_to_string(root.join(path)).unwrap()
    }

    #[test]
    fn every_metric_is_described() {
        let page = read("docs/reference/metrics.md");
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        let described: BTreeSet<String> = rows.map(|(name, _)| name.to_owned()).collect();
        assert_eq!(described, names());
    }

    #[test]
    fn dashboard_and_rules_show_what_there_is() {
        let names = names();
        for path in ["deploy/grafana/flowfabric.json", "deploy/prometheus/alerts.yaml"] {
            let unknown: Vec<_> =
                mentioned(&read(path)).into_iter().filter(|name| !names.contains(name)).collect();
            assert!(unknown.is_empty(), "{path}: {unknown:?}");
        }
    }
}
