//! Fail: this attempt did not succeed.

use super::command::Shape;
use crate::check::{check_bytes, check_range};
use crate::error::Refusal;
use crate::id::{Authority, ExecutionId};
use crate::limits;
use crate::state::FailureClass;
use crate::time::TimestampMs;

/// Ends the attempt with a failure; the policy decides whether there is another.
#[derive(Debug, Clone, PartialEq)]
pub struct Fail {
    pub execution_id: ExecutionId,
    pub authority: Authority,
    pub reason: String,
    /// Any text; kept as given.
    pub category: String,
    /// None: as the category says.
    pub class: Option<FailureClass>,
    /// Replaces the backoff when it is longer.
    pub retry_after_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failed {
    RetryScheduled { delay_until: TimestampMs, retry_count: u32, replayed: bool },
    TerminalFailed { replayed: bool },
}

impl Shape for Fail {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_bytes("reason", &self.reason, limits::REASON_BYTES)?;
        check_bytes("category", &self.category, limits::CATEGORY_BYTES)?;
        let after = self.retry_after_ms.unwrap_or(0);
        check_range("retry_after_ms", after, 0, limits::DURATION_MAX_MS)
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}
