//! What users see of a bulk operation.

use super::Seen;
use super::walk::{Listed, Walk, paged};
use crate::id::{BulkId, Namespace};
use crate::state::{Bulk, List, ListingPosition, Part};
use crate::time::TimestampMs;

/// One bulk operation; none if there is no such.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetBulk {
    pub bulk_id: BulkId,
}

/// Bulk operations of a namespace, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListBulks {
    pub namespace: Namespace,
    pub cursor: Option<String>,
    pub limit: u32,
}

impl Walk for ListBulks {
    const LIST: List = List::Bulk;

    type Item = Bulk;

    paged!();

    fn see(&self, _: &ListingPosition, found: Listed<'_>, _: TimestampMs) -> Seen<Bulk> {
        let Listed::Document(document, _) = found else { return Seen::Passed };
        let bulk = Bulk::of(&document.body).filter(|bulk| bulk.namespace == self.namespace);
        bulk.cloned().map_or(Seen::Passed, Seen::Item)
    }

    fn scope(&self) -> String {
        format!("bulks {}", self.namespace)
    }
}
