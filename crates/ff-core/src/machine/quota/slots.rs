//! Slots: who holds one, and which are to be confirmed.
//!
//! Slots are numbered from 0 without holes, so that holders can be listed: the last one moves into
//! the place of one that is given back.

use serde::{Deserialize, Serialize};

use super::super::Facts;
use super::super::draft::Halt;
use super::super::rows::{Family, RowChange, RowKey};
use super::draft::QuotaDraft;
use super::window;
use crate::error::{Code, Refusal};
use crate::id::LeaseId;
use crate::limits;
use crate::operation::HeldBy;
use crate::state::SlotId;
use crate::time::TimestampMs;

/// What is kept of a slot, by execution and epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Slot {
    pub(super) number: u32,
    pub(super) since: TimestampMs,
    /// Not confirmed yet: when its execution is to be asked.
    pub(super) pending_until: Option<TimestampMs>,
    /// The claims that asked for it and may make its lease, as far as there is room for them. With
    /// all room taken none of them gives it back.
    claimants: Vec<LeaseId>,
    /// A place in the window is kept for its lease, which has not been heard of.
    pub(super) keeps_place: bool,
}

/// Claims that are remembered of a slot.
const CLAIMANTS: usize = 8;

pub(super) fn row(slot: SlotId) -> RowKey {
    let mut name = slot.execution_id.to_bytes().to_vec();
    name.extend(slot.lease_epoch.to_be_bytes());
    RowKey::named(Family::Slot, name)
}

pub(super) fn holder(number: u32) -> RowKey {
    RowKey::numbered(Family::Holder, number)
}

pub(super) fn find(
    facts: &impl Facts,
    draft: &QuotaDraft,
    slot: SlotId,
) -> Result<Option<Slot>, Halt> {
    draft.find_row(facts, &row(slot))
}

/// Takes a slot that is pending.
pub(super) fn take(draft: &mut QuotaDraft, slot: SlotId, claimant: LeaseId, keeps_place: bool) {
    let (number, since) = (draft.body.slots, draft.now);
    let pending_until = Some(await_lease(draft, slot));
    let taken = Slot { number, since, pending_until, claimants: vec![claimant], keeps_place };
    draft.row(RowChange::put(row(slot), &taken));
    draft.row(RowChange::put(holder(number), &slot));
    let policy = &mut draft.body;
    policy.slots += 1;
    policy.patrol_at.get_or_insert(since.after(limits::QUOTA_PATROL_MS));
}

/// Notes when the execution of a slot is to be asked.
fn await_lease(draft: &mut QuotaDraft, slot: SlotId) -> TimestampMs {
    let until = draft.now.after(limits::SLOT_PENDING_MS);
    draft.row(RowChange::put(pending(draft.body.pending.next), &(slot, until)));
    let policy = &mut draft.body;
    policy.pending.next += 1;
    policy.pending.until.get_or_insert(until);
    until
}

/// A claim asks for a slot that was taken: whether it is another than before. The lease is then waited
/// for anew, also where the slot was held: perhaps by a grant, which may be over.
pub(super) fn share(draft: &mut QuotaDraft, slot: SlotId, found: Slot, claimant: LeaseId) -> bool {
    if found.claimants.contains(&claimant) {
        return false;
    }
    let mut shared = Slot { pending_until: Some(await_lease(draft, slot)), ..found };
    if shared.claimants.len() < CLAIMANTS {
        shared.claimants.push(claimant);
    }
    draft.row(RowChange::put(row(slot), &shared));
    draft.body.overdue.retain(|overdue| *overdue != slot);
    true
}

/// A claim that asked for a slot makes no lease: whether nobody else may. Otherwise the others are
/// asked in time, also where the slot was held: it may have been for this claim.
pub(super) fn leave(draft: &mut QuotaDraft, slot: SlotId, found: &Slot, claimant: LeaseId) -> bool {
    if !found.claimants.contains(&claimant) {
        return false;
    }
    let mut left = found.clone();
    if left.claimants.len() < CLAIMANTS {
        left.claimants.retain(|other| *other != claimant);
    }
    if left.claimants.is_empty() {
        return true;
    }
    left.pending_until.get_or_insert_with(|| await_lease(draft, slot));
    if left != *found {
        draft.row(RowChange::put(row(slot), &left));
    }
    false
}

fn pending(number: u64) -> RowKey {
    RowKey::counted(Family::PendingSlot, number)
}

/// A slot is held from now on. With a lease, the place that was kept for it counts: whether there is one.
pub(super) fn hold(
    facts: &impl Facts,
    draft: &mut QuotaDraft,
    slot: SlotId,
    found: &Slot,
    by: HeldBy,
) -> Result<bool, Halt> {
    let enters = found.keeps_place && by == HeldBy::Lease;
    if enters {
        window::enter(facts, draft)?;
    }
    let held =
        Slot { pending_until: None, keeps_place: found.keeps_place && !enters, ..found.clone() };
    if held != *found {
        draft.row(RowChange::put(row(slot), &held));
    }
    draft.body.overdue.retain(|overdue| *overdue != slot);
    Ok(enters)
}

pub(super) fn give_back(
    facts: &impl Facts,
    draft: &mut QuotaDraft,
    slot: SlotId,
    found: &Slot,
) -> Result<(), Halt> {
    let Some(last) = draft.body.slots.checked_sub(1) else {
        return Err(corrupt("a slot is held and none is counted"));
    };
    draft.row(RowChange::remove(row(slot)));
    if found.number != last {
        let moved: Option<SlotId> = draft.find_row(facts, &holder(last))?;
        let moved = moved.ok_or_else(|| corrupt("the last slot has no holder"))?;
        let kept = find(facts, draft, moved)?.ok_or_else(|| corrupt("a holder has no slot"))?;
        let kept = Slot { number: found.number, ..kept };
        draft.row(RowChange::put(row(moved), &kept));
        draft.row(RowChange::put(holder(found.number), &moved));
    }
    draft.row(RowChange::remove(holder(last)));
    draft.body.slots = last;
    if last == 0 {
        draft.body.patrol_at = None;
    }
    draft.body.overdue.retain(|overdue| *overdue != slot);
    Ok(())
}

/// Notes some of the slots that are held, one after another, so that their executions are asked: a
/// slot whose lease was removed with its execution is found so.
pub(super) fn patrol(facts: &impl Facts, draft: &mut QuotaDraft) -> Result<(), Halt> {
    let (from, slots) = (draft.body.patrol, draft.body.slots);
    let room = limits::TIMER_ROWS.saturating_sub(draft.body.overdue.len());
    let most = u32::try_from(room).unwrap_or(u32::MAX);
    let to = slots.min(from.saturating_add(most));
    let keys: Vec<_> = (from..to).map(holder).collect();
    facts.want_rows(&(&draft.id).into(), &keys)?;
    for key in keys {
        let held: Option<SlotId> = draft.find_row(facts, &key)?;
        if let Some(slot) = held.filter(|slot| !draft.body.overdue.contains(slot)) {
            draft.body.overdue.push(slot);
        }
    }
    draft.body.patrol = if to < slots { to } else { 0 };
    draft.body.patrol_at = (slots > 0).then(|| draft.now.after(limits::QUOTA_PATROL_MS));
    Ok(())
}

impl Slot {
    /// Whether a claim that has not been heard of since may still make its lease.
    pub(super) fn is_awaited(&self, now: TimestampMs) -> bool {
        self.pending_until.is_some_and(|at| at > now)
    }
}

pub(super) fn corrupt(detail: &'static str) -> Halt {
    Refusal::new(Code::Corruption, detail).into()
}

/// Notes pending slots whose time is over, in order; the others that were taken then are forgotten
/// here. No slot ends by time alone: who asks its execution confirms it or gives it back.
pub(super) fn note_overdue(facts: &impl Facts, draft: &mut QuotaDraft) -> Result<(), Halt> {
    let (span, now) = (draft.body.pending, draft.now);
    let end = span.next.min(span.first + limits::TIMER_ROWS as u64);
    let keys: Vec<_> = (span.first..end).map(pending).collect();
    let of = (&draft.id).into();
    facts.want_rows(&of, &keys)?;
    let mut due = Vec::new();
    let mut until = (end < span.next).then_some(now);
    for key in keys {
        let entry: Option<(SlotId, TimestampMs)> = draft.find_row(facts, &key)?;
        match entry {
            Some((_, at)) if at > now => {
                until = Some(at);
                break;
            }
            entry => due.push((key, entry.map(|(slot, _)| slot))),
        }
    }
    let rows: Vec<_> = due.iter().filter_map(|(_, slot)| slot.map(row)).collect();
    facts.want_rows(&of, &rows)?;
    for (key, slot) in due {
        let found = match slot {
            Some(slot) => find(facts, draft, slot)?.map(|found| (slot, found)),
            None => None,
        };
        let is_over = |found: &Slot| found.pending_until.is_some_and(|at| at <= now);
        if let Some((slot, _)) = found.filter(|(_, found)| is_over(found))
            && !draft.body.overdue.contains(&slot)
        {
            if draft.body.overdue.len() == limits::TIMER_ROWS {
                until = Some(now.after(limits::SLOT_PENDING_MS));
                break;
            }
            draft.body.overdue.push(slot);
        }
        draft.row(RowChange::remove(key));
        draft.body.pending.first += 1;
    }
    draft.body.pending.until = until;
    Ok(())
}
