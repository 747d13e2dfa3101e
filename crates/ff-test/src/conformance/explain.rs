//! Explain: why an execution is where it is, in words a person can act on.

use ff_core::backend::BackendExt;
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::operation::{Submit, Suspend};
use ff_core::read::{Cause, Explain, Explanation};
use ff_core::state::{Condition, ResumePolicy, SuspensionReason, TimeoutBehavior};

use crate::waits::{named, suspend, wildcard, within};
use crate::world::{World, cancel, delay, fail, hold, policy, revoke};

async fn explain(world: &World, id: ExecutionId) -> Explanation {
    let explanation = world.backend.ask(Explain { execution_id: id }).await.unwrap().unwrap();
    assert!(explanation.summary.ends_with('.'), "one sentence: {}", explanation.summary);
    explanation
}

/// The first way out is this verb on this execution, as a command and as a route.
fn assert_way_out(explanation: &Explanation, id: ExecutionId, verb: &str) {
    let action = &explanation.unblock[0];
    assert_eq!(action.cli, format!("ff {verb} '{id}'"));
    assert!(action.route.contains(&format!("/v1/executions/{id}/")), "{}", action.route);
}

pub async fn an_eligible_execution_waits_for_a_worker(world: &World) {
    let required = r#"{"routing_requirements":{"required_capabilities":["gpu"]}}"#;
    let since = world.now().await;
    let submit = Submit { policy: policy(required), priority: 4, ..world.work() };
    let id = world.submit(submit).await;
    world.advance(1_500).await;
    let explanation = explain(world, id).await;
    assert_eq!(explanation.cause, Cause::WaitingForWorker);
    assert_eq!(explanation.evidence["lane"], "work");
    assert_eq!(explanation.evidence["eligible_since"], since.0);
    assert_eq!(explanation.evidence["waited_ms"], 1_500);
    assert_eq!(explanation.evidence["required_capabilities"][0], "gpu");
    assert_eq!(explanation.evidence["priority"], 4);
    assert!(explanation.summary.contains("gpu"), "{}", explanation.summary);
    assert_eq!(explanation.earliest_start_at, Some(world.now().await));
    assert_eq!(explanation.unblock[0].route, "GET /v1/workers");
}

pub async fn a_delayed_execution_says_until_when(world: &World) {
    let until = world.now().await.after(5_000);
    let id = world.submit(Submit { delay_until: Some(until), ..world.work() }).await;
    let explanation = explain(world, id).await;
    assert_eq!((explanation.cause, explanation.earliest_start_at), (Cause::Delayed, Some(until)));
    assert_eq!(explanation.evidence["delay_until"], until.0);
    assert_way_out(&explanation, id, "cancel");
    let task = world.start(world.work()).await;
    world.act(delay(&task, 5_000)).await;
    let explanation = explain(world, task.execution_id).await;
    assert_eq!((explanation.cause, explanation.earliest_start_at), (Cause::Delayed, Some(until)));
}

pub async fn a_retry_says_what_failed_and_when_it_starts(world: &World) {
    let task = world.start(world.work()).await;
    world.act(fail(&task, "rate limit")).await;
    let until = world.now().await.after(1_000);
    let explanation = explain(world, task.execution_id).await;
    assert_eq!(explanation.cause, Cause::RetryBackoff);
    assert_eq!(explanation.earliest_start_at, Some(until));
    assert_eq!(explanation.evidence["retry_count"], 1);
    assert_eq!(explanation.evidence["max_retries"], 3);
    assert_eq!(explanation.evidence["failure_reason"], "it broke");
    assert_eq!(explanation.evidence["failure_category"], "rate limit");
    assert!(explanation.summary.contains("it broke"), "{}", explanation.summary);
}

pub async fn a_held_execution_says_why_and_how_to_release_it(world: &World) {
    let until = Some(world.now().await.after(5_000));
    let id = world.submit(Submit { delay_until: until, ..world.work() }).await;
    world.act(hold(id)).await;
    let explanation = explain(world, id).await;
    assert_eq!((explanation.cause, explanation.earliest_start_at), (Cause::OperatorHold, None));
    assert_eq!(explanation.evidence["detail"], "audit");
    assert_eq!(explanation.evidence["held_since"], world.now().await.0);
    assert_way_out(&explanation, id, "release");
}

pub async fn a_running_execution_says_who_runs_it(world: &World) {
    let task = world.start(world.work()).await;
    let explanation = explain(world, task.execution_id).await;
    assert_eq!((explanation.cause, explanation.earliest_start_at), (Cause::Running, None));
    assert_eq!(explanation.evidence["worker_id"], "pool");
    assert_eq!(explanation.evidence["worker_instance_id"], "pool-1");
    assert_eq!(explanation.evidence["lease_epoch"], 1);
    assert_eq!(explanation.evidence["lease_expires_at"], task.expires_at.0);
    assert_way_out(&explanation, task.execution_id, "revoke");
}

pub async fn a_lost_lease_is_told_before_and_after_it_was_handled(world: &World) {
    let task = world.start(world.work()).await;
    world.advance(limits::LEASE_TTL_MS.cast_signed()).await;
    let explanation = explain(world, task.execution_id).await;
    assert_eq!(explanation.cause, Cause::LeaseLost);
    assert_eq!(explanation.earliest_start_at, Some(task.expires_at));
    world.settle().await;
    let explanation = explain(world, task.execution_id).await;
    assert_eq!(explanation.cause, Cause::LeaseLost);
    assert_eq!(explanation.evidence["last_worker_instance_id"], "pool-1");
    assert_eq!(explanation.evidence["reclaim_count"], 1);
    assert_eq!(explanation.evidence["max_reclaim_count"], 100);
    world.act(revoke(world.claim_one().await.execution_id)).await;
    let explanation = explain(world, task.execution_id).await;
    assert_eq!(explanation.cause, Cause::LeaseLost);
    assert!(explanation.summary.contains("revoked"), "{}", explanation.summary);
}

pub async fn a_finished_execution_says_how_it_ended(world: &World) {
    let done = world.finish(world.work()).await.execution_id;
    let cancelled = world.submit(world.work()).await;
    world.act(cancel(cancelled)).await;
    let failed = world.start(world.work()).await;
    world.act(fail(&failed, "permanent")).await;
    for (id, outcome, reason) in [
        (done, "success", None),
        (cancelled, "cancelled", Some("not wanted")),
        (failed.execution_id, "failed", Some("it broke")),
    ] {
        let explanation = explain(world, id).await;
        assert_eq!((explanation.cause, explanation.earliest_start_at), (Cause::Finished, None));
        assert_eq!(explanation.evidence["outcome"], outcome);
        assert_eq!(explanation.evidence["reason"].as_str(), reason);
        assert_eq!(explanation.evidence["completed_at"], world.now().await.0);
        assert!(explanation.summary.contains(outcome), "{}", explanation.summary);
        assert_way_out(&explanation, id, "replay");
    }
}

pub async fn a_suspended_execution_says_what_it_waits_for(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    let both = Condition::AllOf(vec![named("a", "yes"), named("b", "yes")]);
    let reason = SuspensionReason("waiting_for_approval".to_owned());
    let requester = Some("ada".to_owned());
    let asked = Suspend { reason, requester, ..suspend(&task, both) };
    let asked = within(5_000, TimeoutBehavior::Escalate, asked);
    let since = world.now().await;
    let waitpoints = world.suspend(asked.clone()).await;
    world.signal(&task, &waitpoints[1], "yes").await;
    world.signal(&task, &waitpoints[1], "no").await;
    let explanation = explain(world, id).await;
    assert_eq!(explanation.cause, Cause::Suspended);
    assert_eq!(explanation.cause.as_str(), "suspended");
    assert_eq!(explanation.earliest_start_at, Some(since.after(5_000)));
    let evidence = &explanation.evidence;
    assert_eq!(evidence["suspension_id"], asked.suspension_id.to_string());
    assert_eq!(evidence["reason"], "waiting_for_approval");
    assert_eq!(evidence["requester"], "ada");
    assert_eq!(evidence["suspended_since"], since.0);
    for (place, waitpoint) in waitpoints.iter().enumerate() {
        let told = &evidence["waitpoints"][place];
        assert_eq!(told["waitpoint_id"], waitpoint.waitpoint_id.to_string());
        assert_eq!(told["key"], waitpoint.key.as_str());
        assert!(!format!("{explanation:?}").contains(waitpoint.token.expose()));
    }
    assert_eq!(evidence["accepted_signals"][0], "yes");
    assert_eq!(evidence["accepted_signals"][1], "no");
    assert_eq!(evidence["timeout_at"], since.after(5_000).0);
    assert_eq!(evidence["timeout_behavior"], "escalate");
    assert_eq!(evidence["escalated"], false);
    assert_way_out(&explanation, id, "approve");
    let verbs: Vec<_> = explanation.unblock.iter().map(|action| action.cli.as_str()).collect();
    assert!(verbs.contains(&format!("ff resume '{id}'").as_str()), "{verbs:?}");
    assert!(verbs.contains(&format!("ff cancel '{id}'").as_str()), "{verbs:?}");
    world.pass(5_000).await;
    let explanation = explain(world, id).await;
    assert_eq!(explanation.evidence["escalated"], true);
    assert_eq!(explanation.evidence["timeout_at"].as_i64(), None);
    assert_eq!(explanation.earliest_start_at, None);
}

pub async fn what_only_an_operator_resumes_says_so(world: &World) {
    let (task, _) = world.suspended(Condition::OperatorOnly).await;
    let explanation = explain(world, task.execution_id).await;
    assert_eq!((explanation.cause, explanation.earliest_start_at), (Cause::Suspended, None));
    assert_way_out(&explanation, task.execution_id, "resume");
}

pub async fn a_delayed_resume_says_until_when(world: &World) {
    let task = world.start(world.work()).await;
    let resume_policy = ResumePolicy { resume_delay_ms: 5_000, ..ResumePolicy::default() };
    let asked = Suspend { resume_policy, ..suspend(&task, wildcard("a")) };
    let [a] = world.suspend(asked).await.try_into().unwrap();
    world.signal(&task, &a, "go").await;
    let until = world.now().await.after(5_000);
    let explanation = explain(world, task.execution_id).await;
    assert_eq!(explanation.cause, Cause::ResumeDelay);
    assert_eq!(explanation.cause.as_str(), "resume_delay");
    assert_eq!(explanation.earliest_start_at, Some(until));
    assert_eq!(explanation.evidence["delay_until"], until.0);
    world.pass(5_000).await;
    assert_eq!(explain(world, task.execution_id).await.cause, Cause::WaitingForWorker);
}
