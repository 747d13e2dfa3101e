//! Delete: remove a terminal execution before its retention is over.

use super::command::Shape;
use crate::id::ExecutionId;

/// Removes every trace of a terminal execution except its events.
#[derive(Debug, Clone, PartialEq)]
pub struct Delete {
    pub execution_id: ExecutionId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deleted;

impl Shape for Delete {
    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}
