//! Explain: why an execution is where it is, in words a person can act on.

use ff_core::backend::BackendExt;
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::operation::Submit;
use ff_core::read::{Cause, Explain, Explanation};

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
