//! Complete: the work is done.

use uuid::Uuid;

use super::claim::{check_lanes, check_lease_ttl};
use super::command::Shape;
use super::{LaneOrder, LaneShare, Task};
use crate::capability::Capabilities;
use crate::check::check_range;
use crate::content::{Content, check_size};
use crate::error::Refusal;
use crate::id::{Authority, ExecutionId};
use crate::limits;

/// Ends the execution with success and keeps its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Complete {
    pub execution_id: ExecutionId,
    pub authority: Authority,
    /// None stores no result; an empty result is a result.
    pub result: Option<Content>,
    /// Claims more work for the same worker in the same step.
    pub next: Option<ClaimNext>,
}

/// A claim that rides on a completion. Worker and instance are those of the lease that ends. It
/// may come back empty although there is work.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimNext {
    pub max: u32,
    pub lanes: Vec<LaneShare>,
    pub order: LaneOrder,
    pub capabilities: Capabilities,
    pub lease_ttl_ms: u64,
    pub seed: Uuid,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Completed {
    /// Always empty in a repeated reply: such tasks run out with their leases.
    pub tasks: Vec<Task>,
    pub replayed: bool,
}

impl ClaimNext {
    fn check(&self) -> Result<(), Refusal> {
        check_range("max", self.max.into(), 1, limits::CLAIM_TASKS.into())?;
        check_lease_ttl("lease_ttl_ms", self.lease_ttl_ms)?;
        check_lanes(&self.lanes)
    }
}

impl Shape for Complete {
    fn check_shape(&self) -> Result<(), Refusal> {
        if let Some(next) = &self.next {
            next.check().map_err(|refusal| refusal.under("next"))?;
        }
        self.result.as_ref().map_or(Ok(()), |result| check_size("result", &result.bytes))
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}
