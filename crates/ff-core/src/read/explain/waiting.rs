//! Why a runnable execution is not run.

use serde_json::{Value, json};

use super::action::{Action, Line};
use super::explanation::{Around, Cause, Explained, Explanation, Upstream, span};
use super::limits::{not_admitted, would_refuse};
use crate::state::{
    AdmissionReason, Delay, DelayReason, EdgeKind, Execution, Grant, LostBy, Member, Next, Route,
    Runnable,
};
use crate::time::TimestampMs;

/// The first of its causes, in the order in which they would have to go.
pub(super) fn waiting(
    execution: &Execution,
    runnable: &Runnable,
    around: &Around,
    now: TimestampMs,
) -> Explained {
    let causes = &runnable.causes;
    if let Some(detail) = &causes.hold {
        return held(execution, runnable, detail).into();
    }
    if let (true, Some(member)) = (causes.waits_for_members(), &execution.member) {
        return blocked(execution, member, runnable, &around.upstreams).into();
    }
    if let Some(grant) = runnable.live_grant(now) {
        return granted(execution, grant, now).into();
    }
    if let Some(delay) = causes.delay {
        return delayed(execution, delay, now).into();
    }
    if let Some(block) = &causes.admission {
        let route = (block.reason == AdmissionReason::Route).then(|| Route::of(execution));
        let explanation = not_admitted(execution, block, around.limit.as_ref(), now);
        return Explained { explanation, route };
    }
    if !around.lane.gives_claims() {
        return lane_paused(execution, runnable, around).into();
    }
    if let Some(limit) = &around.limit {
        return would_refuse(execution, runnable, limit, now).into();
    }
    match runnable.next {
        Next::Reclaim(by) => reclaimable(execution, by, now).into(),
        _ => Explained {
            explanation: eligible(execution, runnable, now),
            route: Some(Route::of(execution)),
        },
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
        evidence: json!({ "detail": detail, "held_since": runnable.since.rfc3339() }),
        unblock: vec![Action::on(execution, "release the hold", "release")],
        earliest_start_at: None,
    }
}

/// Others of its flow have not ended.
fn blocked(
    execution: &Execution,
    member: &Member,
    runnable: &Runnable,
    upstreams: &[Upstream],
) -> Explanation {
    let group = &member.group;
    let children = runnable.causes.children;
    let summary = match children {
        Some(children) => {
            let left = children.total - children.ended;
            format!("It waits for {left} of {} members.", children.total)
        }
        None => format!("{} of {} edges to it are unresolved.", group.unresolved(), group.edges),
    };
    Explanation {
        cause: Cause::Dependencies,
        summary,
        evidence: json!({
            "flow_id": member.flow_id.to_string(),
            "edges": group.edges,
            "satisfied": group.satisfied,
            "impossible": group.impossible,
            "unresolved": group.unresolved(),
            "waits_for": upstreams.iter().map(waited_for).collect::<Vec<_>>(),
            "children": children.map(|c| json!({ "total": c.total, "ended": c.ended })),
            "blocked_since": runnable.since.rfc3339(),
        }),
        unblock: vec![Action::show_flow(execution, member.flow_id), Action::cancel(execution)],
        earliest_start_at: None,
    }
}

fn waited_for(upstream: &Upstream) -> Value {
    json!({
        "execution_id": upstream.execution_id.to_string(),
        "name": upstream.name,
        "public_state": upstream.state.as_str(),
        "kind": upstream.kind.map(EdgeKind::as_str),
    })
}

fn lane_paused(execution: &Execution, runnable: &Runnable, around: &Around) -> Explanation {
    let (lane, state) = (&execution.about.lane, around.lane.as_str());
    let mut evidence = json!({
        "lane": lane.as_str(),
        "lane_state": state,
        "eligible_since": runnable.since.rfc3339(),
    });
    let mut why = String::new();
    if let Some(reason) = &around.lane_reason {
        evidence["lane_reason"] = reason.as_str().into();
        why = format!(" ({reason})");
    }
    Explanation {
        cause: Cause::LanePaused,
        summary: format!("It is ready; its lane {lane:?} is {state}{why}."),
        evidence,
        unblock: vec![Action::new(
            &execution.about.namespace,
            "resume the lane",
            &Line::new("lane resume").arg(lane),
            "POST",
            &["lanes", lane, "resume"],
        )],
        earliest_start_at: None,
    }
}

fn delayed(execution: &Execution, Delay { until, reason }: Delay, now: TimestampMs) -> Explanation {
    let left = span(until.since(now));
    let mut explanation = Explanation {
        cause: Cause::Delayed,
        summary: format!("It was asked to wait; {left} are left."),
        evidence: json!({ "delay_until": until.rfc3339() }),
        unblock: vec![Action::cancel(execution)],
        earliest_start_at: Some(until),
    };
    match reason {
        DelayReason::Requested => {}
        DelayReason::Resume => explanation.cause = Cause::ResumeDelay,
        DelayReason::RetryBackoff => retrying(execution, &left, &mut explanation),
    }
    explanation
}

fn retrying(execution: &Execution, left: &str, explanation: &mut Explanation) {
    let (retries, most) = (execution.counts.retries, execution.policy().retry.max_retries);
    let failure = execution.failure.as_ref();
    let reason = failure.map_or("", |failure| failure.reason.as_str());
    explanation.cause = Cause::RetryBackoff;
    explanation.summary =
        format!("The last attempt failed ({reason}); retry {retries} of {most} starts in {left}.");
    explanation.add(json!({
        "retry_count": retries,
        "max_retries": most,
        "failure_reason": reason,
        "failure_category": failure.map(|failure| failure.category.as_str()),
    }));
}

fn granted(execution: &Execution, grant: &Grant, now: TimestampMs) -> Explanation {
    let (worker, until) = (&grant.worker_id, grant.expires_at);
    let left = span(until.since(now));
    Explanation {
        cause: Cause::Granted,
        summary: format!(
            "It is set aside for worker {worker:?}, which may claim it for another {left}."
        ),
        evidence: json!({
            "kind": grant.kind.as_str(),
            "worker_id": worker.as_str(),
            "worker_instance_id": grant.worker_instance_id.as_deref(),
            "grant_expires_at": until.rfc3339(),
        }),
        unblock: vec![
            Action::on(execution, "hold it, which takes the grant back", "hold"),
            Action::cancel(execution),
        ],
        earliest_start_at: Some(now),
    }
}

fn eligible(execution: &Execution, runnable: &Runnable, now: TimestampMs) -> Explanation {
    let (namespace, lane) = (&execution.about.namespace, &execution.about.lane);
    let required = &execution.policy().required_capabilities;
    let skills = if required.is_empty() {
        String::new()
    } else {
        format!(" with capabilities {}", required.as_csv())
    };
    let waited = now.since(runnable.since);
    let ready = span(waited);
    let start =
        Action::start_worker(namespace, format!("start a worker for lane {lane:?}{skills}"));
    Explanation {
        cause: Cause::WaitingForWorker,
        summary: format!("Ready for {ready}; no worker of lane {lane:?}{skills} has taken it."),
        evidence: json!({
            "lane": lane.as_str(),
            "eligible_since": runnable.since.rfc3339(),
            "waited_ms": waited,
            "required_capabilities": required,
            "priority": execution.priority,
        }),
        unblock: [start].into_iter().chain(Action::raise_priority(execution)).collect(),
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
        unblock: vec![Action::start_worker(
            &execution.about.namespace,
            format!("start a worker for lane {:?}", execution.about.lane),
        )],
        earliest_start_at: Some(now),
    }
}
