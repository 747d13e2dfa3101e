//! Claims by name ask quota policies; schedulers claim for workers; usage goes to all budgets.

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use ff_core::backend::BackendExt;
use ff_core::capability::Capabilities;
use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::id::{ExecutionId, Namespace, QuotaPolicyId};
use ff_core::limits;
use ff_core::operation::{
    Attach, ClaimForWorker, ClaimGrant, DeleteQuotaPolicy, IssueClaimGrant, ReportToAll, SetLane,
    SetNamespace, Spender, Submit, TakenSlots, UsageReported,
};
use ff_core::read::ReadStanding;
use ff_core::state::{BlockingReason, LaneState, PublicState, SlotId};

use crate::fleet::{block, register, set_lane};
use crate::grants::{
    claim_granted, claim_resumed, grant_and_claim, instance, issue_grant, issue_reclaim, reclaim,
    worker,
};
use crate::limits::{amounts, budget, cap, key, rate, under, usage};
use crate::world::{World, capabilities, code, delay, hold, lane};

const GRANT_MS: u64 = 20_000;

async fn holders(world: &World, id: QuotaPolicyId) -> Vec<SlotId> {
    world.describe_quota(id).await.holders.into_iter().map(|holder| holder.slot).collect()
}

/// Under a policy with one slot, and granted.
async fn granted(world: &World) -> (ExecutionId, QuotaPolicyId) {
    let quota = world.quota(cap(1)).await;
    let id = world.submit(under(world, &[], Some(quota))).await;
    world.act(IssueClaimGrant { grant_ttl_ms: GRANT_MS, ..issue_grant(id) }).await;
    (id, quota)
}

pub(super) fn for_worker() -> ClaimForWorker {
    ClaimForWorker {
        namespace: Namespace::default(),
        worker_id: worker("pool"),
        worker_instance_id: instance("pool-1"),
        lane: lane("work"),
        capabilities: Capabilities::default(),
        grant_ttl_ms: GRANT_MS,
    }
}

async fn next_grant(world: &World) -> Option<ClaimGrant> {
    world.backend.claim_for_worker(for_worker()).await.unwrap()
}

pub async fn a_scheduler_gets_what_no_registered_worker_could_run(world: &World) {
    world.act(register("pool-1")).await;
    let id = world.submit(world.needing(&["gpu"])).await;
    world.act(block(id, BlockingReason::WaitingForCapableWorker)).await;
    assert_eq!(next_grant(world).await, None, "without the capability");
    let asked = ClaimForWorker { capabilities: capabilities(&["gpu"]), ..for_worker() };
    let grant = world.backend.claim_for_worker(asked).await.unwrap().expect("a grant");
    assert_eq!(grant.execution_id, id);
    assert_eq!(world.backend.take_up(claim_granted(id)).await.unwrap().execution_id, id);
}

pub async fn a_full_quota_says_when_to_come_again(world: &World) {
    let quota = world.quota(rate(1, 60)).await;
    let first = world.submit(under(world, &[], Some(quota))).await;
    let second = world.submit(under(world, &[], Some(quota))).await;
    world.backend.take_up(grant_and_claim(first)).await.unwrap();
    world.advance(18_000).await;
    let refused = world.backend.take_up(grant_and_claim(second)).await.unwrap_err();
    assert_eq!(refused.code(), Code::RateLimitExceeded);
    assert_eq!(refused.refusal().unwrap().retry_after_ms, NonZeroU64::new(42_000));
}

pub async fn a_claim_by_name_takes_a_slot(world: &World) {
    let (id, quota) = granted(world).await;
    let task = world.backend.take_up(claim_granted(id)).await.unwrap();
    let slot = SlotId { execution_id: id, lease_epoch: task.lease_epoch };
    assert_eq!(holders(world, quota).await, [slot]);
    world.complete(&task).await.unwrap();
    assert_eq!(holders(world, quota).await, []);
}

pub async fn a_claim_by_name_without_its_slots_is_refused(world: &World) {
    let (id, quota) = granted(world).await;
    let expected = Code::ConcurrencyLimitExceeded;
    assert_eq!(code(world.backend.call(claim_granted(id)).await), expected);
    let other_epoch =
        TakenSlots { lease_epoch: 7, quota_policy_ids: vec![quota], places: Vec::new() };
    let mut asked = claim_granted(id);
    asked.slots = other_epoch;
    assert_eq!(code(world.backend.call(asked.clone()).await), expected);
    asked.slots.lease_epoch = 1;
    assert_eq!(world.backend.call(asked).await.unwrap().lease_epoch, 1);
}

pub async fn a_refusal_leaves_the_grant_valid(world: &World) {
    let (id, quota) = granted(world).await;
    let (slot, _) = world.admit(quota).await;
    let refused = world.backend.take_up(claim_granted(id)).await;
    assert_eq!(code(refused), Code::ConcurrencyLimitExceeded);
    world.give_back(quota, slot).await;
    let task = world.backend.take_up(claim_granted(id)).await.unwrap();
    assert_eq!(task.execution_id, id);
    let (late, window) = granted(world).await;
    world.act(ff_core::operation::UpdateQuotaPolicy::new(window, rate(1, 60))).await;
    world.admit(window).await;
    let refused = world.backend.take_up(claim_granted(late)).await;
    assert_eq!(code(refused), Code::RateLimitExceeded);
}

pub async fn an_operator_gives_out_work_whatever_budgets_say_and_asks_quotas(world: &World) {
    let spent = world.budget(budget(&[("tokens", 1, 0)])).await;
    world.act(usage(spent, &[("tokens", 5)])).await;
    let quota = world.quota(cap(1)).await;
    let [first, second] = [0; 2].map(|_| under(world, &[spent], Some(quota)));
    let (first, second) = (world.submit(first).await, world.submit(second).await);
    let task = world.backend.take_up(grant_and_claim(first)).await.unwrap();
    let refused = world.backend.take_up(grant_and_claim(second)).await;
    assert_eq!(code(refused), Code::ConcurrencyLimitExceeded);
    world.complete(&task).await.unwrap();
    world.backend.take_up(grant_and_claim(second)).await.unwrap();
}

pub async fn an_operator_takes_what_a_claim_has_blocked(world: &World) {
    let spent = world.budget(budget(&[("tokens", 1, 0)])).await;
    world.act(usage(spent, &[("tokens", 5)])).await;
    let unrouted = world.submit(world.needing(&["gpu"])).await;
    world.act(block(unrouted, BlockingReason::WaitingForCapableWorker)).await;
    let unpaid = world.submit(under(world, &[spent], None)).await;
    assert_eq!(world.claim_ids(1).await, []);
    for id in [unpaid, unrouted] {
        assert_eq!(world.backend.take_up(grant_and_claim(id)).await.unwrap().execution_id, id);
        use EventKind::{Blocked, Claimed, Submitted, Unblocked};
        assert_eq!(world.history(id).await, [Submitted, Blocked, Unblocked, Claimed]);
    }
}

pub async fn an_operator_asks_the_quotas_of_what_they_have_blocked(world: &World) {
    let quota = world.quota(rate(1, 60)).await;
    world.start(under(world, &[], Some(quota))).await;
    let id = world.submit(under(world, &[], Some(quota))).await;
    assert_eq!(world.claim_ids(1).await, []);
    world.advance(18_000).await;
    let refused = world.backend.take_up(grant_and_claim(id)).await.unwrap_err();
    assert_eq!(refused.code(), Code::RateLimitExceeded);
    assert_eq!(refused.refusal().unwrap().retry_after_ms, NonZeroU64::new(42_000));
    let state = world.describe(id).await.state;
    assert_eq!(state.blocking_reason, BlockingReason::WaitingForQuota, "it still waits");
    world.advance(42_000).await;
    let task = world.backend.take_up(grant_and_claim(id)).await.unwrap();
    assert_eq!(task.execution_id, id);
    let slot = SlotId { execution_id: id, lease_epoch: task.lease_epoch };
    assert!(holders(world, quota).await.contains(&slot));
}

pub async fn an_operator_passes_no_hold_of_what_limits_have_blocked(world: &World) {
    let spent = world.budget(budget(&[("tokens", 1, 0)])).await;
    world.act(usage(spent, &[("tokens", 5)])).await;
    let id = world.submit(under(world, &[spent], None)).await;
    assert_eq!(world.claim_ids(1).await, []);
    world.act(hold(id)).await;
    let refused = world.backend.take_up(grant_and_claim(id)).await;
    assert_eq!(code(refused), Code::ExecutionNotLeaseable);
}

pub async fn an_attempt_that_goes_on_by_name_takes_a_slot(world: &World) {
    let (id, quota) = granted(world).await;
    let task = world.backend.take_up(claim_granted(id)).await.unwrap();
    world.act(delay(&task, 0)).await;
    world.act(issue_grant(id)).await;
    let task = world.backend.take_up(claim_resumed(id)).await.unwrap();
    assert_eq!(holders(world, quota).await.len(), 1);
    world.act(crate::world::revoke(id)).await;
    assert_eq!(holders(world, quota).await, []);
    world.act(issue_reclaim(id)).await;
    world.backend.take_up(reclaim(id)).await.unwrap();
    let slot = SlotId { execution_id: id, lease_epoch: task.lease_epoch + 1 };
    assert_eq!(holders(world, quota).await, [slot]);
}

pub async fn a_policy_that_is_gone_holds_no_grant_up(world: &World) {
    let (id, quota) = granted(world).await;
    world.act(DeleteQuotaPolicy { quota_policy_id: quota }).await;
    assert_eq!(world.backend.call(claim_granted(id)).await.unwrap().execution_id, id);
}

pub async fn a_scheduler_gets_the_best_for_a_worker(world: &World) {
    let low = world.submit(world.work()).await;
    let high = world.submit(Submit { priority: 5, ..world.work() }).await;
    let grant = next_grant(world).await.unwrap();
    assert_eq!(grant.execution_id, high);
    assert_eq!(world.claim_ids(5).await, [low], "what is granted is no candidate");
    assert_eq!(next_grant(world).await, None);
    assert_eq!(world.act(claim_granted(high)).await.execution_id, high);
}

pub async fn a_grant_of_a_scheduler_holds_its_slots(world: &World) {
    let quota = world.quota(cap(1)).await;
    let [first, second] = [0; 2].map(|_| under(world, &[], Some(quota)));
    let (first, _) = (world.submit(first).await, world.submit(second).await);
    assert_eq!(next_grant(world).await.unwrap().execution_id, first);
    let slot = SlotId { execution_id: first, lease_epoch: 1 };
    assert_eq!(holders(world, quota).await, [slot]);
    assert_eq!(next_grant(world).await, None, "the slot is taken");
    // The slot asks what became of it, and waits as long as the grant.
    world.pass(limits::SLOT_PENDING_MS.cast_signed() + 1).await;
    assert_eq!(holders(world, quota).await, [slot]);
    let task = world.act(claim_granted(first)).await;
    assert_eq!(holders(world, quota).await, [slot]);
    world.complete(&task).await.unwrap();
    assert_eq!(holders(world, quota).await, []);
}

pub async fn a_grant_of_a_scheduler_lapses_with_its_slots(world: &World) {
    let quota = world.quota(cap(1)).await;
    let id = world.submit(under(world, &[], Some(quota))).await;
    assert_eq!(next_grant(world).await.unwrap().execution_id, id);
    world.pass(GRANT_MS.cast_signed()).await;
    world.pass(limits::ERRAND_RETRY_MS.cast_signed()).await;
    assert_eq!(holders(world, quota).await, []);
    assert_eq!(world.claim_ids(1).await, [id]);
}

pub async fn a_scheduler_passes_what_limits_keep_back(world: &World) {
    let spent = world.budget(budget(&[("tokens", 1, 0)])).await;
    world.act(usage(spent, &[("tokens", 5)])).await;
    let blocked = world.submit(under(world, &[spent], None)).await;
    let free = world.submit(world.work()).await;
    assert_eq!(next_grant(world).await.unwrap().execution_id, free);
    assert_eq!(world.public_state(blocked).await, PublicState::RateLimited);
    let asked = ClaimForWorker { grant_ttl_ms: 0, ..for_worker() };
    assert_eq!(code(world.backend.claim_for_worker(asked).await), Code::InvalidInput);
}

pub async fn usage_goes_to_every_budget_that_an_execution_stands_under(world: &World) {
    let mut budgets = Vec::new();
    for _ in 0..3 {
        budgets.push(world.budget(budget(&[("tokens", 10, 0)])).await);
    }
    let attach = |id| Attach { budget_ids: Some(vec![id]), quota_policy_id: None };
    let lane = set_lane("work", LaneState::Active);
    world.act(SetLane { attach: attach(budgets[1]), ..lane }).await;
    let namespace = Namespace::default();
    world
        .act(SetNamespace {
            namespace,
            attach: attach(budgets[2]),
            retention: None,
            expected_revision: None,
        })
        .await;
    let id = world.submit(under(world, &budgets[..1], None)).await;
    let found = world.backend.ask(ReadStanding { execution_id: id }).await.unwrap().unwrap();
    let all: BTreeSet<_> = found.applicant.standing.budget_ids.iter().copied().collect();
    assert_eq!(all, budgets.iter().copied().collect());
    let spender = Spender { execution_id: id, attempt_index: 0 };
    let dimensions = amounts(&[("tokens", 4)]);
    let report = ReportToAll { spender, dimensions, dedup_key: key("once"), mode: None };
    for expected in [UsageReported::Ok, UsageReported::AlreadyApplied] {
        let reported = world.backend.report_to_all(report.clone()).await.unwrap();
        assert_eq!(reported.len(), 3);
        assert!(reported.iter().all(|(_, reply)| *reply == expected), "{reported:?}");
    }
    for id in budgets {
        assert_eq!(world.used(id).await, amounts(&[("tokens", 4)]));
    }
    let nobody = ReadStanding { execution_id: world.somebody() };
    assert_eq!(world.backend.ask(nobody).await.unwrap(), None);
}
