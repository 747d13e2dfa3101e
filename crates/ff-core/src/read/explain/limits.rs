//! Why an execution was not admitted.

use serde_json::json;

use super::explanation::{Action, Cause, Explanation, LimitFound};
use crate::read::{BudgetStatus, QuotaPolicyDescribed};
use crate::state::{AdmissionBlock, AdmissionReason, Breach, Execution, Verdict};
use crate::time::TimestampMs;

/// What the block says, and what its limit is like by now.
pub(super) fn not_admitted(
    execution: &Execution,
    block: &AdmissionBlock,
    limit: Option<&LimitFound>,
    now: TimestampMs,
) -> Explanation {
    let lane = &execution.about.lane;
    let required = &execution.policy().required_capabilities;
    let (cause, what) = match block.reason {
        AdmissionReason::Budget => (Cause::Budget, "A budget is used up".to_owned()),
        AdmissionReason::Quota => (Cause::Quota, "A quota is used up".to_owned()),
        AdmissionReason::Route => {
            let able = required.as_csv();
            (Cause::NoCapableWorker, format!("No live worker of lane {lane:?} has {able}"))
        }
    };
    let colon = if block.detail.is_empty() { "" } else { ": " };
    let mut explanation = Explanation {
        cause,
        summary: format!("{what}{colon}{}.", block.detail),
        evidence: json!({
            "detail": block.detail,
            "blocked_since": block.since.0,
            "lane": lane.as_str(),
            "required_capabilities": required,
        }),
        unblock: Vec::new(),
        earliest_start_at: None,
    };
    match limit {
        Some(LimitFound::Budget(status)) => of_budget(status, now, &mut explanation),
        Some(LimitFound::Quota { policy, verdict }) => {
            of_quota(policy, *verdict, now, &mut explanation);
        }
        None => explanation.unblock.push(look(block.reason)),
    }
    explanation.unblock.push(Action::cancel(execution));
    explanation
}

/// Which limit it is was not noted, or it is gone.
fn look(reason: AdmissionReason) -> Action {
    let (summary, what) = match reason {
        AdmissionReason::Budget => ("raise or reset the budget", "budget"),
        AdmissionReason::Quota => ("raise the quota or wait for room", "quota"),
        AdmissionReason::Route => ("start a worker that can run it", "worker"),
    };
    Action::new(summary, format!("ff {what} ls"), format!("GET /v1/{what}s"))
}

fn of_budget(status: &BudgetStatus, now: TimestampMs, explanation: &mut Explanation) {
    let id = status.budget_id;
    explanation.add(json!({
        "budget_id": id.to_string(),
        "next_reset_at": status.next_reset_at.map(|at| at.0),
    }));
    let Some(Breach { dimension, current, limit }) = &status.blocked_by else {
        explanation.earliest_start_at = Some(now);
        explanation.unblock.push(Action::new(
            "it has room again: wait a moment",
            format!("ff budget show {id}"),
            format!("GET /v1/budgets/{id}"),
        ));
        return;
    };
    explanation.add(json!({
        "dimension": dimension.as_str(),
        "used": current,
        "limit": limit,
    }));
    explanation.earliest_start_at = status.next_reset_at;
    let raised = current.saturating_add(1);
    explanation.unblock.push(Action::new(
        format!("raise {dimension} above {current}"),
        format!("ff budget set {id} --hard {dimension}={raised}"),
        format!("PATCH /v1/budgets/{id}"),
    ));
    explanation.unblock.push(Action::new(
        "reset the budget",
        format!("ff budget reset {id}"),
        format!("POST /v1/budgets/{id}/reset"),
    ));
}

fn of_quota(
    described: &QuotaPolicyDescribed,
    verdict: Verdict,
    now: TimestampMs,
    explanation: &mut Explanation,
) {
    let (policy, spec) = (&described.policy, described.policy.spec);
    let id = policy.quota_policy_id;
    let (limit, retry_after_ms) = match verdict {
        Verdict::Admit => (None, 0),
        Verdict::RateExceeded { retry_after_ms } => {
            let more = spec.max_requests_per_window.saturating_add(1);
            (Some(("max requests", "--max-requests", more)), retry_after_ms)
        }
        Verdict::ConcurrencyExceeded { retry_after_ms } => {
            let more = policy.slots.saturating_add(1);
            (Some(("how many run at a time", "--max-concurrent", more)), retry_after_ms)
        }
    };
    let holders = described.holders.iter().map(|holder| holder.slot.execution_id.to_string());
    explanation.add(json!({
        "quota_policy_id": id.to_string(),
        "max_requests_per_window": spec.max_requests_per_window,
        "window_seconds": spec.window_seconds,
        "max_concurrent": spec.max_concurrent,
        "slots": policy.slots,
        "waiting": policy.waiting,
        "holders": holders.collect::<Vec<_>>(),
        "retry_after_ms": retry_after_ms,
    }));
    explanation.earliest_start_at = Some(now.after(retry_after_ms));
    let action = match limit {
        Some((what, flag, more)) => Action::new(
            format!("raise {what} to {more}"),
            format!("ff quota set {id} {flag} {more}"),
            format!("PATCH /v1/quotas/{id}"),
        ),
        None => Action::new(
            "it has room again: wait a moment",
            format!("ff quota show {id}"),
            format!("GET /v1/quotas/{id}"),
        ),
    };
    explanation.unblock.push(action);
}
