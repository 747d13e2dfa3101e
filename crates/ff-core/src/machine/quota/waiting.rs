//! Executions that wait for a slot, the best first: a heap in rows.
//!
//! Every node has eight children, and those stand in one row, so that a million waiters are seven
//! rows deep. Who stopped waiting meanwhile stays until its turn and is woken for nothing: then others
//! are woken in its place.

use super::super::Facts;
use super::super::draft::Halt;
use super::super::rows::{Family, RowChange, RowKey};
use super::draft::QuotaDraft;
use super::slots::corrupt;
use super::window;
use crate::id::ExecutionId;
use crate::limits;

const CHILDREN: u32 = 8;

/// How those come whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// Something was given back, or the limits are others.
    AtOnce,
    /// The window has opened: each after its own part of the jitter.
    Spread,
}

/// Score, lowest first, then id.
pub(super) type Waiter = (i64, ExecutionId);

/// The root stands alone in row 0, the children of node `n` in row `n + 1`.
fn row(index: u32) -> RowKey {
    RowKey::numbered(Family::Waiting, parent(index).map_or(0, |parent| parent + 1))
}

fn parent(index: u32) -> Option<u32> {
    index.checked_sub(1).map(|index| index / CHILDREN)
}

fn place(index: u32) -> usize {
    index.checked_sub(1).map_or(0, |index| (index % CHILDREN) as usize)
}

fn mark(id: ExecutionId) -> RowKey {
    RowKey::named(Family::Waiter, id.to_bytes())
}

/// Puts an execution in line, unless it stands there or the line is full.
pub(super) fn enter(
    facts: &impl Facts,
    draft: &mut QuotaDraft,
    waiter: Waiter,
) -> Result<(), Halt> {
    let known: Option<()> = draft.find_row(facts, &mark(waiter.1))?;
    if known.is_some() || draft.body.waiting >= limits::QUOTA_WAITING {
        return Ok(());
    }
    draft.row(RowChange::put(mark(waiter.1), &()));
    push(facts, draft, waiter)
}

/// Lets up to `most` come, the best first, as far as there are slots and places in the window that
/// nobody is on the way to.
pub(super) fn let_in(
    facts: &impl Facts,
    draft: &mut QuotaDraft,
    most: u32,
    pace: Pace,
) -> Result<Vec<ExecutionId>, Halt> {
    if draft.body.waiting == 0 {
        plan(draft);
        return Ok(Vec::new());
    }
    let room = free(facts, draft)?.saturating_sub(on_the_way(draft));
    wake(facts, draft, most.min(room), pace)
}

/// Some who were let in had no use for it: others come in their place, twice as many, while anything
/// is free. So a crowd that cannot come is passed in a few steps; who comes in vain goes back in line.
pub(super) fn let_in_others(
    facts: &impl Facts,
    draft: &mut QuotaDraft,
    idle: u32,
) -> Result<Vec<ExecutionId>, Halt> {
    let count = if free(facts, draft)? == 0 { 0 } else { idle.saturating_mul(2) };
    wake(facts, draft, count, Pace::AtOnce)
}

/// Whether everybody in line can come: then nobody's coming has to be waited for.
pub(super) fn has_room_for_all(draft: &QuotaDraft) -> bool {
    let policy = &draft.body;
    let all = policy.waiting.saturating_add(on_the_way(draft));
    !policy.spec.limits_rate() && policy.free_slots() >= all
}

/// Slots and places in the window that nobody has, counted as far as one change wakes.
fn free(facts: &impl Facts, draft: &QuotaDraft) -> Result<u32, Halt> {
    let most = limits::QUOTA_WAKES + on_the_way(draft);
    Ok(draft.body.free_slots().min(window::free_places(facts, draft, most)?))
}

fn on_the_way(draft: &QuotaDraft) -> u32 {
    u32::try_from(draft.body.waking.len() + draft.body.resting.len()).unwrap_or(u32::MAX)
}

/// The best so many of the line are on the way: those who come at once.
fn wake(
    facts: &impl Facts,
    draft: &mut QuotaDraft,
    most: u32,
    pace: Pace,
) -> Result<Vec<ExecutionId>, Halt> {
    let policy = &draft.body;
    let (spec, waiting) = (policy.spec, policy.waiting);
    let spreads = pace == Pace::Spread && spec.limits_rate() && spec.jitter_ms > 0;
    let (bound, there) = match spreads {
        true => (limits::QUOTA_RESTING, policy.resting.len()),
        false => (limits::QUOTA_WAKES, policy.waking.len()),
    };
    let places = bound.saturating_sub(u32::try_from(there).unwrap_or(bound));
    let count = most.min(waiting).min(limits::QUOTA_WAKES).min(places);
    let mut woken = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let (_, id) = pop(facts, draft)?;
        draft.row(RowChange::remove(mark(id)));
        match if spreads { spec.jitter(id) } else { 0 } {
            0 => woken.push(id),
            rest_ms => draft.body.resting.push((draft.now.after(rest_ms), id)),
        }
    }
    draft.body.waking.extend(&woken);
    plan(draft);
    Ok(woken)
}

/// Those whose rest is over come.
pub(super) fn rouse(draft: &mut QuotaDraft) {
    let (now, policy) = (draft.now, &mut draft.body);
    let over = policy.resting.extract_if(.., |(at, _)| *at <= now);
    policy.waking.extend(over.map(|(_, id)| id));
}

/// Plans when it is looked whether somebody in line may come: when the window opens, or, should
/// those who were let in not take what was free, a moment from now. With no slot free, the next one
/// that is given back lets somebody in.
pub(super) fn plan(draft: &mut QuotaDraft) {
    let (now, policy) = (draft.now, &mut draft.body);
    policy.wake_at = if policy.waiting == 0 {
        None
    } else if let Some(opens_at) = policy.closed_until(now) {
        Some(opens_at)
    } else if policy.free_slots() == 0 {
        None
    } else {
        Some(now.after(limits::ERRAND_RETRY_MS))
    };
}

fn siblings(facts: &impl Facts, draft: &QuotaDraft, index: u32) -> Result<Vec<Waiter>, Halt> {
    Ok(draft.find_row(facts, &row(index))?.unwrap_or_default())
}

fn get(facts: &impl Facts, draft: &QuotaDraft, index: u32) -> Result<Waiter, Halt> {
    let found = siblings(facts, draft, index)?.get(place(index)).copied();
    found.ok_or_else(|| corrupt("the line of those who wait has a hole"))
}

fn set(facts: &impl Facts, draft: &mut QuotaDraft, index: u32, waiter: Waiter) -> Result<(), Halt> {
    let mut row_of = siblings(facts, draft, index)?;
    match row_of.get_mut(place(index)) {
        Some(found) => *found = waiter,
        None => row_of.push(waiter),
    }
    draft.row(RowChange::put(row(index), &row_of));
    Ok(())
}

fn push(facts: &impl Facts, draft: &mut QuotaDraft, waiter: Waiter) -> Result<(), Halt> {
    let mut index = draft.body.waiting;
    let path: Vec<_> = std::iter::successors(Some(index), |index| parent(*index)).collect();
    let rows: Vec<_> = path.iter().map(|index| row(*index)).collect();
    facts.want_rows(&(&draft.id).into(), &rows)?;
    draft.body.waiting += 1;
    while let Some(above) = parent(index) {
        let found = get(facts, draft, above)?;
        if found < waiter {
            break;
        }
        set(facts, draft, index, found)?;
        index = above;
    }
    set(facts, draft, index, waiter)
}

fn pop(facts: &impl Facts, draft: &mut QuotaDraft) -> Result<Waiter, Halt> {
    let best = get(facts, draft, 0)?;
    let last = draft.body.waiting - 1;
    let moved = get(facts, draft, last)?;
    let mut left = siblings(facts, draft, last)?;
    left.pop();
    draft.row(if left.is_empty() {
        RowChange::remove(row(last))
    } else {
        RowChange::put(row(last), &left)
    });
    draft.body.waiting = last;
    if last == 0 {
        return Ok(best);
    }
    let mut index = 0;
    loop {
        let first = index * CHILDREN + 1;
        let children = siblings(facts, draft, first)?;
        let Some((child, at)) = children.into_iter().zip(first..).min() else { break };
        if moved < child {
            break;
        }
        set(facts, draft, index, child)?;
        index = at;
    }
    set(facts, draft, index, moved)?;
    Ok(best)
}
