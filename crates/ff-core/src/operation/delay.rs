//! Delay: the worker puts its task aside for a while and keeps the attempt.

use super::command::Shape;
use crate::check::{check_range, check_time};
use crate::error::Refusal;
use crate::id::{Authority, ExecutionId};
use crate::limits;
use crate::state::PublicState;
use crate::time::TimestampMs;

/// Releases the lease; the same attempt goes on when the time has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Delay {
    pub execution_id: ExecutionId,
    pub authority: Authority,
    pub until: DelayUntil,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelayUntil {
    At(TimestampMs),
    /// From the store's now.
    For(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delayed {
    pub delay_until: TimestampMs,
    /// `delayed`, `resumable` when the time is not in the future, or `cancelled` with its flow.
    pub public_state: PublicState,
    pub replayed: bool,
}

impl Shape for Delay {
    fn check_shape(&self) -> Result<(), Refusal> {
        match self.until {
            DelayUntil::At(at) => check_time("delay_until", at),
            DelayUntil::For(ms) => check_range("delay_ms", ms, 0, limits::DURATION_MAX_MS),
        }
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}
