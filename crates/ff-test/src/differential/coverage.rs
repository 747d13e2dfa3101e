//! Which operations met which states.

use std::collections::BTreeMap;

use ff_core::machine::QueueView;
use ff_core::operation::{Claim, Command};
use ff_core::state::{DelayReason, Execution, Next, Outcome, Phase};
use ff_core::time::TimestampMs;

use crate::oracle::State;

/// The states that the rules tell apart.
pub const STATES: [&str; 19] = [
    "absent",
    "eligible",
    "eligible, retry",
    "eligible, replay",
    "resumable",
    "reclaimable",
    "granted",
    "blocked by edges",
    "waiting for children",
    "delayed",
    "retry backoff",
    "held",
    "active",
    "active, lease over",
    "suspended",
    "success",
    "failed or expired",
    "cancelled",
    "skipped",
];

/// The operations that act on one execution.
pub const OPERATIONS: [&str; 34] = [
    "submit_execution",
    "renew_lease",
    "update_progress",
    "append_frames",
    "complete_execution",
    "fail_execution",
    "cancel_execution",
    "delay_execution",
    "move_to_waiting_children",
    "add_execution_to_flow",
    "set_edge_group_policy",
    "issue_claim_grant",
    "claim_execution",
    "claim_resumed_execution",
    "issue_grant_and_claim",
    "issue_reclaim_grant",
    "reclaim_execution",
    "revoke_lease",
    "hold_execution",
    "release_execution",
    "change_priority",
    "set_execution_tags",
    "replay_execution",
    "delete_execution",
    "expire_execution",
    "promote_delayed",
    "mark_lease_expired_if_due",
    "create_pending_waitpoint",
    "close_waitpoint",
    "issue_waitpoint_token",
    "suspend_execution",
    "resume_execution",
    "deliver_signal",
    "deliver_approval_signal",
];

/// The state of an execution by its name in [`STATES`].
pub fn state_of(execution: Option<&Execution>, now: TimestampMs) -> &'static str {
    let Some(execution) = execution else { return "absent" };
    match &execution.phase {
        Phase::Active(lease) if lease.is_over(now) => "active, lease over",
        Phase::Active(_) => "active",
        Phase::Suspended(_) => "suspended",
        Phase::Terminal(terminal) => match terminal.outcome {
            Outcome::Success => "success",
            Outcome::Cancelled => "cancelled",
            Outcome::Skipped => "skipped",
            _ => "failed or expired",
        },
        Phase::Runnable(runnable) if runnable.live_grant(now).is_some() => "granted",
        Phase::Runnable(runnable) => match (&runnable.causes, runnable.next) {
            (causes, _) if causes.hold.is_some() => "held",
            (causes, _) if causes.edges => "blocked by edges",
            (causes, _) if causes.children.is_some() => "waiting for children",
            (causes, _) if causes.delay.is_some_and(|d| d.reason == DelayReason::RetryBackoff) => {
                "retry backoff"
            }
            (causes, _) if causes.delay.is_some() => "delayed",
            (_, Next::First) => "eligible",
            (_, Next::Retry) => "eligible, retry",
            (_, Next::Replay) => "eligible, replay",
            (_, Next::Resume) => "resumable",
            (_, Next::Reclaim(_)) => "reclaimable",
        },
    }
}

/// How often each pair of state and operation was met.
#[derive(Debug, Default, Clone)]
pub struct Coverage {
    pairs: BTreeMap<(&'static str, &'static str), u64>,
    pub operations: u64,
}

impl Coverage {
    pub(super) fn note(&mut self, state: &State, now: TimestampMs, command: &Command) {
        self.operations += 1;
        let Some(id) = command.execution_id() else { return };
        let found = state_of(state.executions.get(&id).map(AsRef::as_ref), now);
        *self.pairs.entry((found, command.name())).or_default() += 1;
    }

    pub(super) fn note_claim(&mut self, state: &State, now: TimestampMs, claim: &Claim) {
        self.operations += 1;
        for share in &claim.lanes {
            let view = QueueView {
                namespace: claim.namespace.clone(),
                lane: share.lane.clone(),
                capabilities: claim.capabilities.clone(),
            };
            for (_, id) in state.queue(&view) {
                let found = state_of(state.executions.get(&id).map(AsRef::as_ref), now);
                *self.pairs.entry((found, Claim::NAME)).or_default() += 1;
            }
        }
    }

    pub fn merge(&mut self, other: Self) {
        self.operations += other.operations;
        for (pair, count) in other.pairs {
            *self.pairs.entry(pair).or_default() += count;
        }
    }

    /// Pairs that were never met, and states from which nothing was claimed.
    pub fn missing(&self) -> Vec<(&'static str, &'static str)> {
        let pairs = STATES.iter().flat_map(|state| OPERATIONS.map(|operation| (*state, operation)));
        let claimable =
            ["eligible", "eligible, retry", "eligible, replay", "resumable", "reclaimable"];
        let claims = claimable.map(|state| (state, Claim::NAME));
        pairs.chain(claims).filter(|pair| !self.pairs.contains_key(pair)).collect()
    }
}
