//! Lanes: what an operator says of a queue.

use super::Attach;
use super::command::Shape;
use crate::check::{check_bytes, check_range};
use crate::error::Refusal;
use crate::id::{DocumentId, ExecutionId, LaneId, Namespace};
use crate::limits;
use crate::partition::PartitionConfig;
use crate::state::{Attached, LaneState};

/// Changes a lane; what is not given stays as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct SetLane {
    pub namespace: Namespace,
    pub lane: LaneId,
    pub state: Option<LaneState>,
    /// What one level of priority is worth in time; 0: priority is strict. Holds for executions
    /// that become eligible from now on.
    pub priority_ageing_ms: Option<u64>,
    pub attach: Attach,
    /// Told with the event; with a state other than active, kept with the lane as long as that.
    pub reason: String,
    /// Refuses if it has changed since.
    pub expected_revision: Option<u64>,
}

/// The lane as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneSet {
    pub state: LaneState,
    pub priority_ageing_ms: u64,
    pub attached: Attached,
    pub revision: u64,
}

impl SetLane {
    /// Changes nothing.
    pub fn new(namespace: Namespace, lane: LaneId) -> Self {
        Self {
            namespace,
            lane,
            state: None,
            priority_ageing_ms: None,
            attach: Attach::default(),
            reason: String::new(),
            expected_revision: None,
        }
    }
}

impl Shape for SetLane {
    fn check_shape(&self) -> Result<(), Refusal> {
        let ageing = self.priority_ageing_ms.unwrap_or_default();
        check_range("priority_ageing_ms", ageing, 0, limits::DURATION_MAX_MS)?;
        check_bytes("reason", &self.reason, limits::REASON_BYTES)?;
        self.attach.check()
    }

    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, _: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::lane(&self.namespace, &self.lane))
    }
}
