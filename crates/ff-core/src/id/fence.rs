//! What a worker shows with every write.

use serde::{Deserialize, Serialize};

use super::{AttemptId, LeaseId};
use crate::error::{Code, Refusal};

/// Lease id, lease epoch and attempt id: all three or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LeaseFence {
    pub lease_id: LeaseId,
    pub lease_epoch: u64,
    pub attempt_id: AttemptId,
}

/// On whose authority a lease-ending operation acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Authority {
    /// The worker that shows this fence.
    Fence(LeaseFence),
    /// An operator acting on whatever lease is live.
    Override,
}

impl LeaseFence {
    /// Puts a fence together from what a caller sent.
    pub fn from_parts(
        lease_id: Option<LeaseId>,
        lease_epoch: Option<u64>,
        attempt_id: Option<AttemptId>,
    ) -> Result<Option<Self>, Refusal> {
        match (lease_id, lease_epoch, attempt_id) {
            (Some(lease_id), Some(lease_epoch), Some(attempt_id)) => {
                Ok(Some(Self { lease_id, lease_epoch, attempt_id }))
            }
            (None, None, None) => Ok(None),
            _ => Err(Refusal::new(
                Code::PartialFenceTriple,
                "lease_id, lease_epoch and attempt_id belong together: send all three or none",
            )),
        }
    }
}

impl Authority {
    /// A missing fence is allowed only to an operator who says so.
    pub fn from_parts(fence: Option<LeaseFence>, operator_override: bool) -> Result<Self, Refusal> {
        match (fence, operator_override) {
            (Some(fence), _) => Ok(Self::Fence(fence)),
            (None, true) => Ok(Self::Override),
            (None, false) => Err(fence_required()),
        }
    }

    pub fn fence(&self) -> Option<&LeaseFence> {
        match self {
            Self::Fence(fence) => Some(fence),
            Self::Override => None,
        }
    }
}

pub(crate) fn fence_required() -> Refusal {
    Refusal::new(
        Code::FenceRequired,
        "this operation needs lease_id, lease_epoch and attempt_id of the live lease",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_parts_but_not_all_are_refused() {
        let lease = LeaseId::mint();
        let attempt = AttemptId::from(lease);
        for parts in [
            (Some(lease), None, None),
            (None, Some(1), None),
            (None, None, Some(attempt)),
            (Some(lease), Some(1), None),
            (Some(lease), None, Some(attempt)),
            (None, Some(1), Some(attempt)),
        ] {
            let refusal = LeaseFence::from_parts(parts.0, parts.1, parts.2).unwrap_err();
            assert_eq!(refusal.code, Code::PartialFenceTriple);
        }
        assert_eq!(LeaseFence::from_parts(None, None, None), Ok(None));
    }

    #[test]
    fn no_fence_needs_an_operator() {
        assert_eq!(Authority::from_parts(None, false).unwrap_err().code, Code::FenceRequired);
        assert_eq!(Authority::from_parts(None, true), Ok(Authority::Override));
    }
}
