//! Why an execution that nothing else keeps back was not admitted.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::listing::place;
use super::{BlockingReason, EligibilityState, Execution, List, Listing, ListingPosition, Phase};
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
}

/// A limit that keeps executions back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LimitId {
    Budget(BudgetId),
    Quota(QuotaPolicyId),
}

impl AdmissionBlock {
    /// Behind which limit it stands. One that nobody has named is as one that is gone.
    pub fn kept_by(&self) -> Option<LimitId> {
        let unnamed = match self.reason {
            AdmissionReason::Budget => Some(LimitId::Budget(BudgetId::new(Uuid::nil()))),
            AdmissionReason::Quota => Some(LimitId::Quota(QuotaPolicyId::new(Uuid::nil()))),
            AdmissionReason::Route => None,
        };
        self.by.or(unnamed)
    }
}

impl LimitId {
    /// What it means for an execution to be kept back by it.
    pub const fn reason(self) -> AdmissionReason {
        match self {
            Self::Budget(_) => AdmissionReason::Budget,
            Self::Quota(_) => AdmissionReason::Quota,
        }
    }

    /// 95 bits that are its own: where those stand in their list whom it keeps back. 47 of them
    /// take the place of an instant, of which every store keeps as many.
    fn shelf(self) -> (TimestampMs, u128) {
        let (kind, id) = match self {
            Self::Budget(id) => (b'b', id.uuid()),
            Self::Quota(id) => (b'q', id.uuid()),
        };
        let digest = Sha256::new().chain_update([kind]).chain_update(id).finalize();
        let bits = u128::from_be_bytes(digest.first_chunk().copied().unwrap_or_default());
        let instant = i64::try_from(bits >> 81).unwrap_or_default();
        (TimestampMs(instant), bits >> 33 & ((1 << 48) - 1))
    }

    /// The place of those whom it has kept back since an instant.
    fn place(self, since: TimestampMs) -> (TimestampMs, Uuid) {
        let (at, own) = self.shelf();
        let since = u128::try_from(since.0).unwrap_or_default() & ((1 << 48) - 1);
        (at, Uuid::from_u128(own << 80 | since << 32))
    }

    /// Before all whom it keeps back.
    pub(crate) fn before(self) -> ListingPosition {
        let (at, own) = self.shelf();
        place(at, Uuid::from_u128(own << 80))
    }

    /// Behind all whom it keeps back.
    pub(crate) fn behind(self) -> ListingPosition {
        let (at, own) = self.shelf();
        place(at, Uuid::from_u128(own << 80 | ((1 << 80) - 1)))
    }
}

impl Execution {
    /// Why it was not admitted, if it was not.
    pub fn admission_block(&self) -> Option<&AdmissionBlock> {
        let Phase::Runnable(runnable) = &self.phase else { return None };
        runnable.causes.admission.as_ref()
    }

    /// Limit by limit, longest kept back first: a limit that is passed over costs one look, however
    /// many it keeps back.
    pub(super) fn limited_listing(&self) -> Option<Listing<'_>> {
        let block = self.admission_block()?;
        let (at, name) = block.kept_by()?.place(block.since);
        Some(Listing { namespace: &self.about.namespace, list: List::Limited, at, name })
    }
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
