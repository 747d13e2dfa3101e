//! Execution policy: what a submit may ask for beyond the work itself.
//!
//! The JSON form is read strictly: an unknown field or a malformed document is
//! `invalid_policy_json`, a number outside its range is `invalid_input`. Absent fields take their
//! default, whether or not a policy is given.

mod backoff;
mod json;

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::capability::Capabilities;
use crate::check::{check_bytes, check_range};
use crate::error::Refusal;
use crate::limits::{self, COUNT_MAX, DURATION_MAX_MS};
use crate::state::{Attached, FrameMode, Outcome, TimeoutBehavior};

pub use backoff::{Backoff, BackoffCurve};

/// All that a policy says, defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    pub retry: RetryPolicy,
    pub timeout: TimeoutPolicy,
    /// How often an operator may replay the execution.
    pub max_replay_count: u32,
    pub required_capabilities: Capabilities,
    /// How long a repeated idempotency key finds the first submit.
    pub dedup_window_ms: u64,
    pub retention: Retention,
    pub suspension: SuspensionPolicy,
    pub max_signals_per_execution: u32,
    pub stream: StreamPolicy,
    /// Budgets and a quota policy that the execution stands under.
    pub attached: Attached,
}

/// What becomes of an attempt's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamPolicy {
    /// For frames that do not say.
    pub durability_mode: FrameMode,
    /// Durable frames that are kept of one attempt.
    pub retention_maxlen: u32,
    /// How long a closed stream is kept; absent: as long as its execution.
    pub retention_ttl_ms: Option<u64>,
}

impl Default for StreamPolicy {
    fn default() -> Self {
        Self {
            durability_mode: FrameMode::default(),
            retention_maxlen: limits::STREAM_FRAMES,
            retention_ttl_ms: None,
        }
    }
}

/// For a suspend that does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SuspensionPolicy {
    pub default_timeout_ms: Option<u64>,
    pub timeout_behavior: TimeoutBehavior,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Failures that are tried again; 0 for none.
    pub max_retries: u32,
    pub backoff: Backoff,
    /// Empty: every category whose class is retryable. Else only these.
    pub retryable_categories: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeoutPolicy {
    /// Time under lease of one attempt.
    pub attempt_timeout_ms: Option<u64>,
    /// Time from submit or replay until the execution expires.
    pub execution_deadline_ms: Option<u64>,
    /// Lost leases that are taken up again.
    pub max_reclaim_count: u32,
}

/// How long a terminal execution is kept, by outcome; absent: as the store is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Retention {
    pub success_ms: Option<u64>,
    pub failed_ms: Option<u64>,
    pub cancelled_ms: Option<u64>,
    pub expired_ms: Option<u64>,
    pub skipped_ms: Option<u64>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            retry: RetryPolicy {
                max_retries: 3,
                backoff: Backoff::default(),
                retryable_categories: Vec::new(),
            },
            timeout: TimeoutPolicy {
                attempt_timeout_ms: None,
                execution_deadline_ms: None,
                max_reclaim_count: 100,
            },
            max_replay_count: 10,
            required_capabilities: Capabilities::default(),
            dedup_window_ms: limits::DEDUP_WINDOW_MS,
            retention: Retention::default(),
            suspension: SuspensionPolicy::default(),
            max_signals_per_execution: limits::SIGNALS,
            stream: StreamPolicy::default(),
            attached: Attached::default(),
        }
    }
}

impl Policy {
    /// The default policy, shared by everything that asks for nothing else.
    pub fn shared_default() -> Arc<Self> {
        static DEFAULT: LazyLock<Arc<Policy>> = LazyLock::new(Arc::default);
        Arc::clone(&DEFAULT)
    }

    /// Refuses a number or text outside its limits. Every submit passes here, wherever its policy
    /// was made. What it is attached to is checked where that is said: in the policy or beside it.
    pub fn check(&self) -> Result<(), Refusal> {
        self.retry.check().map_err(|refusal| refusal.under("retry_policy"))?;
        self.timeout.check().map_err(|refusal| refusal.under("timeout_policy"))?;
        check_range("max_replay_count", self.max_replay_count.into(), 0, COUNT_MAX.into())?;
        let default_timeout = self.suspension.default_timeout_ms.unwrap_or(1);
        check_range("default_timeout_ms", default_timeout, 1, DURATION_MAX_MS)
            .map_err(|refusal| refusal.under("suspension_policy"))?;
        let signals = u64::from(self.max_signals_per_execution);
        check_range("max_signals_per_execution", signals, 0, COUNT_MAX.into())?;
        self.stream.check().map_err(|refusal| refusal.under("stream_policy"))?;
        let window = (limits::DEDUP_WINDOW_MIN_MS, limits::DEDUP_WINDOW_MAX_MS);
        check_range("dedup_window_ms", self.dedup_window_ms, window.0, window.1)?;
        self.retention.check().map_err(|refusal| refusal.under("retention"))
    }
}

impl RetryPolicy {
    fn check(&self) -> Result<(), Refusal> {
        check_range("max_retries", self.max_retries.into(), 0, COUNT_MAX.into())?;
        self.backoff.check().map_err(|refusal| refusal.under("backoff"))?;
        let categories = &self.retryable_categories;
        check_range("retryable_categories", categories.len() as u64, 0, limits::TAGS as u64)?;
        for category in categories {
            check_bytes("retryable_categories", category, limits::CATEGORY_BYTES)?;
        }
        Ok(())
    }
}

impl TimeoutPolicy {
    fn check(&self) -> Result<(), Refusal> {
        let attempt = self.attempt_timeout_ms.unwrap_or(1);
        check_range("attempt_timeout_ms", attempt, 1, DURATION_MAX_MS)?;
        let deadline = self.execution_deadline_ms.unwrap_or(0);
        check_range("execution_deadline_ms", deadline, 0, DURATION_MAX_MS)?;
        check_range("max_reclaim_count", self.max_reclaim_count.into(), 0, COUNT_MAX.into())
    }
}

impl StreamPolicy {
    fn check(&self) -> Result<(), Refusal> {
        let maxlen = u64::from(self.retention_maxlen);
        check_range("retention_maxlen", maxlen, 1, limits::STREAM_FRAMES_MAX.into())?;
        check_range("retention_ttl_ms", self.retention_ttl_ms.unwrap_or(0), 0, DURATION_MAX_MS)
    }
}

impl Retention {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let fields = [
            ("success_ms", self.success_ms),
            ("failed_ms", self.failed_ms),
            ("cancelled_ms", self.cancelled_ms),
            ("expired_ms", self.expired_ms),
            ("skipped_ms", self.skipped_ms),
        ];
        for (field, value) in fields {
            check_range(field, value.unwrap_or(0), 0, DURATION_MAX_MS)?;
        }
        Ok(())
    }

    /// What it says, and for the rest what `other` says.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            success_ms: self.success_ms.or(other.success_ms),
            failed_ms: self.failed_ms.or(other.failed_ms),
            cancelled_ms: self.cancelled_ms.or(other.cancelled_ms),
            expired_ms: self.expired_ms.or(other.expired_ms),
            skipped_ms: self.skipped_ms.or(other.skipped_ms),
        }
    }

    pub fn of(&self, outcome: Outcome) -> Option<u64> {
        match outcome {
            Outcome::Success => self.success_ms,
            Outcome::Failed => self.failed_ms,
            Outcome::Cancelled => self.cancelled_ms,
            Outcome::Expired => self.expired_ms,
            Outcome::Skipped => self.skipped_ms,
        }
    }
}
