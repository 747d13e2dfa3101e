//! Quota policies: made, changed, removed; and the slots of those that they admit.

use super::command::Shape;
use crate::check::check_range;
use crate::error::{Code, Refusal};
use crate::id::{DocumentId, ExecutionId, LeaseId, Namespace, QuotaPolicyId};
use crate::limits;
use crate::partition::PartitionConfig;
use crate::state::{QuotaSpec, SlotId};

/// Makes a quota policy.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateQuotaPolicy {
    pub quota_policy_id: QuotaPolicyId,
    pub namespace: Namespace,
    pub spec: QuotaSpec,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaPolicyCreated {
    Created,
    AlreadySatisfied,
}

/// Changes the spec that it has. Slots and the window stay.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateQuotaPolicy {
    pub quota_policy_id: QuotaPolicyId,
    pub change: QuotaChange,
    /// Refuses if it has changed since.
    pub expected_revision: Option<u64>,
}

/// Numbers of a spec; those that are not given stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuotaChange {
    pub window_seconds: Option<u64>,
    pub max_requests_per_window: Option<u32>,
    pub max_concurrent: Option<u32>,
    pub jitter_ms: Option<u64>,
}

impl QuotaChange {
    pub fn over(&self, before: &QuotaSpec) -> QuotaSpec {
        QuotaSpec {
            window_seconds: self.window_seconds.unwrap_or(before.window_seconds),
            max_requests_per_window: self
                .max_requests_per_window
                .unwrap_or(before.max_requests_per_window),
            max_concurrent: self.max_concurrent.unwrap_or(before.max_concurrent),
            jitter_ms: self.jitter_ms.unwrap_or(before.jitter_ms),
        }
    }
}

impl From<QuotaSpec> for QuotaChange {
    fn from(spec: QuotaSpec) -> Self {
        Self {
            window_seconds: Some(spec.window_seconds),
            max_requests_per_window: Some(spec.max_requests_per_window),
            max_concurrent: Some(spec.max_concurrent),
            jitter_ms: Some(spec.jitter_ms),
        }
    }
}

impl UpdateQuotaPolicy {
    /// Puts another spec in the place of the one that it has.
    pub fn new(quota_policy_id: QuotaPolicyId, spec: QuotaSpec) -> Self {
        Self { quota_policy_id, change: spec.into(), expected_revision: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QuotaPolicyUpdated {
    /// Those who waited for a slot and may try again.
    pub wake: Vec<ExecutionId>,
}

/// Removes a quota policy with its slots.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteQuotaPolicy {
    pub quota_policy_id: QuotaPolicyId,
}

/// Asks for a slot, and for a place in the window. Both are pending until the policy hears of the lease.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckAdmission {
    pub quota_policy_id: QuotaPolicyId,
    pub slot: SlotId,
    /// Who asks: the lease that the claim would make. Several claims may ask for one slot.
    pub claimant: LeaseId,
    /// A claim that goes on with an attempt takes a slot and no place in the window.
    pub opens_attempt: bool,
    /// The place in the queue, should it have to wait: lowest first.
    pub score: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    Admitted {
        /// The window keeps a place for it, and waits to hear of the lease.
        keeps_place: bool,
    },
    /// The slot was taken before.
    AlreadyAdmitted {
        keeps_place: bool,
    },
    RateExceeded {
        retry_after_ms: u64,
    },
    ConcurrencyExceeded {
        retry_after_ms: u64,
    },
}

/// A pending slot is held from now on.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfirmAdmission {
    pub quota_policy_id: QuotaPolicyId,
    pub slot: SlotId,
    pub by: HeldBy,
    /// The lease, should it get back a slot that is gone. It is taken whatever the limits say, since
    /// the lease is there, and is pending: should the lease have ended meanwhile, it goes again.
    pub restore: Option<LeaseId>,
}

/// Who holds a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldBy {
    /// The lease is there: a place in the window that was kept for it counts from now on.
    Lease,
    /// A grant, of which there may yet be a lease.
    Grant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmed {
    Held,
    AlreadyHeld,
    /// It was given back, or never taken.
    NoSlot,
    /// It was gone and is taken again.
    Restored,
}

/// Gives a slot back.
#[derive(Debug, Clone, PartialEq)]
pub struct ReleaseAdmission {
    pub quota_policy_id: QuotaPolicyId,
    pub slot: SlotId,
    pub why: SlotEnd,
}

/// Why a slot is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotEnd {
    /// Its lease has ended.
    LeaseOver,
    /// The claim that asked for it makes no lease. Should others have asked for it too, it is theirs;
    /// else its place in the window is free again.
    Unused(LeaseId),
    /// Its execution was asked, since the policy had noted it as overdue, and knows no such lease.
    /// Should somebody have asked for it since, it stays.
    NoLease,
    /// The same, and there was never such a lease: its place in the window is free again.
    NeverLeased,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AdmissionReleased {
    /// 0 if it was given back before.
    pub freed: u32,
    /// Those who waited for a slot and may try again, best first.
    pub wake: Vec<ExecutionId>,
}

/// Executions whose turn it was need no more telling. Others come in their place.
#[derive(Debug, Clone, PartialEq)]
pub struct SettleWaking {
    pub quota_policy_id: QuotaPolicyId,
    /// They wait no longer, and have no use for it.
    pub execution_ids: Vec<ExecutionId>,
    /// They were let go and have yet to come. They are waited for unless there is room for all.
    pub let_go: Vec<ExecutionId>,
}

impl Shape for SettleWaking {
    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::quota_policy(self.quota_policy_id, partitions))
    }
}

impl QuotaSpec {
    /// `invalid_quota_spec` for a number out of bounds, or a limit without a window.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        self.check_bounds()?;
        if self.limits_rate() && self.window_seconds == 0 {
            let detail = "max_requests_per_window needs window_seconds";
            return Err(Refusal::at(Code::InvalidQuotaSpec, "window_seconds", detail));
        }
        Ok(())
    }

    fn check_bounds(&self) -> Result<(), Refusal> {
        for (field, value, most) in [
            ("window_seconds", self.window_seconds, limits::QUOTA_WINDOW_MAX_SECONDS),
            (
                "max_requests_per_window",
                self.max_requests_per_window.into(),
                limits::QUOTA_REQUESTS_MAX.into(),
            ),
            ("max_concurrent", self.max_concurrent.into(), limits::QUOTA_CONCURRENT_MAX.into()),
            ("jitter_ms", self.jitter_ms, limits::QUOTA_JITTER_MAX_MS),
        ] {
            if value > most {
                let detail = format!("{field} is {value}, allowed is 0 to {most}");
                return Err(Refusal::at(Code::InvalidQuotaSpec, field, detail));
            }
        }
        Ok(())
    }
}

impl Shape for CreateQuotaPolicy {
    fn check_shape(&self) -> Result<(), Refusal> {
        self.spec.check()
    }

    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::quota_policy(self.quota_policy_id, partitions))
    }
}

impl Shape for UpdateQuotaPolicy {
    fn check_shape(&self) -> Result<(), Refusal> {
        self.change.over(&QuotaSpec::default()).check_bounds()
    }

    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::quota_policy(self.quota_policy_id, partitions))
    }
}

impl Shape for DeleteQuotaPolicy {
    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::quota_policy(self.quota_policy_id, partitions))
    }
}

impl Shape for CheckAdmission {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_range("lease_epoch", self.slot.lease_epoch, 1, u64::MAX)
    }

    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::quota_policy(self.quota_policy_id, partitions))
    }
}

impl Shape for ConfirmAdmission {
    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::quota_policy(self.quota_policy_id, partitions))
    }
}

impl ReleaseAdmission {
    /// Its lease has ended.
    pub fn of_lease(quota_policy_id: QuotaPolicyId, slot: SlotId) -> Self {
        Self { quota_policy_id, slot, why: SlotEnd::LeaseOver }
    }
}

impl Shape for ReleaseAdmission {
    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::quota_policy(self.quota_policy_id, partitions))
    }
}
