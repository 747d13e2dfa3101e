//! Which workers an execution can run on.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::listing::{digest_name, place};
use super::{AdmissionReason, Execution, List, Listing, ListingPosition};
use crate::capability::Capabilities;
use crate::id::{LaneId, Namespace};
use crate::time::TimestampMs;

/// What a worker must serve, and be able to do, to run an execution. Executions of one route share
/// a queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Route {
    pub namespace: Namespace,
    pub lane: LaneId,
    pub required: Capabilities,
}

impl Route {
    pub fn of(execution: &Execution) -> Self {
        Self {
            namespace: execution.about.namespace.clone(),
            lane: execution.about.lane.clone(),
            required: execution.policy().required_capabilities.clone(),
        }
    }

    /// Where the blocked executions of a lane stand in their list. Lanes that share a place differ
    /// in the names of their routes. 47 bits: every store keeps as many of an instant.
    fn shelf(lane: &LaneId) -> TimestampMs {
        TimestampMs(i64::try_from(digest_name(lane).as_u128() >> 81).unwrap_or_default())
    }

    /// Lanes have no line breaks.
    fn name(lane: &LaneId, required: &Capabilities) -> Uuid {
        digest_name(&format!("{lane}\n{}", required.as_csv()))
    }

    /// Before all blocked executions of a lane.
    pub(crate) fn before_lane(lane: &LaneId) -> ListingPosition {
        place(Self::shelf(lane), Uuid::nil())
    }

    /// Behind all blocked executions of this route.
    pub(crate) fn behind(&self) -> ListingPosition {
        let name = Self::name(&self.lane, &self.required).as_u128().saturating_add(1);
        place(Self::shelf(&self.lane), Uuid::from_u128(name))
    }

    /// Whether a place in the list lies behind all blocked executions of a lane.
    pub(crate) fn is_behind_lane(lane: &LaneId, at: &ListingPosition) -> bool {
        at.at > Self::shelf(lane)
    }
}

impl Execution {
    /// Whether it waits for a worker that can run it.
    pub fn is_unrouted(&self) -> bool {
        self.admission_block().is_some_and(|block| block.reason == AdmissionReason::Route)
    }

    /// Route by route: one that is passed over costs one look, however many wait there.
    pub(super) fn unrouted_listing(&self) -> Option<Listing<'_>> {
        let (lane, required) = (&self.about.lane, &self.policy().required_capabilities);
        self.is_unrouted().then(|| Listing {
            namespace: &self.about.namespace,
            list: List::Unrouted,
            at: Route::shelf(lane),
            name: Route::name(lane, required),
        })
    }
}
