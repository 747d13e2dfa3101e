//! Cancels of flows that are still being carried out.

use super::Seen;
use super::walk::{Listed, Walk, paged};
use crate::id::{FlowId, Namespace};
use crate::state::{List, ListingPosition};
use crate::time::TimestampMs;

/// Cancelled flows of a namespace with members that are still to be cancelled, longest first. It is
/// short: most cancels are one step, and a larger one is carried on at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListCancelBacklog {
    pub namespace: Namespace,
    pub cursor: Option<String>,
    pub limit: u32,
}

/// A flow whose cancel is still being carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CancelBacklog {
    pub flow_id: FlowId,
    /// Members that have not ended. Of a cancel that spares running ones these are among them.
    pub members: u32,
}

impl Walk for ListCancelBacklog {
    const LIST: List = List::CancelBacklog;

    type Item = CancelBacklog;

    paged!();

    fn see(&self, _: &ListingPosition, found: Listed<'_>, _: TimestampMs) -> Seen<CancelBacklog> {
        let Listed::Document(document, _) = found else { return Seen::Passed };
        let flow = document.flow().filter(|flow| flow.is_being_cancelled());
        let flow = flow.filter(|flow| flow.namespace == self.namespace);
        let backlog = flow.map(|flow| CancelBacklog { flow_id: flow.id, members: flow.live });
        backlog.map_or(Seen::Passed, Seen::Item)
    }

    fn scope(&self) -> String {
        format!("cancel backlog {}", self.namespace)
    }
}
