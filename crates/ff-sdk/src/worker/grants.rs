//! Claims by name: what a scheduler has set aside for this worker.

use ff_core::backend::BackendExt as _;
use ff_core::error::Code;
use ff_core::id::{LaneId, LeaseId};
use ff_core::operation::{
    ClaimExecution, ClaimGrant, ClaimResumedExecution, ReclaimExecution, Reclaimed, TakenSlots,
    Task,
};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::FlowFabricWorker;
use crate::error::SdkError;
use crate::presence::millis;
use crate::task::ClaimedTask;

/// What became of a reclaim.
///
/// ```
/// use ff_sdk::ReclaimOutcome;
///
/// /// Whether another grant is worth asking for.
/// fn is_over(outcome: &ReclaimOutcome) -> bool {
///     !matches!(outcome, ReclaimOutcome::GrantNotFound)
/// }
/// assert!(is_over(&ReclaimOutcome::ReclaimCapExceeded { reclaim_count: 100 }));
/// ```
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

/// Claims by grants.
impl FlowFabricWorker {
    /// Claims the execution that a grant names. The permit comes first: at capacity the grant is
    /// untouched. When the grant is for an attempt that goes on, that is done by itself.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// # use ff_sdk::FlowFabricAdminClient;
    /// # let admin = FlowFabricAdminClient::connect_with(engine.backend());
    /// # engine.client().submit(Submission::new("greet")).await?;
    /// use ff_core::capability::Capabilities;
    /// use ff_core::operation::ClaimForWorker;
    ///
    /// let lane = "default".parse()?;
    /// let claim = ClaimForWorker {
    ///     namespace: "default".parse()?,
    ///     worker_id: "w".parse()?,
    ///     worker_instance_id: worker.worker_instance_id().parse()?,
    ///     lane: "default".parse()?,
    ///     capabilities: Capabilities::default(),
    ///     grant_ttl_ms: 5_000,
    /// };
    /// let grant = admin.claim_for_worker(claim).await?.expect("there is work");
    /// let task = worker.claim_from_grant(&lane, &grant).await?;
    /// task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::WorkerAtCapacity`] while all permits are taken; [`SdkError::Config`] for a lane
    /// that is none of the worker's, a grant whose partition is not its execution's, or an
    /// execution that this worker runs already; the codes `invalid_claim_grant` and
    /// `claim_grant_expired`.
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
    ///
    /// [`Self::claim_from_grant`] does the same by itself when the grant is for such an attempt.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// # use ff_core::{capability::Capabilities, operation::ClaimForWorker};
    /// # use ff_sdk::{FlowFabricAdminClient, Suspension};
    /// # let admin = FlowFabricAdminClient::connect_with(engine.backend());
    /// # let claim = ClaimForWorker {
    /// #     namespace: "default".parse()?,
    /// #     worker_id: "w".parse()?,
    /// #     worker_instance_id: worker.worker_instance_id().parse()?,
    /// #     lane: "default".parse()?,
    /// #     capabilities: Capabilities::default(),
    /// #     grant_ttl_ms: 5_000,
    /// # };
    /// let task = engine.claimed(Submission::new("deploy")).await;
    /// let id = task.execution_id();
    /// task.suspend_on(Suspension::approval("go")?).await?;
    /// engine.client().resume(id, "ada").await?;
    ///
    /// let grant = admin.claim_for_worker(claim).await?.expect("it goes on");
    /// let task = worker.claim_from_resume_grant(&grant).await?;
    /// assert_eq!((task.execution_id(), task.attempt_index()), (id, 0));
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::claim_from_grant`], and the code `not_a_resumed_execution`.
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
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// # use ff_core::capability::Capabilities;
    /// # use ff_core::operation::{IssueReclaimGrant, IssuedReclaimGrant};
    /// # use ff_sdk::FlowFabricAdminClient;
    /// use ff_sdk::ReclaimOutcome;
    ///
    /// # let admin = FlowFabricAdminClient::connect_with(engine.backend());
    /// let task = engine.claimed(Submission::new("work")).await;
    /// let id = task.execution_id();
    /// engine.lose_lease(id).await;
    /// # let issue = IssueReclaimGrant {
    /// #     execution_id: id,
    /// #     worker_id: "w".parse()?,
    /// #     worker_instance_id: None,
    /// #     lane: "default".parse()?,
    /// #     capabilities: Capabilities::default(),
    /// #     grant_ttl_ms: 5_000,
    /// # };
    /// let IssuedReclaimGrant::Granted(grant) = admin.issue_reclaim_grant(issue).await? else {
    ///     panic!("its lease is lost");
    /// };
    /// match worker.claim_from_reclaim_grant(&grant).await? {
    ///     ReclaimOutcome::Claimed(task) => task.complete(None).await?,
    ///     other => println!("nothing to take up: {other:?}"),
    /// }
    /// engine.assert_completed(id).await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::WorkerAtCapacity`] while all permits are taken; [`SdkError::Config`] for a grant
    /// whose partition is not its execution's. That there is nothing to take up is an answer, not
    /// an error.
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
