//! How one claim is shared by several lanes.

use ff_core::operation::{Claim, LaneOrder, LaneShare, Submit, Task};

use crate::world::{World, lane};

async fn fill(world: &World, name: &str, count: usize) {
    for _ in 0..count {
        world.submit(world.work_on(name)).await;
    }
}

fn share(name: &str, weight: u32) -> LaneShare {
    LaneShare { weight, ..LaneShare::new(lane(name)) }
}

async fn claim(world: &World, lanes: Vec<LaneShare>, order: LaneOrder, max: u32) -> Vec<Task> {
    world.claim_as(Claim { lanes, order, ..world.claim_request(max) }).await
}

fn names(tasks: &[Task]) -> String {
    tasks.iter().map(|task| task.lane.as_str()).collect()
}

pub async fn a_claim_sees_only_its_lanes(world: &World) {
    fill(world, "a", 1).await;
    let tasks = claim(world, vec![share("b", 1)], LaneOrder::Weighted, 5).await;
    assert_eq!(names(&tasks), "");
    let tasks = claim(world, vec![share("b", 1), share("a", 1)], LaneOrder::Weighted, 5).await;
    assert_eq!(names(&tasks), "a");
}

pub async fn weights_share_a_claim_smoothly(world: &World) {
    for name in ["a", "b", "c"] {
        fill(world, name, 14).await;
    }
    let lanes = vec![share("a", 5), share("b", 1), share("c", 1)];
    let tasks = claim(world, lanes, LaneOrder::Weighted, 14).await;
    assert_eq!(names(&tasks), "aabacaaaabacaa");
}

pub async fn lanes_of_equal_weight_take_turns(world: &World) {
    fill(world, "a", 3).await;
    fill(world, "b", 3).await;
    let tasks = claim(world, vec![share("a", 1), share("b", 1)], LaneOrder::Weighted, 6).await;
    assert_eq!(names(&tasks), "ababab");
}

pub async fn credit_from_earlier_claims_counts(world: &World) {
    fill(world, "a", 2).await;
    fill(world, "b", 2).await;
    let lanes = vec![share("a", 1), LaneShare { credit: 1, ..share("b", 1) }];
    let tasks = claim(world, lanes, LaneOrder::Weighted, 4).await;
    assert_eq!(names(&tasks), "baba");
}

pub async fn an_empty_lane_gives_its_turns_to_the_others(world: &World) {
    fill(world, "a", 1).await;
    fill(world, "b", 4).await;
    let lanes = vec![share("a", 1000), share("b", 1), share("nothing", 1000)];
    let tasks = claim(world, lanes, LaneOrder::Weighted, 10).await;
    assert_eq!(names(&tasks), "abbbb");
}

pub async fn ordered_lanes_are_emptied_one_after_the_other(world: &World) {
    fill(world, "a", 2).await;
    fill(world, "b", 2).await;
    let lanes = vec![share("b", 1), share("a", 1000)];
    let tasks = claim(world, lanes, LaneOrder::Ordered, 3).await;
    assert_eq!(names(&tasks), "bba");
}

pub async fn priority_does_not_reach_over_lanes(world: &World) {
    fill(world, "a", 2).await;
    world.submit(Submit { priority: 9000, ..world.work_on("b") }).await;
    let lanes = || vec![share("a", 1), share("b", 1)];
    assert_eq!(names(&claim(world, lanes(), LaneOrder::Weighted, 1).await), "a");
    assert_eq!(names(&claim(world, lanes(), LaneOrder::Ordered, 2).await), "ab");
}
