//! The worker: connects, claims, leaves.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use ff_core::backend::{Backend, BackendExt as _};
use ff_core::error::{Code, EngineError};
use ff_core::id::{LaneId, LeaseId};
use ff_core::limits;
use ff_core::operation::{
    Claim, ClaimExecution, ClaimGrant, ClaimNext, ClaimResumedExecution, LaneShare,
    ReclaimExecution, Reclaimed, TakenSlots, Task,
};
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

/// A worker of one process: it claims tasks and keeps them alive while they run.
///
/// Cheap to clone; all clones are the same worker.
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
    pub fn running_tasks(&self) -> usize {
        self.shared.leases.len()
    }

    /// Lanes of this worker that nothing is claimed from, as the last heartbeat told.
    pub fn paused_lanes(&self) -> Vec<LaneId> {
        self.shared.presence.paused_lanes()
    }

    /// The same, to wait for changes.
    pub fn paused_lanes_changed(&self) -> watch::Receiver<Vec<LaneId>> {
        self.shared.presence.paused_lanes_changed()
    }

    /// Whether the worker claims nothing more, by [`Self::drain`] or by an operator.
    pub fn is_draining(&self) -> bool {
        self.shared.presence.draining().is_cancelled()
    }

    /// Waits until the worker is told to claim nothing more.
    pub async fn drained(&self) {
        self.shared.presence.draining().cancelled().await;
    }
}

/// Claims.
impl FlowFabricWorker {
    /// One task, if there is one now and the worker has a free permit.
    pub async fn claim_next(&self) -> Result<Option<ClaimedTask>, SdkError> {
        Ok(self.claim(1, Duration::ZERO).await?.pop())
    }

    /// Up to `n` tasks, but no more than there are free permits. With nothing found it waits for
    /// work, up to `wait`, and then answers with none; so it does when the worker is drained
    /// meanwhile.
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

    /// Claims the execution that a grant names. The permit comes first: at capacity the grant is
    /// untouched. When the grant is for an attempt that goes on, that is done by itself.
    pub async fn claim_from_grant(
        &self,
        lane: &LaneId,
        grant: &ClaimGrant,
    ) -> Result<ClaimedTask, SdkError> {
        if !self.shared.me.lanes.iter().any(|share| share.lane == *lane) {
            return Err(SdkError::config("lane", format!("{lane} is none of this worker's lanes")));
        }
        self.check_grant(grant)?;
        let permit = self.one_permit()?;
        let sent = Instant::now();
        let me = &self.shared.me;
        let claim = ClaimExecution {
            execution_id: grant.execution_id,
            worker_id: me.worker_id.clone(),
            worker_instance_id: me.worker_instance_id.clone(),
            lease_id: LeaseId::mint(),
            lease_ttl_ms: millis(me.lease_ttl),
            slots: TakenSlots::default(),
        };
        match self.backend().take_up(claim).await {
            Ok(task) => self.hold_granted(*task, permit, sent),
            Err(error) if error.code() == Code::UseClaimResumedExecution => {
                self.resume(grant, permit).await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Goes on with the attempt that a grant names.
    pub async fn claim_from_resume_grant(
        &self,
        grant: &ClaimGrant,
    ) -> Result<ClaimedTask, SdkError> {
        self.check_grant(grant)?;
        let permit = self.one_permit()?;
        self.resume(grant, permit).await
    }

    async fn resume(
        &self,
        grant: &ClaimGrant,
        permit: OwnedSemaphorePermit,
    ) -> Result<ClaimedTask, SdkError> {
        let sent = Instant::now();
        let me = &self.shared.me;
        let claim = ClaimResumedExecution {
            execution_id: grant.execution_id,
            worker_id: me.worker_id.clone(),
            worker_instance_id: me.worker_instance_id.clone(),
            lease_id: LeaseId::mint(),
            lease_ttl_ms: millis(me.lease_ttl),
            slots: TakenSlots::default(),
        };
        let task = self.backend().take_up(claim).await?;
        self.hold_granted(*task, permit, sent)
    }

    /// Takes up an execution whose lease was lost, by a reclaim grant.
    pub async fn claim_from_reclaim_grant(
        &self,
        grant: &ClaimGrant,
    ) -> Result<ReclaimOutcome, SdkError> {
        self.check_grant(grant)?;
        let permit = self.one_permit()?;
        let sent = Instant::now();
        let me = &self.shared.me;
        let reclaim = ReclaimExecution {
            execution_id: grant.execution_id,
            worker_id: me.worker_id.clone(),
            worker_instance_id: me.worker_instance_id.clone(),
            lease_id: LeaseId::mint(),
            lease_ttl_ms: millis(me.lease_ttl),
            max_reclaim_count: None,
            slots: TakenSlots::default(),
        };
        Ok(match self.backend().take_up(reclaim).await? {
            Reclaimed::Reclaimed(task) => {
                ReclaimOutcome::Claimed(Box::new(self.hold_granted(*task, permit, sent)?))
            }
            Reclaimed::GrantNotFound => ReclaimOutcome::GrantNotFound,
            Reclaimed::NotReclaimable { detail } => ReclaimOutcome::NotReclaimable { detail },
            Reclaimed::ReclaimCapExceeded { reclaim_count } => {
                ReclaimOutcome::ReclaimCapExceeded { reclaim_count }
            }
        })
    }

    /// A claim by name that is repeated answers with the lease that there is. One that this worker
    /// holds already has its task.
    fn hold_granted(
        &self,
        task: Task,
        permit: OwnedSemaphorePermit,
        sent: Instant,
    ) -> Result<ClaimedTask, SdkError> {
        if self.shared.leases.has(task.execution_id, task.fence()) {
            return Err(SdkError::config("grant", "this worker runs the execution already"));
        }
        Ok(self.hold(task, permit, Some(sent)))
    }

    fn check_grant(&self, grant: &ClaimGrant) -> Result<(), SdkError> {
        let stands_in = grant.execution_id.partition_key();
        if grant.partition_key != stands_in {
            let given = grant.partition_key;
            let message = format!("the execution stands in {stands_in}, the grant says {given}");
            return Err(SdkError::config("partition_key", message));
        }
        Ok(())
    }
}

/// Leaving.
impl FlowFabricWorker {
    /// Claims nothing more. Running tasks go on.
    pub fn drain(&self) {
        self.shared.presence.draining().cancel();
    }

    /// Claims nothing more, gives running tasks `grace` to end, tells those that have not to stop,
    /// and deregisters: what is still running is then claimable by others at once. Doing it again
    /// does nothing.
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

/// What became of a reclaim.
#[derive(Debug)]
pub enum ReclaimOutcome {
    /// A new attempt, or one that goes on.
    Claimed(Box<ClaimedTask>),
    /// There is no such grant any more.
    GrantNotFound,
    /// It does not wait for somebody to take up a lost lease.
    NotReclaimable {
        /// What it does instead.
        detail: String,
    },
    /// It has lost too many leases, and has failed for that.
    ReclaimCapExceeded {
        /// So many.
        reclaim_count: u32,
    },
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
