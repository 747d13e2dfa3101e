//! Documents: everything with a record of its own that is not an execution.
//!
//! Stores keep them as they keep executions, and know as little of them: a record that is written
//! only if it is unchanged, rows beside it, the next thing that time does, entries in lists. A
//! feature that needs a new kind of record adds a [`Body`] and no code in any store.

use serde::{Deserialize, Serialize};

use super::{Due, Flow, Listing};
use crate::id::{DocumentId, Namespace};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    pub id: DocumentId,
    /// Counts every write: what a conditional write compares.
    pub revision: u64,
    /// Counts the events about this document: the newest one bears this number.
    pub event_seq: u64,
    /// Number of the newest event in its home's log.
    pub last_event: u64,
    pub body: Body,
}

/// What a document holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    Flow(Box<Flow>),
}

impl Document {
    pub fn namespace(&self) -> &Namespace {
        match &self.body {
            Body::Flow(flow) => &flow.namespace,
        }
    }

    /// What time will do to it next, if nothing else happens first.
    pub fn due(&self) -> Option<Due> {
        match &self.body {
            Body::Flow(flow) => flow.due(),
        }
    }

    /// Every entry that stores must list it with.
    pub fn listings(&self) -> impl Iterator<Item = Listing<'_>> {
        match &self.body {
            Body::Flow(flow) => std::iter::once(flow.listing()),
        }
    }

    pub fn flow(&self) -> Option<&Flow> {
        match &self.body {
            Body::Flow(flow) => Some(flow),
        }
    }
}
