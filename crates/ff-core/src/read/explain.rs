//! Why an execution is where it is, in words a person can act on.

use serde_json::{Value, json};

use crate::id::SignalName;
use crate::state::{
    DelayReason, Execution, Grant, Lease, LostBy, Member, Next, Outcome, Phase, Runnable,
    Suspension, Terminal, Waitpoint, WaitpointState,
};
use crate::time::TimestampMs;

/// One word for the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    Running,
    Finished,
    WaitingForWorker,
    Delayed,
    RetryBackoff,
    OperatorHold,
    LeaseLost,
    ResumeDelay,
    Suspended,
    Granted,
    Dependencies,
}

impl Cause {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::WaitingForWorker => "waiting_for_worker",
            Self::Delayed => "delayed",
            Self::RetryBackoff => "retry_backoff",
            Self::OperatorHold => "operator_hold",
            Self::LeaseLost => "lease_lost",
            Self::ResumeDelay => "resume_delay",
            Self::Suspended => "suspended",
            Self::Granted => "granted",
            Self::Dependencies => "dependencies",
        }
    }
}

/// The answer of `explain`.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    pub cause: Cause,
    /// One sentence.
    pub summary: String,
    pub evidence: Value,
    /// What would change it.
    pub unblock: Vec<Action>,
    pub earliest_start_at: Option<TimestampMs>,
}

/// One way to act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    pub summary: String,
    pub cli: String,
    pub route: String,
}

/// Explains where `execution` stands at `now`.
pub fn explain(execution: &Execution, now: TimestampMs) -> Explanation {
    match &execution.phase {
        Phase::Runnable(runnable) => waiting(execution, runnable, now),
        Phase::Active(lease) if lease.is_over(now) => lost(execution, lease),
        Phase::Active(lease) => running(execution, lease),
        Phase::Suspended(suspension) => suspended(execution, suspension),
        Phase::Terminal(terminal) => finished(execution, terminal),
    }
}

fn waiting(execution: &Execution, runnable: &Runnable, now: TimestampMs) -> Explanation {
    if let Some(detail) = &runnable.causes.hold {
        return held(execution, runnable, detail);
    }
    if let (true, Some(member)) = (runnable.causes.waits_for_members(), &execution.member) {
        return blocked(execution, member, runnable);
    }
    if let Some(grant) = runnable.live_grant(now) {
        return granted(execution, grant, now);
    }
    match (runnable.causes.delay, runnable.next) {
        (Some(delay), _) if delay.reason == DelayReason::RetryBackoff => {
            retrying(execution, delay.until)
        }
        (Some(delay), _) if delay.reason == DelayReason::Resume => {
            Explanation { cause: Cause::ResumeDelay, ..delayed(execution, delay.until) }
        }
        (Some(delay), _) => delayed(execution, delay.until),
        (None, Next::Reclaim(by)) => reclaimable(execution, by, now),
        (None, _) => eligible(execution, runnable, now),
    }
}

fn held(execution: &Execution, runnable: &Runnable, detail: &str) -> Explanation {
    Explanation {
        cause: Cause::OperatorHold,
        summary: if detail.is_empty() {
            "An operator holds it.".to_owned()
        } else {
            format!("An operator holds it: {detail}.")
        },
        evidence: json!({ "detail": detail, "held_since": runnable.since.0 }),
        unblock: vec![act(execution, "release the hold", "release", "POST", "release")],
        earliest_start_at: None,
    }
}

/// Others of its flow have not ended.
fn blocked(execution: &Execution, member: &Member, runnable: &Runnable) -> Explanation {
    let group = &member.group;
    let flow = member.flow_id;
    let children = runnable.causes.children;
    let summary = match children {
        Some(children) => {
            format!(
                "It waits for {} of {} members.",
                children.total - children.ended,
                children.total
            )
        }
        None => format!("{} of {} edges to it are unresolved.", group.unresolved(), group.edges),
    };
    let graph = Action {
        summary: "see what it waits for".to_owned(),
        cli: format!("ff flow show {flow}"),
        route: format!("GET /v1/flows/{flow}/graph"),
    };
    Explanation {
        cause: Cause::Dependencies,
        summary,
        evidence: json!({
            "flow_id": flow.to_string(),
            "edges": group.edges,
            "satisfied": group.satisfied,
            "impossible": group.impossible,
            "unresolved": group.unresolved(),
            "children": children.map(|c| json!({ "total": c.total, "ended": c.ended })),
            "blocked_since": runnable.since.0,
        }),
        unblock: vec![graph, cancel(execution)],
        earliest_start_at: None,
    }
}

fn retrying(execution: &Execution, until: TimestampMs) -> Explanation {
    let most = execution.policy().retry.max_retries;
    let failure = execution.failure.as_ref();
    let reason = failure.map_or("", |failure| failure.reason.as_str());
    Explanation {
        cause: Cause::RetryBackoff,
        summary: format!(
            "The last attempt failed ({reason}); retry {} of {most} starts at {until}.",
            execution.counts.retries
        ),
        evidence: json!({
            "retry_count": execution.counts.retries,
            "max_retries": most,
            "failure_reason": reason,
            "failure_category": failure.map(|failure| failure.category.as_str()),
            "delay_until": until.0,
        }),
        unblock: vec![cancel(execution)],
        earliest_start_at: Some(until),
    }
}

fn delayed(execution: &Execution, until: TimestampMs) -> Explanation {
    Explanation {
        cause: Cause::Delayed,
        summary: format!("It was asked to wait until {until}."),
        evidence: json!({ "delay_until": until.0 }),
        unblock: vec![cancel(execution)],
        earliest_start_at: Some(until),
    }
}

fn granted(execution: &Execution, grant: &Grant, now: TimestampMs) -> Explanation {
    let (worker, until) = (&grant.worker_id, grant.expires_at);
    Explanation {
        cause: Cause::Granted,
        summary: format!(
            "It is set aside for worker {worker:?}, which may claim it until {until}."
        ),
        evidence: json!({
            "kind": grant.kind.as_str(),
            "worker_id": worker.as_str(),
            "worker_instance_id": grant.worker_instance_id.as_deref(),
            "grant_expires_at": until.0,
        }),
        unblock: vec![
            act(execution, "hold it, which takes the grant back", "hold", "POST", "hold"),
            cancel(execution),
        ],
        earliest_start_at: Some(now),
    }
}

fn eligible(execution: &Execution, runnable: &Runnable, now: TimestampMs) -> Explanation {
    let lane = &execution.about.lane;
    let required = &execution.policy().required_capabilities;
    let skills = if required.is_empty() {
        String::new()
    } else {
        format!(" with capabilities {}", required.as_csv())
    };
    let waited = now.since(runnable.since);
    Explanation {
        cause: Cause::WaitingForWorker,
        summary: format!("Ready for {waited} ms; no worker of lane {lane:?}{skills} has taken it."),
        evidence: json!({
            "lane": lane.as_str(),
            "eligible_since": runnable.since.0,
            "waited_ms": waited,
            "required_capabilities": required,
            "priority": execution.priority,
        }),
        unblock: vec![
            Action {
                summary: format!("start a worker for lane {lane:?}{skills}"),
                cli: "ff worker ls".to_owned(),
                route: "GET /v1/workers".to_owned(),
            },
            act(execution, "raise its priority", "priority", "PUT", "priority"),
        ],
        earliest_start_at: Some(now),
    }
}

fn reclaimable(execution: &Execution, by: LostBy, now: TimestampMs) -> Explanation {
    let attempt = execution.attempt.as_ref();
    let instance = attempt.map_or("", |attempt| attempt.worker_instance_id.as_str());
    let how = match by {
        LostBy::Time => "ran out",
        LostBy::Revocation => "was revoked",
    };
    Explanation {
        cause: Cause::LeaseLost,
        summary: format!("The lease of {instance:?} {how}; it waits for a worker to take it up."),
        evidence: json!({
            "last_worker_instance_id": instance,
            "lease_epoch": execution.lease_epoch,
            "reclaim_count": execution.counts.reclaims,
            "max_reclaim_count": execution.policy().timeout.max_reclaim_count,
        }),
        unblock: vec![Action {
            summary: format!("start a worker for lane {:?}", execution.about.lane),
            cli: "ff worker ls".to_owned(),
            route: "GET /v1/workers".to_owned(),
        }],
        earliest_start_at: Some(now),
    }
}

fn running(execution: &Execution, lease: &Lease) -> Explanation {
    Explanation {
        cause: Cause::Running,
        summary: format!("{:?} runs it since {}.", lease.worker_instance_id, lease.acquired_at),
        evidence: lease_evidence(execution, lease),
        unblock: vec![
            act(execution, "take the lease away", "revoke", "POST", "revoke-lease"),
            cancel(execution),
        ],
        earliest_start_at: None,
    }
}

fn lost(execution: &Execution, lease: &Lease) -> Explanation {
    Explanation {
        cause: Cause::LeaseLost,
        summary: format!(
            "The lease of {:?} ran out at {}; it becomes claimable within a second.",
            lease.worker_instance_id, lease.expires_at
        ),
        evidence: lease_evidence(execution, lease),
        unblock: vec![act(execution, "take the lease away now", "revoke", "POST", "revoke-lease")],
        earliest_start_at: Some(lease.expires_at),
    }
}

fn lease_evidence(execution: &Execution, lease: &Lease) -> Value {
    json!({
        "worker_id": lease.worker_id.as_str(),
        "worker_instance_id": lease.worker_instance_id.as_str(),
        "lease_epoch": execution.lease_epoch,
        "lease_expires_at": lease.expires_at.0,
        "progress_pct": execution.progress.as_ref().map(|progress| progress.pct),
    })
}

fn finished(execution: &Execution, terminal: &Terminal) -> Explanation {
    let reason = match terminal.outcome {
        Outcome::Cancelled => terminal.cancellation.as_ref().map(|cancel| cancel.reason.as_str()),
        _ => execution.failure.as_ref().map(|failure| failure.reason.as_str()),
    };
    let because = reason.filter(|reason| !reason.is_empty());
    Explanation {
        cause: Cause::Finished,
        summary: match because {
            Some(reason) => format!("It ended as {}: {reason}.", terminal.outcome.as_str()),
            None => format!("It ended as {}.", terminal.outcome.as_str()),
        },
        evidence: json!({
            "outcome": terminal.outcome.as_str(),
            "completed_at": terminal.at.0,
            "reason": because,
            "kept_until": terminal.kept_until.0,
        }),
        unblock: vec![act(execution, "run it again", "replay", "POST", "replay")],
        earliest_start_at: None,
    }
}

fn suspended(execution: &Execution, suspension: &Suspension) -> Explanation {
    let open = |waitpoint: &&Waitpoint| waitpoint.state == WaitpointState::Open;
    let waitpoints: Vec<_> = execution.waits.open.iter().filter(open).collect();
    let keys: Vec<_> = waitpoints.iter().map(|waitpoint| waitpoint.key.as_str()).collect();
    let mut unblock = Vec::new();
    for waitpoint in &waitpoints {
        let route = format!("waitpoints/{}/approve", waitpoint.id);
        let summary = format!("approve {:?}", waitpoint.key);
        unblock.push(act(execution, &summary, "approve", "POST", &route));
    }
    unblock.push(act(execution, "resume it by hand", "resume", "POST", "resume"));
    unblock.push(cancel(execution));
    let timeout = suspension.timeout.as_ref();
    Explanation {
        cause: Cause::Suspended,
        summary: if keys.is_empty() {
            format!("It is suspended ({}) until somebody resumes it.", suspension.reason.0)
        } else {
            format!("It is suspended ({}) and listens on {}.", suspension.reason.0, keys.join(", "))
        },
        evidence: json!({
            "suspension_id": suspension.id.to_string(),
            "reason": suspension.reason.0,
            "requester": suspension.requester,
            "suspended_since": suspension.since.0,
            "escalated": suspension.escalated,
            "waitpoints": waitpoints
                .iter()
                .map(|w| json!({ "waitpoint_id": w.id.to_string(), "key": w.key.as_str() }))
                .collect::<Vec<_>>(),
            "accepted_signals": suspension.heard.iter().map(SignalName::as_str).collect::<Vec<_>>(),
            "timeout_at": timeout.map(|timeout| timeout.at.0),
            "timeout_behavior": timeout.map(|timeout| timeout.behavior.as_str()),
        }),
        unblock,
        earliest_start_at: timeout.map(|timeout| timeout.at),
    }
}

fn cancel(execution: &Execution) -> Action {
    act(execution, "cancel it", "cancel", "POST", "cancel")
}

fn act(execution: &Execution, summary: &str, verb: &str, method: &str, route: &str) -> Action {
    let id = execution.id;
    Action {
        summary: summary.to_owned(),
        cli: format!("ff {verb} '{id}'"),
        route: format!("{method} /v1/executions/{id}/{route}"),
    }
}
