//! The aggregate: all that the rules need to know of one execution.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    Attempt, Failure, LostBy, Member, Next, Phase, PublicState, Runnable, StreamEnd, Waits,
};
use crate::id::{
    ContentType, ExecutionId, Kind, LaneId, LeaseFence, LeaseId, Namespace, QuotaPolicyId,
};
use crate::policy::{Policy, Retention};
use crate::tags::Tags;
use crate::time::TimestampMs;

/// One execution. Payload, results and earlier attempts are kept beside it, since most operations
/// do not need them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Execution {
    pub id: ExecutionId,
    /// Counts every write, renewals included: what a conditional write compares.
    pub revision: u64,
    /// Counts the events about this execution: the newest one bears this number.
    pub event_seq: u64,
    /// Number of the newest event in its partition's log.
    pub last_event: u64,
    pub about: Arc<About>,
    pub priority: u16,
    pub tags: Tags,
    pub deadline_at: Option<TimestampMs>,
    /// Epoch of the newest lease; 0 before the first. Never decreases.
    pub lease_epoch: u64,
    pub counts: Counts,
    /// First claim.
    pub started_at: Option<TimestampMs>,
    pub attempt: Option<Attempt>,
    /// The last failure of this generation.
    pub failure: Option<Failure>,
    pub progress: Option<Progress>,
    /// Memory that answers a repeated lease-ending operation.
    pub last_end: Option<LastEnd>,
    /// Memory of a lost lease, until the next claim.
    pub last_loss: Option<LeaseLoss>,
    /// When a grant was last refused because the worker lacked a capability.
    pub last_capability_mismatch_at: Option<TimestampMs>,
    pub last_transition_at: TimestampMs,
    pub waits: Waits,
    /// Slots of leases that have ended and that may not have been given back yet.
    pub owed: Option<Box<Owed>>,
    /// Its part in a flow.
    pub member: Option<Box<Member>>,
    pub phase: Phase,
}

/// What was said at submit and does not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    pub namespace: Namespace,
    pub lane: LaneId,
    pub kind: Kind,
    pub content_type: ContentType,
    pub creator_identity: String,
    pub created_at: TimestampMs,
    /// A deadline given as a point in time.
    pub execution_deadline_at: Option<TimestampMs>,
    pub trace_context: Option<String>,
    pub policy: Arc<Policy>,
    /// What its namespace said of retention, for what the policy does not say.
    pub retention: Retention,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    pub attempts: u32,
    pub retries: u32,
    pub reclaims: u32,
    pub replays: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub pct: u8,
    pub message: String,
    /// When progress last made an event.
    pub event_at: TimestampMs,
}

/// The last lease-ending operation of a worker: its fence, and the reply to give again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastEnd {
    pub fence: LeaseFence,
    pub reply: LeaseEndReply,
}

/// Which operation ended a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseEnd {
    Complete,
    Fail,
    Cancel,
    Delay,
    Suspend,
    WaitChildren,
}

/// What that operation answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeaseEndReply {
    Completed,
    RetryScheduled {
        delay_until: TimestampMs,
        retry_count: u32,
    },
    TerminalFailed,
    Cancelled {
        from: PublicState,
    },
    Delayed {
        delay_until: TimestampMs,
        public_state: PublicState,
    },
    /// Number of the suspend whose reply stands beside the record.
    Suspended {
        number: u32,
    },
    WaitingChildren {
        unresolved: u32,
        public_state: PublicState,
    },
}

/// What must be done for other homes. It is told with the step that wrote it, and again until it has
/// been settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owed {
    pub slots: Vec<OwedSlot>,
    /// When it is told again.
    pub due_at: TimestampMs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwedSlot {
    pub quota_policy_id: QuotaPolicyId,
    pub lease_epoch: u64,
    /// Of a grant that nobody used: the claim that asked for the slot. The next claim bears the same
    /// epoch, and may have asked for the same slot since. Of a lease it is none.
    pub claimant: Option<LeaseId>,
}

impl OwedSlot {
    /// Whether both are of one slot, whoever asked for it.
    pub fn is_same_slot(&self, other: &Self) -> bool {
        (self.quota_policy_id, self.lease_epoch) == (other.quota_policy_id, other.lease_epoch)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseLoss {
    pub fence: LeaseFence,
    pub by: LostBy,
}

impl LeaseEndReply {
    pub const fn operation(self) -> LeaseEnd {
        match self {
            Self::Completed => LeaseEnd::Complete,
            Self::RetryScheduled { .. } | Self::TerminalFailed => LeaseEnd::Fail,
            Self::Cancelled { .. } => LeaseEnd::Cancel,
            Self::Delayed { .. } => LeaseEnd::Delay,
            Self::Suspended { .. } => LeaseEnd::Suspend,
            Self::WaitingChildren { .. } => LeaseEnd::WaitChildren,
        }
    }
}

impl Execution {
    /// Slots of quota policies that its lease holds, or its grant for the next lease.
    pub fn slots(&self) -> Vec<OwedSlot> {
        let (slots, lease_epoch, claimant) = match &self.phase {
            Phase::Active(lease) => (&lease.slots[..], self.lease_epoch, None),
            Phase::Runnable(Runnable { grant: Some(grant), .. }) if !grant.lapsed => {
                (&grant.slots[..], self.lease_epoch + 1, grant.claimant)
            }
            _ => return Vec::new(),
        };
        let owed = |&quota_policy_id| OwedSlot { quota_policy_id, lease_epoch, claimant };
        slots.iter().map(owed).collect()
    }

    pub fn policy(&self) -> &Policy {
        &self.about.policy
    }

    /// Whether no attempt has begun since it was submitted, or last replayed.
    pub const fn awaits_start(&self) -> bool {
        match &self.phase {
            Phase::Runnable(runnable) => matches!(runnable.next, Next::First | Next::Replay),
            _ => false,
        }
    }

    pub fn is_terminal(&self) -> bool {
        matches!(self.phase, Phase::Terminal(_))
    }

    /// Bytes that a task of the current attempt carries besides its payload: bodies of the signals
    /// that resumed it, and what its suspend left.
    pub fn extras_bytes(&self) -> u64 {
        let Some(attempt) = &self.attempt else { return 0 };
        let signals = self.waits.resumed_of(attempt.index).map_or(0, |r| r.signals.bytes);
        signals + self.waits.metadata_of(attempt.index).map_or(0, |metadata| metadata.bytes)
    }

    /// Fence of the live lease.
    pub fn live_fence(&self) -> Option<LeaseFence> {
        let lease = self.phase.lease()?;
        Some(lease.fence(self.lease_epoch, self.attempt.as_ref()?.id))
    }

    /// The current attempt, and why its output has ended. Whoever tails it must look when this or
    /// the frames change.
    pub fn output_end(&self) -> Option<(u32, Option<StreamEnd>)> {
        let attempt = self.attempt.as_ref()?;
        Some((attempt.index, attempt.stream_end))
    }

    /// The deadline that counts from `start`: the earlier of the relative and the absolute one.
    pub(crate) fn deadline_from(about: &About, start: TimestampMs) -> Option<TimestampMs> {
        let relative = about.policy.timeout.execution_deadline_ms.map(|ms| start.after(ms));
        match (relative, about.execution_deadline_at) {
            (Some(relative), Some(absolute)) => Some(relative.min(absolute)),
            (relative, absolute) => relative.or(absolute),
        }
    }
}
