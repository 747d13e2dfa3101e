//! What keeps the store and its answers bounded.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::time::Duration;

use ff_backend_sqlite::{SqliteOptions, SqliteStore};
use ff_core::backend::{BackendExt, Upkeep};
use ff_core::id::{ExecutionId, Kind, LaneId};
use ff_core::limits;
use ff_core::operation::{Submit, Trim};
use ff_core::read::{EventFilter, Filter, Follow, From, Search};
use ff_core::time::TimestampMs;
use uuid::Uuid;

fn submit(store: &SqliteStore, lane: &str) -> Submit {
    let id = ExecutionId::solo(Uuid::now_v7(), &store.settings().partitions);
    Submit::new(id, LaneId::new(lane).unwrap(), Kind::new("test").unwrap())
}

async fn fill(store: &SqliteStore, lane: &str, count: usize) {
    let submits: Vec<_> = (0..count).map(|_| submit(store, lane)).collect();
    for batch in submits.chunks(limits::BATCH_ITEMS) {
        for reply in store.submit_batch(batch.to_vec()).await.unwrap() {
            reply.unwrap();
        }
    }
}

async fn kept(store: &SqliteStore) -> Vec<u64> {
    let follow =
        Follow { filter: EventFilter::default(), from: From::Start, limit: 500, each: false };
    let events = store.events(follow, Duration::ZERO).await.unwrap();
    events.items.iter().map(|envelope| envelope.event.number).collect()
}

#[tokio::test]
async fn the_log_is_bounded_by_bytes() {
    let store = SqliteStore::open(SqliteOptions::memory()).unwrap();
    fill(&store, "work", 200).await;
    // Nothing is old; of the bytes about a tenth may stay.
    let trim = |event_bytes, most| Trim { events_before: TimestampMs(0), event_bytes, most };
    assert_eq!(store.trim(trim(u64::MAX >> 1, 500)).await.unwrap().events, 0);
    let first = store.trim(trim(1_500, 50)).await.unwrap();
    assert_eq!((first.events, first.more), (50, true), "bounded steps");
    while store.trim(trim(1_500, 50)).await.unwrap().more {}
    let left = kept(&store).await;
    assert!((5..60).contains(&left.len()), "{} are left", left.len());
    assert_eq!(left.last(), Some(&200), "the newest stay");
    assert_eq!(store.trim(trim(0, 500)).await.unwrap().events as usize, left.len() - 1);
    assert_eq!(kept(&store).await, [200], "the newest one always stays, for its number");
}

#[tokio::test]
async fn a_page_that_finds_nothing_within_its_reach_says_where_to_go_on() {
    let store = SqliteStore::open(SqliteOptions::memory()).unwrap();
    fill(&store, "rare", 1).await;
    fill(&store, "common", limits::SEARCH_LOOK_AHEAD as usize).await;
    let filter = Filter { lanes: vec![LaneId::new("rare").unwrap()], ..Filter::default() };
    let search = Search { filter, cursor: None, limit: 10 };
    let first = store.ask(search.clone()).await.unwrap();
    assert!(first.items.is_empty() && first.next_cursor.is_some());
    let second = store.ask(Search { cursor: first.next_cursor, ..search }).await.unwrap();
    assert_eq!((second.items.len(), second.next_cursor), (1, None));
}

#[tokio::test]
async fn a_store_in_memory_promises_nothing_else() {
    let store = SqliteStore::open(SqliteOptions::memory()).unwrap();
    assert_eq!(store.identity().durability, "memory");
}
