//! What waits in a namespace, for whoever is to answer: waitpoints, and suspended executions.

use serde::Serialize;

use super::walk::{Listed, Walk};
use super::{ListedWaitpoint, Seen};
use crate::id::{ExecutionId, Kind, LaneId, Namespace, SuspensionId, WaitpointKey};
use crate::state::{Execution, List, ListingPosition, WaitpointState};
use crate::time::TimestampMs;

/// Every waitpoint of a namespace that is not closed, oldest first. Shows no tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPendingWaitpoints {
    pub filter: WaitingFilter,
    pub cursor: Option<String>,
    pub limit: u32,
}

/// Every suspended execution of a namespace, oldest suspension first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListSuspended {
    pub filter: WaitingFilter,
    pub cursor: Option<String>,
    pub limit: u32,
}

/// Which of them; what is not given, or an empty list, asks for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WaitingFilter {
    pub namespace: Namespace,
    pub lanes: Vec<LaneId>,
    /// Why the execution is suspended. A waitpoint that no suspension waits for has none.
    pub reason: Option<String>,
    /// Waits so long at least.
    pub older_than_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedSuspension {
    pub execution_id: ExecutionId,
    pub lane: LaneId,
    pub kind: Kind,
    pub suspension_id: SuspensionId,
    pub reason_code: String,
    pub requester: Option<String>,
    pub suspended_at: TimestampMs,
    pub timeout_at: Option<TimestampMs>,
    /// Its time was up and it was handed to an operator.
    pub escalated: bool,
    /// Where it listens.
    pub waitpoint_keys: Vec<WaitpointKey>,
}

/// A question about those who wait, oldest first.
trait Waiting: Walk {
    fn filter(&self) -> &WaitingFilter;

    /// What an entry stands for; none when it has just gone.
    fn item(&self, at: &ListingPosition, found: &Execution, now: TimestampMs)
    -> Option<Self::Item>;

    /// Why it waits, as the filter means it.
    fn reason(item: &Self::Item) -> Option<&str>;

    fn look(&self, at: &ListingPosition, found: Listed<'_>, now: TimestampMs) -> Seen<Self::Item> {
        let (filter, Listed::Execution(found)) = (self.filter(), found) else {
            return Seen::Passed;
        };
        if filter.older_than_ms.is_some_and(|ms| at.at.after(ms) > now) {
            return Seen::End;
        }
        let item = filter.covers(found).then(|| self.item(at, found, now)).flatten();
        let wanted = |item: &Self::Item| match &filter.reason {
            Some(reason) => Self::reason(item) == Some(reason),
            None => true,
        };
        item.filter(wanted).map_or(Seen::Passed, Seen::Item)
    }
}

impl WaitingFilter {
    fn covers(&self, execution: &Execution) -> bool {
        let about = &execution.about;
        // An id that was removed and given again may belong to somebody else.
        self.namespace == about.namespace
            && (self.lanes.is_empty() || self.lanes.contains(&about.lane))
    }
}

impl Walk for ListPendingWaitpoints {
    const LIST: List = List::Waitpoint;

    type Item = ListedWaitpoint;

    fn namespace(&self) -> &Namespace {
        &self.filter.namespace
    }

    fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    fn limit(&self) -> u32 {
        self.limit
    }

    fn see(&self, at: &ListingPosition, found: Listed<'_>, now: TimestampMs) -> Seen<Self::Item> {
        self.look(at, found, now)
    }

    fn scope(&self) -> String {
        format!("{:?} {:?}", Self::LIST, self.filter)
    }
}

impl Waiting for ListPendingWaitpoints {
    fn filter(&self) -> &WaitingFilter {
        &self.filter
    }

    fn item(
        &self,
        at: &ListingPosition,
        found: &Execution,
        now: TimestampMs,
    ) -> Option<Self::Item> {
        let waitpoint = found.waits.open_at(now).find(|w| w.id.uuid() == at.name)?;
        (waitpoint.created_at == at.at).then(|| ListedWaitpoint::of(found, waitpoint))
    }

    fn reason(item: &Self::Item) -> Option<&str> {
        item.reason.as_deref()
    }
}

impl Walk for ListSuspended {
    const LIST: List = List::Suspended;

    type Item = ListedSuspension;

    fn namespace(&self) -> &Namespace {
        &self.filter.namespace
    }

    fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    fn limit(&self) -> u32 {
        self.limit
    }

    fn see(&self, at: &ListingPosition, found: Listed<'_>, now: TimestampMs) -> Seen<Self::Item> {
        self.look(at, found, now)
    }

    fn scope(&self) -> String {
        format!("{:?} {:?}", Self::LIST, self.filter)
    }
}

impl Waiting for ListSuspended {
    fn filter(&self) -> &WaitingFilter {
        &self.filter
    }

    fn item(
        &self,
        at: &ListingPosition,
        found: &Execution,
        now: TimestampMs,
    ) -> Option<Self::Item> {
        ListedSuspension::of(found, now).filter(|item| item.suspended_at == at.at)
    }

    fn reason(item: &Self::Item) -> Option<&str> {
        Some(&item.reason_code)
    }
}

impl ListedSuspension {
    /// None if it is not suspended.
    pub fn of(execution: &Execution, now: TimestampMs) -> Option<Self> {
        let suspension = execution.phase.suspension()?;
        let open = execution.waits.open_at(now).filter(|w| w.state == WaitpointState::Open);
        Some(Self {
            execution_id: execution.id,
            lane: execution.about.lane.clone(),
            kind: execution.about.kind.clone(),
            suspension_id: suspension.id,
            reason_code: suspension.reason.0.clone(),
            requester: suspension.requester.clone(),
            suspended_at: suspension.since,
            timeout_at: suspension.timeout.map(|timeout| timeout.at),
            escalated: suspension.escalated,
            waitpoint_keys: open.map(|waitpoint| waitpoint.key.clone()).collect(),
        })
    }
}
