//! Reclaim grants: a worker is chosen to take up a lost lease.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::id::HandleKind;
use ff_core::limits;
use ff_core::operation::{
    IssueReclaimGrant, IssuedReclaimGrant, ReclaimExecution, Reclaimed, Replay, Submit,
};
use ff_core::policy::Policy;
use ff_core::state::{AttemptType, GrantKind, PublicState};

use crate::grants::{
    GRANT_MS, claim_granted, grant_and_claim, instance, issue_grant, issue_reclaim, reclaim, worker,
};
use crate::world::{World, capabilities, code, complete, hold, lane, revoke};

const TTL: i64 = limits::LEASE_TTL_MS.cast_signed();

pub async fn it_is_held_for_the_worker(world: &World) {
    let lost = world.lost(world.work()).await;
    let id = lost.execution_id;
    let reply = world.act(issue_reclaim(id)).await;
    let IssuedReclaimGrant::Granted(grant) = reply else { panic!("{reply:?}") };
    assert_eq!((grant.execution_id, grant.partition_key), (id, id.partition_key()));
    assert_eq!(grant.expires_at, world.now().await.after(GRANT_MS));
    let shown = world.describe(id).await.grant.expect("a grant");
    assert_eq!((shown.kind, shown.worker_instance_id), (GrantKind::Reclaim, None));
    assert_eq!(world.claim_ids(1).await, []);
    use EventKind::{Claimed, LeaseRevoked, Submitted};
    assert_eq!(world.history(id).await, [Submitted, Claimed, LeaseRevoked]);
    let named = world.lost(world.work()).await.execution_id;
    let worker_instance_id = Some(instance("pool-9"));
    world.act(IssueReclaimGrant { worker_instance_id, ..issue_reclaim(named) }).await;
    let shown = world.describe(named).await.grant.expect("a grant");
    assert_eq!(shown.worker_instance_id.as_deref(), Some("pool-9"));
    world.pass(GRANT_MS.cast_signed()).await;
    assert_eq!(world.claim_ids(2).await.len(), 2, "unused, it lapses");
}

async fn not_reclaimable(world: &World, issue: IssueReclaimGrant) -> String {
    let before = world.describe(issue.execution_id).await;
    let reply = world.act(issue).await;
    assert_eq!(world.describe(before.execution_id).await, before);
    match reply {
        IssuedReclaimGrant::NotReclaimable { detail } => detail,
        other => panic!("{other:?}"),
    }
}

pub async fn only_what_waits_for_a_reclaim_is_granted(world: &World) {
    let fresh = world.submit(world.work()).await;
    assert!(not_reclaimable(world, issue_reclaim(fresh)).await.contains("waiting"));
    let running = world.claim_one().await;
    assert!(not_reclaimable(world, issue_reclaim(fresh)).await.contains("active"));
    world.act(complete(&running)).await;
    assert!(not_reclaimable(world, issue_reclaim(fresh)).await.contains("completed"));
    let held = world.lost(world.work()).await.execution_id;
    world.act(hold(held)).await;
    not_reclaimable(world, issue_reclaim(held)).await;
    let elsewhere = world.lost(world.work()).await.execution_id;
    let other = IssueReclaimGrant { lane: lane("play"), ..issue_reclaim(elsewhere) };
    assert!(not_reclaimable(world, other).await.contains("work"), "it names the lane");
}

pub async fn a_lease_that_ran_out_waits_at_once(world: &World) {
    let task = world.start(world.work()).await;
    world.advance(TTL).await;
    let reply = world.act(issue_reclaim(task.execution_id)).await;
    assert!(matches!(reply, IssuedReclaimGrant::Granted(_)), "{reply:?}");
    let again = world.reclaimed(reclaim(task.execution_id)).await;
    assert_eq!((again.attempt_type, again.reclaim_count), (AttemptType::Reclaim, 1));
}

pub async fn what_the_cap_ended_says_so(world: &World) {
    let json = r#"{"timeout_policy":{"max_reclaim_count":1}}"#;
    let id = world.lost(world.work_with(json)).await.execution_id;
    world.claim_one().await;
    world.advance(TTL).await;
    let exceeded = IssuedReclaimGrant::ReclaimCapExceeded { reclaim_count: 1 };
    assert_eq!(world.act(issue_reclaim(id)).await, exceeded, "the call performs the expiry");
    assert_eq!(world.public_state(id).await, PublicState::Failed);
    assert_eq!(world.act(issue_reclaim(id)).await, exceeded);
    assert_eq!(world.history(id).await.last(), Some(&EventKind::Failed));
    world.act(Replay { execution_id: id, descendants: false }).await;
    not_reclaimable(world, issue_reclaim(id)).await;
}

pub async fn a_grant_of_either_kind_is_the_only_one(world: &World) {
    let id = world.lost_and_granted(world.work()).await.execution_id;
    world.refuses(issue_reclaim(id), Code::GrantAlreadyExists).await;
    world.refuses(issue_grant(id), Code::GrantAlreadyExists).await;
    let other = world.lost(world.work()).await.execution_id;
    world.act(issue_grant(other)).await;
    world.refuses(issue_reclaim(other), Code::GrantAlreadyExists).await;
}

pub async fn the_worker_must_be_able(world: &World) {
    let required_capabilities = capabilities(&["gpu"]);
    let policy = Policy { required_capabilities, ..Policy::default() };
    let id = world.submit(Submit { policy: policy.into(), ..world.work() }).await;
    world.act(grant_and_claim(id)).await;
    world.act(revoke(id)).await;
    world.advance(5).await;
    let refused = world.backend.call(issue_reclaim(id)).await.expect_err("a refusal");
    assert_eq!(refused.code(), Code::CapabilityMismatch);
    let missing = refused.refusal().and_then(|r| r.missing_capabilities.clone());
    assert_eq!(missing, Some(capabilities(&["gpu"])));
    let record = world.describe(id).await;
    assert_eq!(record.last_capability_mismatch_at, Some(world.now().await));
    assert_eq!(record.grant, None);
    let able = IssueReclaimGrant { capabilities: capabilities(&["gpu"]), ..issue_reclaim(id) };
    world.act(able).await;
    world.refuses(issue_reclaim(id), Code::GrantAlreadyExists).await;
}

pub async fn its_time_has_the_range_of_every_grant(world: &World) {
    let id = world.lost(world.work()).await.execution_id;
    for grant_ttl_ms in [0, 60_001] {
        let asked = IssueReclaimGrant { grant_ttl_ms, ..issue_reclaim(id) };
        world.refuses_saying(asked, Code::InvalidInput, "grant_ttl_ms").await;
    }
}

pub async fn a_reclaim_opens_a_new_attempt(world: &World) {
    let lost = world.lost_and_granted(world.work()).await;
    let asked = reclaim(lost.execution_id);
    let elsewhere = ReclaimExecution { worker_instance_id: instance("pool-2"), ..asked.clone() };
    let task = world.reclaimed(elsewhere.clone()).await;
    assert_eq!((task.attempt_type, task.attempt_index), (AttemptType::Reclaim, 1));
    assert_eq!((task.handle.kind, task.lease_epoch), (HandleKind::Reclaimed, 2));
    assert_eq!(task.lease_id, asked.lease_id);
    assert_eq!(&*task.handle.worker_instance_id, "pool-2");
    assert_eq!(world.reclaimed(elsewhere).await, task, "sent again");
    assert_eq!(world.act(asked).await, Reclaimed::GrantNotFound, "another instance");
    assert_eq!(code(world.complete(&lost).await), Code::StaleLease);
    world.act(complete(&task)).await;
}

pub async fn a_reclaim_needs_a_reclaim_grant(world: &World) {
    let done = world.finish(world.work()).await.execution_id;
    let claim = world.lost(world.work()).await.execution_id;
    world.act(issue_grant(claim)).await;
    let fresh = world.granted(world.work()).await;
    let running = world.start(world.work()).await.execution_id;
    let lost = world.lost(world.work()).await.execution_id;
    for id in [done, claim, fresh, running, lost] {
        let before = world.describe(id).await;
        assert_eq!(world.act(reclaim(id)).await, Reclaimed::GrantNotFound);
        assert_eq!(world.describe(id).await, before);
    }
    world.advance(TTL).await;
    assert_eq!(world.act(reclaim(running)).await, Reclaimed::GrantNotFound);
    assert_eq!(world.describe(running).await.lease_reclaim_count, 1, "the lease was over");
}

pub async fn time_is_looked_at_before_the_worker(world: &World) {
    let id = world.lost_and_granted(world.work()).await.execution_id;
    let other = ReclaimExecution { worker_id: worker("other"), ..reclaim(id) };
    world.refuses(other.clone(), Code::InvalidClaimGrant).await;
    world.advance(GRANT_MS.cast_signed()).await;
    for asked in [other, reclaim(id)] {
        world.refuses(asked.clone(), Code::ClaimGrantExpired).await;
        world.settle().await;
        world.refuses(asked, Code::ClaimGrantExpired).await;
    }
}

pub async fn a_deadline_that_passed_leaves_nothing_to_reclaim(world: &World) {
    let json = r#"{"timeout_policy":{"execution_deadline_ms":50}}"#;
    let id = world.lost_and_granted(world.work_with(json)).await.execution_id;
    world.advance(50).await;
    let reply = world.act(reclaim(id)).await;
    let Reclaimed::NotReclaimable { detail } = reply else { panic!("{reply:?}") };
    assert!(detail.contains("expired"), "{detail}");
    assert_eq!(world.public_state(id).await, PublicState::Expired);
}

pub async fn a_lower_cap_ends_what_lost_too_many(world: &World) {
    let id = world.lost(world.work()).await.execution_id;
    world.claim_one().await;
    world.act(revoke(id)).await;
    world.act(issue_reclaim(id)).await;
    let capped = |cap| ReclaimExecution { max_reclaim_count: Some(cap), ..reclaim(id) };
    let exceeded = Reclaimed::ReclaimCapExceeded { reclaim_count: 2 };
    assert_eq!(world.act(capped(1)).await, exceeded);
    let record = world.describe(id).await;
    assert_eq!(record.state.public_state, PublicState::Failed);
    assert_eq!(record.failure_reason.as_deref(), Some("max_reclaims_exceeded"));
    assert_eq!((record.grant, record.lease_reclaim_count), (None, 2));
    assert_eq!(world.history(id).await.last(), Some(&EventKind::Failed));
    assert_eq!(world.act(capped(1)).await, Reclaimed::GrantNotFound);
    let told = IssuedReclaimGrant::ReclaimCapExceeded { reclaim_count: 2 };
    assert_eq!(world.act(issue_reclaim(id)).await, told);
    let within = world.lost_and_granted(world.work()).await.execution_id;
    let asked = ReclaimExecution { max_reclaim_count: Some(1), ..reclaim(within) };
    assert_eq!(world.reclaimed(asked).await.reclaim_count, 1, "at the cap is not above it");
}

pub async fn a_reclaim_has_the_ranges_of_lease_and_cap(world: &World) {
    let id = world.lost_and_granted(world.work()).await.execution_id;
    let asked = ReclaimExecution { lease_ttl_ms: 99, ..reclaim(id) };
    world.refuses_saying(asked, Code::InvalidInput, "lease_ttl_ms").await;
    let cap = Some(limits::COUNT_MAX + 1);
    let asked = ReclaimExecution { max_reclaim_count: cap, ..reclaim(id) };
    world.refuses_saying(asked, Code::InvalidInput, "max_reclaim_count").await;
    let task = world.act(claim_granted(id)).await;
    assert_eq!(task.attempt_type, AttemptType::Reclaim, "a claim takes this kind too");
}
