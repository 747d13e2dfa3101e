//! Admission: an execution is kept back until a budget, a quota or a worker is there for it.

use super::claim::check_lease_ttl;
use super::command::Shape;
use crate::check::check_bytes;
use crate::error::{Code, Refusal};
use crate::id::{BudgetId, ExecutionId, LeaseId, QuotaPolicyId, WorkerId, WorkerInstanceId};
use crate::limits;
use crate::state::{AdmissionReason, BlockingReason, HardAction, LimitId, OwedSlot};

/// Keeps an eligible execution back.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockForAdmission {
    pub execution_id: ExecutionId,
    pub reason: BlockingReason,
    /// What was lacking; shown as the blocking detail.
    pub detail: String,
    /// Which limit is used up.
    pub by: Option<LimitId>,
}

/// The cause is gone: back to where the execution would now be without it.
#[derive(Debug, Clone, PartialEq)]
pub struct Unblock {
    pub execution_id: ExecutionId,
    /// Only if this is why it was blocked.
    pub expected: BlockingReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unblocked {
    /// Whether a worker can claim it now: nothing else keeps it back, nor does its lane.
    pub claimable: bool,
}

/// Leases an execution that a claim has set aside, once all its limits have let it in.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimAdmitted {
    pub execution_id: ExecutionId,
    /// Of the lease that it gets.
    pub lease_epoch: u64,
    pub lease_id: LeaseId,
    pub worker_id: WorkerId,
    pub worker_instance_id: WorkerInstanceId,
    pub lease_ttl_ms: u64,
    /// Quota policies of which a slot was taken for it.
    pub slots: Vec<QuotaPolicyId>,
    /// Those of them that keep a place in their window for it.
    pub places: Vec<QuotaPolicyId>,
}

/// Asks whether a lease with this epoch lives, and makes sure that none begins any more that was to
/// bear it.
#[derive(Debug, Clone, PartialEq)]
pub struct VoidAdmission {
    pub execution_id: ExecutionId,
    pub lease_epoch: u64,
    /// Who asks: a grant that holds a slot of it lives too.
    pub quota_policy_id: Option<QuotaPolicyId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionVoided {
    /// The lease lives: its slots are held.
    Leased,
    /// A grant lives that holds the slot for it.
    Granted,
    /// It has ended, or nothing is known of it: its slots are free.
    Void,
    /// There was none and will be none: its slots are free, and so are its places in windows.
    Never,
}

/// Slots of leases that have ended, or of grants that nobody used, were given back.
#[derive(Debug, Clone, PartialEq)]
pub struct SettleSlots {
    pub execution_id: ExecutionId,
    pub slots: Vec<OwedSlot>,
}

/// Ends an execution that runs under a budget which is used up.
#[derive(Debug, Clone, PartialEq)]
pub struct EndForBudget {
    pub execution_id: ExecutionId,
    /// Only this lease.
    pub lease_id: LeaseId,
    pub budget_id: BudgetId,
    pub action: HardAction,
}

/// The reason, if it is one of admission.
pub(crate) fn admission_reason(reason: BlockingReason) -> Result<AdmissionReason, Refusal> {
    AdmissionReason::of(reason).ok_or_else(|| {
        let detail = format!("{} is no reason of admission", reason.as_str());
        Refusal::at(Code::InvalidBlockingReason, "reason", detail)
    })
}

impl Shape for BlockForAdmission {
    fn check_shape(&self) -> Result<(), Refusal> {
        let reason = admission_reason(self.reason)?;
        if self.by.is_some_and(|by| by.reason() != reason) {
            return Err(Refusal::invalid("by", "no limit of this kind is the reason"));
        }
        check_bytes("detail", &self.detail, limits::REASON_BYTES)
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}

impl Shape for Unblock {
    fn check_shape(&self) -> Result<(), Refusal> {
        admission_reason(self.expected).map(|_| ())
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}

impl Shape for ClaimAdmitted {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_lease_ttl("lease_ttl_ms", self.lease_ttl_ms)
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}

impl Shape for VoidAdmission {
    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}

impl Shape for SettleSlots {
    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}

impl Shape for EndForBudget {
    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}
