//! The rules of admission: a slot is taken, confirmed, given back.

use super::super::Facts;
use super::super::draft::Halt;
use super::super::step::Step;
use super::draft::QuotaDraft;
use super::{slots, waiting, window};
use crate::check::check_partition;
use crate::operation::{
    Admission, AdmissionReleased, CheckAdmission, ConfirmAdmission, Confirmed, ReleaseAdmission,
};
use crate::state::Verdict;
use crate::time::TimestampMs;

pub(in super::super) fn check(
    facts: &impl Facts,
    op: &CheckAdmission,
    now: TimestampMs,
) -> Result<Step<Admission>, Halt> {
    let id = op.slot.execution_id;
    check_partition(id, &facts.settings().partitions)?;
    let mut draft = QuotaDraft::existing(facts, op.quota_policy_id, now)?;
    let verdict = draft.body.verdict(id, op.opens_attempt, now);
    // All rows at once, so that one round loads them.
    let mut rows = vec![slots::row(op.slot)];
    if verdict == Verdict::Admit && op.opens_attempt {
        rows.extend(window::rows(&draft));
    }
    facts.want_rows(&(&draft.id).into(), &rows)?;
    if slots::find(facts, &draft, op.slot)?.is_some() {
        return Ok(Step::unchanged(Admission::AlreadyAdmitted));
    }
    match verdict {
        Verdict::Admit => {
            if op.opens_attempt {
                window::admit(facts, &mut draft)?;
            }
            slots::take(&mut draft, op.slot);
            Ok(draft.answer(Admission::Admitted))
        }
        // Time lets it in; nobody else can.
        Verdict::RateExceeded { retry_after_ms } => {
            Ok(Step::unchanged(Admission::RateExceeded { retry_after_ms }))
        }
        Verdict::ConcurrencyExceeded { retry_after_ms } => {
            let reply = Admission::ConcurrencyExceeded { retry_after_ms };
            if waiting::enter(facts, &mut draft, (op.score, id))? {
                Ok(draft.answer(reply))
            } else {
                Ok(Step::unchanged(reply))
            }
        }
    }
}

pub(in super::super) fn confirm(
    facts: &impl Facts,
    op: &ConfirmAdmission,
    now: TimestampMs,
) -> Result<Step<Confirmed>, Halt> {
    check_partition(op.slot.execution_id, &facts.settings().partitions)?;
    let mut draft = QuotaDraft::existing(facts, op.quota_policy_id, now)?;
    let Some(found) = slots::find(facts, &draft, op.slot)? else {
        return Ok(Step::unchanged(Confirmed::NoSlot));
    };
    if found.pending_until.is_none() {
        return Ok(Step::unchanged(Confirmed::AlreadyHeld));
    }
    slots::hold(&mut draft, op.slot, found);
    Ok(draft.answer(Confirmed::Held))
}

pub(in super::super) fn release(
    facts: &impl Facts,
    op: &ReleaseAdmission,
    now: TimestampMs,
) -> Result<Step<AdmissionReleased>, Halt> {
    check_partition(op.slot.execution_id, &facts.settings().partitions)?;
    let mut draft = QuotaDraft::existing(facts, op.quota_policy_id, now)?;
    let Some(found) = slots::find(facts, &draft, op.slot)? else {
        return Ok(Step::unchanged(AdmissionReleased::default()));
    };
    slots::give_back(facts, &mut draft, op.slot, found)?;
    // None while a lowered cap is still exceeded.
    let free = draft.body.free_slots().min(1);
    let wake = waiting::wake(facts, &mut draft, free)?;
    Ok(draft.answer(AdmissionReleased { freed: 1, wake }))
}
