//! What holds for the handler of one kind.

use std::fmt;
use std::time::Duration;

use tower::Layer;
use tower::util::BoxCloneSyncService;

use super::{Failure, Outcome, TaskCall};

/// A handler with all layers around it: what a layer gets, see
/// [`WorkerRuntime::layer`](super::WorkerRuntime::layer).
///
/// ```
/// use ff_sdk::runtime::{TaskLayer, TaskService};
///
/// /// A layer that changes nothing.
/// struct Plain;
///
/// impl TaskLayer for Plain {
///     fn around(&self, inner: TaskService) -> TaskService {
///         inner
///     }
/// }
/// ```
pub type TaskService = BoxCloneSyncService<TaskCall, Outcome, Failure>;

/// What may stand around handlers: a tower layer whose service takes a [`TaskCall`] and answers
/// with an [`Outcome`] or a [`Failure`].
///
/// Every tower layer of that shape is one by itself:
///
/// ```
/// use ff_sdk::runtime::{TaskCall, TaskService, WorkerRuntime};
/// use ff_sdk::WorkerConfig;
///
/// # async fn greet() {}
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let announce = |inner: TaskService| {
///     tower::util::MapRequest::new(inner, |call: TaskCall| {
///         println!("{} begins", call.info().execution_id());
///         call
///     })
/// };
/// WorkerRuntime::connect(WorkerConfig::new("w").url("sqlite::memory:"))
///     .layer(tower::layer::layer_fn(announce))
///     .on("greet", greet)
///     .run(async {})
///     .await?;
/// # Ok(())
/// # }
/// ```
pub trait TaskLayer: Send + Sync + 'static {
    /// Puts itself around a service.
    fn around(&self, inner: TaskService) -> TaskService;
}

impl<L, S> TaskLayer for L
where
    L: Layer<TaskService, Service = S> + Send + Sync + 'static,
    S: tower::Service<TaskCall, Response = Outcome, Error = Failure>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    fn around(&self, inner: TaskService) -> TaskService {
        BoxCloneSyncService::new(self.layer(inner))
    }
}

/// Layers in the order in which they were added: the first is the outermost.
#[derive(Default)]
pub(super) struct Layers(Vec<Box<dyn TaskLayer>>);

impl Layers {
    pub(super) fn add(&mut self, layer: impl TaskLayer) {
        self.0.push(Box::new(layer));
    }

    pub(super) fn around(&self, inner: TaskService) -> TaskService {
        self.0.iter().rev().fold(inner, |inner, layer| layer.around(inner))
    }
}

/// Options of one kind, for [`WorkerRuntime::on_with`](super::WorkerRuntime::on_with).
///
/// ```
/// use std::time::Duration;
/// use ff_sdk::runtime::HandlerOptions;
///
/// let options = HandlerOptions::new().concurrency(2).timeout(Duration::from_secs(90));
/// ```
#[derive(Default)]
pub struct HandlerOptions {
    pub(super) concurrency: Option<usize>,
    pub(super) timeout: Option<Duration>,
    pub(super) layers: Layers,
}

impl HandlerOptions {
    /// No limits but those of the runtime.
    ///
    /// ```
    /// use ff_sdk::runtime::HandlerOptions;
    ///
    /// let options = HandlerOptions::new();
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// The most tasks of this kind that the worker runs at the same time.
    ///
    /// Claims cannot choose among kinds, so the worker may be given more. It does not keep those:
    /// each goes back at once, delayed until its turn will have come, going by how long the handler
    /// takes, and by 30 seconds at most. The attempt stays the same and counts no retry, and other
    /// kinds are not held up. A kind with a large backlog is cheaper on a lane and a worker of its
    /// own.
    ///
    /// ```
    /// use ff_sdk::runtime::HandlerOptions;
    ///
    /// let two_at_a_time = HandlerOptions::new().concurrency(2);
    /// ```
    #[must_use]
    pub fn concurrency(self, most: usize) -> Self {
        Self { concurrency: Some(most), ..self }
    }

    /// The longest that the handler may take, for each call of it. It is then dropped, and the
    /// attempt fails with the category `handler_timeout` and the class `timeout`.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_core::state::Outcome;
    /// use ff_sdk::runtime::{HANDLER_TIMEOUT, HandlerOptions, WorkerRuntime};
    /// use ff_sdk::WorkerConfig;
    /// use std::time::Duration;
    ///
    /// let never = || std::future::pending::<()>();
    /// let short = HandlerOptions::new().timeout(Duration::from_millis(1));
    /// let worker = engine.worker(WorkerConfig::new("w")).await;
    /// let slow = engine.client().submit(Submission::new("slow").max_retries(0)).await?;
    /// let done = async { drop(slow.wait(Duration::from_secs(10)).await) };
    /// WorkerRuntime::new(worker).on_with("slow", never, short).run(done).await?;
    /// let finished = engine.assert_outcome(slow.id(), Outcome::Failed).await;
    /// assert_eq!(finished.record.failure_category.as_deref(), Some(HANDLER_TIMEOUT));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn timeout(self, longest: Duration) -> Self {
        Self { timeout: Some(longest), ..self }
    }

    /// A layer around this handler alone, inside of those of the runtime.
    ///
    /// ```
    /// use ff_sdk::layers::RateLimit;
    /// use ff_sdk::runtime::HandlerOptions;
    ///
    /// let slowly = HandlerOptions::new().layer(RateLimit::per_second(2.0));
    /// ```
    #[must_use]
    pub fn layer(mut self, layer: impl TaskLayer) -> Self {
        self.layers.add(layer);
        self
    }
}

impl fmt::Debug for HandlerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerOptions")
            .field("concurrency", &self.concurrency)
            .field("timeout", &self.timeout)
            .field("layers", &self.layers.0.len())
            .finish()
    }
}
