//! Claiming by a grant: the named execution, once, by the worker that has the grant.

use ff_core::backend::BackendExt;
use ff_core::content::Content;
use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::id::{HandleKind, LeaseId};
use ff_core::limits;
use ff_core::operation::{
    ClaimExecution, ClaimResumedExecution, IssueClaimGrant, IssuedReclaimGrant, Submit, Suspend,
};
use ff_core::state::{AttemptType, LifecyclePhase, PublicState};

use crate::grants::{
    GRANT_MS, claim_granted, claim_resumed, instance, issue_grant, issue_reclaim, worker,
};
use crate::waits::{suspend, wildcard};
use crate::world::{World, code, complete, delay, hold, renew, revoke};

const TTL: i64 = limits::LEASE_TTL_MS.cast_signed();

pub async fn a_claim_uses_the_grant_up_and_brings_the_task(world: &World) {
    let payload = Content::json(vec![b'1'; 300]);
    let submit = Submit { payload: payload.clone(), priority: 3, ..world.work() };
    let id = world.granted(submit.clone()).await;
    world.advance(10).await;
    let asked = ClaimExecution { lease_ttl_ms: 7_000, ..claim_granted(id) };
    let task = world.act(asked.clone()).await;
    let now = world.now().await;
    assert_eq!((task.execution_id, task.lease_id), (id, asked.lease_id));
    assert_eq!((task.lease_epoch, task.ttl_ms), (1, 7_000));
    assert_eq!(task.expires_at, now.after(7_000));
    assert_eq!((&task.payload, &task.content_type), (&payload.bytes, &payload.content_type));
    assert_eq!((task.priority, &task.kind, &task.lane), (3, &submit.kind, &submit.lane));
    assert_eq!((task.attempt_index, task.attempt_type), (0, AttemptType::Initial));
    assert_eq!((task.handle.kind, task.handle.fence()), (HandleKind::Fresh, task.fence()));
    let record = world.describe(id).await;
    assert_eq!((record.grant, record.started_at), (None, Some(now)));
    assert_eq!(record.worker_id, Some(asked.worker_id));
    assert_eq!(record.state.lifecycle_phase, LifecyclePhase::Active);
    assert_eq!(world.history(id).await, [EventKind::Submitted, EventKind::Claimed]);
    world.act(complete(&task)).await;
    world.refuses(claim_granted(id), Code::ExecutionNotLeaseable).await;
}

pub async fn the_same_instance_gets_the_same_task_again(world: &World) {
    let payload = Content::new(vec![1; 400]);
    let id = world.granted(Submit { payload, ..world.work() }).await;
    let asked = claim_granted(id);
    let task = world.act(asked.clone()).await;
    let before = world.describe(id).await;
    world.advance(100).await;
    assert_eq!(world.act(asked.clone()).await, task);
    let minted = ClaimExecution { lease_id: LeaseId::mint(), ..asked.clone() };
    assert_eq!(world.act(minted).await, task, "whatever lease it proposes");
    assert_eq!(world.describe(id).await, before, "nothing is written");
    let expires_at = world.act(renew(&task)).await.expires_at;
    assert_eq!(world.act(asked.clone()).await.expires_at, expires_at, "made of the record");
    let other = ClaimExecution { worker_instance_id: instance("pool-2"), ..asked.clone() };
    world.refuses(other, Code::LeaseConflict).await;
    let other = ClaimExecution { worker_id: worker("other"), ..asked };
    world.refuses(other, Code::LeaseConflict).await;
}

pub async fn a_lease_of_the_queue_is_no_lease_of_a_grant(world: &World) {
    let task = world.start(world.work()).await;
    world.refuses(claim_granted(task.execution_id), Code::LeaseConflict).await;
    world.refuses(claim_resumed(task.execution_id), Code::LeaseConflict).await;
}

pub async fn a_lease_that_ran_out_is_lost_by_the_claim_that_meets_it(world: &World) {
    let id = world.granted(world.work()).await;
    let asked = claim_granted(id);
    world.act(asked.clone()).await;
    world.advance(TTL - 1).await;
    world.act(asked.clone()).await;
    world.advance(1).await;
    assert_eq!(code(world.backend.call(asked.clone()).await), Code::InvalidClaimGrant);
    let record = world.describe(id).await;
    assert_eq!((record.lease_reclaim_count, record.lease_id), (1, None));
    use EventKind::{Claimed, LeaseExpired, Submitted};
    assert_eq!(world.history(id).await, [Submitted, Claimed, LeaseExpired]);
    world.refuses(asked, Code::InvalidClaimGrant).await;
    assert_eq!(world.claim_ids(1).await, [id]);
    let json = r#"{"timeout_policy":{"max_reclaim_count":0}}"#;
    let capped = world.start(world.work_with(json)).await.execution_id;
    world.advance(TTL).await;
    assert_eq!(code(world.backend.call(claim_granted(capped)).await), Code::ExecutionNotLeaseable);
    assert_eq!(world.public_state(capped).await, PublicState::Failed);
}

pub async fn only_what_is_eligible_is_leased(world: &World) {
    let suspended = world.start(world.work()).await;
    world.suspend(suspend(&suspended, wildcard("go"))).await;
    let delayed = world.start(world.work()).await;
    world.act(delay(&delayed, 1_000)).await;
    let done = world.finish(world.work()).await;
    let held = world.granted(world.work()).await;
    world.act(hold(held)).await;
    let ids = [suspended, delayed, done].map(|task| task.execution_id);
    for id in ids.into_iter().chain([held]) {
        world.refuses(claim_granted(id), Code::ExecutionNotLeaseable).await;
        world.refuses(claim_resumed(id), Code::ExecutionNotLeaseable).await;
    }
}

pub async fn a_deadline_that_passed_is_carried_out_by_the_claim(world: &World) {
    let json = r#"{"timeout_policy":{"execution_deadline_ms":50}}"#;
    let id = world.granted(world.work_with(json)).await;
    world.advance(50).await;
    assert_eq!(code(world.backend.call(claim_granted(id)).await), Code::ExecutionNotLeaseable);
    let record = world.describe(id).await;
    assert_eq!(record.state.public_state, PublicState::Expired);
    assert_eq!(record.failure_reason.as_deref(), Some("execution_deadline"));
    assert_eq!(world.history(id).await, [EventKind::Submitted, EventKind::Expired]);
}

pub async fn a_late_claim_is_told_that_the_grant_is_over(world: &World) {
    let id = world.granted(world.work()).await;
    let other = || ClaimExecution { worker_id: worker("other"), ..claim_granted(id) };
    world.advance(GRANT_MS.cast_signed() - 1).await;
    world.refuses(other(), Code::InvalidClaimGrant).await;
    world.advance(1).await;
    world.refuses(claim_granted(id), Code::ClaimGrantExpired).await;
    world.refuses(other(), Code::InvalidClaimGrant).await;
    world.settle().await;
    world.refuses(claim_granted(id), Code::ClaimGrantExpired).await;
    world.refuses(other(), Code::InvalidClaimGrant).await;
    assert_eq!(world.claim_ids(1).await, [id]);
    world.refuses(claim_granted(id), Code::LeaseConflict).await;
}

pub async fn a_grant_may_be_used_until_its_last_millisecond(world: &World) {
    let id = world.granted(world.work()).await;
    world.pass(GRANT_MS.cast_signed() - 1).await;
    world.act(claim_granted(id)).await;
}

pub async fn an_open_attempt_is_continued_by_the_resumed_claim(world: &World) {
    let first = world.start(world.work()).await;
    let id = first.execution_id;
    let metadata = Some(b"page 7".as_slice().into());
    let stop = Suspend { metadata, ..suspend(&first, wildcard("go")) };
    let [door] = world.suspend(stop.clone()).await.try_into().unwrap();
    world.signal(&first, &door, "knock").await;
    world.act(issue_grant(id)).await;
    world.refuses(claim_granted(id), Code::UseClaimResumedExecution).await;
    let asked = claim_resumed(id);
    let task = world.act(asked.clone()).await;
    assert_eq!((task.attempt_id, task.attempt_index), (first.attempt_id, 0));
    assert_eq!((task.lease_epoch, task.lease_id), (2, asked.lease_id));
    assert_eq!((task.handle.kind, task.attempt_type), (HandleKind::Resumed, AttemptType::Initial));
    assert_eq!(task.extras.metadata, stop.metadata);
    let [heard] = &task.extras.resume_signals[..] else { panic!("{:?}", task.extras) };
    assert_eq!(&*heard.name, "knock");
    assert_eq!(world.act(asked.clone()).await, task, "sent again");
    assert_eq!(*world.act(claim_granted(id)).await, *task, "by either claim");
    let other = ClaimResumedExecution { worker_instance_id: instance("pool-2"), ..asked };
    world.refuses(other, Code::LeaseConflict).await;
}

pub async fn without_an_open_attempt_there_is_nothing_to_resume(world: &World) {
    let fresh = world.granted(world.work()).await;
    world.refuses(claim_resumed(fresh), Code::NotAResumedExecution).await;
    let other = ClaimResumedExecution { worker_id: worker("other"), ..claim_resumed(fresh) };
    world.refuses(other, Code::InvalidClaimGrant).await;
    let lost = world.lost(world.work()).await.execution_id;
    world.refuses(claim_resumed(lost), Code::InvalidClaimGrant).await;
    world.act(issue_grant(lost)).await;
    world.refuses(claim_resumed(lost), Code::NotAResumedExecution).await;
    world.advance(GRANT_MS.cast_signed()).await;
    world.refuses(claim_resumed(lost), Code::ClaimGrantExpired).await;
}

pub async fn after_a_lost_lease_a_claim_opens_a_reclaim(world: &World) {
    let lost = world.lost(world.work()).await;
    let id = lost.execution_id;
    world.act(issue_grant(id)).await;
    let task = world.act(claim_granted(id)).await;
    assert_eq!((task.attempt_type, task.attempt_index), (AttemptType::Reclaim, 1));
    assert_eq!((task.handle.kind, task.reclaim_count), (HandleKind::Reclaimed, 1));
    assert_eq!(world.attempts(id).await.len(), 2);
    world.act(revoke(id)).await;
    let reply = world.act(issue_reclaim(id)).await;
    assert!(matches!(reply, IssuedReclaimGrant::Granted(_)), "{reply:?}");
    let task = world.act(claim_granted(id)).await;
    assert_eq!((task.attempt_index, task.reclaim_count), (2, 2), "from a reclaim grant too");
}

pub async fn a_lease_from_a_grant_has_the_range_of_every_lease(world: &World) {
    let id = world.granted(world.work()).await;
    for lease_ttl_ms in [0, 99, 3_600_001, u64::MAX] {
        let asked = ClaimExecution { lease_ttl_ms, ..claim_granted(id) };
        world.refuses_saying(asked, Code::InvalidInput, "lease_ttl_ms").await;
        let asked = ClaimResumedExecution { lease_ttl_ms, ..claim_resumed(id) };
        world.refuses_saying(asked, Code::InvalidInput, "lease_ttl_ms").await;
    }
    let task = world.act(ClaimExecution { lease_ttl_ms: 100, ..claim_granted(id) }).await;
    world.pass(100).await;
    assert_eq!(code(world.complete(&task).await), Code::LeaseExpired);
    let again = IssueClaimGrant { worker_id: worker("other"), ..issue_grant(id) };
    world.act(again).await;
}
