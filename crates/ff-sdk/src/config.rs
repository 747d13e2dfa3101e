//! What a worker is told before it connects.

use std::fmt;
use std::time::Duration;

use ff_core::capability::Capabilities;
use ff_core::id::{LaneId, Namespace, WorkerId, WorkerInstanceId};
use ff_core::limits;
use ff_core::operation::{LaneOrder, LaneShare};
use uuid::Uuid;

use crate::error::SdkError;

/// Where `ff dev` listens.
///
/// ```
/// assert_eq!(ff_sdk::WorkerConfig::new("w").url, ff_sdk::DEFAULT_URL);
/// ```
pub const DEFAULT_URL: &str = "http://127.0.0.1:7171";

/// Settings of a worker. Everything but the name has a default.
///
/// ```
/// use ff_sdk::WorkerConfig;
///
/// let config = WorkerConfig::new("resizer")
///     .url("sqlite:work.db")
///     .lane("images")
///     .weighted_lane("thumbnails", 3)
///     .capability("gpu")
///     .max_concurrent_tasks(8);
/// assert_eq!(config.lease_ttl_ms, 30_000);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct WorkerConfig {
    /// Of a store (`sqlite:PATH`, `valkey://…`) or of a server (`http://…`, `https://…`).
    pub url: String,
    /// Shown to a server; never printed.
    pub token: Option<String>,
    /// What kind of worker it is; all processes that run the same code share it.
    pub worker_id: String,
    /// This process; absent: `<worker_id>-<random>`.
    pub worker_instance_id: Option<String>,
    /// Where it works.
    pub namespace: String,
    /// Lanes and their weights; absent: `default`.
    pub lanes: Option<Vec<(String, u32)>>,
    /// How several lanes share the worker.
    pub lane_order: LaneOrder,
    /// What this worker can do.
    pub capabilities: Vec<String>,
    /// A task whose worker is silent for so long is given to another one.
    pub lease_ttl_ms: u64,
    /// So many tasks run at the same time.
    pub max_concurrent_tasks: usize,
    /// How long one claim waits for work before it is sent again.
    pub claim_wait_ms: u64,
    /// Whether the engine runs in this process; absent: only with an embedded store.
    pub engine: Option<bool>,
}

impl WorkerConfig {
    /// A worker of this name, on the server that `ff dev` starts.
    ///
    /// The name says what kind of worker it is; processes that run the same code share it.
    ///
    /// ```
    /// use ff_sdk::WorkerConfig;
    ///
    /// let config = WorkerConfig::new("resizer");
    /// assert_eq!((config.namespace.as_str(), config.max_concurrent_tasks), ("default", 1));
    /// ```
    pub fn new(worker_id: impl Into<String>) -> Self {
        Self {
            url: DEFAULT_URL.to_owned(),
            token: None,
            worker_id: worker_id.into(),
            worker_instance_id: None,
            namespace: Namespace::default().to_string(),
            lanes: None,
            lane_order: LaneOrder::default(),
            capabilities: Vec::new(),
            lease_ttl_ms: limits::LEASE_TTL_MS,
            max_concurrent_tasks: 1,
            claim_wait_ms: 30_000,
            engine: None,
        }
    }

    /// The name of this process. Two that live at the same time cannot have the same.
    ///
    /// Without one it is the worker's name and something random. A name of your own, such as that
    /// of a pod, is refused at connect ([`SdkError::Config`]) while another process lives by it.
    ///
    /// ```
    /// # use ff_sdk::WorkerConfig;
    /// let config = WorkerConfig::new("resizer").worker_instance_id("resizer-7");
    /// assert_eq!(config.worker_instance_id.as_deref(), Some("resizer-7"));
    /// ```
    #[must_use]
    pub fn worker_instance_id(self, id: impl Into<String>) -> Self {
        Self { worker_instance_id: Some(id.into()), ..self }
    }

    /// Adds a lane.
    ///
    /// With none the worker serves lane `default`; the first that is added takes its place.
    ///
    /// ```
    /// # use ff_sdk::WorkerConfig;
    /// let config = WorkerConfig::new("resizer").lane("images").lane("thumbnails");
    /// assert_eq!(config.lanes.map(|lanes| lanes.len()), Some(2));
    /// ```
    #[must_use]
    pub fn lane(self, lane: impl Into<String>) -> Self {
        self.weighted_lane(lane, 1)
    }

    /// Adds a lane that gets this share of the worker's turns.
    ///
    /// While all lanes have work, a lane of weight 3 gets three turns for each turn of a lane of
    /// weight 1.
    ///
    /// ```
    /// # use ff_sdk::WorkerConfig;
    /// let config = WorkerConfig::new("resizer").weighted_lane("paid", 3).weighted_lane("free", 1);
    /// assert_eq!(config.lanes, Some(vec![("paid".to_owned(), 3), ("free".to_owned(), 1)]));
    /// ```
    #[must_use]
    pub fn weighted_lane(mut self, lane: impl Into<String>, weight: u32) -> Self {
        self.lanes.get_or_insert_default().push((lane.into(), weight));
        self
    }

    /// Takes exactly these lanes, all of the same weight.
    ///
    /// Those that were added before are gone. An empty list is refused at connect.
    ///
    /// ```
    /// # use ff_sdk::WorkerConfig;
    /// let config = WorkerConfig::new("resizer").lanes(["images", "thumbnails"]);
    /// assert_eq!(config.lanes.map(|lanes| lanes.len()), Some(2));
    /// ```
    #[must_use]
    pub fn lanes<T: Into<String>>(self, lanes: impl IntoIterator<Item = T>) -> Self {
        let lanes = lanes.into_iter().map(|lane| (lane.into(), 1));
        Self { lanes: Some(lanes.collect()), ..self }
    }

    /// Serves the first lane that has work, in the order in which lanes were added.
    ///
    /// ```
    /// # use ff_sdk::WorkerConfig;
    /// use ff_core::operation::LaneOrder;
    ///
    /// let config = WorkerConfig::new("resizer").lane("urgent").lane("rest").ordered_lanes();
    /// assert_eq!(config.lane_order, LaneOrder::Ordered);
    /// ```
    #[must_use]
    pub fn ordered_lanes(self) -> Self {
        Self { lane_order: LaneOrder::Ordered, ..self }
    }

    /// Adds a capability.
    ///
    /// The worker gets what requires nothing, and what requires only capabilities that it has: see
    /// [`Submission::requires`](crate::Submission::requires).
    ///
    /// ```
    /// # use ff_sdk::WorkerConfig;
    /// let config = WorkerConfig::new("renderer").capability("gpu").capability("region:eu");
    /// assert_eq!(config.capabilities, ["gpu", "region:eu"]);
    /// ```
    #[must_use]
    pub fn capability(mut self, token: impl Into<String>) -> Self {
        self.capabilities.push(token.into());
        self
    }

    /// How long a task may go on without a sign of life: 100 ms to an hour. Leases are renewed
    /// three times as often.
    ///
    /// ```
    /// # use ff_sdk::WorkerConfig;
    /// let config = WorkerConfig::new("renderer").lease_ttl_ms(10_000);
    /// assert_eq!(config.lease_ttl_ms, 10_000);
    /// ```
    #[must_use]
    pub fn lease_ttl_ms(self, ms: u64) -> Self {
        Self { lease_ttl_ms: ms, ..self }
    }

    /// So many tasks run at the same time.
    ///
    /// ```
    /// # use ff_sdk::WorkerConfig;
    /// let config = WorkerConfig::new("mailer").max_concurrent_tasks(32);
    /// assert_eq!(config.max_concurrent_tasks, 32);
    /// ```
    #[must_use]
    pub fn max_concurrent_tasks(self, tasks: usize) -> Self {
        Self { max_concurrent_tasks: tasks, ..self }
    }

    /// How long one claim waits for work, up to 30 seconds.
    ///
    /// ```
    /// # use ff_sdk::WorkerConfig;
    /// let config = WorkerConfig::new("mailer").claim_wait_ms(5_000);
    /// assert_eq!(config.claim_wait_ms, 5_000);
    /// ```
    #[must_use]
    pub fn claim_wait_ms(self, ms: u64) -> Self {
        Self { claim_wait_ms: ms, ..self }
    }
}

/// What workers and clients are told alike: where to, as whom, and whether the engine runs here.
/// `$new` is how a config begins, for the examples.
macro_rules! reaches {
    ($config:ident, $new:literal) => {
        impl $config {
            /// The store or the server to talk to: `sqlite:PATH`, `sqlite::memory:`, `valkey://…`,
            /// `http://…` or `https://…`.
            ///
            /// ```
            #[doc = concat!("# use ff_sdk::", stringify!($config), ";")]
            #[doc = concat!("let config = ", $new, ".url(\"valkey://cache:6379\");")]
            /// assert_eq!(config.url, "valkey://cache:6379");
            /// ```
            #[must_use]
            pub fn url(self, url: impl Into<String>) -> Self {
                Self { url: url.into(), ..self }
            }

            /// The API key that the server wants to see. It is never printed.
            ///
            /// ```
            #[doc = concat!("# use ff_sdk::", stringify!($config), ";")]
            /// # let key = "s3cret";
            #[doc = concat!("let config = ", $new, ".token(key);")]
            /// assert!(!format!("{config:?}").contains(key));
            /// ```
            #[must_use]
            pub fn token(self, token: impl Into<String>) -> Self {
                Self { token: Some(token.into()), ..self }
            }

            /// Another namespace than `default`.
            ///
            /// ```
            #[doc = concat!("# use ff_sdk::", stringify!($config), ";")]
            #[doc = concat!("let config = ", $new, ".namespace(\"billing\");")]
            /// assert_eq!(config.namespace, "billing");
            /// ```
            #[must_use]
            pub fn namespace(self, namespace: impl Into<String>) -> Self {
                Self { namespace: namespace.into(), ..self }
            }

            /// Runs the engine in this process, or does not. One of the processes that share a
            /// store has to run it; a server does.
            ///
            /// ```
            #[doc = concat!("# use ff_sdk::", stringify!($config), ";")]
            #[doc = concat!("let config = ", $new, ".url(\"valkey://cache\").engine(true);")]
            /// assert_eq!(config.engine, Some(true));
            /// ```
            #[must_use]
            pub fn engine(self, runs: bool) -> Self {
                Self { engine: Some(runs), ..self }
            }
        }
    };
}
pub(crate) use reaches;

reaches!(WorkerConfig, "WorkerConfig::new(\"mailer\")");

impl fmt::Debug for WorkerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerConfig")
            .field("worker_id", &self.worker_id)
            .field("worker_instance_id", &self.worker_instance_id)
            .field("namespace", &self.namespace)
            .field("lanes", &self.lanes)
            .field("capabilities", &self.capabilities)
            .field("lease_ttl_ms", &self.lease_ttl_ms)
            .field("max_concurrent_tasks", &self.max_concurrent_tasks)
            .finish_non_exhaustive()
    }
}

/// A worker's settings, read and found good.
#[derive(Debug, Clone)]
pub(crate) struct Checked {
    pub(crate) namespace: Namespace,
    pub(crate) worker_id: WorkerId,
    pub(crate) worker_instance_id: WorkerInstanceId,
    pub(crate) lanes: Vec<LaneShare>,
    pub(crate) order: LaneOrder,
    pub(crate) capabilities: Capabilities,
    pub(crate) lease_ttl: Duration,
    pub(crate) claim_wait: Duration,
    pub(crate) permits: usize,
}

impl WorkerConfig {
    /// Reads the settings; the first that is wrong is told by its name.
    pub(crate) fn check(&self) -> Result<Checked, SdkError> {
        let instance = match &self.worker_instance_id {
            Some(id) => id.clone(),
            None => format!("{}-{}", self.worker_id, &Uuid::now_v7().simple().to_string()[20..]),
        };
        let checked = Checked {
            namespace: parse("namespace", &self.namespace)?,
            worker_id: parse("worker_id", &self.worker_id)?,
            worker_instance_id: parse("worker_instance_id", &instance)?,
            lanes: self.check_lanes()?,
            order: self.lane_order,
            capabilities: Capabilities::new(&self.capabilities)
                .map_err(|refusal| SdkError::config("capabilities", refusal.detail))?,
            lease_ttl: ranged(
                "lease_ttl_ms",
                self.lease_ttl_ms,
                limits::LEASE_TTL_MIN_MS,
                limits::LEASE_TTL_MAX_MS,
            )?,
            claim_wait: ranged("claim_wait_ms", self.claim_wait_ms, 0, limits::CLAIM_WAIT_MS)?,
            permits: self.max_concurrent_tasks,
        };
        if !(1..=limits::COUNT_MAX as usize).contains(&checked.permits) {
            let message = format!("a worker runs 1 to {} tasks at a time", limits::COUNT_MAX);
            return Err(SdkError::config("max_concurrent_tasks", message));
        }
        Ok(checked)
    }

    fn check_lanes(&self) -> Result<Vec<LaneShare>, SdkError> {
        let bad = |message: String| SdkError::config("lanes", message);
        let default = [("default".to_owned(), 1)];
        let named = self.lanes.as_deref().unwrap_or(&default);
        if named.is_empty() {
            return Err(bad("at least one lane is required".to_owned()));
        }
        if named.len() > limits::CLAIM_LANES {
            return Err(bad(format!("at most {} lanes", limits::CLAIM_LANES)));
        }
        let mut shares: Vec<LaneShare> = Vec::new();
        for (name, weight) in named {
            let lane: LaneId = parse("lanes", name)?;
            if !(1..=limits::LANE_WEIGHT).contains(weight) {
                return Err(bad(format!("a weight is 1 to {}, not {weight}", limits::LANE_WEIGHT)));
            }
            if shares.iter().any(|share| share.lane == lane) {
                return Err(bad(format!("{lane} is named twice")));
            }
            shares.push(LaneShare { weight: *weight, ..LaneShare::new(lane) });
        }
        Ok(shares)
    }
}

/// Reads a name.
pub(crate) fn parse<T: std::str::FromStr<Err: fmt::Display>>(
    field: &'static str,
    text: &str,
) -> Result<T, SdkError> {
    text.parse().map_err(|error: T::Err| SdkError::config(field, error.to_string()))
}

fn ranged(field: &'static str, ms: u64, least: u64, most: u64) -> Result<Duration, SdkError> {
    if !(least..=most).contains(&ms) {
        return Err(SdkError::config(field, format!("allowed is {least} to {most}, not {ms}")));
    }
    Ok(Duration::from_millis(ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(config: &WorkerConfig) -> (&'static str, String) {
        match config.check() {
            Err(SdkError::Config { field, message, .. }) => (field, message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_name_is_enough() {
        let checked = WorkerConfig::new("w").check().unwrap();
        let lanes: Vec<_> = checked.lanes.iter().map(|share| share.lane.to_string()).collect();
        assert_eq!((lanes, checked.permits), (vec!["default".to_owned()], 1));
        assert_eq!(checked.lease_ttl, Duration::from_secs(30));
        assert_eq!(checked.claim_wait, Duration::from_secs(30));
        assert!(checked.worker_instance_id.starts_with("w-"));
        let other = WorkerConfig::new("w").check().unwrap();
        assert_ne!(other.worker_instance_id, checked.worker_instance_id);
    }

    #[test]
    fn at_least_one_lane_is_required() {
        let config = WorkerConfig::new("w").lanes(Vec::<String>::new());
        assert_eq!(field(&config), ("lanes", "at least one lane is required".to_owned()));
    }

    #[test]
    fn each_setting_is_checked_and_named() {
        let new = || WorkerConfig::new("w");
        for (config, expected) in [
            (WorkerConfig::new(""), "worker_id"),
            (new().worker_instance_id("a b"), "worker_instance_id"),
            (new().namespace("no/slash"), "namespace"),
            (new().lane(""), "lanes"),
            (new().lane("twice").lane("twice"), "lanes"),
            (new().weighted_lane("l", 0), "lanes"),
            (new().weighted_lane("l", u32::MAX), "lanes"),
            (new().lanes((0..1_000).map(|n| format!("l{n}"))), "lanes"),
            (new().lease_ttl_ms(0), "lease_ttl_ms"),
            (new().lease_ttl_ms(u64::MAX), "lease_ttl_ms"),
            (new().claim_wait_ms(u64::MAX), "claim_wait_ms"),
            (new().max_concurrent_tasks(0), "max_concurrent_tasks"),
            (new().max_concurrent_tasks(usize::MAX), "max_concurrent_tasks"),
        ] {
            assert_eq!(field(&config).0, expected, "{config:?}");
        }
    }

    #[test]
    fn capabilities_are_checked() {
        for bad in ["", "a,b", "a b", "a\n", "\u{7}"] {
            let config = WorkerConfig::new("w").capability(bad);
            assert_eq!(field(&config).0, "capabilities", "{bad:?}");
        }
        let many = |n: usize| WorkerConfig {
            capabilities: (0..n).map(|n| format!("c{n}")).collect(),
            ..WorkerConfig::new("w")
        };
        assert_eq!(field(&many(257)).0, "capabilities");
        many(256).check().unwrap();
        let long = WorkerConfig::new("w").capability("x".repeat(4_097));
        assert_eq!(field(&long).0, "capabilities");
        let twice = WorkerConfig::new("w").capability("größe").capability("größe");
        assert_eq!(twice.check().unwrap().capabilities.as_csv(), "größe");
    }
}
