//! Routes: which there is work for, who waits for a worker, and what workers offer.

use serde::Serialize;

use super::walk::{Listed, Walk, paged};
use super::{Leaf, Page, Seen, WorkerSnapshot};
use crate::capability::Capabilities;
use crate::cursor;
use crate::error::Refusal;
use crate::id::{ExecutionId, LaneId, Namespace, WorkerInstanceId};
use crate::state::{Execution, List, ListingPosition, Route, Worker};
use crate::time::TimestampMs;

/// Routes of all namespaces that require something and in whose queues something stands, in an
/// order of the store's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRoutes {
    pub cursor: Option<String>,
    pub limit: u32,
}

/// The front of one queue: what a worker of this route would be given first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQueued {
    pub route: Route,
    pub limit: u32,
}

/// Executions of a namespace that wait for a worker which can run them, route by route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListUnrouted {
    pub namespace: Namespace,
    /// Only of this lane.
    pub lane: Option<LaneId>,
    /// Only of the routes behind this one, without a look at any before them.
    pub behind: Option<Route>,
    pub cursor: Option<String>,
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unrouted {
    pub execution_id: ExecutionId,
    pub route: Route,
}

/// What live workers of a namespace offer, in the order of registration. Unlike
/// [`super::ListWorkers`] it does not count what they run, so it costs no look at executions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListOffers {
    pub namespace: Namespace,
    pub cursor: Option<String>,
    pub limit: u32,
}

/// What a live worker says that it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Offer {
    pub worker_instance_id: WorkerInstanceId,
    pub lanes: Vec<LaneId>,
    pub capabilities: Capabilities,
    pub draining: bool,
}

/// Namespaces in which workers are registered, in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListFleets {
    pub cursor: Option<String>,
    pub limit: u32,
}

/// The worker that lacks least.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearest {
    pub worker_instance_id: WorkerInstanceId,
    pub missing: Capabilities,
}

impl Offer {
    fn of(worker: &Worker, now: TimestampMs) -> Option<Self> {
        let live = worker.live(now)?;
        Some(Self {
            worker_instance_id: worker.worker_instance_id.clone(),
            lanes: live.lanes.clone(),
            capabilities: live.capabilities.clone(),
            draining: live.drains(),
        })
    }

    /// Whether it takes tasks of this lane; one that drains takes none.
    pub fn serves(&self, lane: &LaneId) -> bool {
        !self.draining && self.lanes.contains(lane)
    }

    /// Whether it runs what goes this way.
    pub fn covers(&self, route: &Route) -> bool {
        self.serves(&route.lane) && self.capabilities.covers(&route.required)
    }
}

impl From<&WorkerSnapshot> for Offer {
    fn from(worker: &WorkerSnapshot) -> Self {
        Self {
            worker_instance_id: worker.worker_instance_id.clone(),
            lanes: worker.lanes.clone(),
            capabilities: worker.capabilities.clone(),
            draining: worker.draining,
        }
    }
}

impl Nearest {
    /// Of those that serve the route's lane; ties by name.
    pub fn among<'a>(offers: impl IntoIterator<Item = &'a Offer>, route: &Route) -> Option<Self> {
        let serving = offers.into_iter().filter(|offer| offer.serves(&route.lane));
        let nearest = serving.min_by_key(|offer| {
            (offer.capabilities.missing(&route.required).count(), &offer.worker_instance_id)
        })?;
        Some(Self {
            worker_instance_id: nearest.worker_instance_id.clone(),
            missing: nearest.capabilities.lacking(&route.required),
        })
    }
}

impl ListRoutes {
    const SCOPE: &'static str = "routes";

    /// Where the page begins: behind this place, which only the store can read.
    pub fn behind<P: serde::de::DeserializeOwned>(&self) -> Result<Option<P>, Refusal> {
        self.cursor.as_ref().map(|text| cursor::decode(Self::SCOPE, text)).transpose()
    }

    /// What a queue in which something stands is to this question.
    pub fn see(route: Route) -> Seen<Route> {
        if route.required.is_empty() { Seen::Passed } else { Seen::Item(route) }
    }

    /// The page that was made.
    pub fn page<P: Serialize>(leaf: Leaf<P, Route>) -> Page<Route> {
        leaf.finish(|last| cursor::encode(Self::SCOPE, &last))
    }
}

impl ListFleets {
    const SCOPE: &'static str = "fleets";

    /// Where the page begins: behind this name.
    pub fn behind(&self) -> Result<Option<Namespace>, Refusal> {
        self.cursor.as_ref().map(|text| cursor::decode(Self::SCOPE, text)).transpose()
    }

    /// The page that was made.
    pub fn page(leaf: Leaf<Namespace, Namespace>) -> Page<Namespace> {
        leaf.finish(|last| cursor::encode(Self::SCOPE, &last))
    }
}

impl Unrouted {
    fn of(execution: &Execution) -> Option<Self> {
        let unrouted = execution.is_unrouted();
        unrouted.then(|| Self { execution_id: execution.id, route: Route::of(execution) })
    }
}

impl Walk for ListUnrouted {
    const LIST: List = List::Unrouted;

    type Item = Unrouted;

    paged!();

    fn see(&self, at: &ListingPosition, found: Listed<'_>, _: TimestampMs) -> Seen<Unrouted> {
        let Listed::Execution(execution) = found else { return Seen::Passed };
        if self.lane.as_ref().is_some_and(|lane| Route::is_behind_lane(lane, at)) {
            return Seen::End;
        }
        let wanted = |found: &Unrouted| {
            found.route.namespace == self.namespace
                && self.lane.as_ref().is_none_or(|lane| *lane == found.route.lane)
        };
        Unrouted::of(execution).filter(wanted).map_or(Seen::Passed, Seen::Item)
    }

    fn scope(&self) -> String {
        format!("unrouted {} {:?} {:?}", self.namespace, self.lane, self.behind)
    }

    fn behind(&self) -> Result<Option<ListingPosition>, Refusal> {
        match (&self.cursor, &self.behind, &self.lane) {
            (Some(text), ..) => cursor::decode(&self.scope(), text).map(Some),
            (None, Some(route), _) => Ok(Some(route.behind())),
            (None, None, lane) => Ok(lane.as_ref().map(Route::before_lane)),
        }
    }
}

impl Walk for ListOffers {
    const LIST: List = List::Worker;

    type Item = Offer;

    paged!();

    fn see(&self, _: &ListingPosition, found: Listed<'_>, now: TimestampMs) -> Seen<Offer> {
        let Listed::Document(document, _) = found else { return Seen::Passed };
        let offer = document.worker().and_then(|worker| Offer::of(worker, now));
        offer.map_or(Seen::Passed, Seen::Item)
    }

    fn scope(&self) -> String {
        format!("offers {}", self.namespace)
    }
}
