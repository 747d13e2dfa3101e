//! Executions that were not admitted.

use serde::Serialize;

use super::Seen;
use super::walk::{Listed, Walk};
use crate::capability::Capabilities;
use crate::id::{ExecutionId, LaneId, Namespace};
use crate::state::{AdmissionReason, Execution, LimitId, List, ListingPosition, Phase};
use crate::time::TimestampMs;

/// Executions of a namespace that were not admitted, longest blocked first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListBlocked {
    pub namespace: Namespace,
    /// Only for this reason.
    pub reason: Option<AdmissionReason>,
    /// Only of these lanes; empty: of all.
    pub lanes: Vec<LaneId>,
    pub cursor: Option<String>,
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedBlock {
    pub execution_id: ExecutionId,
    pub lane: LaneId,
    pub reason: AdmissionReason,
    /// Which limit is used up.
    pub by: Option<LimitId>,
    pub detail: String,
    pub blocked_at: TimestampMs,
    pub required_capabilities: Capabilities,
}

impl ListedBlock {
    /// None if it is not blocked.
    pub fn of(execution: &Execution) -> Option<Self> {
        let Phase::Runnable(runnable) = &execution.phase else { return None };
        let block = runnable.causes.admission.as_ref()?;
        Some(Self {
            execution_id: execution.id,
            lane: execution.about.lane.clone(),
            reason: block.reason,
            by: block.by,
            detail: block.detail.clone(),
            blocked_at: block.since,
            required_capabilities: execution.policy().required_capabilities.clone(),
        })
    }
}

impl Walk for ListBlocked {
    const LIST: List = List::Blocked;

    type Item = ListedBlock;

    fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    fn limit(&self) -> u32 {
        self.limit
    }

    fn see(&self, at: &ListingPosition, found: Listed<'_>, _: TimestampMs) -> Seen<ListedBlock> {
        let Listed::Execution(execution) = found else { return Seen::Passed };
        let wanted = |block: &ListedBlock| {
            block.blocked_at == at.at
                && execution.about.namespace == self.namespace
                && self.reason.is_none_or(|reason| reason == block.reason)
                && (self.lanes.is_empty() || self.lanes.contains(&block.lane))
        };
        ListedBlock::of(execution).filter(wanted).map_or(Seen::Passed, Seen::Item)
    }

    fn scope(&self) -> String {
        format!("blocked {} {:?} {:?}", self.namespace, self.reason, self.lanes)
    }
}
