//! The rule of renew.

use super::Facts;
use super::draft::Halt;
use super::fence::live;
use super::step::Step;
use crate::operation::{Renew, Renewed};
use crate::state::Phase;
use crate::time::TimestampMs;

pub(super) fn renew(
    facts: &impl Facts,
    op: &Renew,
    now: TimestampMs,
) -> Result<Step<Renewed>, Halt> {
    let mut draft = live(facts, op.execution_id, &op.fence, now)?;
    let mut expires_at = now;
    if let Phase::Active(lease) = &mut draft.execution.phase {
        lease.ttl_ms = op.ttl_ms.unwrap_or(lease.ttl_ms);
        lease.expires_at = now.after(lease.ttl_ms);
        lease.renewed_at = now;
        expires_at = lease.expires_at;
    }
    Ok(Step::done(Renewed { expires_at }, draft.finish().into()))
}
