//! Tags written to an existing execution.

use super::command::Shape;
use crate::error::Refusal;
use crate::id::ExecutionId;
use crate::tags::Tags;

/// Puts tags over the ones that are there.
#[derive(Debug, Clone, PartialEq)]
pub struct SetTags {
    pub execution_id: ExecutionId,
    pub tags: Tags,
    /// Refuses if it has changed since.
    pub expected_revision: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TagsSet {
    /// Tags afterwards.
    pub count: usize,
    pub revision: u64,
}

impl Shape for SetTags {
    fn check_shape(&self) -> Result<(), Refusal> {
        self.tags.check_point_write()
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}
