//! The order in which a lane's executions are handed out.

use ff_core::id::ExecutionId;
use ff_core::operation::{Claim, Submit};
use uuid::Uuid;

use crate::world::{World, delay, namespace};

pub async fn higher_priority_goes_first_then_the_older(world: &World) {
    let mut by_age = Vec::new();
    for (n, priority) in [0, 5, 9000, 5, 0].into_iter().enumerate() {
        // Uuids fall with age, so that an order by uuid would show.
        let execution_id = ExecutionId::new(0, Uuid::from_u128(100 - n as u128));
        by_age.push(world.submit(Submit { execution_id, priority, ..world.work() }).await);
        world.advance(1).await;
    }
    let [a, b, c, d, e] = by_age.try_into().unwrap();
    assert_eq!(world.claim_ids(10).await, [c, b, d, a, e]);
}

pub async fn one_level_of_priority_outweighs_any_age(world: &World) {
    let old = world.submit(world.work()).await;
    // A billion seconds would be worth one level; nothing waits half as long.
    world.advance(400_000_000_000).await;
    let young = world.submit(Submit { priority: 1, ..world.work() }).await;
    assert_eq!(world.claim_ids(10).await, [young, old]);
}

pub async fn ties_go_by_uuid_over_all_partitions(world: &World) {
    let count = world.backend.settings().partitions.flow;
    // Partitions fall while uuids rise, so an order by partition would show.
    let id = |n: u16| ExecutionId::new((count - 1 - n) % count, Uuid::from_u128(u128::from(n)));
    for n in [3, 0, 4, 1, 2] {
        world.submit(Submit { execution_id: id(n), ..world.work() }).await;
    }
    assert_eq!(world.claim_ids(10).await, [0, 1, 2, 3, 4].map(id));
}

pub async fn priority_holds_across_partitions(world: &World) {
    let count = world.backend.settings().partitions.flow;
    let mut expected = Vec::new();
    for n in 0..40_u16 {
        let execution_id = ExecutionId::new(n * 7 % count, Uuid::now_v7());
        let priority = i64::from(n * 13 % 40);
        world.submit(Submit { execution_id, priority, ..world.work() }).await;
        expected.push((std::cmp::Reverse(priority), execution_id));
    }
    expected.sort_unstable();
    let expected: Vec<_> = expected.into_iter().map(|(_, id)| id).collect();
    // By pieces, so that the order holds over claims too.
    let mut claimed = Vec::new();
    for n in [1, 2, 7, 30] {
        claimed.extend(world.claim_ids(n).await);
    }
    assert_eq!(claimed, expected);
}

pub async fn a_claim_takes_no_more_than_it_asks_for(world: &World) {
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(world.submit(world.work()).await);
    }
    assert_eq!(world.claim_ids(2).await, ids[..2]);
    assert_eq!(world.claim_ids(100).await, ids[2..]);
    assert_eq!(world.claim_ids(100).await, []);
}

pub async fn age_counts_from_the_submit_and_not_from_eligibility(world: &World) {
    let until = Some(world.now().await.after(10));
    let delayed = world.submit(Submit { delay_until: until, ..world.work() }).await;
    let put_aside = world.submit(world.work()).await;
    let task = world.claim_one().await;
    assert_eq!(task.execution_id, put_aside);
    world.act(delay(&task, 10)).await;
    world.advance(5).await;
    let young = world.submit(world.work()).await;
    world.pass(5).await;
    assert_eq!(world.claim_ids(10).await, [delayed, put_aside, young]);
}

pub async fn a_namespace_sees_only_its_own(world: &World) {
    let here = world.submit(world.work()).await;
    let elsewhere = namespace("elsewhere");
    let there =
        world.submit(Submit { namespace: elsewhere.clone(), priority: 9000, ..world.work() }).await;
    assert_eq!(world.claim_ids(10).await, [here]);
    let claim = Claim { namespace: elsewhere, ..world.claim_request(10) };
    let ids: Vec<_> = world.claim_as(claim).await.iter().map(|task| task.execution_id).collect();
    assert_eq!(ids, [there]);
}
