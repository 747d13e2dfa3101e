//! What limits keep back: listed limit by limit, let go once there is room, or the limit applies no
//! more.

use std::collections::HashSet;

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::id::{BudgetId, ExecutionId, Namespace, QuotaPolicyId};
use ff_core::limits;
use ff_core::operation::{
    Attach, BlockForAdmission, DeleteBudget, DeleteQuotaPolicy, ResetBudget, SetLane, SetNamespace,
};
use ff_core::read::{Limited, ListLimited};
use ff_core::state::{BlockingReason, LaneState, LimitId, PublicState};
use ff_engine::LimitCheck;

use super::admission::{blocked, used_up};
use crate::fleet::{block, register, set_lane};
use crate::limits::{budget, cap, under};
use crate::world::World;

const BUDGET: BlockingReason = BlockingReason::WaitingForBudget;
const QUOTA: BlockingReason = BlockingReason::WaitingForQuota;
const LONG: i64 = limits::LIMIT_PATIENCE_MS.cast_signed();

/// How many one round of an engine has let go, where there is a worker.
async fn round(world: &World) -> u32 {
    let _ = world.backend.call(register("w-1")).await;
    let checked = LimitCheck::default().round(&*world.backend).await.expect("a round");
    assert_eq!(checked.errors, 0);
    checked.let_go
}

/// Keeps one back whether or not the limit is used up.
async fn keep_back(world: &World, by: LimitId) -> ExecutionId {
    let id = world.submit(world.work()).await;
    let by_it = BlockForAdmission { by: Some(by), ..block(id, by.reason().blocking_reason()) };
    world.act(by_it).await;
    id
}

async fn limited(world: &World, question: ListLimited) -> Vec<Limited> {
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = world.backend.ask(ListLimited { cursor, ..question.clone() }).await.unwrap();
        found.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return found;
        }
    }
}

fn all() -> ListLimited {
    let namespace = Namespace::default();
    ListLimited { namespace, by: None, behind: None, cursor: None, limit: 50 }
}

fn ids(found: &[Limited]) -> Vec<ExecutionId> {
    found.iter().map(|it| it.execution_id).collect()
}

pub async fn who_is_kept_back_is_listed_limit_by_limit(world: &World) {
    let spent = LimitId::Budget(used_up(world).await);
    let other = LimitId::Budget(used_up(world).await);
    let policy = LimitId::Quota(world.quota(cap(1)).await);
    let mut kept: Vec<(LimitId, ExecutionId)> = Vec::new();
    for by in [spent, policy, other, spent, other, spent] {
        kept.push((by, keep_back(world, by).await));
        world.advance(1).await;
    }
    let of = |by| kept.iter().filter(move |it| it.0 == by).map(|it| it.1).collect::<Vec<_>>();
    let found = limited(world, all()).await;
    assert_eq!(found.len(), kept.len());
    let order: Vec<_> = found.chunk_by(|a, b| a.by == b.by).map(|chunk| chunk[0].by).collect();
    assert_eq!(
        order.iter().copied().collect::<HashSet<_>>(),
        HashSet::from([spent, other, policy])
    );
    assert_eq!(order.len(), 3, "those of one limit stand together");
    for by in &order {
        let by_it = limited(world, ListLimited { by: Some(*by), ..all() }).await;
        assert_eq!(ids(&by_it), of(*by), "longest first");
        let in_pages = limited(world, ListLimited { by: Some(*by), limit: 1, ..all() }).await;
        assert_eq!(in_pages, by_it);
    }
    let behind = ListLimited { behind: Some(order[0]), ..all() };
    assert_eq!(limited(world, behind).await, found[of(order[0]).len()..]);
    let past = ListLimited { behind: Some(order[2]), ..all() };
    assert_eq!(limited(world, past).await, []);
    assert_eq!(limited(world, ListLimited { limit: 1, ..all() }).await, found);
    let stray = BlockForAdmission { by: Some(spent), ..block(kept[0].1, QUOTA) };
    world.refuses(stray, Code::InvalidInput).await;
}

pub async fn a_limit_with_room_lets_go(world: &World) {
    let roomy = world.budget(budget(&[("tokens", 10, 0)])).await;
    let id = keep_back(world, LimitId::Budget(roomy)).await;
    assert_eq!(round(world).await, 1, "it was kept back after the room came");
    assert_eq!(world.public_state(id).await, PublicState::Waiting);
    assert_eq!(limited(world, all()).await, []);
    assert_eq!(round(world).await, 0);
}

pub async fn a_limit_that_is_used_up_is_passed_over(world: &World) {
    let (spent, roomy) = (used_up(world).await, world.budget(budget(&[("tokens", 1, 0)])).await);
    let kept = world.submit(under(world, &[spent], None)).await;
    assert_eq!(world.claim_ids(1).await, []);
    let free = keep_back(world, LimitId::Budget(roomy)).await;
    assert_eq!(round(world).await, 1);
    assert_eq!(world.claim_ids(5).await, [free]);
    blocked(world, kept, BUDGET).await;
    world.act(ResetBudget { budget_id: spent }).await;
    assert_eq!(round(world).await, 1);
    assert_eq!(world.claim_ids(5).await, [kept]);
}

pub async fn a_policy_lets_go_as_many_as_it_has_room_for(world: &World) {
    let two = world.quota(cap(2)).await;
    let mut kept = Vec::new();
    for _ in 0..3 {
        kept.push(keep_back(world, LimitId::Quota(two)).await);
        world.advance(1).await;
    }
    assert_eq!(round(world).await, 2);
    blocked(world, kept[2], QUOTA).await;
    assert_eq!(world.public_state(kept[0]).await, PublicState::Waiting);
}

pub async fn a_line_is_left_to_its_policy(world: &World) {
    let one = world.quota(cap(1)).await;
    world.start(under(world, &[], Some(one))).await;
    let id = world.submit(under(world, &[], Some(one))).await;
    assert_eq!(world.claim_ids(1).await, []);
    assert_eq!(round(world).await, 0);
    blocked(world, id, QUOTA).await;
}

pub async fn a_limit_that_is_gone_lets_go_at_once(world: &World) {
    let spent = used_up(world).await;
    let full = world.quota(cap(1)).await;
    world.start(under(world, &[], Some(full))).await;
    let by_budget = world.submit(under(world, &[spent], None)).await;
    let by_quota = world.submit(under(world, &[], Some(full))).await;
    assert_eq!(world.claim_ids(2).await, []);
    world.act(DeleteBudget { budget_id: spent }).await;
    assert_eq!(world.claim_ids(2).await, [by_budget]);
    world.act(DeleteQuotaPolicy { quota_policy_id: full }).await;
    assert_eq!(world.claim_ids(2).await, [by_quota]);
}

fn attach(budget_ids: &[BudgetId], quota: Option<QuotaPolicyId>) -> Attach {
    Attach { budget_ids: Some(budget_ids.to_vec()), quota_policy_id: Some(quota) }
}

pub async fn what_is_detached_lets_go_at_once(world: &World) {
    let (spent, full) = (used_up(world).await, world.quota(cap(1)).await);
    world.start(under(world, &[], Some(full))).await;
    let set_lane = |attach| SetLane { attach, ..set_lane("work", LaneState::Active) };
    world.act(set_lane(attach(&[spent], None))).await;
    let id = world.submit(world.work()).await;
    assert_eq!(world.claim_ids(1).await, []);
    world.act(set_lane(attach(&[], Some(full)))).await;
    assert_eq!(world.public_state(id).await, PublicState::Waiting, "the budget lets go");
    assert_eq!(world.claim_ids(1).await, []);
    blocked(world, id, QUOTA).await;
    world.act(set_lane(attach(&[], None))).await;
    assert_eq!(world.claim_ids(1).await, [id], "so does the policy");
    let namespace = Namespace::default();
    let set = |attach| SetNamespace {
        namespace: namespace.clone(),
        attach,
        retention: None,
        expected_revision: None,
    };
    world.act(set(attach(&[spent], None))).await;
    let id = world.submit(world.work()).await;
    assert_eq!(world.claim_ids(1).await, []);
    world.act(set(attach(&[], None))).await;
    assert_eq!(world.claim_ids(1).await, [id], "so does a namespace");
}

pub async fn a_limit_that_applies_no_more_lets_go(world: &World) {
    let spent = used_up(world).await;
    let id = keep_back(world, LimitId::Budget(spent)).await;
    assert_eq!(round(world).await, 1, "it does not stand under this budget");
    assert_eq!(world.claim_ids(1).await, [id]);
}

pub async fn who_was_kept_back_for_long_is_looked_at_again(world: &World) {
    let spent = used_up(world).await;
    let id = world.submit(under(world, &[spent], None)).await;
    assert_eq!(world.claim_ids(1).await, []);
    world.pass(LONG - 1).await;
    assert_eq!(round(world).await, 0);
    blocked(world, id, BUDGET).await;
    world.pass(1).await;
    assert_eq!(round(world).await, 1);
    assert_eq!(world.public_state(id).await, PublicState::Waiting);
    assert_eq!(world.claim_ids(1).await, []);
    blocked(world, id, BUDGET).await;
    assert_eq!(round(world).await, 0, "that begins again");
}

pub async fn a_limit_that_nobody_named_keeps_nobody_back(world: &World) {
    for reason in [BUDGET, QUOTA] {
        let id = world.submit(world.work()).await;
        world.act(block(id, reason)).await;
        assert_eq!(round(world).await, 1, "{reason:?}");
        assert_eq!(world.claim_ids(1).await, [id]);
    }
}

pub async fn a_claim_passes_a_crowd_in_front_of_it(world: &World) {
    let spent = used_up(world).await;
    let mut crowd = Vec::new();
    for _ in 0..40 {
        crowd.push(world.submit(under(world, &[spent], None)).await);
    }
    let behind = world.submit(world.work()).await;
    assert_eq!(world.claim_ids(1).await, [behind]);
    for id in crowd {
        blocked(world, id, BUDGET).await;
    }
}

pub async fn a_claim_takes_no_more_than_it_asked_for(world: &World) {
    let spent = used_up(world).await;
    world.submit(under(world, &[spent], None)).await;
    let mut free = Vec::new();
    for _ in 0..5 {
        world.advance(1).await;
        free.push(world.submit(world.work()).await);
    }
    for id in free {
        assert_eq!(world.claim_ids(1).await, [id], "one at a time, in order");
    }
    assert_eq!(world.claim_ids(1).await, []);
    assert_eq!(limited(world, all()).await.len(), 1);
}
