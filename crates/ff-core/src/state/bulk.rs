//! Bulk operations: one act on many executions, carried out step by step.

use serde::{Deserialize, Serialize};

use super::{Due, DueKind, List, Listing};
use crate::id::{BulkId, ExecutionId, Namespace};
use crate::limits;
use crate::read::Filter;
use crate::time::TimestampMs;

/// The record of a bulk operation. Who carries it out keeps nothing: the record says how far it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bulk {
    pub id: BulkId,
    pub namespace: Namespace,
    pub action: BulkAction,
    pub targets: BulkTargets,
    pub reason: String,
    pub state: BulkState,
    /// How many there were when it was made.
    pub matched: u64,
    pub done: u64,
    /// Those that were refused: they had changed meanwhile, or their state does not allow it.
    pub failed: u64,
    /// Steps so far.
    pub steps: u64,
    /// Where the search goes on.
    pub cursor: Option<String>,
    pub created_at: TimestampMs,
    /// When its state last changed.
    pub changed_at: TimestampMs,
    /// When it is told that it is to be carried on.
    pub due_at: TimestampMs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BulkAction {
    Cancel,
    Replay,
    Delete,
    Hold,
    Release,
}

/// On whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BulkTargets {
    /// Those that a search finds, newest first.
    Filter(Box<Filter>),
    Ids(Vec<ExecutionId>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BulkState {
    Running,
    Paused,
    Completed,
    Aborted,
}

impl BulkAction {
    pub const ALL: [Self; 5] =
        [Self::Cancel, Self::Replay, Self::Delete, Self::Hold, Self::Release];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Replay => "replay",
            Self::Delete => "delete",
            Self::Hold => "hold",
            Self::Release => "release",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == text)
    }
}

impl BulkState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Completed => "completed",
            Self::Aborted => "aborted",
        }
    }

    pub const fn has_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Aborted)
    }
}

impl Bulk {
    pub(super) fn due(&self) -> Option<Due> {
        match self.state {
            BulkState::Running => Some(Due { at: self.due_at, kind: DueKind::BulkRunner }),
            BulkState::Paused => None,
            BulkState::Completed | BulkState::Aborted => {
                let at = self.changed_at.after(limits::RETENTION_MS);
                Some(Due { at, kind: DueKind::RetentionTrimmer })
            }
        }
    }

    /// Newest first: the order of the list is that of negated time.
    pub(super) fn listing(&self) -> Listing<'_> {
        Listing {
            namespace: &self.namespace,
            list: List::Bulk,
            at: TimestampMs(-self.created_at.0),
            name: self.id.uuid(),
        }
    }
}
