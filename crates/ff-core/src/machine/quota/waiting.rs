//! Executions that wait for a slot, the best first: heaps in rows.
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
use crate::state::QuotaPolicy;

const CHILDREN: u32 = 8;

/// Rows of a line that are asked for together where several come: the best 73 stand there, and those who
/// move up in their place.
const ROWS_AHEAD: u32 = 10;

/// Two lines, since a window that is closed holds up nobody who needs no place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// Those who open an attempt: they need a slot and a place in the window.
    Opening,
    /// Those who go on with an attempt: they need a slot.
    Resuming,
}

/// How those come whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// Something was given back, or the limits are others.
    AtOnce,
    /// The window has opened: each after its own part of the jitter.
    Spread,
}

/// What nobody has, counted as far as one change wakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Room {
    slots: u32,
    /// Places in the window.
    places: u32,
}

/// Score, lowest first, then id.
pub(super) type Waiter = (i64, ExecutionId);

impl Line {
    const ALL: [Self; 2] = [Self::Opening, Self::Resuming];

    /// The root stands alone in row 0, the children of node `n` in row `n + 1`.
    fn row(self, index: u32) -> RowKey {
        self.numbered(row_number(index))
    }

    fn numbered(self, row: u32) -> RowKey {
        let family = match self {
            Self::Opening => Family::Waiting,
            Self::Resuming => Family::Resuming,
        };
        RowKey::numbered(family, row)
    }

    /// The first rows, and the one of the last in line.
    fn rows_ahead(self, policy: &QuotaPolicy) -> impl Iterator<Item = RowKey> {
        let last = self.length(policy).checked_sub(1).map(row_number);
        let first = last.map_or(0, |last| last.min(ROWS_AHEAD));
        (0..first).chain(last).map(move |row| self.numbered(row))
    }

    fn mark(self, id: ExecutionId) -> RowKey {
        let mut name = id.to_bytes().to_vec();
        name.extend((self == Self::Resuming).then_some(1));
        RowKey::named(Family::Waiter, name)
    }

    fn length(self, policy: &QuotaPolicy) -> u32 {
        match self {
            Self::Opening => policy.waiting,
            Self::Resuming => policy.resuming,
        }
    }

    fn length_mut(self, policy: &mut QuotaPolicy) -> &mut u32 {
        match self {
            Self::Opening => &mut policy.waiting,
            Self::Resuming => &mut policy.resuming,
        }
    }
}

fn parent(index: u32) -> Option<u32> {
    index.checked_sub(1).map(|index| index / CHILDREN)
}

fn row_number(index: u32) -> u32 {
    parent(index).map_or(0, |parent| parent + 1)
}

fn place(index: u32) -> usize {
    index.checked_sub(1).map_or(0, |index| (index % CHILDREN) as usize)
}

/// Puts an execution in line, unless it stands there or the line is full.
pub(super) fn enter(
    facts: &impl Facts,
    draft: &mut QuotaDraft,
    line: Line,
    waiter: Waiter,
) -> Result<(), Halt> {
    let mark = line.mark(waiter.1);
    let known: Option<()> = draft.find_row(facts, &mark)?;
    if known.is_some() || line.length(&draft.body) >= limits::QUOTA_WAITING {
        return Ok(());
    }
    draft.row(RowChange::put(mark, &()));
    push(facts, draft, line, waiter)
}

/// Lets up to `most` come, the best first, as far as there are slots and places in the window that
/// nobody is on the way to.
pub(super) fn let_in(
    facts: &impl Facts,
    draft: &mut QuotaDraft,
    most: u32,
    pace: Pace,
) -> Result<Vec<ExecutionId>, Halt> {
    if draft.body.in_line() == 0 {
        plan(draft);
        return Ok(Vec::new());
    }
    let Room { slots, places } = free(facts, draft)?;
    let coming = on_the_way(draft);
    let room = Room {
        slots: most.min(slots.saturating_sub(coming)),
        places: places.saturating_sub(coming),
    };
    wake(facts, draft, room, pace)
}

/// Some who were let in had no use for it: others come in their place, twice as many, while anything
/// is free. So a crowd that cannot come is passed in a few steps; who comes in vain goes back in line.
pub(super) fn let_in_others(
    facts: &impl Facts,
    draft: &mut QuotaDraft,
    idle: u32,
) -> Result<Vec<ExecutionId>, Halt> {
    let count = idle.saturating_mul(2);
    let Room { slots, places } = free(facts, draft)?;
    let room = Room {
        slots: if slots == 0 { 0 } else { count },
        places: if places == 0 { 0 } else { count },
    };
    wake(facts, draft, room, Pace::AtOnce)
}

/// Whether everybody in line can come: then nobody's coming has to be waited for.
pub(super) fn has_room_for_all(draft: &QuotaDraft) -> bool {
    let policy = &draft.body;
    let all = policy.in_line().saturating_add(on_the_way(draft));
    !policy.spec.limits_rate() && policy.free_slots() >= all
}

fn free(facts: &impl Facts, draft: &QuotaDraft) -> Result<Room, Halt> {
    let most = limits::QUOTA_WAKES + on_the_way(draft);
    let slots = draft.body.free_slots();
    Ok(Room { slots, places: window::free_places(facts, draft, most)? })
}

fn on_the_way(draft: &QuotaDraft) -> u32 {
    u32::try_from(draft.body.waking.len() + draft.body.resting.len()).unwrap_or(u32::MAX)
}

/// The best of the lines are on the way, as many as there is room for: those who come at once.
fn wake(
    facts: &impl Facts,
    draft: &mut QuotaDraft,
    mut room: Room,
    pace: Pace,
) -> Result<Vec<ExecutionId>, Halt> {
    let policy = &draft.body;
    let spec = policy.spec;
    let spreads = pace == Pace::Spread && spec.limits_rate() && spec.jitter_ms > 0;
    let (bound, there) = match spreads {
        true => (limits::QUOTA_RESTING, policy.resting.len()),
        false => (limits::QUOTA_WAKES, policy.waking.len()),
    };
    let left = bound.saturating_sub(u32::try_from(there).unwrap_or(bound));
    room.slots = room.slots.min(limits::QUOTA_WAKES).min(left);
    if room.slots > 1 {
        let ahead: Vec<_> = Line::ALL.iter().flat_map(|line| line.rows_ahead(policy)).collect();
        facts.want_rows(&(&draft.id).into(), &ahead)?;
    }
    let mut woken = Vec::new();
    while room.slots > 0 {
        let Some(line) = next_line(facts, draft, room.places > 0)? else { break };
        let (_, id) = pop(facts, draft, line)?;
        draft.row(RowChange::remove(line.mark(id)));
        room.slots -= 1;
        room.places -= u32::from(line == Line::Opening);
        match if spreads && line == Line::Opening { spec.jitter(id) } else { 0 } {
            0 => woken.push(id),
            rest_ms => draft.body.resting.push((draft.now.after(rest_ms), id)),
        }
    }
    draft.body.waking.extend(&woken);
    plan(draft);
    Ok(woken)
}

/// The line whose first is the best; of those who open attempts only if the window is open.
fn next_line(facts: &impl Facts, draft: &QuotaDraft, is_open: bool) -> Result<Option<Line>, Halt> {
    let mut best: Option<(Waiter, Line)> = None;
    for line in Line::ALL {
        if line.length(&draft.body) == 0 || (line == Line::Opening && !is_open) {
            continue;
        }
        let first = get(facts, draft, line, 0)?;
        if best.is_none_or(|(waiter, _)| first < waiter) {
            best = Some((first, line));
        }
    }
    Ok(best.map(|(_, line)| line))
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
    let (soon, has_slots) = (now.after(limits::ERRAND_RETRY_MS), policy.free_slots() > 0);
    let opening = (policy.waiting > 0).then(|| match policy.closed_until(now) {
        Some(opens_at) => Some(opens_at),
        None => has_slots.then_some(soon),
    });
    let resuming = (policy.resuming > 0 && has_slots).then_some(soon);
    policy.wake_at = opening.flatten().into_iter().chain(resuming).min();
}

fn siblings(
    facts: &impl Facts,
    draft: &QuotaDraft,
    line: Line,
    index: u32,
) -> Result<Vec<Waiter>, Halt> {
    Ok(draft.find_row(facts, &line.row(index))?.unwrap_or_default())
}

fn get(facts: &impl Facts, draft: &QuotaDraft, line: Line, index: u32) -> Result<Waiter, Halt> {
    let found = siblings(facts, draft, line, index)?.get(place(index)).copied();
    found.ok_or_else(|| corrupt("the line of those who wait has a hole"))
}

fn set(
    facts: &impl Facts,
    draft: &mut QuotaDraft,
    line: Line,
    index: u32,
    waiter: Waiter,
) -> Result<(), Halt> {
    let mut row_of = siblings(facts, draft, line, index)?;
    match row_of.get_mut(place(index)) {
        Some(found) => *found = waiter,
        None => row_of.push(waiter),
    }
    draft.row(RowChange::put(line.row(index), &row_of));
    Ok(())
}

fn push(
    facts: &impl Facts,
    draft: &mut QuotaDraft,
    line: Line,
    waiter: Waiter,
) -> Result<(), Halt> {
    let mut index = line.length(&draft.body);
    let path: Vec<_> = std::iter::successors(Some(index), |index| parent(*index)).collect();
    let rows: Vec<_> = path.iter().map(|index| line.row(*index)).collect();
    facts.want_rows(&(&draft.id).into(), &rows)?;
    *line.length_mut(&mut draft.body) += 1;
    while let Some(above) = parent(index) {
        let found = get(facts, draft, line, above)?;
        if found < waiter {
            break;
        }
        set(facts, draft, line, index, found)?;
        index = above;
    }
    set(facts, draft, line, index, waiter)
}

fn pop(facts: &impl Facts, draft: &mut QuotaDraft, line: Line) -> Result<Waiter, Halt> {
    let best = get(facts, draft, line, 0)?;
    let last = line.length(&draft.body) - 1;
    let moved = get(facts, draft, line, last)?;
    let mut left = siblings(facts, draft, line, last)?;
    left.pop();
    draft.row(if left.is_empty() {
        RowChange::remove(line.row(last))
    } else {
        RowChange::put(line.row(last), &left)
    });
    *line.length_mut(&mut draft.body) = last;
    if last == 0 {
        return Ok(best);
    }
    let mut index = 0;
    loop {
        let first = index * CHILDREN + 1;
        if first >= last {
            break;
        }
        let children = siblings(facts, draft, line, first)?;
        let Some((child, at)) = children.into_iter().zip(first..).min() else { break };
        if moved < child {
            break;
        }
        set(facts, draft, line, index, child)?;
        index = at;
    }
    set(facts, draft, line, index, moved)?;
    Ok(best)
}
