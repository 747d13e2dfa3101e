//! Executions that were not admitted.

use serde::Serialize;

use super::Seen;
use super::walk::{Listed, Walk, paged};
use crate::capability::Capabilities;
use crate::cursor;
use crate::error::Refusal;
use crate::id::{ExecutionId, LaneId, Namespace};
use crate::state::{AdmissionReason, Execution, LimitId, List, ListingPosition};
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
        let block = execution.admission_block()?;
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

/// Executions of a namespace that limits keep back, limit by limit, longest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListLimited {
    pub namespace: Namespace,
    /// Only by this one.
    pub by: Option<LimitId>,
    /// Only by the limits behind this one, without a look at any before them.
    pub behind: Option<LimitId>,
    pub cursor: Option<String>,
    pub limit: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limited {
    pub execution_id: ExecutionId,
    pub by: LimitId,
    pub blocked_at: TimestampMs,
}

impl Walk for ListBlocked {
    const LIST: List = List::Blocked;

    type Item = ListedBlock;

    paged!();

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

impl Limited {
    fn of(execution: &Execution) -> Option<Self> {
        let block = execution.admission_block()?;
        Some(Self { execution_id: execution.id, by: block.kept_by()?, blocked_at: block.since })
    }
}

impl Walk for ListLimited {
    const LIST: List = List::Limited;

    type Item = Limited;

    paged!();

    fn see(&self, at: &ListingPosition, found: Listed<'_>, _: TimestampMs) -> Seen<Limited> {
        let Listed::Execution(execution) = found else { return Seen::Passed };
        if self.by.is_some_and(|by| *at > by.behind()) {
            return Seen::End;
        }
        let wanted = |found: &Limited| {
            execution.about.namespace == self.namespace && self.by.is_none_or(|by| by == found.by)
        };
        Limited::of(execution).filter(wanted).map_or(Seen::Passed, Seen::Item)
    }

    fn scope(&self) -> String {
        format!("limited {} {:?} {:?}", self.namespace, self.by, self.behind)
    }

    fn behind(&self) -> Result<Option<ListingPosition>, Refusal> {
        match (&self.cursor, self.behind, self.by) {
            (Some(text), ..) => cursor::decode(&self.scope(), text).map(Some),
            (None, Some(limit), _) => Ok(Some(limit.behind())),
            (None, None, by) => Ok(by.map(LimitId::before)),
        }
    }
}
