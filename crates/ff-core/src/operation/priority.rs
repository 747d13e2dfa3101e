//! Change of priority.

use super::command::Shape;
use crate::id::ExecutionId;

/// A new order if it is queued; else it holds for the next time it queues.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangePriority {
    pub execution_id: ExecutionId,
    /// 0 to 9000, clamped.
    pub priority: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorityChanged {
    pub old: u16,
    pub new: u16,
}

impl Shape for ChangePriority {
    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}
