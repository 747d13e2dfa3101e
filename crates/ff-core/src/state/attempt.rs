//! Attempts: the tries at an execution.

use serde::{Deserialize, Serialize};

use super::{Stream, StreamEnd};
use crate::id::{AttemptId, WorkerId, WorkerInstanceId};
use crate::time::TimestampMs;

/// One try. The newest one stands in the execution; earlier ones are kept beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub index: u32,
    pub id: AttemptId,
    pub kind: AttemptType,
    pub state: AttemptState,
    pub worker_id: WorkerId,
    pub worker_instance_id: WorkerInstanceId,
    pub started_at: TimestampMs,
    pub ended_at: Option<TimestampMs>,
    /// Time under lease up to the last release.
    pub active_ms: u64,
    pub failure_reason: Option<String>,
    pub failure_category: Option<String>,
    /// What is known of its output; none before the first frame.
    pub stream: Option<Box<Stream>>,
    /// Why its output has ended; that was when the attempt ended.
    pub stream_end: Option<StreamEnd>,
    /// Size of its result; none without one.
    pub result_bytes: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptType {
    Initial,
    Retry,
    Reclaim,
    Replay,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptState {
    Created,
    Started,
    Suspended,
    EndedSuccess,
    EndedFailure,
    EndedCancelled,
    InterruptedReclaimed,
}

impl AttemptType {
    pub const ALL: [Self; 4] = [Self::Initial, Self::Retry, Self::Reclaim, Self::Replay];

    /// The number under which stores keep it.
    pub const fn code(self) -> u8 {
        match self {
            Self::Initial => 1,
            Self::Retry => 2,
            Self::Reclaim => 3,
            Self::Replay => 4,
        }
    }

    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Retry => "retry",
            Self::Reclaim => "reclaim",
            Self::Replay => "replay",
        }
    }
}

impl Attempt {
    pub fn is_open(&self) -> bool {
        self.ended_at.is_none()
    }

    /// Ends the attempt; one that has ended stays as it ended.
    pub(crate) fn end(
        &mut self,
        state: AttemptState,
        failure: Option<(&str, &str)>,
        now: TimestampMs,
    ) {
        if self.is_open() {
            self.state = state;
            self.ended_at = Some(now);
            self.failure_reason = failure.map(|(reason, _)| reason.to_owned());
            self.failure_category = failure.map(|(_, category)| category.to_owned());
        }
    }
}
