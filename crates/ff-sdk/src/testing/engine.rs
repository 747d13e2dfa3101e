//! The engine under a test's hand.

use std::sync::Arc;
use std::time::Duration;

use ff_backend_sqlite::{Clock, ManualClock, SqliteOptions, SqliteStore};
use ff_core::backend::Backend;
use ff_core::layer::Layered;
use ff_core::limits;
use ff_core::policy::Retention;
use ff_core::time::TimestampMs;
use tokio::sync::Mutex;

use super::bench::Bench;
use crate::client::Client;
use crate::config::WorkerConfig;
use crate::worker::FlowFabricWorker;

/// Where every test's clock begins: the fifteenth of January 2027.
const BEGINNING: TimestampMs = TimestampMs(1_800_000_000_000);

/// An engine of one test. Cheap to clone; all clones are the same engine.
///
/// Methods panic where a test cannot go on, and say why. See [the module](super).
///
/// ```
/// # use ff_sdk::{Submission, testing::TestEngine};
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = TestEngine::start().await;
/// let greeting = engine.client().submit(Submission::new("greet")).await?;
/// assert_eq!(engine.history(greeting.id()).await, ["execution.submitted"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TestEngine {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) store: Arc<dyn Backend>,
    pub(super) bench: Arc<Layered<Bench>>,
    pub(super) clock: ManualClock,
    /// Held by whoever moves the clock.
    pub(super) moving: Mutex<()>,
}

/// What must go well for a test to mean anything.
pub(super) fn must<T, E: std::fmt::Display>(what: &str, done: Result<T, E>) -> T {
    match done {
        Ok(done) => done,
        Err(error) => panic!("the test engine cannot {what}: {error}"),
    }
}

impl TestEngine {
    /// A new engine with an empty store. Its clock stands until it is moved.
    ///
    /// ```
    /// # use ff_sdk::testing::TestEngine;
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = TestEngine::start().await;
    /// assert_eq!(engine.elapsed(), std::time::Duration::ZERO);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start() -> Self {
        let clock = ManualClock::at(BEGINNING);
        let kept = Some(limits::DURATION_MAX_MS);
        let options = SqliteOptions {
            clock: Clock::Manual(clock.clone()),
            retention: Retention {
                success_ms: kept,
                failed_ms: kept,
                cancelled_ms: kept,
                expired_ms: kept,
                skipped_ms: kept,
            },
            ..SqliteOptions::memory()
        };
        let store: Arc<dyn Backend> = Arc::new(must("open its store", SqliteStore::open(options)));
        let bench = Arc::new(Layered(Bench::before(Arc::clone(&store))));
        Self { inner: Arc::new(Inner { store, bench, clock, moving: Mutex::default() }) }
    }

    /// What clients, workers and runtimes are connected with.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::Client;
    ///
    /// let client = Client::connect_with(engine.backend());
    /// client.submit(Submission::new("greet")).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.inner.bench) as Arc<dyn Backend>
    }

    /// A client in namespace `default`.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// let greeting = engine.client().submit(Submission::new("greet")).await?;
    /// assert!(!greeting.describe().await?.has_ended());
    /// # Ok(())
    /// # }
    /// ```
    pub fn client(&self) -> Client {
        Client::connect_with(self.backend())
    }

    /// A worker. The URL of the config is not looked at.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::WorkerConfig;
    ///
    /// let worker = engine.worker(WorkerConfig::new("mailer").lane("mail")).await;
    /// engine.client().submit(Submission::new("greet").lane("mail")).await?;
    /// worker.claim_next().await?.expect("there is work").complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When the config is wrong.
    pub async fn worker(&self, config: WorkerConfig) -> FlowFabricWorker {
        let worker =
            FlowFabricWorker::connect_with(config, self.backend(), Some(self.backend())).await;
        must("connect the worker", worker)
    }

    /// What the clock shows.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// let before = engine.now();
    /// engine.advance(std::time::Duration::from_secs(60)).await;
    /// assert_eq!(engine.now().since(before), 60_000);
    /// # Ok(())
    /// # }
    /// ```
    pub fn now(&self) -> TimestampMs {
        self.inner.clock.now()
    }

    /// How far the clock has been moved since the start.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// let minute = std::time::Duration::from_secs(60);
    /// engine.advance(minute).await;
    /// assert_eq!(engine.elapsed(), minute);
    /// # Ok(())
    /// # }
    /// ```
    pub fn elapsed(&self) -> Duration {
        Duration::from_millis(self.now().since(BEGINNING))
    }
}
