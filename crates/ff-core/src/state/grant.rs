//! Grants: the right to claim one named execution.

use serde::{Deserialize, Serialize};

use crate::id::{LeaseId, QuotaPolicyId, WorkerId, WorkerInstanceId};
use crate::time::TimestampMs;

/// A permission for one worker to claim one execution, used once. While it lives, the execution is
/// in no queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub kind: GrantKind,
    /// Any instance of this worker may use it.
    pub worker_id: WorkerId,
    /// The instance that it was made out to, if one was named.
    pub worker_instance_id: Option<WorkerInstanceId>,
    pub expires_at: TimestampMs,
    /// Quota policies of which a slot was taken for its claim.
    pub slots: Vec<QuotaPolicyId>,
    /// Those of them that keep a place in their window for it.
    pub places: Vec<QuotaPolicyId>,
    /// The claim that asked for them.
    pub claimant: Option<LeaseId>,
    /// Its time is over and the execution is back in its queue. It is kept so that a late claim
    /// learns why it is refused.
    pub lapsed: bool,
    /// A quota policy has let the execution in since a claim has set it aside: that claim's word that
    /// it did not comes too late.
    pub recalled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantKind {
    Claim,
    /// Given after a lost lease.
    Reclaim,
    /// A claim has set it aside until its limits have been asked.
    Admission,
}

impl GrantKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Reclaim => "reclaim",
            Self::Admission => "admission",
        }
    }
}

impl Grant {
    /// Over from its last instant on, whether or not a timer has noticed.
    pub fn is_over(&self, now: TimestampMs) -> bool {
        self.lapsed || now >= self.expires_at
    }
}
