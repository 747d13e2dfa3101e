//! Grant and claim in one step: an operator gives one execution to one worker.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::id::HandleKind;
use ff_core::limits;
use ff_core::operation::{IssueClaimGrant, IssueGrantAndClaim, Submit};
use ff_core::policy::Policy;
use ff_core::state::{AttemptType, PublicState};

use crate::grants::{GRANT_MS, claim_granted, grant_and_claim, instance, issue_grant, worker};
use crate::waits::{suspend, wildcard};
use crate::world::{World, capabilities, code, complete, delay, fail, hold, revoke};

pub async fn it_leases_without_a_grant_before_it(world: &World) {
    let id = world.submit(world.work()).await;
    let asked = grant_and_claim(id);
    let task = world.act(asked.clone()).await;
    assert_eq!((task.execution_id, task.lease_id), (id, asked.lease_id));
    assert_eq!((task.lease_epoch, task.handle.kind), (1, HandleKind::Fresh));
    assert_eq!(world.history(id).await, [EventKind::Submitted, EventKind::Claimed]);
    assert_eq!(world.claim_ids(1).await, []);
    world.act(complete(&task)).await;
}

pub async fn it_does_not_ask_what_the_worker_can_do(world: &World) {
    let required_capabilities = capabilities(&["gpu"]);
    let policy = Policy { required_capabilities, ..Policy::default() };
    let id = world.submit(Submit { policy: policy.into(), ..world.work() }).await;
    world.act(grant_and_claim(id)).await;
    assert_eq!(world.describe(id).await.last_capability_mismatch_at, None);
}

pub async fn it_opens_or_continues_by_itself(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    world.act(delay(&task, 0)).await;
    let resumed = world.act(grant_and_claim(id)).await;
    assert_eq!((resumed.attempt_index, resumed.handle.kind), (0, HandleKind::Resumed));
    assert_eq!(resumed.attempt_id, task.attempt_id);
    world.act(revoke(id)).await;
    let reclaimed = world.act(grant_and_claim(id)).await;
    assert_eq!((reclaimed.attempt_index, reclaimed.handle.kind), (1, HandleKind::Reclaimed));
    world.act(fail(&reclaimed, "transient")).await;
    world.refuses(grant_and_claim(id), Code::ExecutionNotLeaseable).await;
    world.pass(1_000).await;
    let retried = world.act(grant_and_claim(id)).await;
    assert_eq!((retried.attempt_index, retried.attempt_type), (2, AttemptType::Retry));
    assert_eq!((retried.lease_epoch, retried.handle.kind), (4, HandleKind::Fresh));
}

pub async fn repeated_it_gives_the_same_task(world: &World) {
    let id = world.submit(world.work()).await;
    let asked = grant_and_claim(id);
    let task = world.act(asked.clone()).await;
    let before = world.describe(id).await;
    assert_eq!(world.act(asked.clone()).await, task);
    assert_eq!(world.describe(id).await, before);
    let other = IssueGrantAndClaim { worker_instance_id: instance("pool-2"), ..asked.clone() };
    world.refuses(other, Code::LeaseConflict).await;
    world.act(complete(&task)).await;
    world.refuses(asked, Code::ExecutionNotLeaseable).await;
    let of_queue = world.start(world.work()).await;
    world.refuses(grant_and_claim(of_queue.execution_id), Code::LeaseConflict).await;
}

pub async fn it_takes_only_what_is_eligible(world: &World) {
    let suspended = world.start(world.work()).await;
    world.suspend(suspend(&suspended, wildcard("go"))).await;
    let delayed = world.start(world.work()).await;
    world.act(delay(&delayed, 1_000)).await;
    let held = world.submit(world.work()).await;
    world.act(hold(held)).await;
    for id in [suspended.execution_id, delayed.execution_id, held] {
        world.refuses(grant_and_claim(id), Code::ExecutionNotLeaseable).await;
    }
}

pub async fn a_live_grant_of_another_worker_stands(world: &World) {
    let id = world.submit(world.work()).await;
    let other = IssueClaimGrant { worker_id: worker("other"), ..issue_grant(id) };
    world.act(other.clone()).await;
    world.refuses(grant_and_claim(id), Code::GrantAlreadyExists).await;
    world.advance(GRANT_MS.cast_signed()).await;
    world.act(grant_and_claim(id)).await;
    let own = world.granted(world.work()).await;
    let asked = IssueGrantAndClaim { worker_instance_id: instance("b"), ..grant_and_claim(own) };
    assert_eq!(world.act(asked).await.execution_id, own, "its own is used up");
    world.refuses(claim_granted(own), Code::LeaseConflict).await;
}

pub async fn a_lease_that_ran_out_is_lost_and_taken_up_in_one_step(world: &World) {
    let lost = world.start(world.work()).await;
    let id = lost.execution_id;
    world.advance(limits::LEASE_TTL_MS.cast_signed()).await;
    let task = world.act(grant_and_claim(id)).await;
    assert_eq!((task.attempt_type, task.lease_epoch), (AttemptType::Reclaim, 2));
    assert_eq!(task.reclaim_count, 1);
    use EventKind::{Claimed, LeaseExpired, Submitted};
    assert_eq!(world.history(id).await, [Submitted, Claimed, LeaseExpired, Claimed]);
    let events = world.events(id).await;
    assert_eq!(events[2].worker_instance_id.as_deref(), Some("pool-1"));
    assert_eq!((events[2].lease_epoch, events[3].lease_epoch), (Some(1), Some(2)));
    assert_eq!(code(world.complete(&lost).await), Code::StaleLease);
    world.act(complete(&task)).await;
}

pub async fn a_deadline_that_passed_is_carried_out(world: &World) {
    let json = r#"{"timeout_policy":{"execution_deadline_ms":50}}"#;
    let id = world.submit(world.work_with(json)).await;
    world.advance(50).await;
    assert_eq!(code(world.backend.call(grant_and_claim(id)).await), Code::ExecutionNotLeaseable);
    assert_eq!(world.public_state(id).await, PublicState::Expired);
}

pub async fn the_lease_has_its_range(world: &World) {
    let id = world.submit(world.work()).await;
    for lease_ttl_ms in [0, 99, 3_600_001] {
        let asked = IssueGrantAndClaim { lease_ttl_ms, ..grant_and_claim(id) };
        world.refuses_saying(asked, Code::InvalidInput, "lease_ttl_ms").await;
    }
}
