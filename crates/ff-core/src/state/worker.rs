//! A worker instance: its registration, and what it left behind.

use serde::{Deserialize, Serialize};

use super::listing::digest_name;
use super::{Due, DueKind, List, Listing, LostBy};
use crate::capability::Capabilities;
use crate::id::{ExecutionId, LaneId, LeaseId, Namespace, WorkerId, WorkerInstanceId};
use crate::limits;
use crate::time::TimestampMs;

/// What is known under the name of a worker instance. There is nothing once neither a registration
/// nor a loss is left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    pub namespace: Namespace,
    pub worker_instance_id: WorkerInstanceId,
    pub registration: Option<Registration>,
    /// Registrations that ended and whose leases may not all have been taken away, oldest first.
    pub losses: Vec<WorkerLoss>,
}

/// One boot of the instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    pub worker_id: WorkerId,
    pub boot_id: String,
    pub lanes: Vec<LaneId>,
    pub capabilities: Capabilities,
    pub ttl_ms: u64,
    pub max_concurrent: u32,
    pub registered_at: TimestampMs,
    pub heartbeat_at: TimestampMs,
    pub draining_since: Option<TimestampMs>,
    /// How often it was said: each time, what waited for such a worker is let go.
    pub said: u64,
    /// Tasks of it that were cancelled lately, oldest first.
    pub cancelled: Vec<CancelNotice>,
    /// No heartbeat has told the newest of them.
    pub untold: bool,
}

/// A task of a worker that was cancelled: told with every heartbeat for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelNotice {
    pub execution_id: ExecutionId,
    pub lease_id: LeaseId,
    pub reason: String,
    pub at: TimestampMs,
}

/// Leases that must be taken away, wherever they are. Leases stand in other partitions, so this is
/// the note that survives whoever was about to do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerLoss {
    pub by: LostBy,
    /// Only leases acquired before this instant. A claim may rest on what it read of the
    /// registration a second ago, so this lies ahead of the loss, unless the name was registered
    /// again: later leases are the next boot's.
    pub acquired_before: TimestampMs,
    /// When somebody must look whether it has been done.
    pub due_at: TimestampMs,
}

impl Worker {
    pub fn new(namespace: &Namespace, instance: &WorkerInstanceId) -> Self {
        Self {
            namespace: namespace.clone(),
            worker_instance_id: instance.clone(),
            registration: None,
            losses: Vec::new(),
        }
    }

    /// The registration, unless it has run out, whether or not somebody has noticed.
    pub fn live(&self, now: TimestampMs) -> Option<&Registration> {
        self.registration.as_ref().filter(|registration| !registration.is_over(now))
    }

    pub fn is_empty(&self) -> bool {
        self.registration.is_none() && self.losses.is_empty()
    }

    pub(super) fn due(&self) -> Option<Due> {
        let silent = self.registration.as_ref().map(Registration::expires_at);
        let lost = self.losses.iter().map(|loss| loss.due_at).min();
        let at = silent.into_iter().chain(lost).min()?;
        Some(Due { at, kind: DueKind::WorkerTtl })
    }

    /// In the order of registration; what has none is in no list.
    pub(super) fn listing(&self) -> Option<Listing<'_>> {
        self.registration.as_ref().map(|registration| Listing {
            namespace: &self.namespace,
            list: List::Worker,
            at: registration.registered_at,
            name: digest_name(&self.worker_instance_id),
        })
    }
}

impl Registration {
    pub fn expires_at(&self) -> TimestampMs {
        self.heartbeat_at.after(self.ttl_ms)
    }

    pub fn is_over(&self, now: TimestampMs) -> bool {
        now >= self.expires_at()
    }

    pub const fn drains(&self) -> bool {
        self.draining_since.is_some()
    }

    /// Forgets cancellations that have been told for long enough.
    pub(crate) fn forget_cancelled(&mut self, now: TimestampMs) {
        self.cancelled.retain(|it| now.since(it.at) < limits::CANCELLATION_NEWS_MS);
    }

    /// Notes cancellations that it does not know yet; should there be too many, the oldest go.
    pub(crate) fn note_cancelled(&mut self, notices: &[CancelNotice]) {
        for notice in notices {
            if self.cancelled.iter().all(|known| known.lease_id != notice.lease_id) {
                self.cancelled.push(notice.clone());
                self.untold = true;
            }
        }
        let mut bytes: usize = self.cancelled.iter().map(|it| it.reason.len()).sum();
        let mut count = self.cancelled.len();
        let oldest = self.cancelled.iter().take_while(|notice| {
            let is_over = count > limits::CANCELLATIONS_KEPT || bytes > limits::CANCELLATIONS_BYTES;
            count -= 1;
            bytes -= notice.reason.len();
            is_over
        });
        let gone = oldest.count();
        self.cancelled.drain(..gone);
    }
}
