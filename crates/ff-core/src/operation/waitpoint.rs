//! Waitpoints: made before a suspend, closed, and their tokens.

use super::command::Shape;
use crate::check::{check_bytes, check_range, check_time};
use crate::error::Refusal;
use crate::id::{ExecutionId, LeaseFence, WaitpointId, WaitpointKey};
use crate::limits;
use crate::time::TimestampMs;
use crate::token::WaitpointToken;

/// Makes a waitpoint that keeps signals for a suspend to come; the lease is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct CreatePendingWaitpoint {
    pub execution_id: ExecutionId,
    pub fence: LeaseFence,
    pub waitpoint_id: WaitpointId,
    pub key: WaitpointKey,
    /// When it closes if no suspend has used it.
    pub expires_at: Option<TimestampMs>,
    pub token_ttl_ms: Option<u64>,
}

/// A waitpoint with the token that opens it.
#[derive(Debug, Clone, PartialEq)]
pub struct IssuedWaitpoint {
    pub waitpoint_id: WaitpointId,
    pub key: WaitpointKey,
    pub token: WaitpointToken,
    /// It was made before, and this is its token once more.
    pub replayed: bool,
}

/// A waitpoint of an execution, by id or by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitpointRef {
    Id(WaitpointId),
    Key(WaitpointKey),
    /// As a person writes it: an id or, where none has that id, a name.
    Text(WaitpointKey),
}

impl From<WaitpointId> for WaitpointRef {
    fn from(id: WaitpointId) -> Self {
        Self::Id(id)
    }
}

impl From<WaitpointKey> for WaitpointRef {
    fn from(key: WaitpointKey) -> Self {
        Self::Key(key)
    }
}

/// Closes a waitpoint: no signal is accepted any more.
#[derive(Debug, Clone, PartialEq)]
pub struct CloseWaitpoint {
    pub execution_id: ExecutionId,
    pub waitpoint: WaitpointRef,
    pub reason: String,
}

/// Signs the token of a waitpoint again, or makes a new one that replaces it.
#[derive(Debug, Clone, PartialEq)]
pub struct IssueToken {
    pub execution_id: ExecutionId,
    pub waitpoint: WaitpointRef,
    pub remint: Option<Remint>,
}

/// A new token: the old one is refused from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remint {
    pub token_ttl_ms: Option<u64>,
}

impl Shape for CreatePendingWaitpoint {
    fn check_shape(&self) -> Result<(), Refusal> {
        self.expires_at.map_or(Ok(()), |at| check_time("expires_at", at))?;
        check_token_ttl(self.token_ttl_ms)
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}

impl Shape for CloseWaitpoint {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_bytes("reason", &self.reason, limits::REASON_BYTES)
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}

impl Shape for IssueToken {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_token_ttl(self.remint.and_then(|remint| remint.token_ttl_ms))
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}

pub(super) fn check_token_ttl(ttl_ms: Option<u64>) -> Result<(), Refusal> {
    check_range("token_ttl_ms", ttl_ms.unwrap_or(1), 1, limits::DURATION_MAX_MS)
}
