//! Quota policies: a rate window and a concurrency cap.

use ff_core::id::{ExecutionId, IdempotencyKey, Namespace, QuotaPolicyId};
use ff_core::operation::{CreateQuotaPolicy, QuotaChange, UpdateQuotaPolicy};
use ff_core::read::QuotaPolicySnapshot;
use ff_core::state;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::object::Invalid;
use crate::time::{Time, some};

/// A new quota policy; 0 switches a part off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NewQuota {
    /// Minted when absent; with an idempotency key it follows from the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_policy_id: Option<QuotaPolicyId>,
    pub window_seconds: u64,
    pub max_requests_per_window: u32,
    pub max_concurrent: u32,
    /// Spreads those who come when the window opens over so much time.
    pub jitter_ms: u64,
}

/// Changes a quota policy; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChangeQuota {
    pub window_seconds: Option<u64>,
    pub max_requests_per_window: Option<u32>,
    pub max_concurrent: Option<u32>,
    pub jitter_ms: Option<u64>,
}

/// A quota policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Quota {
    pub quota_policy_id: QuotaPolicyId,
    /// Counts changes of its numbers.
    pub revision: u64,
    pub namespace: Namespace,
    pub window_seconds: u64,
    pub max_requests_per_window: u32,
    pub max_concurrent: u32,
    pub jitter_ms: u64,
    /// Slots that are taken.
    pub slots: u32,
    /// Executions that wait for one.
    pub waiting: u32,
    /// When the window lets somebody in again; what lies in the past has come.
    pub window_opens_at: Option<Time>,
    pub created_at: Time,
}

/// What became of a new quota policy, and how it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuotaReply {
    /// `created`, or `duplicate` when the id or the key was there already.
    pub status: String,
    #[serde(flatten)]
    pub quota: Quota,
}

/// Who holds a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Holder {
    pub execution_id: ExecutionId,
    pub lease_epoch: u64,
    pub since: Time,
    /// Not confirmed yet: when its execution is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_until: Option<Time>,
}

impl NewQuota {
    /// The operation. `key` is the one of the header.
    pub fn operation(
        self,
        namespace: Namespace,
        key: Option<&IdempotencyKey>,
    ) -> Result<CreateQuotaPolicy, Invalid> {
        let named = key.map(|key| QuotaPolicyId::for_key(&namespace, key));
        let id = crate::list::named("quota_policy_id", self.quota_policy_id, named)?;
        let spec = state::QuotaSpec {
            window_seconds: self.window_seconds,
            max_requests_per_window: self.max_requests_per_window,
            max_concurrent: self.max_concurrent,
            jitter_ms: self.jitter_ms,
        };
        let quota_policy_id = id.unwrap_or_else(QuotaPolicyId::mint);
        Ok(CreateQuotaPolicy { quota_policy_id, namespace, spec })
    }
}

impl ChangeQuota {
    pub fn operation(
        self,
        quota_policy_id: QuotaPolicyId,
        expected_revision: Option<u64>,
    ) -> UpdateQuotaPolicy {
        let change = QuotaChange {
            window_seconds: self.window_seconds,
            max_requests_per_window: self.max_requests_per_window,
            max_concurrent: self.max_concurrent,
            jitter_ms: self.jitter_ms,
        };
        UpdateQuotaPolicy { quota_policy_id, change, expected_revision }
    }
}

impl From<QuotaPolicySnapshot> for Quota {
    fn from(found: QuotaPolicySnapshot) -> Self {
        Self {
            quota_policy_id: found.quota_policy_id,
            revision: found.revision,
            namespace: found.namespace,
            window_seconds: found.spec.window_seconds,
            max_requests_per_window: found.spec.max_requests_per_window,
            max_concurrent: found.spec.max_concurrent,
            jitter_ms: found.spec.jitter_ms,
            slots: found.slots,
            waiting: found.waiting,
            window_opens_at: some(found.window_opens_at),
            created_at: found.created_at.into(),
        }
    }
}

impl From<state::Holder> for Holder {
    fn from(holder: state::Holder) -> Self {
        Self {
            execution_id: holder.slot.execution_id,
            lease_epoch: holder.slot.lease_epoch,
            since: holder.since.into(),
            pending_until: some(holder.pending_until),
        }
    }
}

impl From<CreateQuotaPolicy> for NewQuota {
    /// Everything but the namespace, which stands beside the body.
    fn from(create: CreateQuotaPolicy) -> Self {
        Self {
            quota_policy_id: Some(create.quota_policy_id),
            window_seconds: create.spec.window_seconds,
            max_requests_per_window: create.spec.max_requests_per_window,
            max_concurrent: create.spec.max_concurrent,
            jitter_ms: create.spec.jitter_ms,
        }
    }
}

impl From<UpdateQuotaPolicy> for ChangeQuota {
    /// The expected revision stands beside the body.
    fn from(update: UpdateQuotaPolicy) -> Self {
        let change = update.change;
        Self {
            window_seconds: change.window_seconds,
            max_requests_per_window: change.max_requests_per_window,
            max_concurrent: change.max_concurrent,
            jitter_ms: change.jitter_ms,
        }
    }
}

impl From<Quota> for QuotaPolicySnapshot {
    /// Which slots are overdue is the engine's affair and is not told.
    fn from(quota: Quota) -> Self {
        Self {
            quota_policy_id: quota.quota_policy_id,
            namespace: quota.namespace,
            revision: quota.revision,
            spec: state::QuotaSpec {
                window_seconds: quota.window_seconds,
                max_requests_per_window: quota.max_requests_per_window,
                max_concurrent: quota.max_concurrent,
                jitter_ms: quota.jitter_ms,
            },
            created_at: quota.created_at.into(),
            slots: quota.slots,
            waiting: quota.waiting,
            window_opens_at: quota.window_opens_at.map(Into::into),
            overdue: Vec::new(),
        }
    }
}

impl From<Holder> for state::Holder {
    fn from(holder: Holder) -> Self {
        let Holder { execution_id, lease_epoch, since, pending_until } = holder;
        Self {
            slot: state::SlotId { execution_id, lease_epoch },
            since: since.into(),
            pending_until: pending_until.map(Into::into),
        }
    }
}
