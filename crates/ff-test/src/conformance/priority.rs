//! Change of priority.

use ff_core::error::Code;
use ff_core::event::{Detail, EventKind};
use ff_core::id::ExecutionId;
use ff_core::operation::{ChangePriority, PriorityChanged, Release, Submit};

use crate::world::{World, cancel, delay, hold};

fn change(id: ExecutionId, priority: i64) -> ChangePriority {
    ChangePriority { execution_id: id, priority }
}

pub async fn a_change_moves_a_queued_execution(world: &World) {
    let mut ids = Vec::new();
    for priority in [30, 20, 10] {
        ids.push(world.submit(Submit { priority, ..world.work() }).await);
    }
    let [high, middle, low] = ids.try_into().unwrap();
    assert_eq!(world.act(change(low, 40)).await, PriorityChanged { old: 10, new: 40 });
    assert_eq!(world.act(change(high, 0)).await, PriorityChanged { old: 30, new: 0 });
    assert_eq!(world.describe(low).await.priority, 40);
    let tasks = world.claim(10).await;
    let claimed: Vec<_> = tasks.iter().map(|task| (task.execution_id, task.priority)).collect();
    assert_eq!(claimed, [(low, 40), (middle, 20), (high, 0)]);
}

pub async fn a_change_is_clamped(world: &World) {
    let id = world.submit(Submit { priority: 1, ..world.work() }).await;
    for (given, old, new) in [(-5, 1, 0), (i64::MAX, 0, 9000), (i64::MIN, 9000, 0), (9001, 0, 9000)]
    {
        assert_eq!(world.act(change(id, given)).await, PriorityChanged { old, new });
    }
}

pub async fn a_change_holds_for_the_next_time_it_queues(world: &World) {
    let task = world.start(world.work()).await;
    let held = world.submit(Submit { priority: 5, ..world.work() }).await;
    world.act(hold(held)).await;
    world.act(change(task.execution_id, 7)).await;
    world.act(change(held, 6)).await;
    let waiting = world.submit(Submit { priority: 6, ..world.work() }).await;
    world.act(delay(&task, 0)).await;
    world.act(Release { execution_id: held }).await;
    assert_eq!(world.claim_ids(10).await, [task.execution_id, held, waiting]);
}

pub async fn a_change_is_one_event_and_no_change_is_none(world: &World) {
    let id = world.submit(world.work()).await;
    world.act(change(id, 3)).await;
    assert_eq!(world.act(change(id, 3)).await, PriorityChanged { old: 3, new: 3 });
    let events = world.events(id).await;
    assert_eq!(world.history(id).await, [EventKind::Submitted, EventKind::PriorityChanged]);
    assert_eq!(events[1].data["old"], Detail::from(0_u32));
    assert_eq!(events[1].data["new"], Detail::from(3_u32));
}

pub async fn an_ended_execution_has_no_order_to_change(world: &World) {
    let done = world.finish(world.work()).await;
    world.refuses(change(done.execution_id, 1), Code::ExecutionNotEligible).await;
    let cancelled = world.submit(world.work()).await;
    world.act(cancel(cancelled)).await;
    world.refuses(change(cancelled, 1), Code::ExecutionNotEligible).await;
}
