//! The queues that exist, kept in memory by the writer. It is the only one that makes queues, so
//! the copy is exact; whether a queue holds anything is a hint that errs on the side of "yes".

use std::collections::HashMap;

use ff_core::capability::Capabilities;
use ff_core::error::EngineError;
use ff_core::id::{LaneId, Namespace};
use ff_core::machine::QueueView;
use ff_core::state::QueuePlace;
use rusqlite::{Connection, params};

use crate::error::{OpenError, fault};
use crate::statements;

#[derive(Debug, Default)]
pub(crate) struct Queues {
    lanes: HashMap<(Namespace, LaneId), Vec<Queue>>,
    next_id: i64,
    /// Queues made in the transaction under way.
    fresh: Vec<(Namespace, LaneId)>,
}

#[derive(Debug)]
struct Queue {
    id: i64,
    capabilities: Capabilities,
    maybe_filled: bool,
}

impl Queues {
    pub(crate) fn load(connection: &Connection) -> Result<Self, OpenError> {
        let mut queues = Self { next_id: 1, ..Self::default() };
        let mut statement = connection.prepare(statements::load_queues)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let damaged = |what: String| OpenError::Damaged(format!("queue: {what}"));
            let namespace: String = row.get(1)?;
            let lane: String = row.get(2)?;
            let capabilities: String = row.get(3)?;
            let key = (
                Namespace::new(namespace).map_err(|error| damaged(error.to_string()))?,
                LaneId::new(lane).map_err(|error| damaged(error.to_string()))?,
            );
            let queue = Queue {
                id: row.get(0)?,
                capabilities: Capabilities::from_csv(&capabilities)?,
                maybe_filled: row.get(4)?,
            };
            queues.next_id = queues.next_id.max(queue.id + 1);
            queues.lanes.entry(key).or_default().push(queue);
        }
        Ok(queues)
    }

    /// The queue of a place; made if there is none yet.
    pub(crate) fn place(
        &mut self,
        connection: &Connection,
        place: &QueuePlace<'_>,
    ) -> Result<i64, EngineError> {
        let key = (place.namespace.clone(), place.lane.clone());
        let lane = self.lanes.entry(key.clone()).or_default();
        if let Some(queue) = lane.iter_mut().find(|queue| queue.capabilities == *place.class) {
            queue.maybe_filled = true;
            return Ok(queue.id);
        }
        let id = self.next_id;
        let (namespace, lane_name, class) =
            (place.namespace.as_str(), place.lane.as_str(), place.class.as_csv());
        connection
            .prepare_cached(statements::insert_queue)
            .and_then(|mut insert| insert.execute(params![id, namespace, lane_name, class]))
            .map_err(|error| fault(&error))?;
        self.next_id += 1;
        lane.push(Queue { id, capabilities: place.class.clone(), maybe_filled: true });
        self.fresh.push(key);
        Ok(id)
    }

    /// The queues that a view covers and that may hold something.
    pub(crate) fn covered(&self, view: &QueueView) -> Vec<i64> {
        let key = (view.namespace.clone(), view.lane.clone());
        let queues = self.lanes.get(&key).map_or(&[][..], Vec::as_slice);
        queues
            .iter()
            .filter(|queue| queue.maybe_filled && view.capabilities.covers(&queue.capabilities))
            .map(|queue| queue.id)
            .collect()
    }

    /// A look into the queue found nothing.
    pub(crate) fn found_empty(&mut self, view: &QueueView, id: i64) {
        let key = (view.namespace.clone(), view.lane.clone());
        let queues = self.lanes.get_mut(&key).map_or(&mut [][..], Vec::as_mut_slice);
        if let Some(queue) = queues.iter_mut().find(|queue| queue.id == id) {
            queue.maybe_filled = false;
        }
    }

    pub(crate) fn committed(&mut self) {
        self.fresh.clear();
    }

    /// The transaction was rolled back: queues made in it do not exist.
    pub(crate) fn rolled_back(&mut self) {
        for key in std::mem::take(&mut self.fresh).into_iter().rev() {
            if let Some(queues) = self.lanes.get_mut(&key) {
                queues.pop();
            }
        }
    }
}
