//! Issuing a grant: one execution is set aside for one worker.

use ff_core::backend::BackendExt;
use ff_core::error::{Code, EngineError};
use ff_core::event::EventKind;
use ff_core::id::{PartitionFamily, PartitionKey};
use ff_core::limits;
use ff_core::operation::{ChangePriority, ClaimExecution, IssueClaimGrant, Release, Submit};
use ff_core::policy::Policy;
use ff_core::read::Cause;
use ff_core::state::{GrantKind, PublicState};

use crate::grants::{GRANT_MS, claim_granted, grant_and_claim, instance, issue_grant, worker};
use crate::waits::{suspend, wildcard};
use crate::world::{World, cancel, capabilities, delay, fail, hold, lane, revoke, set_tags};

fn requiring(world: &World, tokens: &[&str]) -> Submit {
    let required_capabilities = capabilities(tokens);
    Submit { policy: Policy { required_capabilities, ..Policy::default() }.into(), ..world.work() }
}

pub async fn a_grant_names_execution_partition_and_end(world: &World) {
    let id = world.submit(world.work()).await;
    let grant = world.act(issue_grant(id)).await;
    assert_eq!((grant.execution_id, grant.partition_key), (id, id.partition_key()));
    let index = id.partition();
    assert_eq!(grant.partition_key, PartitionKey { family: PartitionFamily::Flow, index });
    assert_eq!(grant.partition_key.to_string(), format!("{{fp:{index}}}"));
    assert_eq!(grant.grant_key, format!("{id}:grant"));
    assert_eq!(grant.expires_at, world.now().await.after(GRANT_MS));
}

pub async fn the_record_shows_the_grant_and_its_state_stays(world: &World) {
    let id = world.submit(world.work()).await;
    let before = world.describe(id).await;
    assert_eq!(before.grant, None);
    world.advance(10).await;
    world.act(issue_grant(id)).await;
    let after = world.describe(id).await;
    let grant = after.grant.expect("a grant");
    assert_eq!((grant.kind, &*grant.worker_id), (GrantKind::Claim, "pool"));
    assert_eq!(grant.worker_instance_id.as_deref(), Some("pool-1"));
    assert_eq!(grant.expires_at, world.now().await.after(GRANT_MS));
    assert_eq!((after.state, after.revision), (before.state, before.revision + 1));
    assert_eq!(after.last_transition_at, before.last_transition_at);
    assert_eq!(world.history(id).await, [EventKind::Submitted], "no transition, no event");
}

pub async fn a_granted_execution_is_in_no_queue(world: &World) {
    let id = world.granted(world.work()).await;
    let other = world.submit(world.work()).await;
    assert_eq!(world.claim_ids(10).await, [other]);
    assert_eq!(world.public_state(id).await, PublicState::Waiting);
    let task = world.act(claim_granted(id)).await;
    assert_eq!(task.execution_id, id);
}

pub async fn only_the_holder_of_the_grant_may_claim(world: &World) {
    let id = world.granted(world.work()).await;
    let other = ClaimExecution { worker_id: worker("other"), ..claim_granted(id) };
    world.refuses(other, Code::InvalidClaimGrant).await;
    world.refuses(claim_granted(world.submit(world.work()).await), Code::InvalidClaimGrant).await;
    let elsewhere = ClaimExecution { worker_instance_id: instance("b"), ..claim_granted(id) };
    let task = world.act(elsewhere).await;
    assert_eq!(&*task.handle.worker_instance_id, "b", "any instance of the worker");
}

pub async fn only_what_is_eligible_is_granted(world: &World) {
    let running = world.start(world.work()).await;
    let suspended = world.start(world.work()).await;
    world.suspend(suspend(&suspended, wildcard("go"))).await;
    let delayed = world.start(world.work()).await;
    world.act(delay(&delayed, 1_000)).await;
    let retrying = world.start(world.work()).await;
    world.act(fail(&retrying, "transient")).await;
    let done = world.finish(world.work()).await;
    let held = world.submit(world.work()).await;
    world.act(hold(held)).await;
    let tasks = [running, suspended, delayed, retrying, done];
    for id in tasks.iter().map(|task| task.execution_id).chain([held]) {
        world.refuses(issue_grant(id), Code::ExecutionNotEligible).await;
    }
}

pub async fn the_lane_must_be_that_of_the_execution(world: &World) {
    let id = world.submit(world.work()).await;
    let other = IssueClaimGrant { lane: lane("play"), ..issue_grant(id) };
    world.refuses_saying(other.clone(), Code::ExecutionNotInEligibleSet, "work").await;
    world.act(hold(id)).await;
    world.refuses(other, Code::ExecutionNotEligible).await;
}

pub async fn there_is_one_grant_at_a_time(world: &World) {
    let id = world.granted(requiring(world, &[])).await;
    for name in ["pool", "other"] {
        let again = IssueClaimGrant { worker_id: worker(name), ..issue_grant(id) };
        world.refuses(again, Code::GrantAlreadyExists).await;
    }
    let elsewhere = IssueClaimGrant { lane: lane("play"), ..issue_grant(id) };
    world.refuses(elsewhere, Code::ExecutionNotInEligibleSet).await;
    let gpu = world.submit(requiring(world, &["gpu"])).await;
    let able = IssueClaimGrant { capabilities: capabilities(&["gpu"]), ..issue_grant(gpu) };
    world.act(able).await;
    world.refuses(issue_grant(gpu), Code::GrantAlreadyExists).await;
}

fn missing<T: std::fmt::Debug>(result: Result<T, EngineError>) -> String {
    let error = result.expect_err("a refusal");
    assert_eq!(error.code(), Code::CapabilityMismatch);
    let refusal = error.refusal().expect("a refusal");
    refusal.missing_capabilities.as_ref().expect("what is missing").as_csv().to_owned()
}

pub async fn a_worker_that_lacks_something_is_told_what(world: &World) {
    let id = world.submit(requiring(world, &["gpu", "eu", "big"])).await;
    let before = world.describe(id).await;
    assert_eq!(before.last_capability_mismatch_at, None);
    for (offered, lacking) in [(&["eu", "x"][..], "big,gpu"), (&[], "big,eu,gpu")] {
        world.advance(70).await;
        let asked = IssueClaimGrant { capabilities: capabilities(offered), ..issue_grant(id) };
        assert_eq!(missing(world.backend.call(asked).await), lacking);
    }
    let after = world.describe(id).await;
    assert_eq!(after.last_capability_mismatch_at, Some(world.now().await));
    assert_eq!((after.grant, after.revision), (None, before.revision + 2));
    assert_eq!(world.history(id).await, [EventKind::Submitted], "the stamp is no transition");
    let able = capabilities(&["big", "eu", "gpu", "more"]);
    world.act(IssueClaimGrant { capabilities: able, ..issue_grant(id) }).await;
    world.act(claim_granted(id)).await;
    let record = world.describe(id).await;
    assert_eq!(record.last_capability_mismatch_at, after.last_capability_mismatch_at);
}

pub async fn a_grant_lives_for_1_to_60000_ms(world: &World) {
    assert_eq!(limits::GRANT_TTL_MAX_MS, 60_000);
    let id = world.submit(world.work()).await;
    for grant_ttl_ms in [0, 60_001, u64::MAX] {
        let asked = IssueClaimGrant { grant_ttl_ms, ..issue_grant(id) };
        world.refuses_saying(asked, Code::InvalidInput, "grant_ttl_ms").await;
    }
    for grant_ttl_ms in [1, 60_000] {
        let id = world.submit(world.work()).await;
        let grant = world.act(IssueClaimGrant { grant_ttl_ms, ..issue_grant(id) }).await;
        assert_eq!(grant.expires_at, world.now().await.after(grant_ttl_ms));
    }
}

pub async fn a_lease_that_ran_out_is_taken_away_first(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    world.advance(limits::LEASE_TTL_MS.cast_signed()).await;
    world.act(issue_grant(id)).await;
    let record = world.describe(id).await;
    assert_eq!((record.lease_reclaim_count, record.grant.is_some()), (1, true));
    use EventKind::{Claimed, LeaseExpired, Submitted};
    assert_eq!(world.history(id).await, [Submitted, Claimed, LeaseExpired]);
    assert_eq!(world.claim_ids(1).await, []);
}

pub async fn a_deadline_that_passed_ends_it_instead(world: &World) {
    let json = r#"{"timeout_policy":{"execution_deadline_ms":50}}"#;
    let id = world.submit(world.work_with(json)).await;
    world.advance(50).await;
    let refused = world.backend.call(issue_grant(id)).await;
    assert_eq!(refused.expect_err("a refusal").code(), Code::ExecutionNotEligible);
    assert_eq!(world.public_state(id).await, PublicState::Expired);
    assert_eq!(world.history(id).await, [EventKind::Submitted, EventKind::Expired]);
}

pub async fn explain_says_for_whom_it_is_set_aside(world: &World) {
    let id = world.granted(world.work()).await;
    let explain = async || world.backend.explain(id).await.unwrap().expect("an explanation");
    let explanation = explain().await;
    assert_eq!((explanation.cause, explanation.cause.as_str()), (Cause::Granted, "granted"));
    assert!(explanation.summary.contains("pool"), "{}", explanation.summary);
    let now = world.now().await;
    assert_eq!(explanation.evidence["kind"], "claim");
    assert_eq!(explanation.evidence["worker_id"], "pool");
    assert_eq!(explanation.evidence["worker_instance_id"], "pool-1");
    assert_eq!(explanation.evidence["grant_expires_at"], now.after(GRANT_MS).rfc3339());
    assert_eq!(explanation.earliest_start_at, Some(now));
    let verbs: Vec<_> = explanation.unblock.iter().map(|action| action.cli.clone()).collect();
    assert_eq!(verbs, [format!("ff hold '{id}'"), format!("ff cancel '{id}'")]);
    world.advance(GRANT_MS.cast_signed()).await;
    assert_eq!(explain().await.cause, Cause::WaitingForWorker, "before any timer");
    assert_eq!(world.describe(id).await.grant, None);
}

pub async fn what_is_no_claim_keeps_the_grant(world: &World) {
    let id = world.granted(world.work()).await;
    let granted = world.describe(id).await.grant;
    world.act(ChangePriority { execution_id: id, priority: 7 }).await;
    world.act(set_tags(id, &[("a.b", "c")])).await;
    world.refuses(revoke(id), Code::ExecutionNotActive).await;
    assert_eq!(world.describe(id).await.grant, granted);
    assert_eq!(world.claim_ids(1).await, []);
    assert_eq!(world.act(claim_granted(id)).await.priority, 7);
}

pub async fn a_hold_or_an_end_takes_the_grant_back(world: &World) {
    let held = world.granted(world.work()).await;
    world.act(hold(held)).await;
    assert_eq!(world.describe(held).await.grant, None);
    world.refuses(claim_granted(held), Code::ExecutionNotLeaseable).await;
    world.act(Release { execution_id: held }).await;
    world.refuses(claim_granted(held), Code::InvalidClaimGrant).await;
    assert_eq!(world.claim_ids(1).await, [held], "it is back in its queue");
    let cancelled = world.granted(world.work()).await;
    world.act(cancel(cancelled)).await;
    world.refuses(claim_granted(cancelled), Code::ExecutionNotLeaseable).await;
    world.refuses(grant_and_claim(cancelled), Code::ExecutionNotLeaseable).await;
}
