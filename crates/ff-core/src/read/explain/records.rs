//! What the records of an execution tell.

use serde_json::{Value, json};

use super::explanation::{Action, Around, Cause, Explained, Explanation};
use super::waiting::waiting;
use crate::id::SignalName;
use crate::state::{
    Execution, Lease, Member, Outcome, Phase, Suspension, Terminal, Waitpoint, WaitpointState,
};
use crate::time::TimestampMs;

/// Explains where `execution` stands at `now`.
pub fn explain(execution: &Execution, around: &Around, now: TimestampMs) -> Explained {
    if let (Some(reason), Some(member)) = (&around.stopped, &execution.member) {
        return flow_cancelled(execution, member, reason).into();
    }
    match &execution.phase {
        Phase::Runnable(runnable) => waiting(execution, runnable, around, now),
        Phase::Active(lease) if lease.is_over(now) => lost(execution, lease).into(),
        Phase::Active(lease) => running(execution, lease).into(),
        Phase::Suspended(suspension) => suspended(execution, suspension).into(),
        Phase::Terminal(terminal) => finished(execution, terminal).into(),
    }
}

fn flow_cancelled(execution: &Execution, member: &Member, reason: &str) -> Explanation {
    let flow = member.flow_id;
    let because = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
    Explanation {
        cause: Cause::FlowCancelled,
        summary: format!("Its flow was cancelled{because}; it is cancelled with it in a moment."),
        evidence: json!({ "flow_id": flow.to_string(), "reason": reason }),
        unblock: vec![Action::cancel(execution), Action::show_flow(flow)],
        earliest_start_at: None,
    }
}

fn running(execution: &Execution, lease: &Lease) -> Explanation {
    Explanation {
        cause: Cause::Running,
        summary: format!("{:?} runs it since {}.", lease.worker_instance_id, lease.acquired_at),
        evidence: lease_evidence(execution, lease),
        unblock: vec![
            Action::on(execution, "take the lease away", "revoke", "POST", "revoke-lease"),
            Action::cancel(execution),
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
        unblock: vec![Action::on(
            execution,
            "take the lease away now",
            "revoke",
            "POST",
            "revoke-lease",
        )],
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
        unblock: vec![Action::on(execution, "run it again", "replay", "POST", "replay")],
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
        unblock.push(Action::on(execution, &summary, "approve", "POST", &route));
    }
    unblock.push(Action::on(execution, "resume it by hand", "resume", "POST", "resume"));
    unblock.push(Action::cancel(execution));
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
