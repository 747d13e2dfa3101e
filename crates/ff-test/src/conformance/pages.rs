//! Bounds of questions: a page out of range or a partition that does not exist is refused, never
//! clamped.

use std::time::Duration;

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::id::{ExecutionId, Home};
use ff_core::limits;
use ff_core::operation::{Cancel, Tick};
use ff_core::read::{Describe, EventFilter, Follow, From, ListAttempts, ListEvents};
use ff_core::state::{CancelSource, DueKind};
use uuid::Uuid;

use crate::world::{World, code};

pub async fn a_page_has_1_to_500_items(world: &World) {
    let execution_id = world.submit(world.work()).await;
    for (limit, allowed) in [(0, false), (1, true), (500, true), (501, false)] {
        let attempts = ListAttempts { execution_id, after: None, limit };
        let events = ListEvents { execution_id, after_seq: 0, limit };
        let follow =
            Follow { filter: EventFilter::default(), from: From::Start, limit, each: false };
        let answers = [
            world.backend.ask(attempts).await.map(|_| ()),
            world.backend.ask(events).await.map(|_| ()),
            world.backend.events(follow, Duration::ZERO).await.map(|_| ()),
        ];
        for answer in answers {
            let expected = if allowed { Ok(()) } else { Err(Code::InvalidInput) };
            assert_eq!(answer.map_err(|error| error.code()), expected, "limit {limit}");
        }
    }
}

pub async fn an_absurd_wait_is_no_harm(world: &World) {
    world.submit(world.work()).await;
    let follow =
        Follow { filter: EventFilter::default(), from: From::Start, limit: 1, each: false };
    let events = world.backend.events(follow, Duration::MAX).await.unwrap();
    assert_eq!(events.items.len(), 1);
}

pub async fn a_partition_that_does_not_exist_is_refused(world: &World) {
    let partition = world.backend.settings().partitions.flow;
    let execution_id = ExecutionId::new(partition, Uuid::now_v7());
    let (reason, source) = ("none".to_owned(), CancelSource::default());
    let cancel = Cancel { execution_id, reason, source, fence: None };
    assert_eq!(code(world.backend.call(cancel).await), Code::InvalidInput);
    assert_eq!(code(world.backend.ask(Describe { execution_id }).await), Code::InvalidInput);
}

pub async fn a_claim_waits_a_minute_at_the_most(world: &World) {
    world.submit(world.work()).await;
    let wait = Duration::from_millis(limits::CLAIM_WAIT_MS);
    let longer = wait + Duration::from_millis(1);
    let refused = world.backend.claim(world.claim_request(1), longer).await;
    assert_eq!(code(refused), Code::InvalidInput);
    let absurd = world.backend.claim(world.claim_request(1), Duration::MAX).await;
    assert_eq!(code(absurd), Code::InvalidInput);
    assert_eq!(world.backend.claim(world.claim_request(1), wait).await.unwrap().len(), 1);
}

pub async fn a_tick_of_one_partition_leaves_the_others(world: &World) {
    let until = Some(world.now().await.after(10));
    let delayed = |partition| {
        let mut submit = world.work();
        submit.execution_id = ExecutionId::new(partition, Uuid::now_v7());
        submit.delay_until = until;
        submit
    };
    for partition in [1, 2, 2] {
        world.submit(delayed(partition)).await;
    }
    world.advance(10).await;
    let tick = |partition| {
        let home = Some(Home::partition(partition));
        world.backend.call(Tick { home, most: limits::TICK_ENTRIES })
    };
    let ticked = tick(2).await.unwrap();
    assert_eq!(ticked.fired, [(DueKind::DelayedPromoter, 2)]);
    let ticked = tick(1).await.unwrap();
    assert_eq!(ticked.fired, [(DueKind::DelayedPromoter, 1)]);
}
