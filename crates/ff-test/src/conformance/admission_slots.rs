//! Slots and places of quota policies, when claims meet.

use std::sync::Arc;

use ff_core::backend::BackendExt;
use ff_core::id::{LeaseId, WorkerInstanceId};
use ff_core::limits;
use ff_core::operation::{
    Attach, BlockForAdmission, CheckAdmission, Claim, IssueGrantAndClaim, LaneShare,
    ReleaseAdmission, SetLane, Settled, SlotEnd, Submit,
};
use ff_core::policy::Policy;
use ff_core::state::{BlockingReason, LaneState, LimitId, PublicState, QuotaSpec, SlotId};
use tokio::task::JoinSet;

use super::admission::{apply_for, blocked, holders, set_aside, slot};
use crate::fleet::set_lane;
use crate::grants::grant_and_claim;
use crate::limits::{ADMITTED, cap, check, rate, under};
use crate::waits::{signal, suspend, wildcard};
use crate::world::{World, hold, lane};

pub async fn a_slot_goes_to_somebody_who_can_come(world: &World) {
    let quota = world.quota(cap(1)).await;
    let task = world.start(under(world, &[], Some(quota))).await;
    let better = |submit| Submit { priority: 5, ..submit };
    for _ in 0..5 {
        world
            .submit(better(Submit { lane: lane("other"), ..under(world, &[], Some(quota)) }))
            .await;
    }
    let held = world.submit(better(under(world, &[], Some(quota)))).await;
    let last = world.submit(under(world, &[], Some(quota))).await;
    let lanes = ["other", "work"].map(|name| LaneShare::new(lane(name))).to_vec();
    let of_both = Claim { lanes, ..world.claim_request(10) };
    assert_eq!(world.claim_as(of_both).await.len(), 0, "all of them stand in line");
    world.act(set_lane("other", LaneState::Paused)).await;
    world.act(hold(held)).await;
    world.complete(&task).await.expect("completed");
    assert_eq!(world.claim_ids(10).await, [last], "the others cannot come");
}

pub async fn a_claim_that_comes_to_nothing_takes_no_slot_from_another(world: &World) {
    let quota = world.quota(cap(1)).await;
    let id = world.submit(under(world, &[], Some(quota))).await;
    let slot = SlotId { execution_id: id, lease_epoch: 1 };
    let other = LeaseId::mint();
    let asked = CheckAdmission { claimant: other, ..check(quota, slot) };
    assert_eq!(world.act(asked).await, ADMITTED);
    world.backend.take_up(grant_and_claim(id)).await.expect("the slot is for either of them");
    let why = SlotEnd::Unused(other);
    let given = world.act(ReleaseAdmission { quota_policy_id: quota, slot, why }).await;
    assert_eq!(given.freed, 0, "another has made the lease");
    assert_eq!(holders(world, quota).await, [slot]);
    world.submit(under(world, &[], Some(quota))).await;
    assert_eq!(world.claim_ids(5).await, []);
}

pub async fn of_claims_by_name_at_once_one_has_the_slot(world: &World) {
    let quota = world.quota(cap(1)).await;
    for _ in 0..10 {
        let id = world.submit(under(world, &[], Some(quota))).await;
        let mut claims = JoinSet::new();
        for n in 0..4 {
            let backend = Arc::clone(&world.backend);
            let worker_instance_id = WorkerInstanceId::new(format!("pool-{n}")).expect("a name");
            let claim = IssueGrantAndClaim { worker_instance_id, ..grant_and_claim(id) };
            claims.spawn(async move { backend.take_up(claim).await });
        }
        let tasks: Vec<_> = claims.join_all().await.into_iter().filter_map(Result::ok).collect();
        assert_eq!(tasks.len(), 1);
        assert_eq!(holders(world, quota).await, [slot(&tasks[0])]);
        world.complete(&tasks[0]).await.expect("completed");
        assert_eq!(holders(world, quota).await, []);
    }
}

pub async fn who_is_let_in_before_it_is_kept_back_is_not_forgotten(world: &World) {
    let quota = world.quota(cap(1)).await;
    let task = world.start(under(world, &[], Some(quota))).await;
    let id = world.submit(under(world, &[], Some(quota))).await;
    let waits = set_aside(world).await;
    apply_for(world, quota, &waits).await;
    // The slot is free again before the claim that was refused has said so of the execution.
    world.complete(&task).await.expect("completed");
    let late = BlockForAdmission {
        execution_id: id,
        reason: BlockingReason::WaitingForQuota,
        detail: "late".to_owned(),
        by: Some(LimitId::Quota(quota)),
    };
    assert_eq!(world.act(late).await, Settled::AlreadySatisfied);
    assert_eq!(world.claim_ids(5).await, [id]);
}

pub async fn a_place_that_another_limit_kept_from_use_is_free_again(world: &World) {
    let (window, own) = (world.quota(rate(3, 60)).await, world.quota(cap(1)).await);
    let attach = Attach { quota_policy_id: Some(Some(window)), ..Attach::default() };
    world.act(SetLane { attach, ..set_lane("work", LaneState::Active) }).await;
    for _ in 0..6 {
        world.submit(under(world, &[], Some(own))).await;
    }
    for _ in 0..3 {
        let tasks = world.claim(6).await;
        assert_eq!(tasks.len(), 1, "one after another, as the cap says");
        world.complete(&tasks[0]).await.expect("completed");
    }
    assert_eq!(world.claim_ids(6).await, [], "the window has let in three");
}

pub async fn a_crowd_in_front_uses_up_no_window_behind_it(world: &World) {
    let (full, window) = (world.quota(cap(1)).await, world.quota(rate(7, 60)).await);
    world.start(under(world, &[], Some(full))).await;
    for _ in 0..20 {
        world.submit(Submit { priority: 5, ..under(world, &[], Some(full)) }).await;
    }
    for _ in 0..30 {
        world.submit(under(world, &[], Some(window))).await;
    }
    let mut claimed = 0;
    for _ in 0..10 {
        claimed += world.claim(1).await.len();
    }
    assert_eq!(claimed, 7);
}

pub async fn who_goes_on_waits_for_no_window(world: &World) {
    let both = QuotaSpec { max_concurrent: 1, ..rate(2, 3_600) };
    let quota = world.quota(both).await;
    let first = world.start(under(world, &[], Some(quota))).await;
    let waitpoints = world.suspend(suspend(&first, wildcard("go"))).await;
    let second = world.start(under(world, &[], Some(quota))).await;
    world.act(signal(first.execution_id, &waitpoints[0], "go")).await;
    assert_eq!(world.claim_ids(5).await, [], "the other has the slot");
    world.complete(&second).await.expect("completed");
    assert_eq!(world.claim_ids(5).await, [first.execution_id], "it needs a slot alone");
    let third = world.submit(under(world, &[], Some(quota))).await;
    world.pass(10_000).await;
    assert_eq!(world.claim_ids(5).await, []);
    blocked(world, third, BlockingReason::WaitingForQuota).await;
}

pub async fn a_slot_that_time_frees_goes_to_the_next_at_once(world: &World) {
    let quota = world.quota(cap(1)).await;
    let timed = |change: fn(&mut Policy)| {
        let mut submit = under(world, &[], Some(quota));
        change(Arc::make_mut(&mut submit.policy));
        submit
    };
    let fails = timed(|policy| {
        policy.timeout.attempt_timeout_ms = Some(1_000);
        policy.retry.max_retries = 0;
    });
    let expires = timed(|policy| policy.timeout.execution_deadline_ms = Some(1_000));
    let is_lost = timed(|policy| policy.timeout.max_reclaim_count = 0);
    for (ends, ms) in [(fails, 1_000), (expires, 1_000), (is_lost, limits::LEASE_TTL_MS)] {
        world.start(ends).await;
        let next = world.submit(under(world, &[], Some(quota))).await;
        assert_eq!(world.claim_ids(5).await, []);
        world.pass(ms.cast_signed()).await;
        assert_eq!(world.public_state(next).await, PublicState::Waiting, "after {ms} ms");
        let task = world.claim_one().await;
        assert_eq!(task.execution_id, next);
        world.complete(&task).await.expect("completed");
    }
}
