//! The form of an explanation.

use serde_json::Value;

use super::action::Action;
use crate::id::ExecutionId;
use crate::read::{BudgetStatus, QuotaPolicyDescribed};
use crate::state::{EdgeKind, LaneState, PublicState, Route, Verdict};
use crate::time::TimestampMs;

/// One word for the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    Running,
    Finished,
    WaitingForWorker,
    AllWorkersBusy,
    LanePaused,
    Delayed,
    RetryBackoff,
    ResumeDelay,
    Dependencies,
    Budget,
    Quota,
    NoCapableWorker,
    OperatorHold,
    FlowCancelled,
    Suspended,
    LeaseLost,
    Granted,
}

impl Cause {
    pub const ALL: [Self; 17] = [
        Self::Running,
        Self::Finished,
        Self::WaitingForWorker,
        Self::AllWorkersBusy,
        Self::LanePaused,
        Self::Delayed,
        Self::RetryBackoff,
        Self::ResumeDelay,
        Self::Dependencies,
        Self::Budget,
        Self::Quota,
        Self::NoCapableWorker,
        Self::OperatorHold,
        Self::FlowCancelled,
        Self::Suspended,
        Self::LeaseLost,
        Self::Granted,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::WaitingForWorker => "waiting_for_worker",
            Self::AllWorkersBusy => "all_workers_busy",
            Self::LanePaused => "lane_paused",
            Self::Delayed => "delayed",
            Self::RetryBackoff => "retry_backoff",
            Self::ResumeDelay => "resume_delay",
            Self::Dependencies => "dependencies",
            Self::Budget => "budget",
            Self::Quota => "quota",
            Self::NoCapableWorker => "no_capable_worker",
            Self::OperatorHold => "operator_hold",
            Self::FlowCancelled => "flow_cancelled",
            Self::Suspended => "suspended",
            Self::LeaseLost => "lease_lost",
            Self::Granted => "granted",
        }
    }
}

/// What is told to whoever asks why.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    pub cause: Cause,
    /// One sentence.
    pub summary: String,
    pub evidence: Value,
    /// What would change it, the smallest change first.
    pub unblock: Vec<Action>,
    pub earliest_start_at: Option<TimestampMs>,
}

/// What the records tell. Where the execution waits for a worker, [`Explained::among`] them says the
/// rest.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    pub explanation: Explanation,
    /// Which workers it waits for.
    pub route: Option<Route>,
}

/// What an explanation needs to know besides the execution.
#[derive(Debug, Clone, Default)]
pub struct Around {
    /// The state of its lane.
    pub lane: LaneState,
    /// Why its lane is not active, if it keeps it back and somebody said so.
    pub lane_reason: Option<String>,
    /// Its flow is cancelled, and it is to be cancelled with it: the reason.
    pub stopped: Option<String>,
    /// Some of the members that it waits for.
    pub upstreams: Vec<Upstream>,
    /// The limit that keeps it back; of one that nothing keeps back, the first that would.
    pub limit: Option<LimitFound>,
}

/// A member that another waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    pub execution_id: ExecutionId,
    pub name: String,
    pub state: PublicState,
    /// Of the edge; none: it is a child that is waited for.
    pub kind: Option<EdgeKind>,
}

/// A limit as it is now.
#[derive(Debug, Clone)]
pub enum LimitFound {
    Budget(Box<BudgetStatus>),
    Quota {
        policy: Box<QuotaPolicyDescribed>,
        /// What a claim would be told.
        verdict: Verdict,
        /// Attempts in the window, and places that are kept in it.
        in_window: u32,
    },
}

impl LimitFound {
    /// Whether a claim would be told to wait.
    pub(crate) fn refuses(&self) -> bool {
        match self {
            Self::Budget(status) => status.blocked_by.is_some(),
            Self::Quota { verdict, .. } => *verdict != Verdict::Admit,
        }
    }
}

impl Explanation {
    /// Adds to the evidence.
    pub(super) fn add(&mut self, more: Value) {
        let (Value::Object(evidence), Value::Object(more)) = (&mut self.evidence, more) else {
            return;
        };
        evidence.extend(more);
    }
}

impl From<Explanation> for Explained {
    fn from(explanation: Explanation) -> Self {
        Self { explanation, route: None }
    }
}

/// A span of time as people say it.
pub(super) fn span(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{} s", ms / 1_000),
        60_000..3_600_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h {} min", ms / 3_600_000, ms / 60_000 % 60),
    }
}
