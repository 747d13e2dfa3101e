//! The worker: connects, claims, leaves.

mod grants;

pub use grants::ReclaimOutcome;

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use ff_core::backend::{Backend, BackendExt as _};
use ff_core::error::{Code, EngineError};
use ff_core::id::{LaneId, LeaseId};
use ff_core::limits;
use ff_core::operation::{Claim, ClaimNext, LaneShare, Task};
use ff_core::partition::PartitionConfig;
use ff_core::rota;
use ff_observe::Metrics;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::client::Client;
use crate::config::{Checked, WorkerConfig};
use crate::connection::{CALL, Connection};
use crate::error::SdkError;
use crate::leases::{Leases, lock};
use crate::outage::Outage;
use crate::presence::{Presence, millis};
use crate::task::ClaimedTask;

/// A worker of one process: it claims tasks and keeps their leases alive while they run.
///
/// Most programs have a [`WorkerRuntime`](crate::WorkerRuntime), which claims for them. Use the
/// worker itself where the loop of claims is your own. It registers when it connects, sends
/// heartbeats, and never holds more tasks than
/// [`max_concurrent_tasks`](WorkerConfig::max_concurrent_tasks). Cheap to clone; all clones are the
/// same worker, and its background work ends with the last of them.
///
/// ```
/// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = TestEngine::start().await;
/// # let worker = engine.worker(WorkerConfig::new("w")).await;
/// # engine.client().submit(Submission::new("greet").payload("Ada")).await?;
/// while let Some(task) = worker.claim_next().await? {
///     let greeting = format!("hello {}", String::from_utf8_lossy(task.input_payload()));
///     task.complete(Some(greeting.into())).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct FlowFabricWorker {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) connection: Connection,
    completion: Option<Arc<dyn Backend>>,
    config: WorkerConfig,
    pub(crate) me: Checked,
    permits: Arc<Semaphore>,
    /// What the rota owes each lane.
    lanes: Mutex<Vec<LaneShare>>,
    pub(crate) leases: Arc<Leases>,
    presence: Arc<Presence>,
    pub(crate) outage: Arc<Outage>,
    metrics: OnceLock<Metrics>,
    closing: CancellationToken,
    /// Loops end when the last clone is gone.
    _loops: DropGuard,
}

impl FlowFabricWorker {
    /// Connects, registers and begins to send heartbeats.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ff_sdk::{FlowFabricWorker, WorkerConfig};
    ///
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let config = WorkerConfig::new("mailer").url("sqlite::memory:").lane("mail");
    /// let worker = FlowFabricWorker::connect(config).await?;
    /// assert!(worker.claim_next().await?.is_none(), "nothing has been submitted");
    /// worker.shutdown(Duration::from_secs(5)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] with the name of a setting that is wrong, or of
    /// `worker_instance_id` when a live worker has the same; [`SdkError::BackendContext`] when the
    /// store or the server cannot be reached within ten seconds.
    pub async fn connect(config: WorkerConfig) -> Result<Self, SdkError> {
        config.check()?;
        let connection =
            Connection::open(&config.url, config.token.as_deref(), config.engine).await?;
        let completion = Arc::clone(connection.backend());
        Self::start(config, connection, Some(completion)).await
    }

    /// The same over a backend that is open already; the URL of the config is not looked at.
    /// Without a backend for completions nobody can subscribe to them through this worker.
    ///
    /// So a worker and a client of one process share an embedded store, and a store stands behind
    /// [layers](crate::layers).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use ff_sdk::{Client, FlowFabricWorker, WorkerConfig};
    ///
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::connect("sqlite::memory:").await?;
    /// let backend = Arc::clone(client.backend());
    /// let worker = FlowFabricWorker::connect_with(WorkerConfig::new("w"), backend, None).await?;
    /// assert!(worker.completion_backend().is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::connect`].
    pub async fn connect_with(
        config: WorkerConfig,
        backend: Arc<dyn Backend>,
        completion: Option<Arc<dyn Backend>>,
    ) -> Result<Self, SdkError> {
        Self::start(config, Connection::over(backend), completion).await
    }

    pub(crate) async fn start(
        config: WorkerConfig,
        connection: Connection,
        completion: Option<Arc<dyn Backend>>,
    ) -> Result<Self, SdkError> {
        let me = config.check()?;
        let backend = connection.backend();
        let within = |pending| async move {
            let late = || EngineError::Timeout { detail: "the store does not answer".to_owned() };
            timeout(CALL, pending).await.unwrap_or_else(|_| Err(late()))
        };
        within(backend.ping()).await.map_err(|error| SdkError::from(error).during("ping"))?;
        let outage = Arc::<Outage>::default();
        let leases = Leases::new(Arc::clone(backend), Arc::clone(&outage), CALL);
        let leases = Arc::new(leases);
        let presence = Presence::new(
            Arc::clone(backend),
            Arc::clone(&leases),
            Arc::clone(&outage),
            me.clone(),
        );
        let presence = Arc::new(presence);
        presence.register().await.map_err(|error| error.during("register"))?;
        presence.listen().await.map_err(|error| error.during("register"))?;
        let capabilities = me.capabilities.as_csv();
        tracing::info!(
            worker = %me.worker_instance_id,
            store = backend.backend_label(),
            capabilities,
            digest = me.capabilities.digest(),
            "the worker is connected"
        );
        let closing = CancellationToken::new();
        tokio::spawn(Arc::clone(&leases).keep(closing.clone()));
        tokio::spawn(Arc::clone(&presence).keep(closing.clone()));
        let shared = Shared {
            permits: Arc::new(Semaphore::new(me.permits)),
            lanes: Mutex::new(me.lanes.clone()),
            _loops: closing.clone().drop_guard(),
            closing,
            connection,
            completion,
            config,
            me,
            leases,
            presence,
            outage,
            metrics: OnceLock::new(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// What carries out the worker's calls.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        self.shared.connection.backend()
    }

    /// What completions can be subscribed to through; always there after [`Self::connect`].
    pub fn completion_backend(&self) -> Option<Arc<dyn Backend>> {
        self.shared.completion.clone()
    }

    /// A client over the same connection.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// let next = worker.client().submit(Submission::new("next")).await?;
    /// assert_eq!(next.client().namespace().as_str(), worker.config().namespace);
    /// # Ok(())
    /// # }
    /// ```
    pub fn client(&self) -> Client {
        Client::over(self.shared.connection.clone(), self.shared.me.namespace.clone())
    }

    /// The settings that it was connected with.
    pub fn config(&self) -> &WorkerConfig {
        &self.shared.config
    }

    /// Into how many partitions the store is divided.
    pub fn partition_config(&self) -> PartitionConfig {
        self.backend().settings().partitions
    }

    /// The name of this process among the workers.
    pub fn worker_instance_id(&self) -> &str {
        &self.shared.me.worker_instance_id
    }

    /// How long one claim waits for work, as it was configured: for loops of claims.
    pub fn claim_wait(&self) -> Duration {
        self.shared.me.claim_wait
    }

    /// The most tasks that this worker holds at a time.
    pub fn max_concurrent_tasks(&self) -> usize {
        self.shared.me.permits
    }

    /// Counts in these metrics how often there was no permit for a claim
    /// (`ff_worker_at_capacity_total`). The first that are given stay.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// use ff_sdk::layers::Metrics;
    ///
    /// let metrics = Metrics::default();
    /// worker.measure(metrics.clone());
    /// # Ok(())
    /// # }
    /// ```
    pub fn measure(&self, metrics: Metrics) {
        let _ = self.shared.metrics.set(metrics);
    }

    /// Something could have been claimed, had there been a permit.
    pub(crate) fn note_at_capacity(&self) {
        if let Some(metrics) = self.shared.metrics.get() {
            metrics.worker_at_capacity();
        }
    }

    /// Tasks that run now.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// # engine.client().submit(Submission::new("work")).await?;
    /// let task = worker.claim_next().await?.expect("there is work");
    /// assert_eq!(worker.running_tasks(), 1);
    /// task.complete(None).await?;
    /// assert_eq!(worker.running_tasks(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn running_tasks(&self) -> usize {
        self.shared.leases.len()
    }

    /// Lanes of this worker that nothing is claimed from, as the last heartbeat told.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// assert!(worker.paused_lanes().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn paused_lanes(&self) -> Vec<LaneId> {
        self.shared.presence.paused_lanes()
    }

    /// The same, to wait for changes.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// let mut paused = worker.paused_lanes_changed();
    /// tokio::spawn(async move {
    ///     while paused.changed().await.is_ok() {
    ///         println!("paused now: {:?}", *paused.borrow());
    ///     }
    /// });
    /// # Ok(())
    /// # }
    /// ```
    pub fn paused_lanes_changed(&self) -> watch::Receiver<Vec<LaneId>> {
        self.shared.presence.paused_lanes_changed()
    }

    /// Whether the worker claims nothing more, by [`Self::drain`] or by an operator.
    pub fn is_draining(&self) -> bool {
        self.shared.presence.draining().is_cancelled()
    }

    /// Waits until the worker is told to claim nothing more.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// tokio::spawn({
    ///     let worker = worker.clone();
    ///     async move { worker.drain() }
    /// });
    /// worker.drained().await;
    /// assert!(worker.is_draining());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn drained(&self) {
        self.shared.presence.draining().cancelled().await;
    }
}

/// Claims.
impl FlowFabricWorker {
    /// One task, if there is one now and the worker has a free permit.
    ///
    /// It does not wait: see [`Self::claim`] for a loop that does. A permit is taken before
    /// anything is claimed, so a worker at its capacity answers with none and touches nothing.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// assert!(worker.claim_next().await?.is_none());
    /// engine.client().submit(Submission::new("greet")).await?;
    /// let task = worker.claim_next().await?.expect("there is work");
    /// assert_eq!(task.execution_kind().as_str(), "greet");
    /// task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Backend`] when the store or the server does not answer: claim again after a
    /// pause.
    pub async fn claim_next(&self) -> Result<Option<ClaimedTask>, SdkError> {
        Ok(self.claim(1, Duration::ZERO).await?.pop())
    }

    /// Up to `n` tasks, but no more than there are free permits. With nothing found it waits for
    /// work, up to `wait`, and then answers with none; so it does when the worker is drained
    /// meanwhile.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// engine.client().submit(Submission::new("greet")).await?;
    /// # let mut rounds = 0;
    /// while !worker.is_draining() {
    ///     for task in worker.claim(8, worker.claim_wait()).await? {
    ///         task.complete(None).await?;
    ///     }
    ///     # rounds += 1; if rounds == 1 { worker.drain(); }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::claim_next`].
    pub async fn claim(&self, n: usize, wait: Duration) -> Result<Vec<ClaimedTask>, SdkError> {
        let draining = self.shared.presence.draining();
        if draining.is_cancelled() {
            return Ok(Vec::new());
        }
        let Some(permits) = self.permits(n) else { return Ok(Vec::new()) };
        let claim = self.claim_request(permits.num_permits());
        tokio::select! {
            claimed = self.claim_registered(claim, wait) => {
                let (sent, tasks) = claimed?;
                Ok(self.take_charge(tasks, permits, sent))
            }
            () = draining.cancelled() => Ok(Vec::new()),
        }
    }

    /// As many permits as are free, up to `n`; none when all are taken.
    fn permits(&self, n: usize) -> Option<OwnedSemaphorePermit> {
        let permits = &self.shared.permits;
        loop {
            let most = permits.available_permits().min(n).min(limits::CLAIM_TASKS as usize);
            let most = u32::try_from(most).unwrap_or(limits::CLAIM_TASKS);
            if most == 0 {
                self.note_at_capacity();
                return None;
            }
            match Arc::clone(permits).try_acquire_many_owned(most) {
                Ok(permits) => return Some(permits),
                Err(TryAcquireError::NoPermits) => {}
                Err(TryAcquireError::Closed) => return None,
            }
        }
    }

    fn one_permit(&self) -> Result<OwnedSemaphorePermit, SdkError> {
        self.permits(1).ok_or(SdkError::WorkerAtCapacity)
    }

    fn claim_request(&self, max: usize) -> Claim {
        let me = &self.shared.me;
        Claim {
            namespace: me.namespace.clone(),
            worker_id: me.worker_id.clone(),
            worker_instance_id: me.worker_instance_id.clone(),
            lanes: lock(&self.shared.lanes).clone(),
            order: me.order,
            capabilities: me.capabilities.clone(),
            max: u32::try_from(max).unwrap_or(limits::CLAIM_TASKS),
            lease_ttl_ms: millis(me.lease_ttl),
            seed: LeaseId::mint().uuid(),
            sets_aside: false,
        }
    }

    /// Claims; a worker that was forgotten meanwhile registers again first. Tells with the tasks
    /// when they were asked for, where the call did not wait.
    async fn claim_registered(
        &self,
        claim: Claim,
        wait: Duration,
    ) -> Result<(Option<Instant>, Vec<Task>), SdkError> {
        let claimed = self.ask_for_tasks(&claim, wait).await;
        let claimed = match claimed {
            Err(error) if error.code() == Code::WorkerNotRegistered => {
                self.shared.presence.register().await?;
                self.ask_for_tasks(&claim, wait).await
            }
            other => other,
        };
        Ok(claimed?)
    }

    async fn ask_for_tasks(
        &self,
        claim: &Claim,
        wait: Duration,
    ) -> Result<(Option<Instant>, Vec<Task>), EngineError> {
        let sent = Instant::now();
        let pending = self.backend().claim(claim.clone(), wait);
        let late = || EngineError::Timeout { detail: "no answer to a claim".to_owned() };
        let claimed = timeout(CALL + wait, pending).await.unwrap_or_else(|_| Err(late()));
        self.shared.outage.heard(&claimed);
        Ok((wait.is_zero().then_some(sent), claimed?))
    }

    /// Each task gets a permit, and its lease is renewed from now on.
    fn take_charge(
        &self,
        tasks: Vec<Task>,
        mut permits: OwnedSemaphorePermit,
        sent: Option<Instant>,
    ) -> Vec<ClaimedTask> {
        self.charge(&tasks);
        let with_permit = |task| {
            let permit = permits.split(1)?;
            Some(self.hold(task, permit, sent))
        };
        tasks.into_iter().filter_map(with_permit).collect()
    }

    pub(crate) fn hold(
        &self,
        task: Task,
        permit: OwnedSemaphorePermit,
        sent: Option<Instant>,
    ) -> ClaimedTask {
        let ttl = Duration::from_millis(task.ttl_ms);
        // By the store's clock, and never later than that; a call that did not wait may know better.
        let told = self.shared.presence.local_of(task.expires_at);
        let at_least = sent.map(|sent| sent + ttl);
        let deadline = told.into_iter().chain(at_least).max();
        let deadline = deadline.unwrap_or_else(|| Instant::now() + ttl);
        let lease = self.shared.leases.hold(task.execution_id, task.fence(), ttl, deadline);
        ClaimedTask::new(task, lease, self.clone(), permit)
    }
}

/// Leaving.
impl FlowFabricWorker {
    /// Claims nothing more. Running tasks go on.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// engine.client().submit(Submission::new("greet")).await?;
    /// worker.drain();
    /// assert!(worker.claim_next().await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn drain(&self) {
        self.shared.presence.draining().cancel();
    }

    /// Claims nothing more, gives running tasks `grace` to end, tells those that have not to stop,
    /// and deregisters: what is still running is then claimable by others at once. Doing it again
    /// does nothing.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// # use std::time::Duration;
    /// worker.shutdown(Duration::from_secs(30)).await?;
    /// assert!(engine.client().list_workers(None).await?.items.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Backend`] when the store could not be told: it then finds out by the heartbeats
    /// that do not come.
    pub async fn shutdown(&self, grace: Duration) -> Result<(), SdkError> {
        self.drain();
        if self.shared.closing.is_cancelled() {
            return Ok(());
        }
        let all = u32::try_from(self.shared.me.permits).unwrap_or(u32::MAX);
        if timeout(grace, self.shared.permits.acquire_many(all)).await.is_err() {
            let left = self.running_tasks();
            tracing::warn!(left, "the worker shuts down while tasks run");
            self.shared.leases.stop_all();
        }
        self.shared.closing.cancel();
        let gone = self.shared.presence.deregister().await;
        self.shared.connection.close(grace).await?;
        gone
    }
}

/// For tasks of this worker.
impl FlowFabricWorker {
    pub(crate) fn leases(&self) -> &Leases {
        &self.shared.leases
    }

    pub(crate) fn outage(&self) -> &Outage {
        &self.shared.outage
    }

    /// One more task, claimed by a completion.
    pub(crate) fn claim_next_request(&self) -> ClaimNext {
        let claim = self.claim_request(1);
        let Claim { max, lanes, order, capabilities, lease_ttl_ms, seed, .. } = claim;
        ClaimNext { max, lanes, order, capabilities, lease_ttl_ms, seed }
    }

    /// Charges the lanes that tasks came from.
    pub(crate) fn charge(&self, tasks: &[Task]) {
        let mut lanes = lock(&self.shared.lanes);
        if lanes.len() > 1 && !tasks.is_empty() {
            *lanes = rota::charged(&lanes, self.shared.me.order, tasks);
        }
    }
}
