//! Progress: how far the worker is.

use super::command::Shape;
use crate::check::{check_bytes, check_range};
use crate::error::Refusal;
use crate::id::{ExecutionId, LeaseFence};
use crate::limits;

/// Overwrites the progress shown with the execution.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateProgress {
    pub execution_id: ExecutionId,
    pub fence: LeaseFence,
    pub pct: u8,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progressed;

impl Shape for UpdateProgress {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_range("pct", self.pct.into(), 0, 100)?;
        check_bytes("message", &self.message, limits::PROGRESS_MESSAGE_BYTES)
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}
