//! Which operations met which states.

use std::collections::BTreeMap;

use ff_core::id::DocumentId;
use ff_core::machine::QueueView;
use ff_core::operation::{Claim, Command};
use ff_core::state::{
    Body, Budget, DelayReason, Document, Execution, GrantKind, Next, Outcome, Phase, QuotaPolicy,
};
use ff_core::time::TimestampMs;

use crate::oracle::State;

/// The states that the rules tell apart.
pub const STATES: [&str; 21] = [
    "absent",
    "eligible",
    "eligible, retry",
    "eligible, replay",
    "resumable",
    "reclaimable",
    "granted",
    "set aside",
    "blocked by edges",
    "waiting for children",
    "delayed",
    "retry backoff",
    "held",
    "blocked",
    "active",
    "active, lease over",
    "suspended",
    "success",
    "failed or expired",
    "cancelled",
    "skipped",
];

/// The operations that act on one execution.
pub const OPERATIONS: [&str; 42] = [
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
    "lose_lease",
    "block_execution_for_admission",
    "unblock_execution",
    "claim_admitted",
    "grant_admitted",
    "void_admission",
    "settle_slots",
    "end_for_budget",
];

/// The states of budgets, and the operations that act on one.
const BUDGET_STATES: [&str; 6] =
    ["no budget", "unused", "used", "above a soft limit", "at a hard limit", "period over"];
const BUDGET_OPERATIONS: [&str; 11] = [
    "create_budget",
    "update_budget",
    "report_usage",
    "report_usage_admin",
    "record_spend",
    "release_budget",
    "disown_usage",
    "recount_budget",
    "reset_budget",
    "delete_budget",
    "settle_budget",
];

/// The states of quota policies, and the operations that act on one.
const QUOTA_STATES: [&str; 7] =
    ["no policy", "free", "taken", "full", "waited for", "rate reached", "overdue"];
const QUOTA_OPERATIONS: [&str; 7] = [
    "create_quota_policy",
    "update_quota_policy",
    "delete_quota_policy",
    "check_admission",
    "confirm_admission",
    "release_admission",
    "settle_waking",
];

/// The state of a budget or quota policy by its name; none of anything else.
fn limit_state(state: &State, id: &DocumentId, now: TimestampMs) -> Option<&'static str> {
    use ff_core::id::DocumentKind::{Budget, QuotaPolicy};
    let found = state.documents.get(id).map(|found| &**found);
    match (id.kind, found.map(|Document { body, .. }| body)) {
        (_, Some(Body::Budget(budget))) => Some(budget_state(budget, now)),
        (_, Some(Body::QuotaPolicy(policy))) => Some(quota_state(policy, now)),
        (Budget, None) => Some("no budget"),
        (QuotaPolicy, None) => Some("no policy"),
        _ => None,
    }
}

fn budget_state(budget: &Budget, now: TimestampMs) -> &'static str {
    let mut counters = budget.dimensions.values();
    if budget.is_over(now) {
        "period over"
    } else if budget.breached(now).is_some() {
        "at a hard limit"
    } else if counters.clone().any(|counter| counter.breach(counter.used).is_some()) {
        "above a soft limit"
    } else if counters.any(|counter| counter.used > 0) {
        "used"
    } else {
        "unused"
    }
}

fn quota_state(policy: &QuotaPolicy, now: TimestampMs) -> &'static str {
    let edge = policy.window.edge.map(|edge| edge.after(policy.spec.window_ms()));
    if policy.pending.until.is_some_and(|at| at <= now) {
        "overdue"
    } else if edge.is_some_and(|at| at > now) {
        "rate reached"
    } else if policy.in_line() > 0 {
        "waited for"
    } else if policy.free_slots() == 0 {
        "full"
    } else if policy.slots > 0 {
        "taken"
    } else {
        "free"
    }
}

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
        Phase::Runnable(runnable) if runnable.live_grant(now).is_some() => {
            let is_aside = runnable.grant.as_ref().is_some_and(|g| g.kind == GrantKind::Admission);
            if is_aside { "set aside" } else { "granted" }
        }
        Phase::Runnable(runnable) => match (&runnable.causes, runnable.next) {
            (causes, _) if causes.hold.is_some() => "held",
            (causes, _) if causes.edges => "blocked by edges",
            (causes, _) if causes.children.is_some() => "waiting for children",
            (causes, _) if causes.delay.is_some_and(|d| d.reason == DelayReason::RetryBackoff) => {
                "retry backoff"
            }
            (causes, _) if causes.delay.is_some() => "delayed",
            (causes, _) if causes.admission.is_some() => "blocked",
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
        if let Some(document) = command.document_id(&state.settings.partitions)
            && let Some(found) = limit_state(state, &document, now)
        {
            *self.pairs.entry((found, command.name())).or_default() += 1;
        }
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
        let budgets =
            BUDGET_STATES.iter().flat_map(|state| BUDGET_OPERATIONS.map(|op| (*state, op)));
        let quotas = QUOTA_STATES.iter().flat_map(|state| QUOTA_OPERATIONS.map(|op| (*state, op)));
        let pairs = pairs.chain(claims).chain(budgets).chain(quotas);
        pairs.filter(|pair| !self.pairs.contains_key(pair)).collect()
    }
}
