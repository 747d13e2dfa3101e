//! What users see of a quota policy.

use super::Seen;
use super::walk::{Listed, Walk, paged};
use crate::id::{Namespace, QuotaPolicyId};
use crate::state::{Holder, List, ListingPosition, QuotaPolicy, QuotaSpec, SlotId};
use crate::time::TimestampMs;

/// Only the limits; none if there is no such policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadQuotaLimits {
    pub quota_policy_id: QuotaPolicyId,
}

/// A policy with those who hold its slots; none if there is no such.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribeQuotaPolicy {
    pub quota_policy_id: QuotaPolicyId,
    /// The page of holders begins with this slot.
    pub holders_from: u32,
    pub limit: u32,
}

/// Policies of a namespace, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuotaPolicies {
    pub namespace: Namespace,
    pub cursor: Option<String>,
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaPolicySnapshot {
    pub quota_policy_id: QuotaPolicyId,
    pub namespace: Namespace,
    /// Counts changes of the spec.
    pub revision: u64,
    pub spec: QuotaSpec,
    pub created_at: TimestampMs,
    /// Slots that are taken.
    pub slots: u32,
    /// Executions that wait for one, or for their part of the jitter.
    pub waiting: u32,
    /// When the window lets somebody in again; what lies in the past has come.
    pub window_opens_at: Option<TimestampMs>,
    /// Pending slots whose executions are to be asked.
    pub overdue: Vec<SlotId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaPolicyDescribed {
    pub policy: QuotaPolicySnapshot,
    pub holders: Vec<Holder>,
    /// Slot to go on with; none at the end. A slot that is given back between two pages may move
    /// another in front of the place to go on with.
    pub next: Option<u32>,
}

impl QuotaPolicySnapshot {
    pub(crate) fn of(policy: &QuotaPolicy, now: TimestampMs) -> Self {
        Self {
            quota_policy_id: policy.id,
            namespace: policy.namespace.clone(),
            revision: policy.definition,
            spec: policy.spec,
            created_at: policy.created_at,
            slots: policy.slots,
            waiting: policy.in_line() + u32::try_from(policy.resting.len()).unwrap_or(u32::MAX),
            window_opens_at: policy.closed_until(now).or_else(|| policy.opens_at()),
            overdue: policy.overdue.clone(),
        }
    }
}

impl Walk for ListQuotaPolicies {
    const LIST: List = List::QuotaPolicy;

    type Item = QuotaPolicySnapshot;

    paged!();

    fn see(
        &self,
        _: &ListingPosition,
        found: Listed<'_>,
        now: TimestampMs,
    ) -> Seen<QuotaPolicySnapshot> {
        let Listed::Document(document, _) = found else { return Seen::Passed };
        let policy = document.quota_policy();
        let snapshot = policy.map(|policy| QuotaPolicySnapshot::of(policy, now));
        snapshot.map_or(Seen::Passed, Seen::Item)
    }

    fn scope(&self) -> String {
        format!("quota policies {}", self.namespace)
    }
}
