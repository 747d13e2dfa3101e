//! Attempts at an execution.

use ff_core::id::{AttemptId, WorkerId, WorkerInstanceId};
use ff_core::state::{self, AttemptType};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::time::{Time, some};

/// One try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Attempt {
    pub attempt_index: u32,
    pub attempt_id: AttemptId,
    pub attempt_type: AttemptType,
    #[schema(value_type = String)]
    pub state: state::AttemptState,
    pub worker_id: WorkerId,
    pub worker_instance_id: WorkerInstanceId,
    pub started_at: Time,
    pub ended_at: Option<Time>,
    pub active_ms: u64,
    pub failure_reason: Option<String>,
    pub failure_category: Option<String>,
    pub previous_attempt_index: Option<u32>,
}

impl From<state::Attempt> for Attempt {
    fn from(attempt: state::Attempt) -> Self {
        Self {
            attempt_index: attempt.index,
            attempt_id: attempt.id,
            attempt_type: attempt.kind,
            state: attempt.state,
            worker_id: attempt.worker_id,
            worker_instance_id: attempt.worker_instance_id,
            started_at: attempt.started_at.into(),
            ended_at: some(attempt.ended_at),
            active_ms: attempt.active_ms,
            failure_reason: attempt.failure_reason,
            failure_category: attempt.failure_category,
            previous_attempt_index: attempt.index.checked_sub(1),
        }
    }
}

impl From<Attempt> for state::Attempt {
    /// What is known of output and result beyond the attempt itself is not told here; others tell it.
    fn from(attempt: Attempt) -> Self {
        Self {
            index: attempt.attempt_index,
            id: attempt.attempt_id,
            kind: attempt.attempt_type,
            state: attempt.state,
            worker_id: attempt.worker_id,
            worker_instance_id: attempt.worker_instance_id,
            started_at: attempt.started_at.into(),
            ended_at: attempt.ended_at.map(Into::into),
            active_ms: attempt.active_ms,
            failure_reason: attempt.failure_reason,
            failure_category: attempt.failure_category,
            stream: None,
            stream_end: None,
            result_bytes: None,
        }
    }
}
