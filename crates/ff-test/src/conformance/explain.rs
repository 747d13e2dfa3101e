//! Explain: why an execution is where it is, in words a person can act on.

use ff_core::backend::BackendExt;
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::operation::{Claim, RegisterWorker, Submit, Suspend};
use ff_core::read::{Cause, Explain, Explanation};
use ff_core::state::{BlockingReason, CancelPolicy, ResumePolicy};

use crate::fleet::{block, drain, register};
use crate::waits::{suspend, wildcard};
use crate::world::{World, cancel, capabilities, delay, fail, hold, lane, policy, revoke};

pub(super) async fn explain(world: &World, id: ExecutionId) -> Explanation {
    let explanation = world.backend.explain(id).await.unwrap().unwrap();
    assert!(explanation.summary.ends_with('.'), "one sentence: {}", explanation.summary);
    explanation
}

fn able(name: &str, tokens: &[&str], max_concurrent: u32) -> RegisterWorker {
    RegisterWorker { capabilities: capabilities(tokens), max_concurrent, ..register(name) }
}

/// The first way out is this verb on this execution, as a command and as a route.
pub(super) fn assert_way_out(explanation: &Explanation, id: ExecutionId, verb: &str) {
    let action = &explanation.unblock[0];
    assert_eq!(action.cli, format!("ff {verb} '{id}'"));
    assert!(action.route.starts_with(&format!("POST {}/", path(id))), "{}", action.route);
}

/// Where an execution stands in a URL.
pub(super) fn path(id: ExecutionId) -> String {
    let id = id.to_string().replace('{', "%7B").replace('}', "%7D");
    format!("/v1/executions/{id}")
}

pub async fn an_eligible_execution_waits_for_a_worker(world: &World) {
    let required = r#"{"routing_requirements":{"required_capabilities":["gpu"]}}"#;
    let since = world.now().await;
    let submit = Submit { policy: policy(required), priority: 4, ..world.work() };
    let id = world.submit(submit).await;
    world.act(able("w-1", &["gpu"], 1)).await;
    world.advance(1_500).await;
    let explanation = explain(world, id).await;
    assert_eq!(explanation.cause, Cause::WaitingForWorker);
    assert_eq!(explanation.evidence["lane"], "work");
    assert_eq!(explanation.evidence["eligible_since"], since.rfc3339());
    assert_eq!(explanation.evidence["waited_ms"], 1_500);
    assert_eq!(explanation.evidence["required_capabilities"][0], "gpu");
    assert_eq!(explanation.evidence["priority"], 4);
    assert!(explanation.summary.contains("gpu"), "{}", explanation.summary);
    assert_eq!(explanation.earliest_start_at, Some(world.now().await));
    assert_eq!(explanation.evidence["capable_workers"], 1);
    assert_eq!(explanation.unblock[0].route, "POST /v1/workers");
    assert_eq!(explanation.unblock[1].cli, format!("ff priority '{id}' 5"));
}

pub async fn the_highest_priority_is_not_to_be_raised(world: &World) {
    let highest = limits::PRIORITY_MAX.into();
    let id = world.submit(Submit { priority: highest, ..world.work() }).await;
    world.act(able("w-1", &[], 1)).await;
    let explanation = explain(world, id).await;
    assert_eq!(explanation.cause, Cause::WaitingForWorker);
    let offered: Vec<_> = explanation.unblock.iter().map(|action| &action.route).collect();
    assert_eq!(offered, ["POST /v1/workers"]);
    let id = world.submit(Submit { priority: highest - 1, ..world.work() }).await;
    assert_eq!(explain(world, id).await.unblock[1].cli, format!("ff priority '{id}' {highest}"));
}

pub async fn a_delayed_execution_says_until_when(world: &World) {
    let until = world.now().await.after(5_000);
    let id = world.submit(Submit { delay_until: Some(until), ..world.work() }).await;
    let explanation = explain(world, id).await;
    assert_eq!((explanation.cause, explanation.earliest_start_at), (Cause::Delayed, Some(until)));
    assert_eq!(explanation.evidence["delay_until"], until.rfc3339());
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
    assert_eq!(explanation.evidence["held_since"], world.now().await.rfc3339());
    assert_way_out(&explanation, id, "release");
}

pub async fn a_running_execution_says_who_runs_it(world: &World) {
    let task = world.start(world.work()).await;
    let explanation = explain(world, task.execution_id).await;
    assert_eq!((explanation.cause, explanation.earliest_start_at), (Cause::Running, None));
    assert_eq!(explanation.evidence["worker_id"], "pool");
    assert_eq!(explanation.evidence["worker_instance_id"], "pool-1");
    assert_eq!(explanation.evidence["lease_epoch"], 1);
    assert_eq!(explanation.evidence["lease_expires_at"], task.expires_at.rfc3339());
    let since = world.now().await.rfc3339();
    assert_eq!(explanation.summary, format!("\"pool-1\" runs it since {since}."));
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
        assert_eq!(explanation.evidence["completed_at"], world.now().await.rfc3339());
        let kept_until = explanation.evidence["kept_until"].as_str().unwrap();
        assert!(kept_until.ends_with('Z'), "{kept_until}");
        assert!(explanation.summary.contains(outcome), "{}", explanation.summary);
        assert_way_out(&explanation, id, "replay");
    }
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
    assert_eq!(explanation.evidence["delay_until"], until.rfc3339());
    world.pass(5_000).await;
    assert_eq!(explain(world, task.execution_id).await.cause, Cause::WaitingForWorker);
}

pub async fn what_nobody_can_run_names_the_nearest_worker(world: &World) {
    let id = world.submit(world.needing(&["a", "b", "c"])).await;
    let told = explain(world, id).await;
    assert_eq!((told.cause, told.earliest_start_at), (Cause::NoCapableWorker, None));
    assert_eq!(told.evidence["missing_capabilities"].as_array().unwrap().len(), 3);
    assert!(told.evidence["nearest_worker"].is_null());
    for (name, tokens) in [("w-1", &["a"][..]), ("w-2", &["a", "c", "d"]), ("w-3", &["b", "c"])] {
        world.act(able(name, tokens, 1)).await;
    }
    let elsewhere =
        RegisterWorker { lanes: vec![lane("other")], ..able("w-4", &["a", "b", "c"], 1) };
    world.act(elsewhere).await;
    world.act(able("w-5", &["a", "b", "c"], 1)).await;
    world.act(drain("w-5")).await;
    for blocked in [false, true] {
        if blocked {
            world.act(block(id, BlockingReason::WaitingForCapableWorker)).await;
        }
        let told = explain(world, id).await;
        assert_eq!(told.cause, Cause::NoCapableWorker);
        assert_eq!(told.evidence["nearest_worker"]["worker_instance_id"], "w-2");
        assert_eq!(told.evidence["nearest_worker"]["missing"][0], "b");
        assert_eq!(told.evidence["missing_capabilities"].as_array().unwrap().len(), 1);
        assert!(told.summary.contains("\"w-2\", lacks b"), "{}", told.summary);
        assert_eq!(told.unblock[0].route, "POST /v1/workers");
    }
    // Whoever registered it stops before anything is let go.
    world.command(able("w-6", &["a", "b", "c"], 1).into()).await.unwrap();
    let told = explain(world, id).await;
    assert!(told.summary.contains("\"w-6\" can"), "{}", told.summary);
}

pub async fn busy_workers_are_told_from_missing_ones(world: &World) {
    for name in ["w-1", "w-2"] {
        world.act(able(name, &["gpu"], 1)).await;
    }
    world.act(able("w-3", &[], 5)).await;
    let claim = |name: &str| Claim {
        worker_instance_id: crate::grants::instance(name),
        capabilities: capabilities(&["gpu"]),
        ..world.claim_request(1)
    };
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(world.submit(world.needing(&["gpu"])).await);
    }
    world.claim_as(claim("w-1")).await;
    let told = explain(world, ids[2]).await;
    assert_eq!(
        (told.cause, &told.evidence["capable_workers"]),
        (Cause::WaitingForWorker, &2.into())
    );
    world.claim_as(claim("w-2")).await;
    let told = explain(world, ids[2]).await;
    assert_eq!((told.cause, told.cause.as_str()), (Cause::AllWorkersBusy, "all_workers_busy"));
    assert_eq!(told.earliest_start_at, None);
    assert_eq!(
        (&told.evidence["running"], &told.evidence["max_concurrent"]),
        (&2.into(), &2.into())
    );
    assert_eq!(told.evidence["live_workers"], 3);
    let free = world.submit(world.work()).await;
    assert_eq!(explain(world, free).await.cause, Cause::WaitingForWorker, "w-3 has room");
}

pub async fn a_member_of_a_cancelled_flow_says_so(world: &World) {
    let drawn = world.submit_flow(world.draw_out(limits::FLOW_STEP as usize + 2)).await;
    world.act(drawn.cancel(CancelPolicy::CancelAll)).await;
    let told = explain(world, drawn.id("x")).await;
    assert_eq!((told.cause, told.cause.as_str()), (Cause::FlowCancelled, "flow_cancelled"));
    assert_eq!(told.evidence["flow_id"], drawn.flow_id.to_string());
    assert_way_out(&told, drawn.id("x"), "cancel");
    world.settle().await;
    assert_eq!(explain(world, drawn.id("x")).await.cause, Cause::Finished);
}

pub async fn a_member_names_those_that_it_waits_for(world: &World) {
    let drawn = world.submit_flow(world.draw_in(40)).await;
    for name in ["m0", "m1"] {
        world.run(&drawn, name).await;
    }
    let told = explain(world, drawn.id("x")).await;
    assert_eq!((told.cause, &told.evidence["unresolved"]), (Cause::Dependencies, &38.into()));
    let named = told.evidence["waits_for"].as_array().unwrap();
    assert_eq!(named.len(), limits::EXPLAIN_ITEMS as usize, "some of them");
    assert_eq!(named[0]["name"], "m2");
    assert_eq!(named[0]["execution_id"], drawn.id("m2").to_string());
    assert_eq!(
        (&named[0]["public_state"], &named[0]["kind"]),
        (&"waiting".into(), &"success_only".into())
    );
    assert_eq!(told.unblock[0].cli, format!("ff flow show {}", drawn.flow_id));
}

pub async fn records_alone_say_which_way_it_goes(world: &World) {
    let id = world.submit(world.needing(&["gpu"])).await;
    let told = world.backend.ask(Explain { execution_id: id }).await.unwrap().unwrap();
    assert_eq!(told.explanation.cause, Cause::WaitingForWorker);
    assert_eq!(told.route.unwrap().required, capabilities(&["gpu"]));
    world.act(hold(id)).await;
    let told = world.backend.ask(Explain { execution_id: id }).await.unwrap().unwrap();
    assert_eq!((told.explanation.cause, told.route), (Cause::OperatorHold, None));
}

pub async fn every_cause_has_a_name_of_its_own(_: &World) {
    let mut names: Vec<_> = Cause::ALL.iter().map(|cause| cause.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 17);
}
