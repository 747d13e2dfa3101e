//! The rules of admission: a slot is taken, confirmed, given back.

use super::super::Facts;
use super::super::draft::Halt;
use super::super::step::Step;
use super::draft::QuotaDraft;
use super::waiting::{Line, Pace};
use super::{slots, waiting, window};
use crate::check::check_partition;
use crate::limits;
use crate::operation::{
    Admission, AdmissionReleased, CheckAdmission, ConfirmAdmission, Confirmed, HeldBy,
    ReleaseAdmission, SettleWaking, Settled, SlotEnd,
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
    if let Some(found) = slots::find(facts, &draft, op.slot)? {
        let keeps_place = found.keeps_place;
        if slots::share(&mut draft, op.slot, found, op.claimant) {
            draft.remind();
        }
        return Ok(draft.answer(Admission::AlreadyAdmitted { keeps_place }));
    }
    draft.body.waking.retain(|waking| *waking != id);
    draft.body.resting.retain(|(_, resting)| *resting != id);
    let line = if op.opens_attempt { Line::Opening } else { Line::Resuming };
    let reply = match verdict {
        Verdict::Admit => {
            let keeps_place = op.opens_attempt && window::keep_place(facts, &mut draft)?;
            slots::take(&mut draft, op.slot, op.claimant, keeps_place);
            // Where there is still room the next ones come.
            waiting::let_in(facts, &mut draft, limits::QUOTA_WAKES, Pace::Spread)?;
            Admission::Admitted { keeps_place }
        }
        Verdict::RateExceeded { retry_after_ms } => {
            waiting::enter(facts, &mut draft, line, (op.score, id))?;
            Admission::RateExceeded { retry_after_ms }
        }
        Verdict::ConcurrencyExceeded { retry_after_ms } => {
            waiting::enter(facts, &mut draft, line, (op.score, id))?;
            Admission::ConcurrencyExceeded { retry_after_ms }
        }
    };
    waiting::plan(&mut draft);
    draft.remind();
    Ok(draft.answer(reply))
}

pub(in super::super) fn confirm(
    facts: &impl Facts,
    op: &ConfirmAdmission,
    now: TimestampMs,
) -> Result<Step<Confirmed>, Halt> {
    check_partition(op.slot.execution_id, &facts.settings().partitions)?;
    let mut draft = QuotaDraft::existing(facts, op.quota_policy_id, now)?;
    let mut rows = vec![slots::row(op.slot)];
    if op.by == HeldBy::Lease {
        rows.extend(window::rows_of_entry(&draft));
    }
    facts.want_rows(&(&draft.id).into(), &rows)?;
    let Some(found) = slots::find(facts, &draft, op.slot)? else {
        let Some(lease_id) = op.restore else { return Ok(Step::unchanged(Confirmed::NoSlot)) };
        slots::take(&mut draft, op.slot, lease_id, false);
        waiting::plan(&mut draft);
        draft.remind();
        return Ok(draft.answer(Confirmed::Restored));
    };
    let reply = match found.pending_until {
        Some(_) => Confirmed::Held,
        None => Confirmed::AlreadyHeld,
    };
    if slots::hold(facts, &mut draft, op.slot, &found, op.by)? {
        waiting::plan(&mut draft);
    }
    draft.remind();
    Ok(draft.answer(reply))
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
    let is_free = match op.why {
        SlotEnd::LeaseOver => true,
        SlotEnd::Unused(claimant) => slots::leave(&mut draft, op.slot, &found, claimant),
        SlotEnd::NoLease | SlotEnd::NeverLeased => {
            !found.is_awaited(now) && draft.body.overdue.contains(&op.slot)
        }
    };
    if !is_free {
        return Ok(draft.answer(AdmissionReleased::default()));
    }
    slots::give_back(facts, &mut draft, op.slot, &found)?;
    if found.keeps_place {
        match op.why {
            SlotEnd::Unused(_) | SlotEnd::NeverLeased => window::give_back(facts, &mut draft)?,
            // Nobody has told of the lease while it lived.
            SlotEnd::LeaseOver | SlotEnd::NoLease => window::enter(facts, &mut draft)?,
        }
    }
    let wake = waiting::let_in(facts, &mut draft, 1, Pace::AtOnce)?;
    draft.remind();
    Ok(draft.answer(AdmissionReleased { freed: 1, wake }))
}

pub(in super::super) fn settle_waking(
    facts: &impl Facts,
    op: &SettleWaking,
    now: TimestampMs,
) -> Result<Step<Settled>, Halt> {
    let mut draft = QuotaDraft::existing(facts, op.quota_policy_id, now)?;
    let before = draft.body.waking.len();
    draft.body.waking.retain(|waking| !op.execution_ids.contains(waking));
    let idle = before - draft.body.waking.len();
    if waiting::has_room_for_all(&draft) {
        draft.body.waking.retain(|waking| !op.let_go.contains(waking));
    }
    if draft.body.waking.len() == before {
        return Ok(Step::unchanged(Settled::AlreadySatisfied));
    }
    waiting::let_in(facts, &mut draft, limits::QUOTA_WAKES, Pace::Spread)?;
    waiting::let_in_others(facts, &mut draft, u32::try_from(idle).unwrap_or(u32::MAX))?;
    draft.remind();
    Ok(draft.answer(Settled::Done))
}
