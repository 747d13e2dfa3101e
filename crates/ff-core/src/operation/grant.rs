//! Grants: a scheduler outside the worker sets one execution aside for one worker, which then
//! claims it by name.

use super::claim::{Task, check_lease_ttl};
use super::command::Shape;
use crate::capability::Capabilities;
use crate::check::check_range;
use crate::error::Refusal;
use crate::id::{
    ExecutionId, LaneId, LeaseId, Namespace, PartitionKey, QuotaPolicyId, WorkerId,
    WorkerInstanceId,
};
use crate::limits;
use crate::time::TimestampMs;

/// Sets an eligible execution aside: it leaves its queue, and only this worker may claim it. Not a
/// transition: no event.
#[derive(Debug, Clone, PartialEq)]
pub struct IssueClaimGrant {
    pub execution_id: ExecutionId,
    pub worker_id: WorkerId,
    pub worker_instance_id: WorkerInstanceId,
    /// The lane in which the scheduler saw it.
    pub lane: LaneId,
    /// What the worker can do.
    pub capabilities: Capabilities,
    pub grant_ttl_ms: u64,
}

/// A new attempt from a grant of this worker, of either kind.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimExecution {
    pub execution_id: ExecutionId,
    pub worker_id: WorkerId,
    pub worker_instance_id: WorkerInstanceId,
    pub lease_id: LeaseId,
    pub lease_ttl_ms: u64,
    pub slots: TakenSlots,
}

/// The open attempt goes on, from a grant of this worker.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimResumedExecution {
    pub execution_id: ExecutionId,
    pub worker_id: WorkerId,
    pub worker_instance_id: WorkerInstanceId,
    pub lease_id: LeaseId,
    pub lease_ttl_ms: u64,
    pub slots: TakenSlots,
}

/// An operator gives one execution to a worker in one step, whatever the worker can do and budgets
/// say; quota policies are asked. What the next claim would open is opened: a new attempt, or the
/// open one continued.
#[derive(Debug, Clone, PartialEq)]
pub struct IssueGrantAndClaim {
    pub execution_id: ExecutionId,
    pub worker_id: WorkerId,
    pub worker_instance_id: WorkerInstanceId,
    pub lease_id: LeaseId,
    pub lease_ttl_ms: u64,
    pub slots: TakenSlots,
}

/// Sets an execution whose lease was lost aside for this worker.
#[derive(Debug, Clone, PartialEq)]
pub struct IssueReclaimGrant {
    pub execution_id: ExecutionId,
    pub worker_id: WorkerId,
    pub worker_instance_id: Option<WorkerInstanceId>,
    pub lane: LaneId,
    pub capabilities: Capabilities,
    pub grant_ttl_ms: u64,
}

/// A new attempt after a lost lease, from a reclaim grant of this worker.
#[derive(Debug, Clone, PartialEq)]
pub struct ReclaimExecution {
    pub execution_id: ExecutionId,
    pub worker_id: WorkerId,
    pub worker_instance_id: WorkerInstanceId,
    pub lease_id: LeaseId,
    pub lease_ttl_ms: u64,
    /// A cap below that of the policy: an execution that lost more leases than this fails.
    pub max_reclaim_count: Option<u32>,
    pub slots: TakenSlots,
}

/// Slots that were taken for a lease which a claim by name is about to make. An execution that stands
/// under quota policies is leased only with a slot of each:
/// [`crate::backend::BackendExt::take_up`] takes those that its grant does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TakenSlots {
    /// Of the lease that they were taken for.
    pub lease_epoch: u64,
    pub quota_policy_ids: Vec<QuotaPolicyId>,
    /// Those of them that keep a place in their window for it.
    pub places: Vec<QuotaPolicyId>,
}

/// The next execution for a worker, found by a scheduler that is not the worker: it is set aside, its
/// limits are asked, and the worker gets a grant. See [`crate::backend::BackendExt::claim_for_worker`].
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimForWorker {
    pub namespace: Namespace,
    pub worker_id: WorkerId,
    pub worker_instance_id: WorkerInstanceId,
    pub lane: LaneId,
    pub capabilities: Capabilities,
    pub grant_ttl_ms: u64,
}

/// Makes a grant of what a claim has set aside, once all its limits have let it in.
#[derive(Debug, Clone, PartialEq)]
pub struct GrantAdmitted {
    pub execution_id: ExecutionId,
    /// Of the lease that it will get.
    pub lease_epoch: u64,
    pub worker_id: WorkerId,
    pub worker_instance_id: WorkerInstanceId,
    pub grant_ttl_ms: u64,
    /// Quota policies of which a slot was taken for it.
    pub slots: Vec<QuotaPolicyId>,
    /// Those of them that keep a place in their window for it.
    pub places: Vec<QuotaPolicyId>,
    /// The claim that asked for them.
    pub claimant: LeaseId,
}

/// What the worker needs to use a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimGrant {
    pub execution_id: ExecutionId,
    pub partition_key: PartitionKey,
    /// Names the grant in logs. An execution has one at a time, so it follows from the id.
    pub grant_key: String,
    pub expires_at: TimestampMs,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssuedReclaimGrant {
    Granted(ClaimGrant),
    /// It does not wait for somebody to take up a lost lease.
    NotReclaimable {
        detail: String,
    },
    /// It lost its lease too often and has failed.
    ReclaimCapExceeded {
        reclaim_count: u32,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum Reclaimed {
    Reclaimed(Box<Task>),
    GrantNotFound,
    NotReclaimable {
        detail: String,
    },
    /// It has lost more leases than the call allows, and has failed for that.
    ReclaimCapExceeded {
        reclaim_count: u32,
    },
}

impl ClaimGrant {
    pub fn new(execution_id: ExecutionId, expires_at: TimestampMs) -> Self {
        Self {
            execution_id,
            partition_key: execution_id.partition_key(),
            grant_key: format!("{execution_id}:grant"),
            expires_at,
        }
    }
}

fn check_grant_ttl(ttl_ms: u64) -> Result<(), Refusal> {
    check_range("grant_ttl_ms", ttl_ms, 1, limits::GRANT_TTL_MAX_MS)
}

impl Shape for GrantAdmitted {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_grant_ttl(self.grant_ttl_ms)
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}

impl ClaimForWorker {
    pub fn check(&self) -> Result<(), Refusal> {
        check_grant_ttl(self.grant_ttl_ms)
    }
}

impl Shape for IssueClaimGrant {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_grant_ttl(self.grant_ttl_ms)
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}

impl Shape for ClaimExecution {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_lease_ttl("lease_ttl_ms", self.lease_ttl_ms)
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}

impl Shape for ClaimResumedExecution {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_lease_ttl("lease_ttl_ms", self.lease_ttl_ms)
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}

impl Shape for IssueGrantAndClaim {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_lease_ttl("lease_ttl_ms", self.lease_ttl_ms)
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}

impl Shape for IssueReclaimGrant {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_grant_ttl(self.grant_ttl_ms)
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}

impl Shape for ReclaimExecution {
    fn check_shape(&self) -> Result<(), Refusal> {
        let cap = self.max_reclaim_count.unwrap_or_default();
        check_range("max_reclaim_count", cap.into(), 0, limits::COUNT_MAX.into())?;
        check_lease_ttl("lease_ttl_ms", self.lease_ttl_ms)
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}
