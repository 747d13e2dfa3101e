//! Renew: the worker is alive and goes on.

use super::claim::check_lease_ttl;
use super::command::Shape;
use crate::error::Refusal;
use crate::id::{ExecutionId, LeaseFence};
use crate::time::TimestampMs;

/// A later expiry under the same epoch. Not a transition: no event.
#[derive(Debug, Clone, PartialEq)]
pub struct Renew {
    pub execution_id: ExecutionId,
    pub fence: LeaseFence,
    /// None: as the lease was made.
    pub ttl_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renewed {
    pub expires_at: TimestampMs,
}

impl Shape for Renew {
    fn check_shape(&self) -> Result<(), Refusal> {
        self.ttl_ms.map_or(Ok(()), |ttl_ms| check_lease_ttl("ttl_ms", ttl_ms))
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}
