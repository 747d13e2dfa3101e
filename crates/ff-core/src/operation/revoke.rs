//! Revoke: an operator takes a lease away.

use super::command::Shape;
use crate::check::check_bytes;
use crate::error::Refusal;
use crate::id::{ExecutionId, LeaseId};
use crate::limits;

/// The lease is over at once and the execution claimable again.
#[derive(Debug, Clone, PartialEq)]
pub struct Revoke {
    pub execution_id: ExecutionId,
    pub reason: String,
    pub expected_lease_id: Option<LeaseId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revoked {
    Revoked {
        lease_id: LeaseId,
        lease_epoch: u64,
    },
    /// The lease that was taken away before.
    AlreadySatisfied {
        lease_id: LeaseId,
        lease_epoch: u64,
    },
}

impl Shape for Revoke {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_bytes("reason", &self.reason, limits::REASON_BYTES)
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}
