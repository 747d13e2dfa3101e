//! Waitpoints and signals: addresses of an execution, and the messages sent to them.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::id::{ContentType, IdempotencyKey, SignalId, SignalName, WaitpointId, WaitpointKey};
use crate::time::TimestampMs;
use crate::token::Stamp;

/// A waitpoint that is not closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waitpoint {
    pub id: WaitpointId,
    pub key: WaitpointKey,
    pub state: WaitpointState,
    pub created_at: TimestampMs,
    /// When it closes by itself if no suspend has used it.
    pub expires_at: Option<TimestampMs>,
    pub token: Stamp,
    /// Signals with a lower number are not evaluated again.
    pub evaluate_from: u32,
    /// Later ones that were used up.
    pub consumed: Vec<u32>,
    /// Whether it has signals that a suspend must look at.
    pub has_buffered: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitpointState {
    /// Signals are kept for a suspend to come.
    Pending,
    /// A suspension waits for it.
    Open,
}

/// What is remembered of a closed one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedWaitpoint {
    pub id: WaitpointId,
    pub key: WaitpointKey,
    pub token: Stamp,
    pub closed_at: TimestampMs,
    pub reason: String,
}

/// Where the record of a closed one is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedRef {
    pub id: WaitpointId,
    pub key: KeyDigest,
}

/// A waitpoint key in 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyDigest([u8; 16]);

/// Why a waitpoint closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    Resumed,
    /// No suspend used it before it expired.
    NeverCommitted,
    /// Its attempt ended.
    AttemptEnded,
}

/// An accepted signal. A small body stands in it, a larger one beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// 0, 1, 2 … within its execution.
    pub number: u32,
    pub id: SignalId,
    pub waitpoint_id: WaitpointId,
    pub waitpoint_key: WaitpointKey,
    pub name: SignalName,
    pub category: String,
    pub source_type: String,
    pub source_identity: String,
    pub correlation_id: Option<String>,
    pub idempotency_key: Option<IdempotencyKey>,
    pub accepted_at: TimestampMs,
    pub effect: SignalEffect,
    pub content_type: ContentType,
    pub bytes: u32,
    pub body: Option<Bytes>,
}

/// What a signal did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SignalEffect {
    ResumeConditionSatisfied,
    AppendedToWaitpoint,
    AppendedToWaitpointDuplicate,
    IgnoredNotInCondition,
    IgnoredMatcherFailed,
    BufferedForPendingWaitpoint,
}

impl SignalEffect {
    pub const ALL: [Self; 6] = [
        Self::ResumeConditionSatisfied,
        Self::AppendedToWaitpoint,
        Self::AppendedToWaitpointDuplicate,
        Self::IgnoredNotInCondition,
        Self::IgnoredMatcherFailed,
        Self::BufferedForPendingWaitpoint,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ResumeConditionSatisfied => "resume_condition_satisfied",
            Self::AppendedToWaitpoint => "appended_to_waitpoint",
            Self::AppendedToWaitpointDuplicate => "appended_to_waitpoint_duplicate",
            Self::IgnoredNotInCondition => "signal_ignored_not_in_condition",
            Self::IgnoredMatcherFailed => "signal_ignored_matcher_failed",
            Self::BufferedForPendingWaitpoint => "buffered_for_pending_waitpoint",
        }
    }
}

impl WaitpointState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Open => "open",
        }
    }
}

impl CloseReason {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resumed => "resumed",
            Self::NeverCommitted => "never_committed",
            Self::AttemptEnded => "attempt_ended",
        }
    }
}

impl KeyDigest {
    pub fn of(key: &WaitpointKey) -> Self {
        let mut digest = [0; 16];
        digest.copy_from_slice(&Sha256::digest(key.as_bytes())[..16]);
        Self(digest)
    }
}

impl Waitpoint {
    /// Whether its time is over before any suspend has used it.
    pub fn is_unused(&self, now: TimestampMs) -> bool {
        self.state == WaitpointState::Pending && self.expires_at.is_some_and(|at| at <= now)
    }

    /// Whether a suspend still has to look at this signal.
    pub fn is_live(&self, signal: &Signal) -> bool {
        signal.waitpoint_id == self.id
            && signal.number >= self.evaluate_from
            && !self.consumed.contains(&signal.number)
    }
}
