//! Why an execution was not admitted, or would not be.

use serde_json::json;

use super::action::{Action, Line};
use super::explanation::{Cause, Explanation, LimitFound, span};
use crate::read::{BudgetStatus, QuotaPolicyDescribed};
use crate::state::{AdmissionBlock, AdmissionReason, Breach, Execution, Runnable, Verdict};
use crate::time::TimestampMs;

/// Holders that a summary names; the evidence names more.
const NAMED: usize = 3;

/// Why it is kept back. What its limit is like now counts, not what it was like at the block.
pub(super) fn not_admitted(
    execution: &Execution,
    block: &AdmissionBlock,
    limit: Option<&LimitFound>,
    now: TimestampMs,
) -> Explanation {
    let mut explanation = match limit {
        Some(limit) => limited(execution, limit, now),
        None => without_limit(execution, block, now),
    };
    explanation.add(json!({ "blocked_since": block.since.rfc3339() }));
    explanation.unblock.push(Action::cancel(execution));
    explanation
}

/// Nothing keeps it back, but the next claim would be refused by this limit.
pub(super) fn would_refuse(
    execution: &Execution,
    runnable: &Runnable,
    limit: &LimitFound,
    now: TimestampMs,
) -> Explanation {
    let mut explanation = limited(execution, limit, now);
    explanation.add(json!({ "eligible_since": runnable.since.rfc3339() }));
    explanation.unblock.push(Action::cancel(execution));
    explanation
}

fn limited(execution: &Execution, limit: &LimitFound, now: TimestampMs) -> Explanation {
    match limit {
        LimitFound::Budget(status) => of_budget(execution, status, now),
        LimitFound::Quota { policy, verdict, in_window } => {
            of_quota(execution, policy, (*verdict, *in_window), now)
        }
    }
}

/// It waits for a worker, or which limit it is was not noted, or that limit is gone.
fn without_limit(execution: &Execution, block: &AdmissionBlock, now: TimestampMs) -> Explanation {
    let lane = &execution.about.lane;
    let required = &execution.policy().required_capabilities;
    let (cause, what, action) = match block.reason {
        AdmissionReason::Budget => (Cause::Budget, "budget", "raise or reset the budget"),
        AdmissionReason::Quota => (Cause::Quota, "quota", "raise the quota or wait for room"),
        AdmissionReason::Route => {
            (Cause::NoCapableWorker, "worker", "start a worker that can run it")
        }
    };
    let colon = if block.detail.is_empty() { "" } else { ": " };
    let summary = match block.reason {
        AdmissionReason::Route => {
            format!("No live worker of lane {lane:?} has {}.", required.as_csv())
        }
        _ if block.by.is_some() => {
            format!("The {what} that kept it back is gone, and it is let go soon.")
        }
        _ => format!("A {what} is used up{colon}{}.", block.detail),
    };
    let path = format!("{what}s");
    let mut explanation = Explanation {
        cause,
        summary,
        evidence: json!({ "lane": lane.as_str(), "required_capabilities": required }),
        unblock: vec![Action::new(
            &execution.about.namespace,
            action,
            &Line::new(&format!("{what} ls")),
            "GET",
            &[&path],
        )],
        earliest_start_at: block.by.map(|_| now),
    };
    if block.by.is_none() && block.reason != AdmissionReason::Route {
        explanation.add(json!({ "detail": block.detail }));
    }
    explanation
}

fn of_budget(execution: &Execution, status: &BudgetStatus, now: TimestampMs) -> Explanation {
    let namespace = &execution.about.namespace;
    let id = status.budget_id.to_string();
    let mut explanation = Explanation {
        cause: Cause::Budget,
        summary: format!("Budget {id} has room again, and it is let go soon."),
        evidence: json!({
            "budget_id": id,
            "next_reset_at": status.next_reset_at.map(TimestampMs::rfc3339),
        }),
        unblock: Vec::new(),
        earliest_start_at: Some(now),
    };
    let Some(first) = &status.blocked_by else {
        explanation.unblock.push(Action::new(
            namespace,
            "it has room again: wait a moment",
            &Line::new("budget show").arg(&id),
            "GET",
            &["budgets", &id],
        ));
        return explanation;
    };
    let reset = status.next_reset_at.map(|at| format!("; it is reset in {}", span(at.since(now))));
    let reset = reset.unwrap_or_default();
    let used_up = status.used_up();
    let said = |Breach { dimension, current, limit }: &Breach| {
        format!("{dimension} is at {current} of {limit}")
    };
    let all: Vec<_> = used_up.iter().map(said).collect();
    explanation.summary = format!("Budget {id} is used up: {}{reset}.", all.join(", "));
    explanation.add(evidence(first));
    if used_up.len() > 1 {
        explanation.add(json!({ "used_up": used_up.iter().map(evidence).collect::<Vec<_>>() }));
    }
    explanation.earliest_start_at = status.next_reset_at;
    let above = |Breach { dimension, current, .. }: &Breach| format!("{dimension} above {current}");
    let above: Vec<_> = used_up.iter().map(above).collect();
    explanation.unblock.push(Action::new(
        namespace,
        format!("raise {}", above.join(" and ")),
        &used_up.iter().fold(Line::new("budget set").arg(&id), |line, it| raised(line, status, it)),
        "PATCH",
        &["budgets", &id],
    ));
    explanation.unblock.push(Action::new(
        namespace,
        "reset the budget",
        &Line::new("budget reset").arg(&id),
        "POST",
        &["budgets", &id, "reset"],
    ));
    explanation
}

fn evidence(Breach { dimension, current, limit }: &Breach) -> serde_json::Value {
    json!({ "dimension": dimension.as_str(), "used": current, "limit": limit })
}

/// Adds to a command what gives a dimension room again.
fn raised<'a>(line: Line<'a>, status: &BudgetStatus, of: &Breach) -> Line<'a> {
    let Breach { dimension, current, .. } = of;
    let line = line.option("--hard", &format!("{dimension}={}", current.saturating_add(1)));
    // What is set takes the place of both limits of a dimension.
    match status.dimensions.get(dimension).map_or(0, |found| found.limits.soft) {
        0 => line,
        soft => line.option("--soft", &format!("{dimension}={soft}")),
    }
}

fn of_quota(
    execution: &Execution,
    described: &QuotaPolicyDescribed,
    (verdict, in_window): (Verdict, u32),
    now: TimestampMs,
) -> Explanation {
    let (policy, spec) = (&described.policy, described.policy.spec);
    let id = policy.quota_policy_id.to_string();
    let holders: Vec<_> =
        described.holders.iter().map(|holder| holder.slot.execution_id.to_string()).collect();
    let set = Line::new("quota set").arg(&id);
    let (summary, retry_after_ms, action, line, method) = match verdict {
        Verdict::Admit => (
            format!("Quota policy {id} has room again, and it is let go soon."),
            Some(0),
            "it has room again: wait a moment".to_owned(),
            Line::new("quota show").arg(&id),
            "GET",
        ),
        Verdict::RateExceeded { retry_after_ms } => {
            let (most, window) = (spec.max_requests_per_window, spec.window_seconds);
            // More than that may be in the window, if it was larger.
            let (more, left) = (in_window.max(most).saturating_add(1), span(retry_after_ms));
            (
                format!("Quota policy {id} lets in {most} in {window} s, and again in {left}."),
                Some(retry_after_ms),
                format!("raise max requests to {more}"),
                set.option("--max-requests", &more),
                "PATCH",
            )
        }
        // Nobody knows when a holder ends.
        Verdict::ConcurrencyExceeded { .. } => {
            let more = policy.slots.saturating_add(1);
            (
                format!(
                    "All slots of quota policy {id} are taken, {}.",
                    by(&holders, policy.slots)
                ),
                None,
                format!("raise how many run at a time to {more}"),
                set.option("--max-concurrent", &more),
                "PATCH",
            )
        }
    };
    Explanation {
        cause: Cause::Quota,
        summary,
        evidence: json!({
            "quota_policy_id": id,
            "max_requests_per_window": spec.max_requests_per_window,
            "window_seconds": spec.window_seconds,
            "requests_in_window": in_window,
            "max_concurrent": spec.max_concurrent,
            "slots": policy.slots,
            "waiting": policy.waiting,
            "holders": holders,
            "retry_after_ms": retry_after_ms,
        }),
        unblock: vec![Action::new(
            &execution.about.namespace,
            action,
            &line,
            method,
            &["quotas", &id],
        )],
        earliest_start_at: retry_after_ms.map(|ms| now.after(ms)),
    }
}

/// Who has the slots, in words.
fn by(holders: &[String], slots: u32) -> String {
    let named = &holders[..holders.len().min(NAMED)];
    let others = slots.saturating_sub(u32::try_from(named.len()).unwrap_or(u32::MAX));
    match others {
        0 => format!("by {}", named.join(", ")),
        others if named.is_empty() => format!("by {others} executions"),
        others => format!("by {} and {others} more", named.join(", ")),
    }
}
