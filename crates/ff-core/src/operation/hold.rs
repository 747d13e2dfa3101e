//! Hold and release: an operator keeps a runnable execution from being claimed.

use super::command::Shape;
use crate::check::check_bytes;
use crate::error::Refusal;
use crate::id::ExecutionId;
use crate::limits;

#[derive(Debug, Clone, PartialEq)]
pub struct Hold {
    pub execution_id: ExecutionId,
    /// Shown as the blocking detail.
    pub detail: String,
}

/// Back to where the execution would now be without the hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Release {
    pub execution_id: ExecutionId,
}

/// Reply of operations that may find their work done already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    Done,
    AlreadySatisfied,
}

impl Shape for Hold {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_bytes("detail", &self.detail, limits::REASON_BYTES)
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}

impl Shape for Release {
    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}
