//! Lanes and namespaces: what operators say of them.

use std::collections::BTreeMap;

use ff_core::id::{BudgetId, LaneId, Namespace, QuotaPolicyId};
use ff_core::operation::{Attach, LaneSet, NamespaceSet, SetLane, SetNamespace};
use ff_core::policy;
use ff_core::read::{LaneSnapshot, NamespaceSnapshot};
use ff_core::state::{Attached, LaneState, NamespaceRecord, PublicState};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::flow::{counts, read_counts};
use crate::nullable::nullable;

/// A lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lane {
    pub lane: LaneId,
    /// 0 while nobody has said anything of it.
    pub revision: u64,
    /// `active`, `paused`, `draining` or `disabled`.
    #[schema(value_type = String)]
    pub state: LaneState,
    /// Why it is not active, if somebody said so with that state.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub reason: String,
    /// What one level of priority is worth in time; 0: priority is strict.
    pub priority_ageing_ms: u64,
    pub budget_ids: Vec<BudgetId>,
    pub quota_policy_id: Option<QuotaPolicyId>,
    /// Executions that have not ended, by public state; those that are not named have none.
    #[schema(value_type = BTreeMap<String, u32>)]
    pub depth: BTreeMap<PublicState, u32>,
    /// How long the oldest eligible execution has been so; null when there is none.
    pub oldest_age_ms: Option<u64>,
    pub running: u32,
    /// Live workers that are registered for it.
    pub live_workers: u32,
}

/// Changes a lane; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChangeLane {
    /// `active`, `paused`, `draining` or `disabled`.
    #[schema(value_type = Option<String>)]
    pub state: Option<LaneState>,
    pub priority_ageing_ms: Option<u64>,
    pub budget_ids: Option<Vec<BudgetId>>,
    /// Null: none any more.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<QuotaPolicyId>)]
    pub quota_policy_id: Option<Option<QuotaPolicyId>>,
    /// Told with the event; with a state other than `active`, shown with the lane as long as that.
    pub reason: String,
}

/// Why a lane is paused, resumed or drained.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LaneReason {
    /// Told with the event, and shown with the lane until its state changes; a resumed lane has none.
    pub reason: String,
}

/// What holds for a whole namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NamespaceRow {
    pub namespace: Namespace,
    /// 0 while nobody has said anything of it.
    pub revision: u64,
    pub budget_ids: Vec<BudgetId>,
    pub quota_policy_id: Option<QuotaPolicyId>,
    pub retention: Retention,
}

/// How long an execution is kept once it has ended, by outcome, unless its policy says; null: as the
/// server is configured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    pub success_ms: Option<u64>,
    pub failed_ms: Option<u64>,
    pub cancelled_ms: Option<u64>,
    pub expired_ms: Option<u64>,
    pub skipped_ms: Option<u64>,
}

/// Changes a namespace; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChangeNamespace {
    pub budget_ids: Option<Vec<BudgetId>>,
    /// Null: none any more.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<QuotaPolicyId>)]
    pub quota_policy_id: Option<Option<QuotaPolicyId>>,
    /// Replaces all of it. Holds for what is submitted from now on.
    pub retention: Option<Retention>,
}

impl From<LaneSnapshot> for Lane {
    fn from(found: LaneSnapshot) -> Self {
        Self {
            lane: found.lane,
            revision: found.revision,
            state: found.state,
            reason: found.reason,
            priority_ageing_ms: found.priority_ageing_ms,
            budget_ids: found.attached.budget_ids,
            quota_policy_id: found.attached.quota_policy_id,
            depth: counts(&found.depth),
            oldest_age_ms: found.oldest_age_ms,
            running: found.running,
            live_workers: found.live_workers,
        }
    }
}

impl ChangeLane {
    pub fn operation(
        self,
        namespace: Namespace,
        lane: LaneId,
        expected_revision: Option<u64>,
    ) -> SetLane {
        let (budget_ids, quota_policy_id) = (self.budget_ids, self.quota_policy_id);
        SetLane {
            state: self.state,
            priority_ageing_ms: self.priority_ageing_ms,
            attach: Attach { budget_ids, quota_policy_id },
            reason: self.reason,
            expected_revision,
            ..SetLane::new(namespace, lane)
        }
    }
}

impl From<NamespaceSnapshot> for NamespaceRow {
    fn from(found: NamespaceSnapshot) -> Self {
        let NamespaceSnapshot { record, revision } = found;
        Self {
            namespace: record.namespace,
            revision,
            budget_ids: record.attached.budget_ids,
            quota_policy_id: record.attached.quota_policy_id,
            retention: record.retention.into(),
        }
    }
}

impl From<Retention> for policy::Retention {
    fn from(retention: Retention) -> Self {
        let Retention { success_ms, failed_ms, cancelled_ms, expired_ms, skipped_ms } = retention;
        Self { success_ms, failed_ms, cancelled_ms, expired_ms, skipped_ms }
    }
}

impl ChangeNamespace {
    pub fn operation(self, namespace: Namespace, expected_revision: Option<u64>) -> SetNamespace {
        let (budget_ids, quota_policy_id) = (self.budget_ids, self.quota_policy_id);
        SetNamespace {
            namespace,
            attach: Attach { budget_ids, quota_policy_id },
            retention: self.retention.map(Into::into),
            expected_revision,
        }
    }
}

impl From<Lane> for LaneSnapshot {
    fn from(lane: Lane) -> Self {
        Self {
            lane: lane.lane,
            state: lane.state,
            reason: lane.reason,
            priority_ageing_ms: lane.priority_ageing_ms,
            attached: Attached::new(lane.budget_ids, lane.quota_policy_id),
            revision: lane.revision,
            depth: read_counts(lane.depth),
            oldest_age_ms: lane.oldest_age_ms,
            running: lane.running,
            live_workers: lane.live_workers,
        }
    }
}

impl From<Lane> for LaneSet {
    fn from(lane: Lane) -> Self {
        Self {
            state: lane.state,
            priority_ageing_ms: lane.priority_ageing_ms,
            attached: Attached::new(lane.budget_ids, lane.quota_policy_id),
            revision: lane.revision,
        }
    }
}

impl From<SetLane> for ChangeLane {
    /// Which lane, and the expected revision, stand beside the body.
    fn from(set: SetLane) -> Self {
        let Attach { budget_ids, quota_policy_id } = set.attach;
        Self {
            state: set.state,
            priority_ageing_ms: set.priority_ageing_ms,
            budget_ids,
            quota_policy_id,
            reason: set.reason,
        }
    }
}

impl From<policy::Retention> for Retention {
    fn from(retention: policy::Retention) -> Self {
        let policy::Retention { success_ms, failed_ms, cancelled_ms, expired_ms, skipped_ms } =
            retention;
        Self { success_ms, failed_ms, cancelled_ms, expired_ms, skipped_ms }
    }
}

impl From<SetNamespace> for ChangeNamespace {
    /// Which namespace, and the expected revision, stand beside the body.
    fn from(set: SetNamespace) -> Self {
        let Attach { budget_ids, quota_policy_id } = set.attach;
        Self { budget_ids, quota_policy_id, retention: set.retention.map(Into::into) }
    }
}

impl From<NamespaceRow> for NamespaceSnapshot {
    fn from(row: NamespaceRow) -> Self {
        let record = NamespaceRecord {
            namespace: row.namespace,
            attached: Attached::new(row.budget_ids, row.quota_policy_id),
            retention: row.retention.into(),
        };
        Self { record, revision: row.revision }
    }
}

impl From<NamespaceRow> for NamespaceSet {
    fn from(row: NamespaceRow) -> Self {
        let NamespaceSnapshot { record, revision } = row.into();
        Self { record, revision }
    }
}
