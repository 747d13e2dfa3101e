//! What operators do to executions.

use std::collections::BTreeMap;

use ff_core::id::{ExecutionId, LeaseFence, LeaseId};
use ff_core::operation;
use ff_core::state::{CancelSource, PublicState};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::problem::Failure;

/// Nobody wants the outcome any more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cancel {
    pub reason: String,
    /// Who cancels; `operator_override` when absent.
    pub source: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cancelled {
    pub status: String,
    /// Public state before.
    pub from: PublicState,
    pub replayed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangePriority {
    /// 0 to 9000, clamped.
    pub new_priority: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PriorityChanged {
    pub old: u16,
    pub new: u16,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Replay {
    /// Downstreams in its flow that have run are replayed too.
    pub descendants: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Replayed {
    pub replay_count: u32,
    pub unresolved_edges: u32,
    pub public_state: PublicState,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RevokeLease {
    pub reason: String,
    pub expected_lease_id: Option<LeaseId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Revoked {
    pub status: String,
    pub lease_id: LeaseId,
    pub lease_epoch: u64,
    pub replayed: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hold {
    /// Shown as the blocking detail.
    pub detail: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Resume {
    /// Who or what does it, for the record.
    pub detail: String,
    /// As the suspension's resume policy says when absent.
    pub delay_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetTags {
    /// Keys have the form `<caller>.<field>`.
    pub tags: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TagsSet {
    /// Tags afterwards.
    pub count: usize,
    pub revision: u64,
}

impl Cancel {
    pub fn operation(
        self,
        execution_id: ExecutionId,
        fence: Option<LeaseFence>,
    ) -> Result<operation::Cancel, Failure> {
        let source = self.source.as_deref().map(CancelSource::parse).transpose()?;
        let source = source.unwrap_or_default();
        Ok(operation::Cancel { execution_id, reason: self.reason, source, fence })
    }
}

impl From<operation::Cancelled> for Cancelled {
    fn from(cancelled: operation::Cancelled) -> Self {
        let operation::Cancelled { from, replayed } = cancelled;
        Self { status: "cancelled".to_owned(), from, replayed }
    }
}

impl From<operation::PriorityChanged> for PriorityChanged {
    fn from(changed: operation::PriorityChanged) -> Self {
        Self { old: changed.old, new: changed.new }
    }
}

impl From<operation::Replayed> for Replayed {
    fn from(replayed: operation::Replayed) -> Self {
        Self {
            replay_count: replayed.replay_count,
            unresolved_edges: replayed.unresolved,
            public_state: replayed.public_state,
        }
    }
}

impl From<operation::Revoked> for Revoked {
    fn from(revoked: operation::Revoked) -> Self {
        let (lease_id, lease_epoch, replayed) = match revoked {
            operation::Revoked::Revoked { lease_id, lease_epoch } => (lease_id, lease_epoch, false),
            operation::Revoked::AlreadySatisfied { lease_id, lease_epoch } => {
                (lease_id, lease_epoch, true)
            }
        };
        Self { status: "revoked".to_owned(), lease_id, lease_epoch, replayed }
    }
}

impl From<operation::Cancel> for Cancel {
    fn from(cancel: operation::Cancel) -> Self {
        Self { reason: cancel.reason, source: Some(cancel.source.as_str().to_owned()) }
    }
}

impl From<Cancelled> for operation::Cancelled {
    fn from(cancelled: Cancelled) -> Self {
        Self { from: cancelled.from, replayed: cancelled.replayed }
    }
}

impl From<PriorityChanged> for operation::PriorityChanged {
    fn from(changed: PriorityChanged) -> Self {
        Self { old: changed.old, new: changed.new }
    }
}

impl From<Replayed> for operation::Replayed {
    fn from(replayed: Replayed) -> Self {
        Self {
            replay_count: replayed.replay_count,
            public_state: replayed.public_state,
            unresolved: replayed.unresolved_edges,
        }
    }
}

impl From<operation::Revoke> for RevokeLease {
    fn from(revoke: operation::Revoke) -> Self {
        Self { reason: revoke.reason, expected_lease_id: revoke.expected_lease_id }
    }
}

impl From<Revoked> for operation::Revoked {
    fn from(revoked: Revoked) -> Self {
        let Revoked { lease_id, lease_epoch, replayed, .. } = revoked;
        match replayed {
            false => Self::Revoked { lease_id, lease_epoch },
            true => Self::AlreadySatisfied { lease_id, lease_epoch },
        }
    }
}

impl From<TagsSet> for operation::TagsSet {
    fn from(set: TagsSet) -> Self {
        Self { count: set.count, revision: set.revision }
    }
}
