//! How much may be decided at a time and not be written yet.
//!
//! A decision holds for a moment: `ff_commit` refuses one whose time is too far behind the store's. So
//! callers wait before they decide, while as much is under way as calls carry. If they waited
//! afterwards, each of a few thousand graphs that come at once would be found to be decided too early
//! when its turn comes, be decided again, and hardly any would be written.
//!
//! Each node of a cluster has room of its own: what waits for one that does not answer takes none from
//! the others.

use std::time::Duration;

use ff_core::error::EngineError;
use tokio::sync::{Semaphore, SemaphorePermit, TryAcquireError};

use crate::commit::ITEMS_MOST;
use crate::crowd::CALLS_MOST;

/// Items of all calls that a node has under way.
const ITEMS_OF_A_NODE: usize = CALLS_MOST * ITEMS_MOST;

/// Room for what frees memory and for the rest, as they are sent apart: ends of work do not wait
/// behind a crowd of submits.
#[derive(Debug)]
pub(crate) struct Room {
    freeing: Semaphore,
    others: Semaphore,
}

/// The room of each node.
#[derive(Debug)]
pub(crate) struct Rooms(Vec<Room>);

impl Rooms {
    pub(crate) fn new(nodes: usize) -> Self {
        Self((0..nodes.max(1)).map(|_| Room::new()).collect())
    }

    /// Of the node with this number; those that came later share what there is.
    pub(crate) fn of(&self, node: usize) -> &Room {
        &self.0[node % self.0.len()]
    }
}

/// What somebody is about to decide.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Load {
    pub(crate) items: usize,
    /// Some of it frees memory.
    pub(crate) freeing: bool,
}

impl Room {
    fn new() -> Self {
        Self { freeing: Semaphore::new(ITEMS_OF_A_NODE), others: Semaphore::new(ITEMS_OF_A_NODE) }
    }

    /// Waits until so many items may be decided; the room is theirs until this is dropped.
    pub(crate) async fn enter(
        &self,
        load: Load,
        patience: Duration,
    ) -> Result<SemaphorePermit<'_>, EngineError> {
        let room = if load.freeing { &self.freeing } else { &self.others };
        let items = u32::try_from(load.items.min(ITEMS_OF_A_NODE)).unwrap_or(u32::MAX);
        match room.try_acquire_many(items) {
            Ok(permit) => return Ok(permit),
            Err(TryAcquireError::NoPermits) => {}
            Err(TryAcquireError::Closed) => return Err(too_many()),
        }
        let entered = tokio::time::timeout(patience, room.acquire_many(items)).await;
        entered.ok().and_then(Result::ok).ok_or_else(too_many)
    }
}

fn too_many() -> EngineError {
    EngineError::unavailable("too many calls wait for the store; try again")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(10);

    fn others(items: usize) -> Load {
        Load { items, freeing: false }
    }

    #[tokio::test]
    async fn who_finds_no_room_waits_for_it() {
        let room = Room::new();
        let most = ITEMS_OF_A_NODE;
        let first = room.enter(others(most - 1), SOON).await.unwrap();
        let _small = room.enter(others(1), SOON).await.unwrap();
        assert!(room.enter(others(1), SOON).await.is_err());
        let _beside = room.enter(Load { freeing: true, ..others(most) }, SOON).await.unwrap();
        drop(first);
        assert!(room.enter(others(most - 1), SOON).await.is_ok());
    }

    #[tokio::test]
    async fn what_waits_for_one_node_takes_no_room_from_another() {
        let rooms = Rooms::new(2);
        let _silent = rooms.of(0).enter(others(ITEMS_OF_A_NODE), SOON).await.unwrap();
        assert!(rooms.of(2).enter(others(1), SOON).await.is_err(), "the third shares the first's");
        assert!(rooms.of(1).enter(others(ITEMS_OF_A_NODE), SOON).await.is_ok());
    }

    #[tokio::test]
    async fn what_is_larger_than_all_room_goes_alone() {
        let room = Room::new();
        let _large = room.enter(others(10 * ITEMS_OF_A_NODE), SOON).await.unwrap();
        assert!(room.enter(others(1), SOON).await.is_err());
    }
}
