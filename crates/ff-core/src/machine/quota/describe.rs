//! A quota policy with a page of those who hold its slots.

use super::super::Facts;
use super::super::draft::Halt;
use super::super::rows::find;
use super::draft::QuotaDraft;
use super::slots::{self, Slot};
use super::window;
use crate::id::{DocumentId, ExecutionId, QuotaPolicyId};
use crate::read::{DescribeQuotaPolicy, QuotaPolicyDescribed, QuotaPolicySnapshot};
use crate::state::{Holder, SlotId, Verdict};
use crate::time::TimestampMs;

/// What users see of a policy.
pub(in super::super) fn describe(
    facts: &impl Facts,
    query: &DescribeQuotaPolicy,
    now: TimestampMs,
) -> Result<Option<Box<QuotaPolicyDescribed>>, Halt> {
    let id = DocumentId::quota_policy(query.quota_policy_id, &facts.settings().partitions);
    let Some(document) = facts.document(&id)? else { return Ok(None) };
    let Some(policy) = document.quota_policy() else { return Ok(None) };
    let of = (&document.id).into();
    let end = policy.slots.min(query.holders_from.saturating_add(query.limit));
    let keys: Vec<_> = (query.holders_from..end).map(slots::holder).collect();
    facts.want_rows(&of, &keys)?;
    let mut held: Vec<SlotId> = Vec::with_capacity(keys.len());
    for key in keys {
        held.extend(find::<SlotId>(facts, document.id.clone(), &key)?);
    }
    let rows: Vec<_> = held.iter().map(|slot| slots::row(*slot)).collect();
    facts.want_rows(&of, &rows)?;
    let mut holders = Vec::with_capacity(held.len());
    for (slot, row) in held.into_iter().zip(rows) {
        let found: Option<Slot> = find(facts, document.id.clone(), &row)?;
        holders.extend(found.map(|found| Holder {
            slot,
            since: found.since,
            pending_until: found.pending_until,
        }));
    }
    Ok(Some(Box::new(QuotaPolicyDescribed {
        policy: QuotaPolicySnapshot::of(policy, now),
        holders,
        next: (end < policy.slots).then_some(end),
    })))
}

/// What a claim would be told, and how many are in the window.
pub(in super::super) fn verdict(
    facts: &impl Facts,
    id: QuotaPolicyId,
    (execution_id, opens_attempt): (ExecutionId, bool),
    now: TimestampMs,
) -> Result<(Verdict, u32), Halt> {
    let draft = QuotaDraft::existing(facts, id, now)?;
    let verdict = draft.body.verdict(execution_id, opens_attempt, now);
    Ok((verdict, window::taken_places(facts, &draft)?))
}
