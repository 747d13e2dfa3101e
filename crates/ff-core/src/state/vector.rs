//! The flat state vector, derived from the phase.

use serde::{Deserialize, Serialize};

use super::{
    DelayReason, Document, Execution, Flow, LaneState, LostBy, Next, Outcome, Phase, Runnable,
};
use crate::time::TimestampMs;

macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name { $(#[serde(rename = $text)] $variant,)* }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text)
            }
        }
    };
}

names! {
    LifecyclePhase {
        Submitted = "submitted",
        Runnable = "runnable",
        Active = "active",
        Suspended = "suspended",
        Terminal = "terminal",
    }
}
names! {
    OwnershipState {
        Unowned = "unowned",
        Leased = "leased",
        LeaseExpiredReclaimable = "lease_expired_reclaimable",
        LeaseRevoked = "lease_revoked",
    }
}
names! {
    EligibilityState {
        EligibleNow = "eligible_now",
        NotEligibleUntilTime = "not_eligible_until_time",
        BlockedByDependencies = "blocked_by_dependencies",
        BlockedByBudget = "blocked_by_budget",
        BlockedByQuota = "blocked_by_quota",
        BlockedByRoute = "blocked_by_route",
        BlockedByLaneState = "blocked_by_lane_state",
        BlockedByOperator = "blocked_by_operator",
        NotApplicable = "not_applicable",
    }
}
names! {
    BlockingReason {
        None = "none",
        WaitingForWorker = "waiting_for_worker",
        WaitingForRetryBackoff = "waiting_for_retry_backoff",
        WaitingForResumeDelay = "waiting_for_resume_delay",
        WaitingForDelay = "waiting_for_delay",
        WaitingForSignal = "waiting_for_signal",
        WaitingForApproval = "waiting_for_approval",
        WaitingForCallback = "waiting_for_callback",
        WaitingForToolResult = "waiting_for_tool_result",
        WaitingForChildren = "waiting_for_children",
        WaitingForBudget = "waiting_for_budget",
        WaitingForQuota = "waiting_for_quota",
        WaitingForCapableWorker = "waiting_for_capable_worker",
        WaitingForLocalityMatch = "waiting_for_locality_match",
        PausedByOperator = "paused_by_operator",
        PausedByPolicy = "paused_by_policy",
        PausedByFlowCancel = "paused_by_flow_cancel",
    }
}
names! {
    /// How far the current attempt is; `attempt_state` of the vector.
    AttemptProgress {
        None = "none",
        PendingFirstAttempt = "pending_first_attempt",
        RunningAttempt = "running_attempt",
        AttemptInterrupted = "attempt_interrupted",
        PendingRetryAttempt = "pending_retry_attempt",
        PendingReplayAttempt = "pending_replay_attempt",
        AttemptTerminal = "attempt_terminal",
    }
}
names! {
    /// The one word that most users look at.
    PublicState {
        Waiting = "waiting",
        Delayed = "delayed",
        RateLimited = "rate_limited",
        WaitingChildren = "waiting_children",
        Active = "active",
        Suspended = "suspended",
        Resumable = "resumable",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
        Expired = "expired",
        Skipped = "skipped",
    }
}

impl PublicState {
    /// Those that last.
    pub const ENDED: [Self; 5] =
        [Self::Completed, Self::Failed, Self::Cancelled, Self::Expired, Self::Skipped];
}

/// The flat vector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateVector {
    pub lifecycle_phase: LifecyclePhase,
    pub ownership_state: OwnershipState,
    pub eligibility_state: EligibilityState,
    pub blocking_reason: BlockingReason,
    pub blocking_detail: String,
    /// None while it is not terminal.
    pub terminal_outcome: Option<Outcome>,
    pub attempt_state: AttemptProgress,
    pub public_state: PublicState,
}

/// What stands around an execution and keeps it from being claimed, without having touched it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Surroundings {
    pub lane: LaneState,
    /// Its flow is cancelled and has not come to it yet.
    pub flow_stops: bool,
}

impl Surroundings {
    /// What a lane or a flow means to what stands in it.
    pub fn by(document: &Document) -> Self {
        let lane = document.lane().map(|lane| lane.state).unwrap_or_default();
        Self { lane, flow_stops: document.flow().is_some_and(Flow::stops_claims) }
    }
}

impl StateVector {
    /// What a task has left behind that put its execution aside, by the state that this came to: delayed,
    /// waiting for children, claimable again at once, or cancelled with its flow.
    pub fn put_aside(public_state: PublicState) -> Self {
        let is_over = public_state == PublicState::Cancelled;
        let (eligibility_state, blocking_reason) = match public_state {
            PublicState::Delayed => {
                (EligibilityState::NotEligibleUntilTime, BlockingReason::WaitingForDelay)
            }
            PublicState::WaitingChildren => {
                (EligibilityState::BlockedByDependencies, BlockingReason::WaitingForChildren)
            }
            _ if is_over => (EligibilityState::NotApplicable, BlockingReason::None),
            _ => (EligibilityState::EligibleNow, BlockingReason::WaitingForWorker),
        };
        let (lifecycle_phase, attempt_state) = match is_over {
            true => (LifecyclePhase::Terminal, AttemptProgress::AttemptTerminal),
            false => (LifecyclePhase::Runnable, AttemptProgress::AttemptInterrupted),
        };
        Self {
            lifecycle_phase,
            ownership_state: OwnershipState::Unowned,
            eligibility_state,
            blocking_reason,
            blocking_detail: String::new(),
            terminal_outcome: is_over.then_some(Outcome::Cancelled),
            attempt_state,
            public_state,
        }
    }

    /// As it reads amid these surroundings: what nobody may claim is not eligible.
    #[must_use]
    pub fn amid(mut self, around: Surroundings) -> Self {
        let is_eligible = self.eligibility_state == EligibilityState::EligibleNow;
        if around.flow_stops && self.lifecycle_phase == LifecyclePhase::Runnable {
            self.eligibility_state = EligibilityState::BlockedByOperator;
            self.blocking_reason = BlockingReason::PausedByFlowCancel;
            self.blocking_detail = "the flow is cancelled".to_owned();
            self.public_state = PublicState::Waiting;
        } else if is_eligible && !around.lane.gives_claims() {
            self.eligibility_state = EligibilityState::BlockedByLaneState;
            self.blocking_reason = BlockingReason::PausedByOperator;
            self.blocking_detail = format!("the lane is {}", around.lane.as_str());
            self.public_state = PublicState::Waiting;
        }
        self
    }
}

impl Execution {
    pub fn lifecycle_phase(&self) -> LifecyclePhase {
        match self.phase {
            Phase::Runnable(_) => LifecyclePhase::Runnable,
            Phase::Active(_) => LifecyclePhase::Active,
            Phase::Suspended(_) => LifecyclePhase::Suspended,
            Phase::Terminal(_) => LifecyclePhase::Terminal,
        }
    }

    pub fn public_state(&self) -> PublicState {
        match &self.phase {
            Phase::Active(_) => PublicState::Active,
            Phase::Suspended(_) => PublicState::Suspended,
            Phase::Terminal(terminal) => match terminal.outcome {
                Outcome::Success => PublicState::Completed,
                Outcome::Failed => PublicState::Failed,
                Outcome::Cancelled => PublicState::Cancelled,
                Outcome::Expired => PublicState::Expired,
                Outcome::Skipped => PublicState::Skipped,
            },
            Phase::Runnable(runnable) => match eligibility(runnable).0 {
                EligibilityState::EligibleNow if runnable.next == Next::Resume => {
                    PublicState::Resumable
                }
                EligibilityState::NotEligibleUntilTime => PublicState::Delayed,
                EligibilityState::BlockedByDependencies => PublicState::WaitingChildren,
                EligibilityState::BlockedByBudget | EligibilityState::BlockedByQuota => {
                    PublicState::RateLimited
                }
                _ => PublicState::Waiting,
            },
        }
    }

    /// The whole vector at `now`. A lease that is over but not yet handled reads as expired.
    pub fn state_vector(&self, now: TimestampMs) -> StateVector {
        let (ownership_state, attempt_state) = self.ownership(now);
        let (eligibility_state, blocking_reason, detail) = match &self.phase {
            Phase::Runnable(runnable) => eligibility(runnable),
            Phase::Suspended(suspension) => {
                let detail = suspension.reason.0.as_str();
                (EligibilityState::NotApplicable, suspension.blocking_reason(), detail)
            }
            _ => (EligibilityState::NotApplicable, BlockingReason::None, ""),
        };
        StateVector {
            lifecycle_phase: self.lifecycle_phase(),
            ownership_state,
            eligibility_state,
            blocking_reason,
            blocking_detail: detail.to_owned(),
            terminal_outcome: self.phase.terminal().map(|terminal| terminal.outcome),
            attempt_state,
            public_state: self.public_state(),
        }
    }

    fn ownership(&self, now: TimestampMs) -> (OwnershipState, AttemptProgress) {
        match &self.phase {
            Phase::Active(lease) if lease.is_over(now) => {
                (OwnershipState::LeaseExpiredReclaimable, AttemptProgress::RunningAttempt)
            }
            Phase::Active(_) => (OwnershipState::Leased, AttemptProgress::RunningAttempt),
            Phase::Suspended(_) => (OwnershipState::Unowned, AttemptProgress::AttemptInterrupted),
            Phase::Terminal(_) if self.attempt.is_none() => {
                (OwnershipState::Unowned, AttemptProgress::None)
            }
            Phase::Terminal(_) => (OwnershipState::Unowned, AttemptProgress::AttemptTerminal),
            Phase::Runnable(runnable) => match runnable.next {
                Next::First => (OwnershipState::Unowned, AttemptProgress::PendingFirstAttempt),
                Next::Retry => (OwnershipState::Unowned, AttemptProgress::PendingRetryAttempt),
                Next::Replay => (OwnershipState::Unowned, AttemptProgress::PendingReplayAttempt),
                Next::Resume => (OwnershipState::Unowned, AttemptProgress::AttemptInterrupted),
                Next::Reclaim(LostBy::Time) => {
                    (OwnershipState::LeaseExpiredReclaimable, AttemptProgress::AttemptInterrupted)
                }
                Next::Reclaim(LostBy::Revocation) => {
                    (OwnershipState::LeaseRevoked, AttemptProgress::AttemptInterrupted)
                }
            },
        }
    }
}

fn eligibility(runnable: &Runnable) -> (EligibilityState, BlockingReason, &str) {
    let causes = &runnable.causes;
    if let Some(detail) = &causes.hold {
        return (EligibilityState::BlockedByOperator, BlockingReason::PausedByOperator, detail);
    }
    if causes.waits_for_members() {
        return (EligibilityState::BlockedByDependencies, BlockingReason::WaitingForChildren, "");
    }
    match causes.delay.map(|delay| delay.reason) {
        Some(DelayReason::Requested) => {
            (EligibilityState::NotEligibleUntilTime, BlockingReason::WaitingForDelay, "")
        }
        Some(DelayReason::RetryBackoff) => {
            (EligibilityState::NotEligibleUntilTime, BlockingReason::WaitingForRetryBackoff, "")
        }
        Some(DelayReason::Resume) => {
            (EligibilityState::NotEligibleUntilTime, BlockingReason::WaitingForResumeDelay, "")
        }
        None => match &causes.admission {
            Some(block) => {
                (block.reason.eligibility(), block.reason.blocking_reason(), &block.detail)
            }
            None => (EligibilityState::EligibleNow, BlockingReason::WaitingForWorker, ""),
        },
    }
}
