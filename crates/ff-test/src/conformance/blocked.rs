//! Executions that are not admitted: blocked, listed, explained, and let go.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::event::{Detail, EventKind};
use ff_core::id::{ExecutionId, Namespace};
use ff_core::operation::{
    BlockForAdmission, IssueClaimGrant, RegisterWorker, Release, Submit, Unblock, Unblocked,
};
use ff_core::read::{Cause, ListBlocked};
use ff_core::state::{AdmissionReason, BlockingReason, EligibilityState, PublicState};
use tokio::time::timeout;

use crate::fleet::{block, register};
use crate::grants::{claim_granted, issue_grant};
use crate::world::{PATIENCE, World, cancel, capabilities, complete, delay, hold, lane};

const ROUTE: BlockingReason = BlockingReason::WaitingForCapableWorker;
const BUDGET: BlockingReason = BlockingReason::WaitingForBudget;
const QUOTA: BlockingReason = BlockingReason::WaitingForQuota;

fn unblock(execution_id: ExecutionId, expected: BlockingReason) -> Unblock {
    Unblock { execution_id, expected }
}

async fn blocked(world: &World, reason: BlockingReason) -> ExecutionId {
    let id = world.submit(world.work()).await;
    world.act(block(id, reason)).await;
    id
}

async fn listed(world: &World, reason: Option<AdmissionReason>) -> Vec<ExecutionId> {
    let (namespace, lanes) = (Namespace::default(), Vec::new());
    let question = ListBlocked { namespace, reason, lanes, cursor: None, limit: 50 };
    let page = world.backend.ask(question).await.unwrap();
    page.items.into_iter().map(|item| item.execution_id).collect()
}

pub async fn each_reason_has_its_state(world: &World) {
    use EligibilityState::{BlockedByBudget, BlockedByQuota, BlockedByRoute};
    for (reason, eligibility, public) in [
        (BUDGET, BlockedByBudget, PublicState::RateLimited),
        (QUOTA, BlockedByQuota, PublicState::RateLimited),
        (ROUTE, BlockedByRoute, PublicState::Waiting),
    ] {
        let id = blocked(world, reason).await;
        let state = world.describe(id).await.state;
        assert_eq!((state.eligibility_state, state.blocking_reason), (eligibility, reason));
        assert_eq!((state.public_state, &state.blocking_detail[..]), (public, "no room"));
        assert_eq!(world.claim_ids(1).await, [], "nobody claims it");
        world.act(unblock(id, reason)).await;
        assert_eq!(world.claim_ids(1).await, [id]);
    }
}

pub async fn only_what_is_eligible_is_blocked(world: &World) {
    let id = blocked(world, BUDGET).await;
    for reason in [BUDGET, QUOTA] {
        world.refuses(block(id, reason), Code::ExecutionNotEligible).await;
    }
    let running = world.start(world.work()).await;
    world.refuses(block(running.execution_id, BUDGET), Code::ExecutionNotEligible).await;
    world.act(delay(&running, 1_000)).await;
    world.refuses(block(running.execution_id, BUDGET), Code::ExecutionNotEligible).await;
    let held = world.submit(Submit { held: true, ..world.work() }).await;
    world.refuses(block(held, BUDGET), Code::ExecutionNotEligible).await;
    let ended = world.finish(world.work()).await.execution_id;
    world.refuses(block(ended, BUDGET), Code::ExecutionNotEligible).await;
}

pub async fn only_the_expected_reason_is_lifted(world: &World) {
    let id = blocked(world, BUDGET).await;
    for other in [QUOTA, ROUTE] {
        world.refuses(unblock(id, other), Code::ExecutionNotEligible).await;
    }
    assert_eq!(world.act(unblock(id, BUDGET)).await, Unblocked { claimable: true });
    world.refuses(unblock(id, BUDGET), Code::ExecutionNotEligible).await;
}

pub async fn other_reasons_are_none_of_admission(world: &World) {
    let id = world.submit(world.work()).await;
    for reason in BlockingReason::ALL {
        if ![BUDGET, QUOTA, ROUTE].contains(reason) {
            world.refuses(block(id, *reason), Code::InvalidBlockingReason).await;
            world.refuses(unblock(id, *reason), Code::InvalidBlockingReason).await;
        }
    }
    let long = BlockForAdmission { detail: "x".repeat(4097), ..block(id, BUDGET) };
    world.refuses(long, Code::InvalidInput).await;
}

pub async fn what_is_let_go_wakes_who_waits(world: &World) {
    let id = blocked(world, QUOTA).await;
    let waiting = world.backend.claim(world.claim_request(1), PATIENCE);
    let (tasks, _) = tokio::join!(timeout(PATIENCE, waiting), world.act(unblock(id, QUOTA)));
    assert_eq!(tasks.expect("in time").unwrap()[0].execution_id, id);
}

pub async fn a_block_and_a_hold_stand_side_by_side(world: &World) {
    let id = blocked(world, BUDGET).await;
    world.act(hold(id)).await;
    let state = world.describe(id).await.state;
    assert_eq!(state.blocking_reason, BlockingReason::PausedByOperator);
    world.act(Release { execution_id: id }).await;
    assert_eq!(world.describe(id).await.state.blocking_reason, BUDGET);
    world.act(hold(id)).await;
    world.act(unblock(id, BUDGET)).await;
    assert_eq!(world.claim_ids(1).await, []);
    world.act(Release { execution_id: id }).await;
    assert_eq!(world.claim_ids(1).await, [id]);
}

pub async fn a_block_takes_a_grant_back(world: &World) {
    let id = world.submit(world.work()).await;
    world.act(issue_grant(id)).await;
    world.act(block(id, BUDGET)).await;
    world.refuses(claim_granted(id), Code::ExecutionNotLeaseable).await;
    world.act(unblock(id, BUDGET)).await;
    world.refuses(claim_granted(id), Code::InvalidClaimGrant).await;
}

pub async fn a_grant_lets_go_what_its_worker_can_run(world: &World) {
    let id = world.submit(world.needing(&["gpu"])).await;
    world.act(block(id, ROUTE)).await;
    let able = IssueClaimGrant { capabilities: capabilities(&["gpu"]), ..issue_grant(id) };
    world.refuses(issue_grant(id), Code::ExecutionNotEligible).await;
    let elsewhere = IssueClaimGrant { lane: lane("other"), ..able.clone() };
    world.refuses(elsewhere, Code::ExecutionNotEligible).await;
    world.act(able.clone()).await;
    world.act(claim_granted(id)).await;
    let starved = world.submit(world.needing(&["gpu"])).await;
    world.act(block(starved, BUDGET)).await;
    let able = IssueClaimGrant { execution_id: starved, ..able };
    world.refuses(able, Code::ExecutionNotEligible).await;
}

pub async fn a_worker_that_comes_lets_go_what_it_can_run(world: &World) {
    let ids = [
        world.submit(world.needing(&["gpu"])).await,
        world.submit(world.needing(&["gpu", "eu"])).await,
        world.submit(Submit { lane: lane("other"), ..world.needing(&["gpu"]) }).await,
    ];
    for id in ids {
        world.act(block(id, ROUTE)).await;
    }
    let starved = world.submit(world.needing(&["gpu"])).await;
    world.act(block(starved, BUDGET)).await;
    let able = RegisterWorker { capabilities: capabilities(&["gpu"]), ..register("w-1") };
    world.act(able).await;
    let state = |id| async move { world.describe(id).await.state.eligibility_state };
    assert_eq!(state(ids[0]).await, EligibilityState::EligibleNow);
    assert_eq!(state(ids[1]).await, EligibilityState::BlockedByRoute);
    assert_eq!(state(ids[2]).await, EligibilityState::BlockedByRoute);
    assert_eq!(state(starved).await, EligibilityState::BlockedByBudget);
}

pub async fn explain_names_what_is_lacking(world: &World) {
    for (reason, cause, word) in [
        (BUDGET, Cause::Budget, "budget"),
        (QUOTA, Cause::Quota, "quota"),
        (ROUTE, Cause::NoCapableWorker, "no_capable_worker"),
    ] {
        let id = world.submit(world.needing(&["gpu"])).await;
        world.act(block(id, reason)).await;
        let told = world.backend.explain(id).await.unwrap().unwrap();
        assert_eq!((told.cause, told.cause.as_str()), (cause, word));
        let lacking = if reason == ROUTE { "gpu" } else { "no room" };
        assert!(told.summary.contains(lacking), "{}", told.summary);
        let detail = told.evidence["detail"].as_str();
        assert_eq!(detail, (reason != ROUTE).then_some("no room"), "workers tell the rest");
        assert!(!told.unblock.is_empty());
    }
}

pub async fn blocked_ones_are_listed_longest_first(world: &World) {
    let mut ids = Vec::new();
    for reason in [ROUTE, BUDGET, ROUTE, QUOTA] {
        ids.push(blocked(world, reason).await);
        world.advance(1).await;
    }
    assert_eq!(listed(world, None).await, ids);
    assert_eq!(listed(world, Some(AdmissionReason::Route)).await, [ids[0], ids[2]]);
    world.act(unblock(ids[0], ROUTE)).await;
    world.act(cancel(ids[1])).await;
    assert_eq!(listed(world, None).await, ids[2..]);
    let question = ListBlocked {
        namespace: Namespace::default(),
        reason: None,
        lanes: vec![lane("other")],
        cursor: None,
        limit: 50,
    };
    assert_eq!(world.backend.ask(question).await.unwrap().items, []);
}

pub async fn a_block_and_its_end_are_told(world: &World) {
    let id = blocked(world, QUOTA).await;
    world.act(unblock(id, QUOTA)).await;
    let events = world.events(id).await;
    let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Submitted, EventKind::Blocked, EventKind::Unblocked]);
    let reason = Some(&Detail::Text("waiting_for_quota".to_owned()));
    assert_eq!((events[1].data.get("reason"), events[2].data.get("reason")), (reason, reason));
}

pub async fn time_goes_on_for_what_is_blocked(world: &World) {
    let json = r#"{"timeout_policy":{"execution_deadline_ms":50}}"#;
    let id = world.submit(world.work_with(json)).await;
    world.act(block(id, BUDGET)).await;
    world.pass(50).await;
    assert_eq!(world.public_state(id).await, PublicState::Expired);
    let again = world.start(world.work()).await;
    world.act(complete(&again)).await;
}
