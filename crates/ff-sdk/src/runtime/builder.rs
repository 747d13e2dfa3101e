//! What a runtime is told before it runs.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use ff_core::id::Kind;
use ff_observe::Metrics;
use tokio_util::sync::CancellationToken;

use super::call::DataMap;
use super::handler::HandlerService;
use super::kinds::{Kinds, Served};
use super::options::{Layers, TaskService};
use super::run::Runtime;
use super::{Handler, HandlerOptions, TaskLayer, signals};
use crate::client::Client;
use crate::config::{WorkerConfig, parse};
use crate::error::SdkError;
use crate::layers::MeasureTasks;
use crate::worker::FlowFabricWorker;

/// Tasks at a time unless something else is said.
const MAX_CONCURRENT: usize = 64;
/// What running tasks get when the runtime is told to stop.
const GRACE: Duration = Duration::from_secs(30);
/// What a handler gets that is told to stop.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Runs handlers: claims tasks, calls the handler of their kind, and ends them by what it returns.
///
/// It claims by free slots, several tasks in one call when several are free, and waits in long
/// polls; a completion brings the next task along while there is work. Leases of all running tasks
/// are renewed together. A store or a server that does not answer is waited for, with pauses of
/// 50 ms to a second, and the log says so once.
///
/// A task ends as its handler does:
///
/// - `()`, a value, an [`Outcome`](super::Outcome), or `Ok` of such: it completes, waits, or is
/// - An error: it fails with the category `handler_error`, transient unless the
/// - A panic: `handler_panic`, transient.
/// - Longer than the options of the handler allow: `handler_timeout`, of the class `timeout`.
/// - Data that is not there: `extractor_missing_state`, transient.
/// - A payload that does not decode: `extractor_payload_decode`, permanent.
/// - No handler at all: `runtime_no_handler`, transient, so that a worker that has one may take it.
///
/// A task that is cancelled or whose lease is lost tells its handler by
/// [`Task::cancelled`](super::Task::cancelled); what that handler still returns is not sent.
///
/// ```no_run
/// use ff_sdk::WorkerConfig;
/// use ff_sdk::runtime::{Payload, WorkerRuntime};
///
/// async fn greet(Payload(name): Payload<String>) -> String {
///     format!("hello {name}")
/// }
///
/// #[tokio::main]
/// async fn main() -> Result<(), ff_sdk::SdkError> {
///     let config = WorkerConfig::new("greeter");
///     WorkerRuntime::connect(config).on("greet", greet).run_until_stopped().await
/// }
/// ```
#[must_use = "a runtime does nothing until it runs"]
pub struct WorkerRuntime {
    source: Source,
    max_concurrent: Option<usize>,
    grace: Duration,
    stop_grace: Duration,
    data: DataMap,
    layers: Layers,
    handlers: Vec<Registered>,
    metrics: Option<Metrics>,
    /// The first wrong thing that the builder was told.
    mistake: Option<SdkError>,
}

enum Source {
    Worker(FlowFabricWorker),
    Config(Box<WorkerConfig>),
    Client(Client, Box<WorkerConfig>),
}

struct Registered {
    kind: Kind,
    handler: HandlerService,
    options: HandlerOptions,
}

impl WorkerRuntime {
    /// Over a worker that is connected already. Its own permits bound the tasks at a time as well.
    /// The worker is shut down when the runtime ends.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::runtime::WorkerRuntime;
    /// use ff_sdk::WorkerConfig;
    ///
    /// async fn greet() -> &'static str {
    ///     "hello"
    /// }
    ///
    /// let worker = engine.worker(WorkerConfig::new("greeter")).await;
    /// WorkerRuntime::new(worker).on("greet", greet).run(async {}).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(worker: FlowFabricWorker) -> Self {
        Self::over(Source::Worker(worker))
    }

    /// Connects when it begins to run. The worker gets as many permits as
    /// [`max_concurrent`](Self::max_concurrent) says; without it as many as the config says if that
    /// is more than one, which is what a config has by itself, and else 64.
    ///
    /// ```
    /// use ff_sdk::runtime::WorkerRuntime;
    /// use ff_sdk::WorkerConfig;
    ///
    /// # async fn greet() {}
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let config = WorkerConfig::new("greeter").url("sqlite::memory:").lane("mail");
    /// WorkerRuntime::connect(config).on("greet", greet).run(async {}).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect(config: WorkerConfig) -> Self {
        Self::over(Source::Config(Box::new(config)))
    }

    /// Works over the connection of a client, as [`Client::worker`] does: in one process with an
    /// embedded store there is one connection for all. Permits are as [`Self::connect`] says.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ff_sdk::{Client, WorkerConfig, WorkerRuntime};
    ///
    /// # async fn greet() {}
    /// let client = Client::connect("sqlite::memory:").await?;
    /// let config = WorkerConfig::new("greeter");
    /// WorkerRuntime::with_client(&client, config).on("greet", greet).run(async {}).await?;
    /// client.close().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_client(client: &Client, config: WorkerConfig) -> Self {
        Self::over(Source::Client(client.clone(), Box::new(config)))
    }

    fn over(source: Source) -> Self {
        Self {
            source,
            max_concurrent: None,
            grace: GRACE,
            stop_grace: STOP_GRACE,
            data: DataMap::default(),
            layers: Layers::default(),
            handlers: Vec::new(),
            metrics: None,
            mistake: None,
        }
    }

    /// Shares a value with all handlers that ask for [`Data<T>`](super::Data) of its type. There is
    /// one of each type: a second one is a mistake, told when the runtime begins to run.
    ///
    /// ```
    /// use ff_sdk::runtime::{Data, WorkerRuntime};
    /// use ff_sdk::WorkerConfig;
    ///
    /// struct Greeting(&'static str);
    ///
    /// async fn greet(with: Data<Greeting>) -> String {
    ///     with.0.to_owned()
    /// }
    ///
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let config = WorkerConfig::new("greeter").url("sqlite::memory:");
    /// let runtime = WorkerRuntime::connect(config).data(Greeting("hello")).on("greet", greet);
    /// runtime.run(async {}).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn data<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        if self.data.put(value) {
            let message = format!("{} is there already", std::any::type_name::<T>());
            self.note(SdkError::config("data", message));
        }
        self
    }

    /// The handler of a kind.
    ///
    /// A function, or a closure that gives a future: see [`Handler`]. Each kind has one; a kind
    /// that none of the worker's handlers is for fails with the category `runtime_no_handler`.
    ///
    /// ```
    /// use ff_sdk::runtime::{Payload, WorkerRuntime};
    /// use ff_sdk::WorkerConfig;
    ///
    /// async fn greet(name: Payload<String>) -> String {
    ///     format!("hello {}", *name)
    /// }
    ///
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// WorkerRuntime::connect(WorkerConfig::new("w").url("sqlite::memory:"))
    ///     .on("greet", greet)
    ///     .on("double", |n: Payload<u32>| async move { *n * 2 })
    ///     .run(async {})
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn on<H: Handler<Args>, Args: 'static>(self, kind: &str, handler: H) -> Self {
        self.on_with(kind, handler, HandlerOptions::new())
    }

    /// The same with limits of its own.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// use std::time::Duration;
    /// use ff_sdk::WorkerConfig;
    /// use ff_sdk::runtime::{HandlerOptions, WorkerRuntime};
    ///
    /// async fn render() {}
    ///
    /// let two_at_a_time = HandlerOptions::new().concurrency(2).timeout(Duration::from_secs(600));
    /// WorkerRuntime::connect(WorkerConfig::new("studio").url("sqlite::memory:"))
    ///     .on_with("render", render, two_at_a_time)
    ///     .run(async {})
    ///     .await
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_with<H: Handler<Args>, Args: 'static>(
        mut self,
        kind: &str,
        handler: H,
        options: HandlerOptions,
    ) -> Self {
        let handler = HandlerService::new(handler, options.timeout);
        match parse("kind", kind) {
            Ok(kind) => self.handlers.push(Registered { kind, handler, options }),
            Err(error) => self.note(error),
        }
        self
    }

    /// The most tasks at a time, 64 unless said.
    ///
    /// ```
    /// # use ff_sdk::runtime::WorkerRuntime;
    /// # use ff_sdk::WorkerConfig;
    /// # async fn greet() {}
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let config = WorkerConfig::new("greeter").url("sqlite::memory:");
    /// WorkerRuntime::connect(config).max_concurrent(200).on("greet", greet).run(async {}).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_concurrent(self, tasks: usize) -> Self {
        Self { max_concurrent: Some(tasks), ..self }
    }

    /// Puts a tower layer around all handlers. The first that is added is the outermost: it sees a
    /// call before the others, and its answer after them.
    ///
    /// ```
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// use ff_sdk::WorkerConfig;
    /// use ff_sdk::layers::{CircuitBreaker, RateLimit, TraceTasks};
    /// use ff_sdk::runtime::WorkerRuntime;
    ///
    /// async fn send() {}
    ///
    /// WorkerRuntime::connect(WorkerConfig::new("mailer").url("sqlite::memory:"))
    ///     .layer(TraceTasks)
    ///     .layer(CircuitBreaker::new())
    ///     .layer(RateLimit::per_second(20.0))
    ///     .on("send", send)
    ///     .run(async {})
    ///     .await
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn layer(mut self, layer: impl TaskLayer) -> Self {
        self.layers.add(layer);
        self
    }

    /// Measures handlers, and counts how often all slots were taken, in these metrics.
    ///
    /// ```
    /// # use ff_sdk::runtime::WorkerRuntime;
    /// # use ff_sdk::WorkerConfig;
    /// use ff_sdk::layers::Metrics;
    ///
    /// # async fn greet() {}
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let config = WorkerConfig::new("greeter").url("sqlite::memory:");
    /// let metrics = Metrics::default();
    /// WorkerRuntime::connect(config).metrics(&metrics).on("greet", greet).run(async {}).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn metrics(mut self, metrics: &Metrics) -> Self {
        self.layers.add(MeasureTasks::new(metrics));
        Self { metrics: Some(metrics.clone()), ..self }
    }

    /// What running tasks get to end by themselves when the runtime is told to stop: 30 seconds
    /// unless said. Whatever is left then is told to stop.
    ///
    /// ```
    /// # use ff_sdk::runtime::WorkerRuntime;
    /// # use ff_sdk::WorkerConfig;
    /// use std::time::Duration;
    ///
    /// # async fn greet() {}
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let config = WorkerConfig::new("greeter").url("sqlite::memory:");
    /// let runtime = WorkerRuntime::connect(config).on("greet", greet);
    /// runtime.grace(Duration::from_secs(120)).run(async {}).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// What a handler gets that was told to stop, before it is dropped: 5 seconds unless said.
    ///
    /// ```
    /// # use ff_sdk::runtime::WorkerRuntime;
    /// # use ff_sdk::WorkerConfig;
    /// use std::time::Duration;
    ///
    /// # async fn greet() {}
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let config = WorkerConfig::new("greeter").url("sqlite::memory:");
    /// let runtime = WorkerRuntime::connect(config).on("greet", greet).stop_grace(Duration::ZERO);
    /// runtime.run(async {}).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn stop_grace(self, stop_grace: Duration) -> Self {
        Self { stop_grace, ..self }
    }

    fn note(&mut self, mistake: SdkError) {
        self.mistake.get_or_insert(mistake);
    }
}

/// Running.
impl WorkerRuntime {
    /// Runs until `shutdown` is ready, or an operator drains the worker. Then nothing more is
    /// claimed, running tasks get their [`grace`](Self::grace), what is left is told to stop, and
    /// the worker deregisters: what was not finished is claimable by others at once.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::runtime::WorkerRuntime;
    /// use ff_sdk::WorkerConfig;
    /// use std::time::Duration;
    ///
    /// # async fn greet() {}
    /// # let worker = engine.worker(WorkerConfig::new("greeter")).await;
    /// let greeting = engine.client().submit(Submission::new("greet")).await?;
    /// let done = async { drop(greeting.wait(Duration::from_secs(10)).await) };
    /// WorkerRuntime::new(worker).on("greet", greet).run(done).await?;
    /// engine.assert_completed(greeting.id()).await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] before anything is claimed: no handler (`handlers`), a kind twice or no
    /// kind at all (`kind`), a limit of zero (`max_concurrent`, `concurrency`), data of one type
    /// twice (`data`); what [`FlowFabricWorker::connect`] says; later a claim that is refused for
    /// good, and a worker that could not deregister.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) -> Result<(), SdkError> {
        self.run_or_stop(shutdown, CancellationToken::new()).await
    }

    /// Runs until the process is told to stop, by SIGTERM or Ctrl-C. A second time ends it at once:
    /// handlers are dropped, and the worker deregisters.
    ///
    /// ```no_run
    /// # use ff_sdk::runtime::WorkerRuntime;
    /// # use ff_sdk::WorkerConfig;
    /// # async fn greet() {}
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let runtime = WorkerRuntime::connect(WorkerConfig::new("greeter")).on("greet", greet);
    /// runtime.run_until_stopped().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::run`].
    pub async fn run_until_stopped(self) -> Result<(), SdkError> {
        let (first, second) = (CancellationToken::new(), CancellationToken::new());
        let _listening = signals::listen(first.clone(), second.clone())?;
        self.run_or_stop(first.cancelled(), second).await
    }

    async fn run_or_stop(
        self,
        shutdown: impl Future<Output = ()> + Send,
        at_once: CancellationToken,
    ) -> Result<(), SdkError> {
        let runtime = self.start(at_once).await?;
        runtime.run(shutdown).await
    }

    /// Checks all that was said, and connects.
    async fn start(self, at_once: CancellationToken) -> Result<Runtime, SdkError> {
        let kinds = self.kinds()?;
        let max_concurrent = self.check_concurrency()?;
        let worker = match self.source {
            Source::Worker(worker) => worker,
            Source::Config(config) => {
                FlowFabricWorker::connect(config.max_concurrent_tasks(max_concurrent)).await?
            }
            Source::Client(client, config) => {
                client.worker(config.max_concurrent_tasks(max_concurrent)).await?
            }
        };
        if let Some(metrics) = self.metrics {
            worker.measure(metrics);
        }
        let (grace, stop_grace) = (self.grace, self.stop_grace);
        let slots = max_concurrent.min(worker.max_concurrent_tasks());
        Ok(Runtime::new(worker, kinds, self.data, slots, grace, stop_grace, at_once))
    }

    fn kinds(&self) -> Result<Kinds, SdkError> {
        if let Some(mistake) = &self.mistake {
            return Err(mistake.clone());
        }
        if self.handlers.is_empty() {
            return Err(SdkError::config("handlers", "a runtime has at least one handler"));
        }
        let mut kinds = Kinds::new();
        for Registered { kind, handler, options } in &self.handlers {
            if options.concurrency == Some(0) {
                let message = format!("{kind} runs at least one task at a time");
                return Err(SdkError::config("concurrency", message));
            }
            let service = options.layers.around(TaskService::new(handler.clone()));
            let served = Served::new(self.layers.around(service), options.concurrency);
            if kinds.insert(kind.clone(), served).is_some() {
                return Err(SdkError::config("kind", format!("{kind} has two handlers")));
            }
        }
        Ok(kinds)
    }

    fn check_concurrency(&self) -> Result<usize, SdkError> {
        match (self.max_concurrent, &self.source) {
            (Some(0), _) => {
                Err(SdkError::config("max_concurrent", "a runtime runs at least one task"))
            }
            (Some(said), _) => Ok(said),
            (None, Source::Config(config) | Source::Client(_, config))
                if config.max_concurrent_tasks != 1 =>
            {
                Ok(config.max_concurrent_tasks)
            }
            (None, _) => Ok(MAX_CONCURRENT),
        }
    }
}

impl fmt::Debug for WorkerRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.handlers.iter().map(|handler| handler.kind.as_str()).collect();
        f.debug_struct("WorkerRuntime")
            .field("kinds", &kinds)
            .field("data", &self.data)
            .field("max_concurrent", &self.max_concurrent)
            .field("grace", &self.grace)
            .field("stop_grace", &self.stop_grace)
            .finish_non_exhaustive()
    }
}
