//! What a server says of itself.

use ff_core::backend::Identity;
use ff_core::read::{Repaired, Violation as Found};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::lane::Retention;
use crate::time::Time;

/// Whether the server can serve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok` or `unavailable`.
    pub status: String,
    /// Why it cannot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Version {
    pub version: String,
    pub api: String,
}

/// Which store stands behind the server, and what it can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Capabilities {
    pub backend: String,
    pub version: String,
    /// What an acknowledgement means.
    pub durability: String,
    pub partitions: Partitions,
    pub supports: Supports,
    /// How long an execution is kept once it has ended, unless its policy or its namespace says.
    #[serde(default)]
    pub retention: Retention,
    /// What the clock that decides shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_time: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Partitions {
    pub flow: u16,
    pub budget: u16,
    pub quota: u16,
}

/// What the store keeps of the promises that stores differ in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Supports {
    pub executions: bool,
    pub flows: bool,
    pub suspension: bool,
    pub streams: bool,
    pub events: bool,
    pub budgets: bool,
    pub quotas: bool,
    /// Several processes on one store.
    pub many_processes: bool,
    /// Priority over all partitions of a lane, to the last execution.
    pub exact_priority: bool,
}

/// What the scanners of this process do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Scanners {
    /// False: this process serves only, and other processes do the background work.
    pub engine: bool,
    pub items: Vec<ScannerRow>,
    pub next_cursor: Option<String>,
}

/// One scanner since its process began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScannerRow {
    pub scanner: String,
    pub cycles: u64,
    pub processed: u64,
    pub errors: u64,
    /// Times that an item was passed over because it kept failing.
    pub skipped: u64,
    /// Cycles that another engine had just made.
    pub left_to_others: u64,
    /// What must never be, found by it.
    pub violations: u64,
    /// Times that it broke and began again.
    pub restarts: u64,
    /// How late the oldest thing was that its last cycle carried out.
    pub lag_ms: u64,
    pub last_duration_ms: u64,
    /// How long ago its last cycle ended; null if there was none.
    pub last_cycle_age_ms: Option<u64>,
}

/// What is known to be wrong with the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Invariants {
    /// The last audit that this process was asked for; null if there was none.
    pub last_audit: Option<AuditReport>,
    /// What the reconcilers of this process have found and mended; null without an engine.
    pub mended: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunAudit {
    /// Make right what can be derived again.
    pub repair: bool,
}

/// Outcome of an audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditReport {
    pub store: StoreIdentity,
    pub audited_at: Time,
    /// Records that were looked at.
    pub checked: u64,
    /// What is wrong now; the first 1000.
    pub violations: Vec<Violation>,
    /// How many were there before, and no longer.
    pub repaired: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoreIdentity {
    pub backend: String,
    pub version: String,
    pub durability: String,
}

/// Something that must never be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Violation {
    /// Which invariant, as `I9`.
    pub invariant: String,
    /// Execution or document.
    pub subject: Option<String>,
    pub detail: String,
}

impl AuditReport {
    pub fn new(identity: Identity, report: &Repaired, audited_at: Time) -> Self {
        let Identity { backend, version, durability } = identity;
        let violation = |found: &Found| Violation {
            invariant: found.invariant.to_owned(),
            subject: found.subject.clone(),
            detail: found.detail.clone(),
        };
        Self {
            store: StoreIdentity { backend: backend.to_owned(), version, durability },
            audited_at,
            checked: report.left.checked,
            violations: report.left.violations.iter().map(violation).collect(),
            repaired: report.mended(),
        }
    }
}
