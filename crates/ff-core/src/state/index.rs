//! Where a store must queue an execution, and when time changes it. Both are functions of the state,
//! so a store writes them by comparing before and after, and no rule can forget one.

use serde::{Deserialize, Serialize};

use super::{Execution, Phase};
use crate::capability::Capabilities;
use crate::id::{LaneId, Namespace};
use crate::limits::PRIORITY_WEIGHT;
use crate::time::TimestampMs;

/// A place in a lane's queue: lowest score first, ties by the uuid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuePlace<'a> {
    pub namespace: &'a Namespace,
    pub lane: &'a LaneId,
    /// Executions of one lane that require the same capabilities share a queue.
    pub class: &'a Capabilities,
    pub score: i64,
}

/// The next thing that time alone does to an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Due {
    pub at: TimestampMs,
    pub kind: DueKind,
}

/// In the order in which they are carried out when due at the same instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DueKind {
    ExecutionDeadline,
    AttemptTimeout,
    LeaseExpiry,
    SuspensionTimeout,
    PendingWaitpointExpiry,
    DelayedPromoter,
    GrantExpiry,
    FlowBuilder,
    DependencyReconciler,
    EdgeCancelDispatcher,
    CancelReconciler,
    FlowProjector,
    BudgetReset,
    QuotaReconciler,
    RetentionTrimmer,
    WorkerTtl,
    Outbox,
    BulkRunner,
}

impl DueKind {
    pub const ALL: [Self; 18] = [
        Self::ExecutionDeadline,
        Self::AttemptTimeout,
        Self::LeaseExpiry,
        Self::SuspensionTimeout,
        Self::PendingWaitpointExpiry,
        Self::DelayedPromoter,
        Self::GrantExpiry,
        Self::FlowBuilder,
        Self::DependencyReconciler,
        Self::EdgeCancelDispatcher,
        Self::CancelReconciler,
        Self::FlowProjector,
        Self::BudgetReset,
        Self::QuotaReconciler,
        Self::RetentionTrimmer,
        Self::WorkerTtl,
        Self::Outbox,
        Self::BulkRunner,
    ];

    /// The scanner under whose name it counts.
    pub const fn scanner(self) -> &'static str {
        match self {
            Self::ExecutionDeadline => "execution_deadline",
            Self::AttemptTimeout => "attempt_timeout",
            Self::LeaseExpiry => "lease_expiry",
            Self::SuspensionTimeout => "suspension_timeout",
            Self::PendingWaitpointExpiry => "pending_wp_expiry",
            Self::DelayedPromoter => "delayed_promoter",
            Self::GrantExpiry => "grant_expiry",
            Self::FlowBuilder => "flow_builder",
            Self::DependencyReconciler => "dependency_reconciler",
            Self::EdgeCancelDispatcher => "edge_cancel_dispatcher",
            Self::CancelReconciler => "cancel_reconciler",
            Self::FlowProjector => "flow_projector",
            Self::BudgetReset => "budget_reset",
            Self::QuotaReconciler => "quota_reconciler",
            Self::RetentionTrimmer => "retention_trimmer",
            Self::WorkerTtl => "worker_ttl",
            Self::Outbox => "outbox",
            Self::BulkRunner => "bulk_runner",
        }
    }
}

impl Execution {
    /// Its place in the queue. Only an eligible execution has one, and none while it is granted:
    /// the place is remembered because the score follows from the record.
    pub fn queue_place(&self) -> Option<QueuePlace<'_>> {
        let runnable = self.phase.claimable()?;
        runnable.standing_grant().is_none().then(|| QueuePlace {
            namespace: &self.about.namespace,
            lane: &self.about.lane,
            class: &self.about.policy.required_capabilities,
            score: self.score(runnable.ageing_ms),
        })
    }

    /// The score of its place, whether or not it stands there now.
    pub(crate) fn standing_score(&self) -> i64 {
        let ageing_ms = match &self.phase {
            Phase::Runnable(runnable) => runnable.ageing_ms,
            _ => 0,
        };
        self.score(ageing_ms)
    }

    /// Where ageing holds, one level of priority is worth that much waiting.
    fn score(&self, ageing_ms: u64) -> i64 {
        let level = match i64::try_from(ageing_ms) {
            Ok(0) | Err(_) => PRIORITY_WEIGHT,
            Ok(ageing) => ageing,
        };
        self.about.created_at.0 - i64::from(self.priority) * level
    }

    /// What time will do to it next, if nothing else happens first.
    pub fn due(&self) -> Option<Due> {
        earliest([self.lease_due(), self.other_due()])
    }

    /// When its lease runs out.
    pub fn lease_due(&self) -> Option<Due> {
        let lease = self.phase.lease()?;
        Some(Due { at: lease.expires_at, kind: DueKind::LeaseExpiry })
    }

    /// What time will do to it apart from its lease.
    pub fn other_due(&self) -> Option<Due> {
        let at = |kind| move |at| Due { at, kind };
        let owed = self.owed.as_ref().map(|owed| owed.due_at).map(at(DueKind::Outbox));
        let always = earliest([
            self.deadline_at.map(at(DueKind::ExecutionDeadline)),
            self.waits.next_expiry().map(at(DueKind::PendingWaitpointExpiry)),
            owed,
        ]);
        match &self.phase {
            Phase::Runnable(runnable) => {
                // A held or blocked execution stays where it is; its delay is looked at when it
                // is released.
                let delay = runnable.causes.running_delay();
                let grant = runnable.standing_grant().map(|grant| grant.expires_at);
                earliest([
                    always,
                    delay.map(|d| d.until).map(at(DueKind::DelayedPromoter)),
                    grant.map(at(DueKind::GrantExpiry)),
                ])
            }
            Phase::Active(lease) => {
                earliest([always, lease.attempt_deadline_at.map(at(DueKind::AttemptTimeout))])
            }
            Phase::Suspended(suspension) => {
                let timeout = suspension.timeout.map(|timeout| timeout.at);
                earliest([always, timeout.map(at(DueKind::SuspensionTimeout))])
            }
            // Nothing goes that owes something, and members go with their flow.
            Phase::Terminal(_) if self.member.is_some() || owed.is_some() => owed,
            Phase::Terminal(terminal) => {
                Some(terminal.kept_until).map(at(DueKind::RetentionTrimmer))
            }
        }
    }
}

pub(super) fn earliest<const N: usize>(candidates: [Option<Due>; N]) -> Option<Due> {
    candidates.into_iter().flatten().min()
}
