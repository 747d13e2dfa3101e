//! Replay: an operator gives a terminal execution another generation.

use super::command::Shape;
use crate::id::ExecutionId;
use crate::state::PublicState;

/// Old attempts and their results are kept; counts of retries and reclaims begin anew.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    pub execution_id: ExecutionId,
    /// Downstreams in its flow that have run are replayed too.
    pub descendants: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replayed {
    pub replay_count: u32,
    pub public_state: PublicState,
    /// Edges of its group that have not resolved.
    pub unresolved: u32,
}

impl Shape for Replay {
    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}
