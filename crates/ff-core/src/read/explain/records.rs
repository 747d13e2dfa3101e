//! What the records of an execution tell.

use serde_json::{Value, json};

use super::action::Action;
use super::explanation::{Around, Cause, Explained, Explanation};
use super::suspended::suspended;
use super::waiting::waiting;
use crate::state::{Execution, Lease, Member, Outcome, Phase, Terminal};
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
        unblock: vec![Action::cancel(execution), Action::show_flow(execution, flow)],
        earliest_start_at: None,
    }
}

fn running(execution: &Execution, lease: &Lease) -> Explanation {
    Explanation {
        cause: Cause::Running,
        summary: format!(
            "{:?} runs it since {}.",
            lease.worker_instance_id,
            lease.acquired_at.rfc3339()
        ),
        evidence: lease_evidence(execution, lease),
        unblock: vec![Action::revoke(execution, "take the lease away"), Action::cancel(execution)],
        earliest_start_at: None,
    }
}

fn lost(execution: &Execution, lease: &Lease) -> Explanation {
    Explanation {
        cause: Cause::LeaseLost,
        summary: format!(
            "The lease of {:?} ran out at {}; it becomes claimable within a second.",
            lease.worker_instance_id,
            lease.expires_at.rfc3339()
        ),
        evidence: lease_evidence(execution, lease),
        unblock: vec![Action::revoke(execution, "take the lease away now")],
        earliest_start_at: Some(lease.expires_at),
    }
}

fn lease_evidence(execution: &Execution, lease: &Lease) -> Value {
    json!({
        "worker_id": lease.worker_id.as_str(),
        "worker_instance_id": lease.worker_instance_id.as_str(),
        "lease_epoch": execution.lease_epoch,
        "lease_expires_at": lease.expires_at.rfc3339(),
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
            "completed_at": terminal.at.rfc3339(),
            "reason": because,
            "kept_until": terminal.kept_until.rfc3339(),
        }),
        unblock: vec![Action::on(execution, "run it again", "replay")],
        earliest_start_at: None,
    }
}
