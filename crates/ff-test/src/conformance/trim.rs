//! Trim: what retention removes apart from executions.

use std::time::Duration;

use ff_core::backend::BackendExt;
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::operation::{Release, Submit, Submitted, Trim, Trimmed};
use ff_core::read::{EventFilter, Events, Follow, From, ListEvents};
use ff_core::time::TimestampMs;
use uuid::Uuid;

use crate::world::{World, hold};

/// Removes events from before an instant, however many bytes they have.
async fn trim(world: &World, events_before: TimestampMs) -> Trimmed {
    let trim = Trim { events_before, event_bytes: u64::MAX, most: 1_000 };
    world.backend.trim(trim).await.unwrap()
}

async fn list(world: &World, id: ExecutionId, after_seq: u64) -> Events {
    let query = ListEvents { execution_id: id, after_seq, limit: limits::PAGE };
    world.backend.ask(query).await.unwrap()
}

fn seqs(events: &Events) -> Vec<u64> {
    events.items.iter().map(|envelope| envelope.event.seq).collect()
}

pub async fn events_from_before_the_instant_are_removed(world: &World) {
    let id = world.submit(world.work()).await;
    world.advance(10).await;
    world.act(hold(id)).await;
    world.advance(10).await;
    world.act(Release { execution_id: id }).await;
    let release = world.now().await;
    let nothing = Trimmed::default();
    assert_eq!(trim(world, TimestampMs(release.0 - 20)).await, nothing, "the instant itself stays");
    assert_eq!(trim(world, release).await, Trimmed { events: 2, ..nothing });
    assert_eq!(trim(world, release).await, nothing);
    let numbers: Vec<_> = world.log().await.iter().map(|envelope| envelope.event.seq).collect();
    assert_eq!(numbers, [3]);
    let before = world.describe(id).await;
    world.act(hold(id)).await;
    let last = world.log().await.pop().unwrap().event;
    assert_eq!((last.seq, last.previous), (4, before.last_event_id.number));
}

pub async fn numbers_go_on_when_every_event_is_past_its_time(world: &World) {
    let id = world.submit(world.work()).await;
    let number = world.describe(id).await.last_event_id.number;
    world.advance(1_000).await;
    let trimmed = trim(world, world.now().await).await;
    assert!(trimmed.events <= 1, "{trimmed:?}");
    world.act(hold(id)).await;
    assert!(world.describe(id).await.last_event_id.number > number);
}

pub async fn a_cursor_behind_retention_is_told_of_the_gap(world: &World) {
    let follow = |from| Follow { filter: EventFilter::default(), from, limit: 2, each: false };
    let look = |from| world.backend.events(follow(from), Duration::ZERO);
    let id = world.submit(world.work()).await;
    world.act(hold(id)).await;
    let first_two = look(From::Start).await.unwrap();
    world.act(Release { execution_id: id }).await;
    world.act(hold(id)).await;
    let all_four = look(From::Cursor(first_two.cursor.clone())).await.unwrap();
    assert_eq!((all_four.items.len(), all_four.gap), (2, false));
    world.advance(10).await;
    world.act(Release { execution_id: id }).await;
    trim(world, world.now().await).await;
    let behind = look(From::Cursor(first_two.cursor)).await.unwrap();
    assert_eq!((behind.items.len(), behind.gap), (1, true));
    let beside = look(From::Cursor(all_four.cursor)).await.unwrap();
    assert_eq!((beside.items.len(), beside.gap), (1, false), "it had seen what is gone");
    let start = look(From::Start).await.unwrap();
    assert_eq!((start.items.len(), start.gap), (1, false), "the oldest kept is the start");
}

pub async fn the_list_of_an_execution_tells_its_gap(world: &World) {
    let id = world.submit(world.work()).await;
    world.act(hold(id)).await;
    world.advance(10).await;
    world.act(Release { execution_id: id }).await;
    world.act(hold(id)).await;
    trim(world, world.now().await).await;
    for (after, kept, gap) in
        [(0, vec![3, 4], true), (1, vec![3, 4], true), (2, vec![3, 4], false), (3, vec![4], false)]
    {
        let events = list(world, id, after).await;
        assert_eq!((seqs(&events), events.gap), (kept, gap), "after {after}");
    }
}

pub async fn an_execution_whose_events_are_all_gone_tells_its_gap(world: &World) {
    let id = world.submit(world.work()).await;
    world.advance(10).await;
    // In the same partition: a store may keep the newest event of a log.
    let execution_id = ExecutionId::new(id.partition(), Uuid::now_v7());
    world.submit(Submit { execution_id, ..world.work() }).await;
    trim(world, world.now().await).await;
    let events = list(world, id, 0).await;
    assert_eq!((seqs(&events), events.gap), (vec![], true));
    let events = list(world, id, 1).await;
    assert_eq!((seqs(&events), events.gap), (vec![], false), "it had seen what is gone");
}

pub async fn records_of_repetition_go_when_their_window_is_over(world: &World) {
    let first = world.submit(world.work_keyed("k")).await;
    world.advance(limits::DEDUP_WINDOW_MS.cast_signed() - 1).await;
    let nothing = Trimmed::default();
    assert_eq!(trim(world, TimestampMs(0)).await, nothing);
    let again = world.act(world.work_keyed("k")).await;
    assert!(matches!(again, Submitted::Duplicate { execution_id, .. } if execution_id == first));
    world.advance(1).await;
    // A store whose records go by themselves has none to remove.
    let trimmed = trim(world, TimestampMs(0)).await;
    assert!(trimmed.dedup_records <= 1 && trimmed.events == 0, "{trimmed:?}");
    assert_eq!(trim(world, TimestampMs(0)).await, nothing);
    world.submit(world.work_keyed("k")).await;
}
