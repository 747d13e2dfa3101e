//! What users see of workers and of their leases.

use serde::{Deserialize, Serialize};

use super::walk::{Listed, Walk, paged};
use super::{Leaf, Page, Seen};
use crate::capability::Capabilities;
use crate::cursor;
use crate::error::Refusal;
use crate::id::{
    ExecutionId, LaneId, LeaseId, Namespace, QuotaPolicyId, WorkerId, WorkerInstanceId,
};
use crate::state::{Execution, List, ListingPosition, Worker};
use crate::time::TimestampMs;

/// A registered worker instance; none if there is no such, or it is dead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribeWorker {
    pub namespace: Namespace,
    pub worker_instance_id: WorkerInstanceId,
    /// Whether the leases that it holds are counted, which is a walk over all leases.
    pub counted: bool,
}

/// Registered worker instances of a namespace, in the order of registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListWorkers {
    pub namespace: Namespace,
    /// Only workers that serve none but these lanes.
    pub within: Option<Vec<LaneId>>,
    pub cursor: Option<String>,
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkerSnapshot {
    pub namespace: Namespace,
    pub worker_id: WorkerId,
    pub worker_instance_id: WorkerInstanceId,
    pub boot_id: String,
    pub lanes: Vec<LaneId>,
    pub capabilities: Capabilities,
    pub ttl_ms: u64,
    pub max_concurrent: u32,
    pub registered_at: TimestampMs,
    pub last_heartbeat_at: TimestampMs,
    pub expires_at: TimestampMs,
    /// Leases that it holds, if they were to be counted; filled in by the store.
    pub running: u32,
    pub draining: bool,
}

/// Live leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasesOf {
    pub namespace: Namespace,
    /// Only of this instance.
    pub worker_instance_id: Option<WorkerInstanceId>,
    pub cursor: Option<String>,
    pub limit: u32,
}

/// Leases that have run out and that no timer has handled yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListExpiredLeases {
    pub namespace: Namespace,
    pub cursor: Option<String>,
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedLease {
    pub execution_id: ExecutionId,
    pub lane: LaneId,
    pub lease_id: LeaseId,
    pub lease_epoch: u64,
    pub worker_id: WorkerId,
    pub worker_instance_id: WorkerInstanceId,
    pub acquired_at: TimestampMs,
    pub expires_at: TimestampMs,
    /// Quota policies of which it holds a slot.
    pub slots: Vec<QuotaPolicyId>,
}

/// A question about leases. They stand in no list, since a claim changes none: a store looks through
/// its active executions, in an order of its own that stays as it is while a lease is held.
pub trait LeaseWalk {
    fn namespace(&self) -> &Namespace;

    fn cursor(&self) -> Option<&str>;

    fn limit(&self) -> u32;

    /// Whether this lease is asked for.
    fn wants(&self, lease: &ListedLease, now: TimestampMs) -> bool;

    /// Only leases that end by then are asked for; none: all.
    fn ends_by(&self, _: TimestampMs) -> Option<TimestampMs> {
        None
    }

    /// What a cursor is bound to.
    fn scope(&self) -> String;

    /// Where the page begins: behind this place.
    fn behind(&self) -> Result<Option<LeasePosition>, Refusal> {
        self.cursor().map(|text| cursor::decode(&self.scope(), text)).transpose()
    }

    /// What an active execution is to this question.
    fn see(&self, execution: &Execution, now: TimestampMs) -> Seen<ListedLease> {
        let lease = ListedLease::of(execution).filter(|lease| self.wants(lease, now));
        let here = execution.about.namespace == *self.namespace();
        lease.filter(|_| here).map_or(Seen::Passed, Seen::Item)
    }

    /// The page that was made.
    fn page(&self, leaf: Leaf<LeasePosition, ListedLease>) -> Page<ListedLease> {
        leaf.finish(|last| cursor::encode(&self.scope(), &last))
    }
}

/// Where an active execution stands for a walk over leases.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LeasePosition {
    pub lane: LaneId,
    pub execution_id: ExecutionId,
}

impl WorkerSnapshot {
    /// None once it is dead.
    pub fn of(worker: &Worker, now: TimestampMs) -> Option<Self> {
        let live = worker.live(now)?;
        Some(Self {
            namespace: worker.namespace.clone(),
            worker_id: live.worker_id.clone(),
            worker_instance_id: worker.worker_instance_id.clone(),
            boot_id: live.boot_id.clone(),
            lanes: live.lanes.clone(),
            capabilities: live.capabilities.clone(),
            ttl_ms: live.ttl_ms,
            max_concurrent: live.max_concurrent,
            registered_at: live.registered_at,
            last_heartbeat_at: live.heartbeat_at,
            expires_at: live.expires_at(),
            running: 0,
            draining: live.drains(),
        })
    }
}

impl ListedLease {
    /// None without a lease.
    pub fn of(execution: &Execution) -> Option<Self> {
        let lease = execution.phase.lease()?;
        Some(Self {
            execution_id: execution.id,
            lane: execution.about.lane.clone(),
            lease_id: lease.id,
            lease_epoch: execution.lease_epoch,
            worker_id: lease.worker_id.clone(),
            worker_instance_id: lease.worker_instance_id.clone(),
            acquired_at: lease.acquired_at,
            expires_at: lease.expires_at,
            slots: lease.slots.clone(),
        })
    }

    pub fn position(&self) -> LeasePosition {
        LeasePosition { lane: self.lane.clone(), execution_id: self.execution_id }
    }
}

impl Walk for ListWorkers {
    const LIST: List = List::Worker;

    type Item = WorkerSnapshot;

    paged!();

    fn see(
        &self,
        _: &ListingPosition,
        found: Listed<'_>,
        now: TimestampMs,
    ) -> Seen<WorkerSnapshot> {
        let Listed::Document(document, _) = found else { return Seen::Passed };
        let snapshot = document.worker().and_then(|worker| WorkerSnapshot::of(worker, now));
        let wanted = |worker: &WorkerSnapshot| {
            let known = |lane| self.within.as_ref().is_none_or(|lanes| lanes.contains(lane));
            worker.lanes.iter().all(known)
        };
        snapshot.filter(wanted).map_or(Seen::Passed, Seen::Item)
    }

    fn scope(&self) -> String {
        format!("workers {} {:?}", self.namespace, self.within)
    }
}

impl LeaseWalk for LeasesOf {
    paged!();

    fn wants(&self, lease: &ListedLease, _: TimestampMs) -> bool {
        let asked = self.worker_instance_id.as_ref();
        asked.is_none_or(|asked| *asked == lease.worker_instance_id)
    }

    fn scope(&self) -> String {
        format!("leases {} {:?}", self.namespace, self.worker_instance_id)
    }
}

impl LeaseWalk for ListExpiredLeases {
    paged!();

    fn wants(&self, lease: &ListedLease, now: TimestampMs) -> bool {
        self.ends_by(now).is_some_and(|end| lease.expires_at <= end)
    }

    fn ends_by(&self, now: TimestampMs) -> Option<TimestampMs> {
        Some(now)
    }

    fn scope(&self) -> String {
        format!("expired leases {}", self.namespace)
    }
}
