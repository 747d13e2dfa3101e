//! Admission: claims ask the budgets and quota policies of what they take.

use std::time::Duration;

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::id::{BudgetId, ExecutionId, FlowId, Namespace, QuotaPolicyId};
use ff_core::limits;
use ff_core::operation::{
    Applicant, Attach, CheckAdmission, Claim, ClaimAdmitted, Command, CreateBudget, CreateFlow,
    DeleteBudget, DeleteQuotaPolicy, InFlow, LaneShare, ReleaseBudget, ReportUsageAdmin,
    ResetBudget, SetLane, SetNamespace, Submit, SubmitFlow, Task, UpdateBudget, UpdateQuotaPolicy,
    VoidAdmission,
};
use ff_core::state::{
    Attached, BlockingReason, BudgetScope, EligibilityState, EnforcementMode, HardAction,
    LaneState, PublicState, SlotId, Standing,
};

use uuid::Uuid;

use crate::fleet::set_lane;
use crate::graphs::create_flow;
use crate::limits::{budget, cap, limits_of, rate, spend, tick, under, usage};
use crate::waits::{signal, suspend, wildcard};
use crate::world::{PATIENCE, World, cancel, capabilities, code, complete, delay, lane, revoke};

const PENDING: i64 = limits::SLOT_PENDING_MS.cast_signed();

pub(super) async fn blocked(world: &World, id: ExecutionId, reason: BlockingReason) {
    let state = world.describe(id).await.state;
    assert_eq!(state.blocking_reason, reason, "{state:?}");
    assert_eq!(state.public_state, PublicState::RateLimited);
}

pub(super) async fn used_up(world: &World) -> BudgetId {
    let id = world.budget(budget(&[("tokens", 10, 0)])).await;
    world.act(usage(id, &[("tokens", 10)])).await;
    id
}

pub(super) async fn holders(world: &World, id: QuotaPolicyId) -> Vec<SlotId> {
    world.describe_quota(id).await.holders.into_iter().map(|holder| holder.slot).collect()
}

pub(super) fn slot(task: &Task) -> SlotId {
    SlotId { execution_id: task.execution_id, lease_epoch: task.lease_epoch }
}

pub async fn what_stands_under_a_used_up_budget_is_kept_back(world: &World) {
    let spent = used_up(world).await;
    let id = world.submit(under(world, &[spent], None)).await;
    let free = world.submit(world.work()).await;
    assert_eq!(world.claim_ids(5).await, [free], "others are claimed");
    blocked(world, id, BlockingReason::WaitingForBudget).await;
    let state = world.describe(id).await.state;
    assert_eq!(state.eligibility_state, EligibilityState::BlockedByBudget);
    assert!(state.blocking_detail.contains(&spent.to_string()), "{}", state.blocking_detail);
    assert!(state.blocking_detail.contains("tokens is at 10 of 10"), "{}", state.blocking_detail);
    assert_eq!(world.claim_ids(5).await, []);
}

pub async fn a_claim_goes_on_behind_what_is_kept_back(world: &World) {
    let spent = used_up(world).await;
    let priority = |priority, submit| Submit { priority, ..submit };
    world.submit(priority(9, world.work())).await;
    for _ in 0..4 {
        world.submit(priority(8, under(world, &[spent], None))).await;
    }
    for _ in 0..6 {
        world.submit(priority(1, world.work())).await;
    }
    assert_eq!(world.claim(5).await.len(), 5);
    assert_eq!(world.claim(5).await.len(), 2);
}

pub async fn the_best_comes_first_whether_limits_let_it_in_or_not(world: &World) {
    let id = world.budget(budget(&[("tokens", 10, 0)])).await;
    let priority = |priority, submit| Submit { priority, ..submit };
    let low = world.submit(priority(1, world.work())).await;
    let high = world.submit(priority(9000, under(world, &[id], None))).await;
    let middle = world.submit(priority(50, world.work())).await;
    assert_eq!(world.claim_ids(3).await, [high, middle, low]);
}

pub async fn whoever_waits_no_longer_gives_its_turn_on(world: &World) {
    let quota = world.quota(cap(1)).await;
    let task = world.start(under(world, &[], Some(quota))).await;
    let mut waiting = Vec::new();
    for priority in [5, 5, 5, 5, 5, 0] {
        waiting.push(world.submit(Submit { priority, ..under(world, &[], Some(quota)) }).await);
    }
    assert_eq!(world.claim_ids(10).await, []);
    let last = waiting.pop().expect("the last");
    for id in waiting {
        world.act(cancel(id)).await;
    }
    world.complete(&task).await.expect("completed");
    assert_eq!(world.claim_ids(10).await, [last], "the slot is free, and nobody else wants it");
}

pub async fn a_cap_that_is_switched_off_lets_all_come_at_once(world: &World) {
    let quota = world.quota(cap(1)).await;
    world.start(under(world, &[], Some(quota))).await;
    for _ in 0..200 {
        world.submit(under(world, &[], Some(quota))).await;
    }
    assert_eq!(world.claim_ids(300).await, []);
    world.act(UpdateQuotaPolicy::new(quota, cap(0))).await;
    assert_eq!(world.claim_ids(300).await.len(), 200);
}

pub async fn a_window_that_has_passed_lets_in_as_many_again(world: &World) {
    let quota = world.quota(rate(100, 3)).await;
    for _ in 0..250 {
        world.submit(under(world, &[], Some(quota))).await;
    }
    for expected in [100, 100, 50] {
        let mut claimed = 0;
        for _ in 0..4 {
            claimed += world.claim_ids(300).await.len();
        }
        assert_eq!(claimed, expected);
        world.pass(3_000).await;
    }
}

pub async fn a_budget_with_room_lets_everybody_in(world: &World) {
    let id = world.budget(budget(&[("tokens", 10, 1)])).await;
    world.act(usage(id, &[("tokens", 9)])).await;
    let tasks = [world.start(under(world, &[id], None)).await];
    assert_eq!(tasks[0].lease_epoch, 1);
    assert_eq!(world.public_state(tasks[0].execution_id).await, PublicState::Active);
}

pub async fn a_limit_that_is_gone_holds_nobody_up(world: &World) {
    let spent = used_up(world).await;
    let full = world.quota(cap(1)).await;
    world.start(under(world, &[], Some(full))).await;
    let id = world.submit(under(world, &[spent], Some(full))).await;
    world.act(DeleteBudget { budget_id: spent }).await;
    world.act(DeleteQuotaPolicy { quota_policy_id: full }).await;
    assert_eq!(world.claim_ids(1).await, [id]);
}

pub async fn all_that_an_execution_stands_under_applies(world: &World) {
    let namespace = Namespace::default();
    let spent = used_up(world).await;
    let attach = |budget_ids: &[BudgetId]| Attach {
        budget_ids: Some(budget_ids.to_vec()),
        quota_policy_id: None,
    };
    let set_namespace = |budget_ids: &[BudgetId]| SetNamespace {
        namespace: namespace.clone(),
        attach: attach(budget_ids),
        retention: None,
        expected_revision: None,
    };
    let set_lane = |budget_ids: &[BudgetId]| SetLane {
        attach: attach(budget_ids),
        ..set_lane("work", LaneState::Active)
    };
    world.act(set_namespace(&[spent])).await;
    let id = world.submit(world.work()).await;
    assert_eq!(world.claim_ids(1).await, [], "its namespace");
    blocked(world, id, BlockingReason::WaitingForBudget).await;
    world.act(set_namespace(&[])).await;
    assert_eq!(world.claim_ids(1).await, [id]);
    world.act(set_lane(&[spent])).await;
    let id = world.submit(world.work()).await;
    assert_eq!(world.claim_ids(1).await, [], "its lane");
    blocked(world, id, BlockingReason::WaitingForBudget).await;
    world.act(set_lane(&[])).await;
    assert_eq!(world.claim_ids(1).await, [id]);
    let attached = Attached::new([spent], None);
    let drawing = world.draw(&["a"], &[]);
    let flow = CreateFlow { attached, ..drawing.submit.flow.clone() };
    let member = drawing.submit.members[0].submit.execution_id;
    world.act(SubmitFlow { flow, ..drawing.submit }).await;
    assert_eq!(world.claim_ids(1).await, [], "its flow");
    blocked(world, member, BlockingReason::WaitingForBudget).await;
    let free = world.submit(world.work()).await;
    assert_eq!(world.claim_ids(5).await, [free]);
}

pub async fn what_is_attached_must_be_there(world: &World) {
    let stranger = BudgetId::mint();
    let (nobody, quota) = (QuotaPolicyId::mint(), Some(QuotaPolicyId::mint()));
    let refused = |submit: Submit| async move {
        let id = submit.execution_id;
        let code = code(world.command(submit.into()).await);
        assert_eq!(world.find(id).await, None);
        code
    };
    assert_eq!(refused(under(world, &[stranger], None)).await, Code::BudgetNotFound);
    assert_eq!(refused(under(world, &[], quota)).await, Code::QuotaPolicyNotFound);
    let other = Namespace::new("other").unwrap();
    let elsewhere = CreateBudget { namespace: other, ..budget(&[]) };
    let elsewhere = world.budget(elsewhere).await;
    assert_eq!(refused(under(world, &[elsewhere], None)).await, Code::BudgetNotFound);
    let attached = Attached::new([], Some(nobody));
    let flow = CreateFlow { attached, ..create_flow() };
    assert_eq!(code(world.command(flow.into()).await), Code::QuotaPolicyNotFound);
    let attach = Attach { budget_ids: Some(vec![stranger]), quota_policy_id: None };
    let lane = SetLane { attach: attach.clone(), ..set_lane("work", LaneState::Active) };
    assert_eq!(code(world.command(lane.into()).await), Code::BudgetNotFound);
    let set = SetNamespace {
        namespace: Namespace::default(),
        attach,
        retention: None,
        expected_revision: None,
    };
    assert_eq!(code(world.command(set.into()).await), Code::BudgetNotFound);
}

pub async fn a_slot_is_held_from_the_claim_to_the_end_of_the_lease(world: &World) {
    let one = world.quota(cap(1)).await;
    let work = || under(world, &[], Some(one));
    let mut ends = 0;
    loop {
        let task = world.start(work()).await;
        assert_eq!(holders(world, one).await, [slot(&task)]);
        let next = world.submit(work()).await;
        assert_eq!(world.claim_ids(1).await, [], "there is one slot");
        blocked(world, next, BlockingReason::WaitingForQuota).await;
        match ends {
            0 => drop(world.complete(&task).await.unwrap()),
            1 => drop(world.fail(&task, "bad").await.unwrap()),
            2 => drop(world.act(cancel(task.execution_id)).await),
            3 => drop(world.act(delay(&task, 60_000)).await),
            4 => drop(world.act(suspend(&task, wildcard("go"))).await),
            5 => drop(world.act(revoke(task.execution_id)).await),
            6 => world.pass(task.ttl_ms.cast_signed()).await,
            _ => break,
        }
        let taken = world.claim_one().await;
        // One whose lease was lost stands before it.
        let expected = if ends < 5 { next } else { task.execution_id };
        assert_eq!(taken.execution_id, expected, "end {ends}");
        assert_eq!(holders(world, one).await, [slot(&taken)], "end {ends}");
        for id in [task.execution_id, next] {
            // One of them has ended perhaps.
            let _ = world.backend.call(cancel(id)).await;
        }
        assert_eq!(holders(world, one).await, [], "end {ends}");
        ends += 1;
    }
    world.audit().await;
}

pub async fn the_best_in_line_comes_first(world: &World) {
    let one = world.quota(cap(1)).await;
    let work = |priority| Submit { priority, ..under(world, &[], Some(one)) };
    let running = world.start(work(0)).await;
    let (low, high) = (world.submit(work(1)).await, world.submit(work(9)).await);
    assert_eq!(world.claim_ids(5).await, []);
    world.complete(&running).await.unwrap();
    assert_eq!(world.public_state(high).await, PublicState::Waiting, "it was let go at once");
    assert_eq!(world.public_state(low).await, PublicState::RateLimited);
    let second = world.claim_one().await;
    assert_eq!(second.execution_id, high);
    world.complete(&second).await.unwrap();
    assert_eq!(world.claim_ids(5).await, [low]);
}

pub async fn who_waits_for_work_gets_what_was_let_go(world: &World) {
    let one = world.quota(cap(1)).await;
    let running = world.start(under(world, &[], Some(one))).await;
    let next = world.submit(under(world, &[], Some(one))).await;
    assert_eq!(world.claim_ids(1).await, []);
    let waiting = world.backend.claim(world.claim_request(1), PATIENCE);
    let (tasks, completed) = tokio::join!(waiting, world.complete(&running));
    completed.unwrap();
    assert_eq!(tasks.unwrap()[0].execution_id, next);
}

pub async fn a_turn_that_nobody_takes_passes_on(world: &World) {
    let one = world.quota(cap(1)).await;
    let work = |priority| Submit { priority, ..under(world, &[], Some(one)) };
    let running = world.start(work(0)).await;
    let (low, high) = (world.submit(work(1)).await, world.submit(work(9)).await);
    assert_eq!(world.claim_ids(5).await, []);
    // It leaves the line without a word to the policy.
    world.act(cancel(high)).await;
    world.complete(&running).await.unwrap();
    world.pass(2 * limits::ERRAND_RETRY_MS.cast_signed()).await;
    assert_eq!(world.claim_ids(5).await, [low]);
}

pub async fn a_turn_that_no_worker_can_take_passes_on_soon(world: &World) {
    let one = world.quota(cap(1)).await;
    let attach = Attach { budget_ids: None, quota_policy_id: Some(Some(one)) };
    world.act(SetLane { attach, ..set_lane("work", LaneState::Active) }).await;
    let running = world.start(world.work()).await;
    for _ in 0..8 {
        world.submit(Submit { priority: 9, ..world.needing(&["gpu"]) }).await;
    }
    let last = world.submit(world.work()).await;
    // Who can run all of them finds the slot taken, and does not come back.
    let claim = Claim { capabilities: capabilities(&["gpu"]), ..world.claim_request(5) };
    assert_eq!(world.claim_as(claim).await, []);
    world.complete(&running).await.unwrap();
    // The best of them comes, then three others, then all.
    for _ in 0..2 {
        assert_eq!(world.claim_ids(5).await, []);
        world.pass(limits::QUOTA_WAKE_MS.cast_signed()).await;
    }
    assert_eq!(world.claim_ids(5).await, [last]);
}

pub async fn a_window_lets_in_as_many_as_it_says(world: &World) {
    let three = world.quota(rate(3, 60)).await;
    let mut left = Vec::new();
    for _ in 0..7 {
        left.push(world.submit(under(world, &[], Some(three))).await);
    }
    for expected in [3, 3, 1] {
        let tasks = world.claim(10).await;
        let found: Vec<_> = tasks.iter().map(|task| task.execution_id).collect();
        assert_eq!(found, left.drain(..expected).collect::<Vec<_>>(), "in order");
        for id in &left {
            blocked(world, *id, BlockingReason::WaitingForQuota).await;
        }
        for task in &tasks {
            world.complete(task).await.unwrap();
        }
        assert_eq!(world.claim_ids(10).await, [], "slots do not matter here");
        world.pass(59_999).await;
        assert_eq!(world.claim_ids(10).await, []);
        world.pass(1).await;
    }
}

pub async fn a_resumed_attempt_takes_no_place_in_the_window(world: &World) {
    let policy = world.quota(rate(1, 60)).await;
    let task = world.start(under(world, &[], Some(policy))).await;
    let waitpoints = world.suspend(suspend(&task, wildcard("go"))).await;
    world.act(signal(task.execution_id, &waitpoints[0], "go")).await;
    let resumed = world.claim_one().await;
    assert_eq!((resumed.execution_id, resumed.attempt_index), (task.execution_id, 0));
    world.fail(&resumed, "bad").await.unwrap();
    world.pass(1_000).await;
    assert_eq!(world.claim_ids(1).await, [], "a retry is a new attempt");
    blocked(world, task.execution_id, BlockingReason::WaitingForQuota).await;
}

pub async fn a_raised_cap_lets_more_in_at_once(world: &World) {
    let id = world.quota(cap(1)).await;
    world.start(under(world, &[], Some(id))).await;
    let mut more = Vec::new();
    for _ in 0..3 {
        more.push(world.submit(under(world, &[], Some(id))).await);
    }
    assert_eq!(world.claim_ids(5).await, []);
    world.act(UpdateQuotaPolicy::new(id, cap(3))).await;
    assert_eq!(world.claim_ids(5).await, more[..2]);
    assert_eq!(holders(world, id).await.len(), 3);
}

pub async fn a_refusal_gives_back_the_slots_that_were_taken(world: &World) {
    let (wide, narrow) = (world.quota(cap(9)).await, world.quota(cap(1)).await);
    let quota_policy_id = Some(Some(wide));
    let attach = Attach { budget_ids: None, quota_policy_id };
    let lane = SetLane { attach, ..set_lane("work", LaneState::Active) };
    world.act(lane).await;
    let first = world.start(under(world, &[], Some(narrow))).await;
    assert_eq!(holders(world, wide).await, [slot(&first)]);
    let second = world.submit(under(world, &[], Some(narrow))).await;
    assert_eq!(world.claim_ids(1).await, []);
    blocked(world, second, BlockingReason::WaitingForQuota).await;
    assert_eq!(holders(world, wide).await, [slot(&first)], "given back");
    world.complete(&first).await.unwrap();
    let task = world.claim_one().await;
    assert_eq!(task.execution_id, second);
    assert_eq!(holders(world, wide).await, [slot(&task)]);
    assert_eq!(holders(world, narrow).await, [slot(&task)]);
}

/// A claim that stops right after it has set something aside.
pub(super) async fn set_aside(world: &World) -> Applicant {
    let claimed = world.backend.take(world.claim_request(1), Duration::ZERO).await.unwrap();
    assert!(claimed.tasks.is_empty());
    claimed.applicants.into_iter().next().expect("an applicant")
}

pub(super) async fn apply_for(world: &World, quota: QuotaPolicyId, applicant: &Applicant) {
    let slot = SlotId { execution_id: applicant.execution_id, lease_epoch: applicant.lease_epoch };
    let check = CheckAdmission {
        quota_policy_id: quota,
        slot,
        claimant: applicant.lease_id,
        opens_attempt: applicant.opens_attempt,
        score: applicant.score,
    };
    world.act(check).await;
}

fn admitted(world: &World, applicant: &Applicant, quota: QuotaPolicyId) -> ClaimAdmitted {
    let claim = world.claim_request(1);
    ClaimAdmitted {
        execution_id: applicant.execution_id,
        lease_epoch: applicant.lease_epoch,
        lease_id: applicant.lease_id,
        worker_id: claim.worker_id,
        worker_instance_id: claim.worker_instance_id,
        lease_ttl_ms: claim.lease_ttl_ms,
        slots: vec![quota],
        places: Vec::new(),
    }
}

pub async fn what_is_set_aside_goes_back_to_its_place(world: &World) {
    let one = world.quota(cap(1)).await;
    let id = world.submit(under(world, &[], Some(one))).await;
    let applicant = set_aside(world).await;
    assert_eq!((applicant.execution_id, applicant.lease_epoch), (id, 1));
    let standing = Standing { quota_policy_ids: vec![one], ..Standing::default() };
    assert_eq!((applicant.standing, applicant.opens_attempt), (standing, true));
    assert_eq!(world.claim_ids(1).await, [], "it is nobody else's meanwhile");
    world.pass(PENDING).await;
    assert_eq!(world.claim_ids(1).await, [id]);
}

pub async fn a_slot_without_a_lease_is_given_back(world: &World) {
    let one = world.quota(cap(1)).await;
    let id = world.submit(under(world, &[], Some(one))).await;
    let applicant = set_aside(world).await;
    apply_for(world, one, &applicant).await;
    assert_eq!(holders(world, one).await.len(), 1);
    // Whoever asked has stopped.
    world.pass(PENDING - 1).await;
    assert_eq!(holders(world, one).await.len(), 1, "no slot ends before its time");
    world.pass(1).await;
    assert_eq!(holders(world, one).await, []);
    world.refuses(admitted(world, &applicant, one), Code::InvalidClaimGrant).await;
    assert_eq!(world.claim_ids(1).await, [id]);
}

pub async fn a_voided_admission_cannot_begin_any_more(world: &World) {
    let one = world.quota(cap(1)).await;
    let id = world.submit(under(world, &[], Some(one))).await;
    let applicant = set_aside(world).await;
    apply_for(world, one, &applicant).await;
    world.act(VoidAdmission { execution_id: id, lease_epoch: 1, quota_policy_id: None }).await;
    world.refuses(admitted(world, &applicant, one), Code::InvalidClaimGrant).await;
    let task = world.claim_one().await;
    assert_eq!((task.execution_id, task.lease_epoch), (id, 1));
}

pub async fn a_slot_whose_lease_lives_is_held(world: &World) {
    let one = world.quota(cap(1)).await;
    world.submit(under(world, &[], Some(one))).await;
    let applicant = set_aside(world).await;
    apply_for(world, one, &applicant).await;
    let task = world.act(admitted(world, &applicant, one)).await;
    assert_eq!(task.lease_id, applicant.lease_id);
    assert_eq!(world.act(admitted(world, &applicant, one)).await, task, "sent again");
    world.pass(PENDING).await;
    let held = world.describe_quota(one).await.holders;
    assert_eq!((held[0].slot, held[0].pending_until), (slot(&task), None));
    world.complete(&task).await.unwrap();
    assert_eq!(holders(world, one).await, []);
}

pub async fn only_who_set_it_aside_may_lease_it(world: &World) {
    let one = world.quota(cap(1)).await;
    world.submit(under(world, &[], Some(one))).await;
    let applicant = set_aside(world).await;
    let asked = admitted(world, &applicant, one);
    let other = ff_core::id::WorkerInstanceId::new("other").unwrap();
    let by_other = ClaimAdmitted { worker_instance_id: other, ..asked.clone() };
    world.refuses(by_other, Code::InvalidClaimGrant).await;
    let later = ClaimAdmitted { lease_epoch: 2, ..asked.clone() };
    world.refuses(later, Code::InvalidClaimGrant).await;
    let short = ClaimAdmitted { lease_ttl_ms: 1, ..asked.clone() };
    world.refuses(short, Code::InvalidInput).await;
    let grant = crate::grants::claim_granted(applicant.execution_id);
    world.refuses(grant, Code::InvalidClaimGrant).await;
    world.act(asked).await;
}

pub async fn what_is_owed_is_told_until_it_is_given_back(world: &World) {
    let one = world.quota(cap(1)).await;
    let task = world.start(under(world, &[], Some(one))).await;
    // The caller stops right after the step.
    world.backend.apply(vec![complete(&task).into()]).await.pop().unwrap().unwrap();
    assert_eq!(holders(world, one).await, [slot(&task)]);
    world.pass(limits::ERRAND_RETRY_MS.cast_signed()).await;
    assert_eq!(holders(world, one).await, []);
    world.audit().await;
}

pub async fn a_free_lane_pays_nothing_for_limits_elsewhere(world: &World) {
    let spent = used_up(world).await;
    let attach = Attach { budget_ids: Some(vec![spent]), quota_policy_id: None };
    world.act(SetLane { attach, ..set_lane("other", LaneState::Active) }).await;
    let other = world.submit(world.work_on("other")).await;
    let free = world.submit(world.work()).await;
    let both = ["other", "work"].map(|name| LaneShare::new(lane(name))).to_vec();
    let claim = ff_core::operation::Claim { lanes: both, ..world.claim_request(5) };
    let claimed = world.backend.take(claim, Duration::ZERO).await.unwrap();
    assert_eq!(claimed.tasks.len(), 1);
    assert_eq!(claimed.tasks[0].execution_id, free);
    assert_eq!(claimed.applicants[0].execution_id, other);
    assert_ne!(claimed.applicants[0].lease_id, claimed.tasks[0].lease_id);
}

pub async fn room_lets_go_what_was_kept_back(world: &World) {
    let id = world.budget(budget(&[("tokens", 10, 0), ("usd", 5, 0)])).await;
    let spender = world.start(under(world, &[id], None)).await.execution_id;
    world.act(spend(id, spender, &[("tokens", 10)])).await;
    let raised =
        UpdateBudget { dimensions: limits_of(&[("tokens", 11, 0)]), ..UpdateBudget::new(id) };
    let release = ReleaseBudget { budget_id: id, execution_id: spender };
    let ways: [Command; 3] = [raised.into(), release.into(), ResetBudget { budget_id: id }.into()];
    for (n, way) in ways.into_iter().enumerate() {
        let kept_back = world.submit(under(world, &[id], None)).await;
        assert_eq!(world.claim_ids(1).await, [], "way {n}");
        blocked(world, kept_back, BlockingReason::WaitingForBudget).await;
        world.command(way).await.unwrap();
        world.settle().await;
        assert_eq!(world.public_state(kept_back).await, PublicState::Waiting, "way {n}");
        assert_eq!(world.claim_ids(1).await, [kept_back], "way {n}");
        world.act(spend(id, spender, &[("tokens", 20)])).await;
    }
}

pub async fn what_another_budget_keeps_back_stays(world: &World) {
    let (first, second) = (used_up(world).await, used_up(world).await);
    let ours = world.submit(under(world, &[first], None)).await;
    let theirs = world.submit(under(world, &[second], None)).await;
    assert_eq!(world.claim_ids(5).await, []);
    world.act(ResetBudget { budget_id: first }).await;
    world.settle().await;
    assert_eq!(world.public_state(ours).await, PublicState::Waiting);
    blocked(world, theirs, BlockingReason::WaitingForBudget).await;
}

pub async fn a_hard_limit_may_end_what_runs(world: &World) {
    for action in [HardAction::Block, HardAction::Cancel, HardAction::Fail] {
        let create = CreateBudget { on_hard_limit: action, ..budget(&[("tokens", 10, 0)]) };
        let id = world.budget(create).await;
        let running = world.start(under(world, &[id], None)).await;
        let other = world.start(world.work()).await;
        let refused = ReportUsageAdmin {
            mode: Some(EnforcementMode::Refuse),
            ..usage(id, &[("tokens", 11)])
        };
        world.act(refused).await;
        world.settle().await;
        assert_eq!(world.public_state(running.execution_id).await, PublicState::Active);
        world.act(usage(id, &[("tokens", 11)])).await;
        world.settle().await;
        let record = world.describe(running.execution_id).await;
        let expected = match action {
            HardAction::Block => PublicState::Active,
            HardAction::Cancel => PublicState::Cancelled,
            HardAction::Fail => PublicState::Failed,
        };
        assert_eq!(record.state.public_state, expected, "{action:?}");
        match action {
            HardAction::Block => {}
            HardAction::Cancel => {
                assert_eq!(record.cancellation_reason.as_deref(), Some("budget_exceeded"));
            }
            HardAction::Fail => {
                assert_eq!(record.failure_reason.as_deref(), Some("budget_exceeded"));
            }
        }
        assert_eq!(world.public_state(other.execution_id).await, PublicState::Active);
        world.complete(&other).await.unwrap();
        world.settle().await;
        assert_eq!(world.act(tick()).await.errands, [], "nothing is owed");
    }
}

pub async fn a_budget_is_attached_where_its_scope_says(world: &World) {
    let namespace = Namespace::default();
    let flow = create_flow();
    world.act(flow.clone()).await;
    let scopes = [
        BudgetScope::Flow(flow.flow_id),
        BudgetScope::Lane(lane("work")),
        BudgetScope::Namespace(namespace.clone()),
    ];
    for scope in scopes {
        let create = CreateBudget { scope: scope.clone(), ..budget(&[("tokens", 1, 0)]) };
        let id = world.budget(create.clone()).await;
        world.act(usage(id, &[("tokens", 1)])).await;
        let submit = match scope {
            BudgetScope::Flow(flow_id) => {
                let partitions = &world.backend.settings().partitions;
                let execution_id = ExecutionId::for_flow(Uuid::now_v7(), flow_id, partitions);
                let within = Some(InFlow { flow_id, name: None });
                Submit { execution_id, within, ..world.work() }
            }
            _ => world.work(),
        };
        let under_it = world.submit(submit).await;
        assert_eq!(world.claim_ids(1).await, [], "{scope:?}");
        blocked(world, under_it, BlockingReason::WaitingForBudget).await;
        world.act(cancel(under_it)).await;
        world.act(DeleteBudget { budget_id: id }).await;
    }
    let nowhere = CreateBudget { scope: BudgetScope::Flow(FlowId::mint()), ..budget(&[]) };
    assert_eq!(code(world.command(nowhere.into()).await), Code::FlowNotFound);
    let other = BudgetScope::Namespace(Namespace::new("other").unwrap());
    let elsewhere = CreateBudget { scope: other, ..budget(&[]) };
    assert_eq!(code(world.command(elsewhere.into()).await), Code::InvalidBudgetScope);
}

pub async fn what_is_gone_stays_attached_but_is_not_attached_again(world: &World) {
    let (gone, cap) = (world.budget(budget(&[])).await, world.quota(cap(9)).await);
    let both = || Attach { budget_ids: Some(vec![gone]), quota_policy_id: Some(Some(cap)) };
    let lane = |attach| SetLane { attach, ..set_lane("work", LaneState::Active) };
    let all = |attach| SetNamespace {
        namespace: Namespace::default(),
        attach,
        retention: None,
        expected_revision: None,
    };
    world.act(lane(both())).await;
    world.act(all(both())).await;
    world.act(DeleteBudget { budget_id: gone }).await;
    world.act(DeleteQuotaPolicy { quota_policy_id: cap }).await;
    world.act(set_lane("work", LaneState::Paused)).await;
    let set = world.act(set_lane("work", LaneState::Active)).await;
    assert_eq!((set.attached.budget_ids, set.attached.quota_policy_id), (vec![gone], Some(cap)));
    world.act(all(Attach::default())).await;
    let budget = || Attach { budget_ids: Some(vec![gone]), quota_policy_id: None };
    let quota = || Attach { budget_ids: None, quota_policy_id: Some(Some(cap)) };
    for (command, expected) in [
        (lane(budget()).into(), Code::BudgetNotFound),
        (lane(quota()).into(), Code::QuotaPolicyNotFound),
        (Command::from(all(budget())), Code::BudgetNotFound),
        (all(quota()).into(), Code::QuotaPolicyNotFound),
    ] {
        assert_eq!(code(world.command(command).await), expected);
    }
    world.start(world.work()).await;
}
