//! The phases of an execution.

use serde::{Deserialize, Serialize};

use super::{AdmissionBlock, CancelSource, Grant, PublicState, Suspension};
use crate::id::{AttemptId, LeaseFence, LeaseId, QuotaPolicyId, WorkerId, WorkerInstanceId};
use crate::time::TimestampMs;

/// Where an execution stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    Runnable(Runnable),
    Active(Lease),
    Terminal(Terminal),
    Suspended(Box<Suspension>),
}

/// Nobody owns it: it waits for a worker or for a cause to go away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runnable {
    pub causes: Causes,
    pub next: Next,
    /// When it entered this phase, or its causes last changed.
    pub since: TimestampMs,
    /// Goes with whatever changes the phase or the causes.
    pub grant: Option<Grant>,
    /// The ageing of its lane when it became eligible; 0: none.
    pub ageing_ms: u64,
}

/// Why a runnable execution may not be claimed; none: it is eligible. Causes stand side by side
/// and are told in the order of these fields.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Causes {
    /// An operator's hold, with its detail.
    pub hold: Option<String>,
    /// Its group has not let it go.
    pub edges: bool,
    /// Children it waits for.
    pub children: Option<Children>,
    pub delay: Option<Delay>,
    /// Nobody may claim it, or nobody could.
    pub admission: Option<AdmissionBlock>,
}

/// A wait for other members of the flow to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Children {
    /// Which of the member's waits.
    pub wait: u32,
    pub total: u32,
    /// How many of them know that they are waited for, or had ended.
    pub told: u32,
    pub ended: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delay {
    pub until: TimestampMs,
    pub reason: DelayReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DelayReason {
    /// Asked for at submit or by the worker.
    Requested,
    RetryBackoff,
    /// Its resume policy puts some time between.
    Resume,
}

/// What the next claim opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Next {
    First,
    Retry,
    Replay,
    /// A new attempt after a lost lease.
    Reclaim(LostBy),
    /// The same attempt goes on.
    Resume,
}

/// How a lease was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LostBy {
    /// It ran out.
    Time,
    /// It was taken away.
    Revocation,
}

/// The right of one worker instance to run the current attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub id: LeaseId,
    pub worker_id: WorkerId,
    pub worker_instance_id: WorkerInstanceId,
    pub acquired_at: TimestampMs,
    pub renewed_at: TimestampMs,
    pub expires_at: TimestampMs,
    pub ttl_ms: u64,
    /// When the attempt has used up its time under lease.
    pub attempt_deadline_at: Option<TimestampMs>,
    /// It came from a grant: its instance may ask for the task again.
    pub granted: bool,
    /// Quota policies of which it holds a slot.
    pub slots: Vec<QuotaPolicyId>,
    /// Those of them that have kept a place in their window for it.
    pub places: Vec<QuotaPolicyId>,
}

/// The one outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terminal {
    pub outcome: Outcome,
    pub at: TimestampMs,
    /// Present when the outcome is `cancelled`.
    pub cancellation: Option<Cancellation>,
    /// When the execution is removed.
    pub kept_until: TimestampMs,
    /// Of one that was skipped: the delay and the hold that went on underneath, should it come back.
    pub underneath: Option<Box<Causes>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancellation {
    pub reason: String,
    pub source: CancelSource,
    /// Public state before the cancel.
    pub from: PublicState,
    /// A group has decided that it was an upstream of.
    pub by_group: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Success,
    Failed,
    Cancelled,
    Expired,
    Skipped,
}

impl Outcome {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Skipped => "skipped",
        }
    }
}

impl Phase {
    pub fn eligible(next: Next, since: TimestampMs) -> Self {
        Self::Runnable(Runnable::new(Causes::default(), next, since))
    }

    pub fn lease(&self) -> Option<&Lease> {
        match self {
            Self::Active(lease) => Some(lease),
            _ => None,
        }
    }

    /// Runnable, and nothing keeps it from being claimed but perhaps a grant.
    pub fn claimable(&self) -> Option<&Runnable> {
        match self {
            Self::Runnable(runnable) if runnable.causes.is_empty() => Some(runnable),
            _ => None,
        }
    }

    /// Runnable, and nothing but limits, a lack of workers or a grant keeps it from being claimed.
    pub fn claimable_by_operator(&self) -> Option<&Runnable> {
        match self {
            Self::Runnable(runnable) if runnable.causes.is_only_admission() => Some(runnable),
            _ => None,
        }
    }

    /// Its grant, lapsed or not.
    pub fn grant(&self) -> Option<&Grant> {
        match self {
            Self::Runnable(runnable) => runnable.grant.as_ref(),
            _ => None,
        }
    }

    /// The children it waits for.
    pub fn children(&self) -> Option<&Children> {
        match self {
            Self::Runnable(runnable) => runnable.causes.children.as_ref(),
            _ => None,
        }
    }

    pub(crate) fn children_mut(&mut self) -> Option<&mut Children> {
        match self {
            Self::Runnable(runnable) => runnable.causes.children.as_mut(),
            _ => None,
        }
    }

    pub fn suspension(&self) -> Option<&Suspension> {
        match self {
            Self::Suspended(suspension) => Some(suspension),
            _ => None,
        }
    }

    pub fn terminal(&self) -> Option<&Terminal> {
        match self {
            Self::Terminal(terminal) => Some(terminal),
            _ => None,
        }
    }
}

impl Runnable {
    pub fn new(causes: Causes, next: Next, since: TimestampMs) -> Self {
        Self { causes, next, since, grant: None, ageing_ms: 0 }
    }

    /// The grant, if it may still be used at `now`.
    pub fn live_grant(&self, now: TimestampMs) -> Option<&Grant> {
        self.grant.as_ref().filter(|grant| !grant.is_over(now))
    }

    /// The grant that no timer has taken back yet.
    pub(super) fn standing_grant(&self) -> Option<&Grant> {
        self.grant.as_ref().filter(|grant| !grant.lapsed)
    }

    /// Holds it, which also takes a grant back.
    pub(crate) fn hold(&mut self, detail: String, now: TimestampMs) {
        self.causes.hold = Some(detail);
        self.since = now;
        self.grant = None;
    }
}

impl Children {
    /// Whether all of them have ended.
    pub const fn is_over(&self) -> bool {
        self.told == self.total && self.ended == self.total
    }
}

impl Causes {
    /// Whether other members of its flow stand in the way.
    pub fn waits_for_members(&self) -> bool {
        self.edges || self.children.is_some()
    }

    /// The delay, if it is what the execution waits for.
    pub fn running_delay(&self) -> Option<Delay> {
        self.delay.filter(|_| self.hold.is_none() && !self.waits_for_members())
    }

    pub fn is_empty(&self) -> bool {
        self.is_only_admission() && self.admission.is_none()
    }

    /// Whether at most admission stands in the way.
    fn is_only_admission(&self) -> bool {
        self.hold.is_none() && !self.waits_for_members() && self.delay.is_none()
    }
}

impl Lease {
    pub fn fence(&self, epoch: u64, attempt_id: AttemptId) -> LeaseFence {
        LeaseFence { lease_id: self.id, lease_epoch: epoch, attempt_id }
    }

    /// Over from this instant on, whether or not somebody has noticed.
    pub fn is_over(&self, now: TimestampMs) -> bool {
        now >= self.expires_at
    }
}
