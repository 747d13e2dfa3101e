//! Explain: why an execution is where it is, in words a person can act on.

use ff_core::backend::BackendExt;
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::operation::{Claim, CreateBudget, RegisterWorker, Submit, Suspend, UpdateBudget};
use ff_core::policy::Policy;
use ff_core::read::{Cause, Explain, Explanation};
use ff_core::state::{
    Attached, BlockingReason, CancelPolicy, Condition, ResumePolicy, SuspensionReason,
    TimeoutBehavior,
};

use crate::fleet::{block, drain, register};
use crate::limits::{budget, cap, limits_of, rate, usage};
use crate::waits::{named, suspend, wildcard, within};
use crate::world::{World, cancel, capabilities, delay, fail, hold, lane, policy, revoke};

async fn explain(world: &World, id: ExecutionId) -> Explanation {
    let explanation = world.backend.explain(id).await.unwrap().unwrap();
    assert!(explanation.summary.ends_with('.'), "one sentence: {}", explanation.summary);
    explanation
}

fn able(name: &str, tokens: &[&str], max_concurrent: u32) -> RegisterWorker {
    RegisterWorker { capabilities: capabilities(tokens), max_concurrent, ..register(name) }
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
    world.act(able("w-1", &["gpu"], 1)).await;
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
    assert_eq!(explanation.evidence["capable_workers"], 1);
    assert_eq!(explanation.unblock[0].route, "POST /v1/workers");
    assert_eq!(explanation.unblock[1].cli, format!("ff priority '{id}' 5"));
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

pub async fn a_used_up_budget_says_how_much_more_it_takes(world: &World) {
    let create = CreateBudget { reset_interval_ms: 60_000, ..budget(&[("tokens", 10, 0)]) };
    let spent = world.budget(create).await;
    let resets = world.now().await.after(60_000);
    world.act(usage(spent, &[("tokens", 12)])).await;
    let attached = Attached::new([spent], None);
    let policy = Policy { attached, ..Policy::default() }.into();
    let id = world.submit(Submit { policy, ..world.work() }).await;
    assert_eq!(world.claim_ids(1).await, []);
    let told = explain(world, id).await;
    assert_eq!((told.cause, told.earliest_start_at), (Cause::Budget, Some(resets)));
    assert_eq!(told.evidence["budget_id"], spent.to_string());
    assert_eq!(told.evidence["dimension"], "tokens");
    assert_eq!((&told.evidence["used"], &told.evidence["limit"]), (&12.into(), &10.into()));
    assert_eq!(told.unblock[0].cli, format!("ff budget set {spent} --hard tokens=13"));
    assert_eq!(told.unblock[0].route, format!("PATCH /v1/budgets/{spent}"));
    assert_eq!(told.unblock[1].cli, format!("ff budget reset {spent}"));
    let dimensions = limits_of(&[("tokens", 13, 0)]);
    let raise = UpdateBudget { dimensions, ..UpdateBudget::new(spent) };
    world.command(raise.into()).await.unwrap();
    let told = explain(world, id).await;
    assert_eq!((told.cause, &told.evidence["used"].as_u64()), (Cause::Budget, &None));
    assert!(told.unblock[0].summary.contains("room"), "{:?}", told.unblock);
}

pub async fn a_full_quota_says_who_holds_it_and_when_to_come_back(world: &World) {
    let full = world.quota(cap(1)).await;
    let busy = world.quota(rate(1, 60)).await;
    for (id, limit, retry_after_ms, flag) in [
        (full, "max_concurrent", limits::SLOT_RETRY_MS, "--max-concurrent 2"),
        (busy, "max_requests_per_window", 60_000, "--max-requests 2"),
    ] {
        let attached = Attached::new([], Some(id));
        let policy = Policy { attached, ..Policy::default() }.into();
        let submit = Submit { policy, ..world.work() };
        let holder = world.start(submit.clone()).await.execution_id;
        let waits = world.submit(Submit { execution_id: world.somebody(), ..submit }).await;
        assert_eq!(world.claim_ids(1).await, []);
        let told = explain(world, waits).await;
        assert_eq!((told.cause, &told.evidence[limit]), (Cause::Quota, &1.into()));
        assert_eq!(told.evidence["quota_policy_id"], id.to_string());
        assert_eq!(told.evidence["holders"][0], holder.to_string());
        assert_eq!(told.evidence["waiting"], 1);
        assert_eq!(told.evidence["retry_after_ms"], retry_after_ms);
        assert_eq!(told.earliest_start_at, Some(world.now().await.after(retry_after_ms)));
        assert_eq!(told.unblock[0].cli, format!("ff quota set {id} {flag}"));
        assert_eq!(told.unblock[0].route, format!("PATCH /v1/quotas/{id}"));
    }
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
