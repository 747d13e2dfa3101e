//! Trim: what retention removes apart from executions. Not a transition: records past their window
//! are absent to every rule whether or not they have been removed.

use crate::time::TimestampMs;

/// Removes records of repetition that are past their window, and events and frames past theirs.
#[derive(Debug, Clone, PartialEq)]
pub struct Trim {
    /// Events from before this instant go.
    pub events_before: TimestampMs,
    /// Of what is left, the newest this many bytes stay.
    pub event_bytes: u64,
    /// Most rows of this step.
    pub most: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trimmed {
    pub dedup_records: u32,
    pub events: u32,
    /// Frames that have outlived their time.
    pub frames: u32,
    /// More is to be removed: trim again.
    pub more: bool,
}
