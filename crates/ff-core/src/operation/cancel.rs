//! Cancel: nobody wants the outcome any more.

use super::command::Shape;
use crate::check::check_bytes;
use crate::error::Refusal;
use crate::id::{ExecutionId, LeaseFence};
use crate::limits;
use crate::state::{CancelSource, PublicState};

/// Ends the execution as cancelled, from any phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Cancel {
    pub execution_id: ExecutionId,
    pub reason: String,
    pub source: CancelSource,
    /// Needed when the source is the lease holder; checked whenever given.
    pub fence: Option<LeaseFence>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancelled {
    /// Public state before.
    pub from: PublicState,
    pub replayed: bool,
}

impl Shape for Cancel {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_bytes("reason", &self.reason, limits::REASON_BYTES)?;
        if self.source == CancelSource::LeaseHolder && self.fence.is_none() {
            return Err(crate::id::fence_required());
        }
        check_bytes("source", self.source.as_str(), limits::CATEGORY_BYTES)
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}
