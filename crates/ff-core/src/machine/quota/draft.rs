//! A quota policy in the making.

use super::super::Facts;
use super::super::document::DocumentDraft;
use super::super::draft::Halt;
use crate::error::{Code, Refusal};
use crate::id::{DocumentId, QuotaPolicyId};
use crate::limits;
use crate::state::QuotaPolicy;
use crate::time::TimestampMs;

pub(super) type QuotaDraft = DocumentDraft<QuotaPolicy>;

impl DocumentDraft<QuotaPolicy> {
    /// The policy, or `quota_policy_not_found`.
    pub(super) fn existing(
        facts: &impl Facts,
        id: QuotaPolicyId,
        now: TimestampMs,
    ) -> Result<Self, Halt> {
        let id_of = DocumentId::quota_policy(id, &facts.settings().partitions);
        let missing = || {
            let detail = format!("no quota policy {id}");
            Refusal::at(Code::QuotaPolicyNotFound, "quota_policy_id", detail)
        };
        Self::of(facts.document(&id_of)?.ok_or_else(missing)?, now)
    }

    /// What is to be done elsewhere is told with this step, and again later.
    pub(super) fn remind(&mut self) {
        let (now, policy) = (self.now, &mut self.body);
        let due = |at: Option<TimestampMs>| at.is_none_or(|at| at <= now);
        match policy.overdue.is_empty() {
            true => policy.ask_at = None,
            false if due(policy.ask_at) => {
                policy.ask_at = Some(now.after(limits::ERRAND_RETRY_MS));
            }
            false => {}
        }
        match policy.waking.is_empty() {
            true => policy.tell_at = None,
            false if due(policy.tell_at) => {
                policy.tell_at = Some(now.after(limits::QUOTA_WAKE_MS));
            }
            false => {}
        }
    }
}
