//! The rule of revoke.

use super::Facts;
use super::draft::{Draft, Halt, existing};
use super::fence::not_active;
use super::step::Step;
use crate::error::{Code, Refusal};
use crate::id::LeaseFence;
use crate::operation::{Revoke, Revoked};
use crate::state::{LostBy, Phase};
use crate::time::TimestampMs;

pub(super) fn revoke(
    facts: &impl Facts,
    op: &Revoke,
    now: TimestampMs,
) -> Result<Step<Revoked>, Halt> {
    let execution = existing(facts, op.execution_id)?;
    let revoked = execution.last_loss.filter(|loss| loss.by == LostBy::Revocation);
    if let Some(loss) = revoked
        && op.expected_lease_id.is_none_or(|expected| expected == loss.fence.lease_id)
    {
        let LeaseFence { lease_id, lease_epoch, .. } = loss.fence;
        return Ok(Step::unchanged(Revoked::AlreadySatisfied { lease_id, lease_epoch }));
    }
    let Phase::Active(lease) = &execution.phase else { return Err(not_active(&execution).into()) };
    let lease_id = lease.id;
    if op.expected_lease_id.is_some_and(|expected| expected != lease_id) {
        return Err(Refusal::new(Code::StaleLease, format!("the live lease is {lease_id}")).into());
    }
    let lease_epoch = execution.lease_epoch;
    let mut draft = Draft::of(execution, now);
    draft.lose_lease(LostBy::Revocation, Some(&op.reason), facts.settings());
    Ok(Step::done(Revoked::Revoked { lease_id, lease_epoch }, draft.finish().into()))
}
