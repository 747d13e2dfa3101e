//! Why an execution that nothing else keeps back was not admitted.

use serde::{Deserialize, Serialize};

use super::{BlockingReason, EligibilityState};
use crate::id::{BudgetId, QuotaPolicyId};
use crate::time::TimestampMs;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdmissionBlock {
    pub reason: AdmissionReason,
    /// Which limit it is that is used up.
    pub by: Option<LimitId>,
    /// What was lacking, in words.
    pub detail: String,
    pub since: TimestampMs,
    /// When it is let go to be looked at again, should nobody have done so before. None for want of
    /// a worker: the engine looks at routes, not at each that waits.
    pub recheck_at: Option<TimestampMs>,
}

/// A limit that keeps executions back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LimitId {
    Budget(BudgetId),
    Quota(QuotaPolicyId),
}

/// In the order in which they are looked at again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AdmissionReason {
    Budget,
    Quota,
    /// No live worker covers what it requires.
    Route,
}

impl AdmissionReason {
    pub const ALL: [Self; 3] = [Self::Budget, Self::Quota, Self::Route];

    pub const fn blocking_reason(self) -> BlockingReason {
        match self {
            Self::Budget => BlockingReason::WaitingForBudget,
            Self::Quota => BlockingReason::WaitingForQuota,
            Self::Route => BlockingReason::WaitingForCapableWorker,
        }
    }

    pub const fn eligibility(self) -> EligibilityState {
        match self {
            Self::Budget => EligibilityState::BlockedByBudget,
            Self::Quota => EligibilityState::BlockedByQuota,
            Self::Route => EligibilityState::BlockedByRoute,
        }
    }

    /// The reason of this name; none: admission knows no such.
    pub fn of(reason: BlockingReason) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.blocking_reason() == reason)
    }
}
