//! Bulk operations: one act on many executions.

use ff_core::act::Preview;
use ff_core::id::{BulkId, ExecutionId, IdempotencyKey, Namespace};
use ff_core::operation::CreateBulk;
use ff_core::read::Filter;
use ff_core::state::{self, BulkAction, BulkState, BulkTargets};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::list::named;
use crate::object::Invalid;
use crate::search::Search;
use crate::time::Time;

/// A new bulk operation, on what a filter finds or on the listed executions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewBulk {
    /// `cancel`, `replay`, `delete`, `hold` or `release`.
    #[schema(value_type = String)]
    pub action: BulkAction,
    /// The filters of a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Search>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<ExecutionId>>,
    /// Only tells what it would act on.
    #[serde(default)]
    pub dry_run: bool,
    #[serde(default)]
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
    /// Minted when absent; with an idempotency key it follows from the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub bulk_id: Option<BulkId>,
}

/// What a dry run found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkPreview {
    pub matched: u64,
    /// The first 20, newest first.
    pub sample: Vec<ExecutionId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkReply {
    /// `created`, or `duplicate` of an idempotency key.
    pub status: String,
    #[schema(value_type = String)]
    pub bulk_id: BulkId,
    /// How many there are to act on.
    pub matched: u64,
}

/// A bulk operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Bulk {
    #[schema(value_type = String)]
    pub bulk_id: BulkId,
    pub namespace: Namespace,
    #[schema(value_type = String)]
    pub action: BulkAction,
    /// `running`, `paused`, `done` or `aborted`.
    pub state: String,
    pub matched: u64,
    pub done: u64,
    /// Those that it could not be done to.
    pub failed: u64,
    pub reason: String,
    pub created_at: Time,
    pub changed_at: Time,
}

impl NewBulk {
    /// Whom it acts on.
    pub fn targets(&self, namespace: &Namespace) -> Result<BulkTargets, Invalid> {
        match (&self.filter, &self.ids) {
            (Some(filter), None) => {
                let filter = Self::filter(filter.clone(), namespace.clone())?;
                Ok(BulkTargets::Filter(Box::new(filter)))
            }
            (None, Some(ids)) => Ok(BulkTargets::Ids(ids.clone())),
            (Some(_), Some(_)) => Err(Invalid::at("ids", "either a filter or ids")),
            (None, None) => Err(Invalid::at("filter", "a filter or ids are required")),
        }
    }

    /// The filters alone: a page, and what comes with a record, mean nothing here.
    fn filter(search: Search, namespace: Namespace) -> Result<Filter, Invalid> {
        let beside = [
            ("include", search.include.is_some()),
            ("count", search.count.is_some()),
            ("cursor", search.cursor.is_some()),
            ("limit", search.limit.is_some()),
        ];
        if let Some((field, _)) = beside.into_iter().find(|(_, given)| *given) {
            return Err(Invalid::at(&format!("filter/{field}"), "not of a bulk operation"));
        }
        Ok(search.question(namespace)?.0.filter)
    }

    /// The operation. `key` is the one of header or body.
    pub fn operation(
        self,
        namespace: Namespace,
        key: Option<&IdempotencyKey>,
    ) -> Result<CreateBulk, Invalid> {
        let targets = self.targets(&namespace)?;
        let by_key = key.map(|key| BulkId::for_key(&namespace, key));
        let bulk_id = named("bulk_id", self.bulk_id, by_key)?;
        Ok(CreateBulk {
            bulk_id: bulk_id.unwrap_or_else(BulkId::mint),
            namespace,
            action: self.action,
            targets,
            reason: self.reason,
            matched: 0,
        })
    }
}

impl From<state::Bulk> for Bulk {
    fn from(bulk: state::Bulk) -> Self {
        let state = match bulk.state {
            BulkState::Completed => "done",
            other => other.as_str(),
        };
        Self {
            bulk_id: bulk.id,
            namespace: bulk.namespace,
            action: bulk.action,
            state: state.to_owned(),
            matched: bulk.matched,
            done: bulk.done,
            failed: bulk.failed,
            reason: bulk.reason,
            created_at: bulk.created_at.into(),
            changed_at: bulk.changed_at.into(),
        }
    }
}

impl From<CreateBulk> for NewBulk {
    /// Everything but the namespace, which stands beside the body.
    fn from(create: CreateBulk) -> Self {
        let (filter, ids) = match create.targets {
            BulkTargets::Filter(filter) => (Some(Search::from(*filter)), None),
            BulkTargets::Ids(ids) => (None, Some(ids)),
        };
        Self {
            action: create.action,
            filter,
            ids,
            dry_run: false,
            reason: create.reason,
            idempotency_key: None,
            bulk_id: Some(create.bulk_id),
        }
    }
}

impl From<BulkPreview> for Preview {
    fn from(preview: BulkPreview) -> Self {
        Self { matched: preview.matched, sample: preview.sample }
    }
}
