//! Workers: registered, refreshed, drained, gone, and their leases taken away.

use super::Claim;
use super::command::Shape;
use crate::capability::Capabilities;
use crate::check::{check_bytes, check_range};
use crate::error::Refusal;
use crate::id::{DocumentId, ExecutionId, LaneId, LeaseId, Namespace, WorkerId, WorkerInstanceId};
use crate::limits;
use crate::partition::PartitionConfig;
use crate::state::{CancelNotice, LostBy, WorkerLoss};
use crate::time::TimestampMs;

/// One boot of a worker instance makes itself known, or refreshes what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct RegisterWorker {
    pub namespace: Namespace,
    pub worker_id: WorkerId,
    pub worker_instance_id: WorkerInstanceId,
    /// Tells one process from the next of the same name.
    pub boot_id: String,
    pub lanes: Vec<LaneId>,
    /// For routing; the set sent with a claim decides what it gets.
    pub capabilities: Capabilities,
    /// Silent for so long it is dead.
    pub ttl_ms: u64,
    pub max_concurrent: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerRegistered {
    Registered {
        next_expiry: TimestampMs,
    },
    /// This boot was registered already.
    Refreshed {
        next_expiry: TimestampMs,
    },
}

/// The registry's part of a heartbeat.
#[derive(Debug, Clone, PartialEq)]
pub struct HeartbeatWorker {
    pub namespace: Namespace,
    pub worker_instance_id: WorkerInstanceId,
    pub boot_id: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerBeat {
    Refreshed {
        next_expiry: TimestampMs,
        /// It must claim nothing more.
        drain: bool,
        /// Of its lanes, those that nothing is claimed from.
        paused_lanes: Vec<LaneId>,
        ttl_ms: u64,
        /// One of these became so, or ended, since the last heartbeat, or a task was cancelled.
        news: bool,
        /// Tasks of it that were cancelled in the last minute, oldest first.
        cancelled: Vec<CancelNotice>,
    },
    /// Not at all, or under another boot.
    NotRegistered,
}

/// Tasks of a worker were cancelled: its next heartbeats tell it.
#[derive(Debug, Clone, PartialEq)]
pub struct NoteCancellations {
    pub namespace: Namespace,
    pub worker_instance_id: WorkerInstanceId,
    pub notices: Vec<CancelNotice>,
}

/// The worker gets no more tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct DrainWorker {
    pub namespace: Namespace,
    pub worker_instance_id: WorkerInstanceId,
    /// For the record; may be empty.
    pub reason: String,
}

/// The worker leaves.
#[derive(Debug, Clone, PartialEq)]
pub struct DeregisterWorker {
    pub namespace: Namespace,
    pub worker_instance_id: WorkerInstanceId,
}

/// An operator knows that the worker is dead.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkWorkerDead {
    pub namespace: Namespace,
    pub worker_instance_id: WorkerInstanceId,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerGone {
    /// Its leases are to be taken away.
    Gone(LostWorker),
    NotRegistered,
}

/// A worker whose leases are to be taken away, with [`LoseLease`] for each. The note of it stays
/// until [`SettleWorkerLoss`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostWorker {
    pub namespace: Namespace,
    pub worker_instance_id: WorkerInstanceId,
    /// Oldest first.
    pub losses: Vec<WorkerLoss>,
}

/// All leases acquired before an instant have been taken away.
#[derive(Debug, Clone, PartialEq)]
pub struct SettleWorkerLoss {
    pub namespace: Namespace,
    pub worker_instance_id: WorkerInstanceId,
    pub acquired_before: TimestampMs,
}

/// Takes the lease of a worker that is gone away, unless it is another one by now.
#[derive(Debug, Clone, PartialEq)]
pub struct LoseLease {
    pub execution_id: ExecutionId,
    pub lease_id: LeaseId,
    pub by: LostBy,
}

impl RegisterWorker {
    /// The registration that a worker which claims like this needs.
    pub fn for_claim(claim: &Claim, boot_id: &str, ttl_ms: u64) -> Self {
        Self {
            namespace: claim.namespace.clone(),
            worker_id: claim.worker_id.clone(),
            worker_instance_id: claim.worker_instance_id.clone(),
            boot_id: boot_id.to_owned(),
            lanes: claim.lanes.iter().map(|share| share.lane.clone()).collect(),
            capabilities: claim.capabilities.clone(),
            ttl_ms,
            max_concurrent: claim.max,
        }
    }
}

impl Shape for RegisterWorker {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_boot(&self.boot_id)?;
        let ttl = limits::WORKER_TTL_MIN_MS;
        check_range("ttl_ms", self.ttl_ms, ttl, limits::DURATION_MAX_MS)?;
        check_range("max_concurrent", self.max_concurrent.into(), 1, limits::COUNT_MAX.into())?;
        if self.lanes.is_empty() {
            return Err(Refusal::invalid("lanes", "at least one lane is required"));
        }
        if self.lanes.len() > limits::CLAIM_LANES {
            return Err(Refusal::invalid(
                "lanes",
                format!("at most {} lanes", limits::CLAIM_LANES),
            ));
        }
        let mut lanes = self.lanes.clone();
        lanes.sort_unstable();
        if lanes.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Refusal::invalid("lanes", "a lane is named twice"));
        }
        Ok(())
    }

    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, _: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::worker(&self.namespace, &self.worker_instance_id))
    }
}

/// As the names of workers: 1 to 256 bytes, no whitespace or control character.
fn check_boot(boot_id: &str) -> Result<(), Refusal> {
    check_bytes("boot_id", boot_id, limits::WORKER_BYTES)?;
    let bad = |c: char| c.is_whitespace() || c.is_control();
    if boot_id.is_empty() || boot_id.contains(bad) {
        return Err(Refusal::invalid("boot_id", "1 to 256 bytes without whitespace"));
    }
    Ok(())
}

impl Shape for HeartbeatWorker {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_boot(&self.boot_id)
    }

    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, _: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::worker(&self.namespace, &self.worker_instance_id))
    }
}

impl Shape for NoteCancellations {
    fn check_shape(&self) -> Result<(), Refusal> {
        if self.notices.is_empty() || self.notices.len() > limits::CANCELLATIONS_KEPT {
            let most = limits::CANCELLATIONS_KEPT;
            return Err(Refusal::invalid("notices", format!("1 to {most} notices")));
        }
        let long = |it: &CancelNotice| check_bytes("reason", &it.reason, limits::REASON_BYTES);
        self.notices.iter().try_for_each(long)
    }

    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, _: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::worker(&self.namespace, &self.worker_instance_id))
    }
}

impl Shape for DrainWorker {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_bytes("reason", &self.reason, limits::REASON_BYTES)
    }

    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, _: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::worker(&self.namespace, &self.worker_instance_id))
    }
}

impl Shape for DeregisterWorker {
    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, _: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::worker(&self.namespace, &self.worker_instance_id))
    }
}

impl Shape for MarkWorkerDead {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_bytes("reason", &self.reason, limits::WORKER_DEATH_BYTES)?;
        if self.reason.contains(char::is_control) {
            return Err(Refusal::invalid("reason", "no control characters"));
        }
        Ok(())
    }

    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, _: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::worker(&self.namespace, &self.worker_instance_id))
    }
}

impl Shape for SettleWorkerLoss {
    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, _: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::worker(&self.namespace, &self.worker_instance_id))
    }
}

impl Shape for LoseLease {
    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}

impl LostWorker {
    /// The operation that strikes out what has been done.
    pub fn settle(&self) -> Option<SettleWorkerLoss> {
        let acquired_before = self.losses.iter().map(|loss| loss.acquired_before).max()?;
        Some(SettleWorkerLoss {
            namespace: self.namespace.clone(),
            worker_instance_id: self.worker_instance_id.clone(),
            acquired_before,
        })
    }

    /// How a lease of this age is lost; none: it is of a later boot.
    pub fn takes(&self, acquired_at: TimestampMs) -> Option<LostBy> {
        let loss = self.losses.iter().find(|loss| acquired_at < loss.acquired_before);
        loss.map(|loss| loss.by)
    }
}
