//! Bulk operations: made, paused, carried on.

use super::command::Shape;
use crate::check::check_bytes;
use crate::error::Refusal;
use crate::id::{BulkId, DocumentId, ExecutionId, Namespace};
use crate::limits;
use crate::partition::PartitionConfig;
use crate::read::Filter;
use crate::state::{BulkAction, BulkState, BulkTargets};

/// Makes a bulk operation, which the engine carries out.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateBulk {
    pub bulk_id: BulkId,
    pub namespace: Namespace,
    pub action: BulkAction,
    pub targets: BulkTargets,
    pub reason: String,
    /// How many there are, as far as anybody has looked.
    pub matched: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkCreated {
    Created,
    /// It was made before, and had found so many.
    AlreadySatisfied {
        matched: u64,
    },
}

/// Pauses a bulk operation, lets it go on, or ends it where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct SetBulk {
    pub bulk_id: BulkId,
    pub to: BulkWish,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkWish {
    Pause,
    Resume,
    Abort,
}

/// One step of a bulk operation has been carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct AdvanceBulk {
    pub bulk_id: BulkId,
    /// Steps before this one: whoever carried out the same step has been faster otherwise.
    pub steps: u64,
    pub done: u32,
    pub failed: u32,
    /// Where the search goes on.
    pub cursor: Option<String>,
    /// There is nobody left.
    pub is_last: bool,
}

impl BulkWish {
    /// What it leads to.
    pub const fn state(self) -> BulkState {
        match self {
            Self::Pause => BulkState::Paused,
            Self::Resume => BulkState::Running,
            Self::Abort => BulkState::Aborted,
        }
    }
}

/// A search that is to be acted on says what it is for.
fn check_filter(filter: &Filter, namespace: &Namespace) -> Result<(), Refusal> {
    if filter.namespace.as_ref() != Some(namespace) {
        return Err(Refusal::invalid("filter", "of the namespace that the bulk operation is of"));
    }
    let anywhere = Filter { namespace: Some(namespace.clone()), ..Filter::default() };
    if *filter == anywhere {
        return Err(Refusal::invalid("filter", "an empty filter would be everything"));
    }
    let most = limits::FILTER_NAMES;
    for (field, count) in [
        ("lane", filter.lanes.len()),
        ("state", filter.states.len()),
        ("kind", filter.kinds.len()),
        ("tag", filter.tags.len()),
    ] {
        if count > most {
            let refusal = Refusal::invalid(field, format!("{most} at the most"));
            return Err(refusal.under("filter"));
        }
    }
    Ok(())
}

impl Shape for CreateBulk {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_bytes("reason", &self.reason, limits::REASON_BYTES)?;
        match &self.targets {
            BulkTargets::Filter(filter) => check_filter(filter, &self.namespace),
            BulkTargets::Ids(ids) if (1..=limits::BATCH_ITEMS).contains(&ids.len()) => Ok(()),
            BulkTargets::Ids(_) => {
                let detail = format!("1 to {} ids", limits::BATCH_ITEMS);
                Err(Refusal::invalid("ids", detail))
            }
        }
    }

    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, _: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::bulk(self.bulk_id))
    }
}

impl Shape for SetBulk {
    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, _: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::bulk(self.bulk_id))
    }
}

impl Shape for AdvanceBulk {
    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, _: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::bulk(self.bulk_id))
    }
}
