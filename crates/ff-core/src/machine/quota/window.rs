//! The sliding window: when claims were admitted, in pages of rows.
//!
//! Entries are numbered, so the one that must leave before the next may come is found by its number,
//! however many there are: a check looks at the record alone, an admission at two pages.

use super::super::Facts;
use super::super::draft::Halt;
use super::super::rows::{Family, RowChange, RowKey};
use super::draft::QuotaDraft;
use crate::limits;
use crate::state::RateWindow;
use crate::time::TimestampMs;

const PAGE_ITEMS: u64 = 64;
/// Pages that leave are looked at so often at the most, in a crowd that fills many a second.
const TRIM_EVERY_MS: u64 = 1_000;
/// The newest pages, in which a place that is given back is looked for.
const GIVEN_BACK_PAGES: u64 = 4;

fn row(page: u64) -> RowKey {
    RowKey::counted(Family::Admitted, page)
}

/// A page has entries in order; one that is gone has none.
fn page(facts: &impl Facts, draft: &QuotaDraft, number: u64) -> Result<Vec<TimestampMs>, Halt> {
    Ok(draft.find_row(facts, &row(number))?.unwrap_or_default())
}

/// The pages that an admission looks at.
pub(super) fn rows(draft: &QuotaDraft) -> Vec<RowKey> {
    if !draft.body.spec.limits_rate() {
        return Vec::new();
    }
    let next = draft.body.window.next;
    let edge = (next + 1).checked_sub(draft.body.spec.max_requests_per_window.into());
    let mut pages: Vec<_> = edge.into_iter().chain([next]).map(|n| n / PAGE_ITEMS).collect();
    pages.dedup();
    pages.into_iter().map(row).collect()
}

/// Notes an admission: when it counts.
pub(super) fn admit(
    facts: &impl Facts,
    draft: &mut QuotaDraft,
) -> Result<Option<TimestampMs>, Halt> {
    if !draft.body.spec.limits_rate() {
        return Ok(None);
    }
    let number = draft.body.window.next / PAGE_ITEMS;
    let mut entries = page(facts, draft, number)?;
    // Entries stay in order should the clock go back.
    let at = draft.now.max(draft.body.window.newest);
    entries.push(at);
    draft.row(RowChange::put(row(number), &entries));
    let window_ms = draft.body.spec.window_ms();
    let window = &mut draft.body.window;
    window.next += 1;
    window.newest = at;
    window.trim_at.get_or_insert(at.after(window_ms));
    find_edge(facts, draft)?;
    Ok(Some(at))
}

/// An admission of an instant opened no attempt: its place is free again, and those behind it move
/// up. One that stands behind too many others is left to time.
pub(super) fn give_back(
    facts: &impl Facts,
    draft: &mut QuotaDraft,
    at: TimestampMs,
) -> Result<(), Halt> {
    let RateWindow { first, next, .. } = draft.body.window;
    let last = next.div_ceil(PAGE_ITEMS);
    let from = first.max(last.saturating_sub(GIVEN_BACK_PAGES));
    facts.want_rows(&(&draft.id).into(), &(from..last).map(row).collect::<Vec<_>>())?;
    let mut entries = Vec::new();
    for number in from..last {
        entries.extend(page(facts, draft, number)?);
    }
    let Some(place) = entries.iter().rposition(|entry| *entry == at) else { return Ok(()) };
    entries.remove(place);
    for (number, page) in (from..last).zip(entries.chunks(PAGE_ITEMS as usize)) {
        draft.row(RowChange::put(row(number), &page));
    }
    draft.body.window.next -= 1;
    if (entries.len() as u64).is_multiple_of(PAGE_ITEMS) {
        draft.row(RowChange::remove(row(last - 1)));
    }
    find_edge(facts, draft)
}

/// Finds the entry that must have left before the next may come.
fn find_edge(facts: &impl Facts, draft: &mut QuotaDraft) -> Result<(), Halt> {
    let most = u64::from(draft.body.spec.max_requests_per_window);
    let number = draft.body.window.next.checked_sub(most);
    draft.body.window.edge = match number.filter(|_| most > 0) {
        Some(number) => {
            let entries = page(facts, draft, number / PAGE_ITEMS)?;
            entries.get((number % PAGE_ITEMS) as usize).copied()
        }
        None => None,
    };
    Ok(())
}

/// How many places of the window are free, counted as far as `most_counted`.
pub(super) fn free_places(
    facts: &impl Facts,
    draft: &QuotaDraft,
    most_counted: u32,
) -> Result<u32, Halt> {
    let (spec, window) = (draft.body.spec, draft.body.window);
    if !spec.limits_rate() {
        return Ok(u32::MAX);
    }
    let most = u64::from(spec.max_requests_per_window);
    let never_taken = most.saturating_sub(window.next);
    let oldest = window.next.saturating_sub(most);
    let end = window.next.min(oldest + u64::from(most_counted));
    let left = left_among(facts, draft, oldest, end)?;
    let free = never_taken.saturating_add(left).min(most);
    Ok(u32::try_from(free).unwrap_or(u32::MAX))
}

/// How many of the entries with these numbers have left the window, from the first on.
fn left_among(facts: &impl Facts, draft: &QuotaDraft, first: u64, end: u64) -> Result<u64, Halt> {
    let window_ms = draft.body.spec.window_ms();
    let mut number = first;
    while number < end {
        let page_end = (number / PAGE_ITEMS + 1) * PAGE_ITEMS;
        let entries = page(facts, draft, number / PAGE_ITEMS)?;
        let behind = entries.iter().skip((number % PAGE_ITEMS) as usize);
        let stays = |at: &TimestampMs| at.after(window_ms) > draft.now;
        // One that is not there has left, as a page that is gone has with all its entries.
        match behind.enumerate().find(|(_, at)| stays(at)) {
            Some((passed, _)) => return Ok((number + passed as u64).min(end) - first),
            None => number = page_end,
        }
    }
    Ok(end - first)
}

/// The spec is another: what is remembered counts, what a shorter window or a smaller limit has let
/// go does not come back.
pub(super) fn refit(facts: &impl Facts, draft: &mut QuotaDraft) -> Result<(), Halt> {
    if let Some(at) = &mut draft.body.window.trim_at {
        *at = draft.now;
    }
    find_edge(facts, draft)
}

/// Takes away pages that have left the window, the oldest first.
pub(super) fn trim(facts: &impl Facts, draft: &mut QuotaDraft) -> Result<(), Halt> {
    let (window, now) = (draft.body.window, draft.now);
    let pages = window.next.div_ceil(PAGE_ITEMS);
    let end = pages.min(window.first + limits::TIMER_ROWS as u64);
    let rows: Vec<_> = (window.first..end).map(row).collect();
    facts.want_rows(&(&draft.id).into(), &rows)?;
    let window_ms = draft.body.spec.window_ms();
    let mut trim_at = (end < pages).then_some(now);
    for (number, key) in (window.first..end).zip(rows) {
        let newest = page(facts, draft, number)?.last().copied();
        if let Some(leaves) = newest.map(|at| at.after(window_ms)).filter(|at| *at > now) {
            trim_at = Some(leaves.max(now.after(TRIM_EVERY_MS)));
            break;
        }
        draft.row(RowChange::remove(key));
        draft.body.window.first = number + 1;
    }
    draft.body.window.trim_at = trim_at;
    if draft.body.window.first == pages {
        // The open page is gone: the next entry begins another. Numbers between were never given
        // and count as left.
        draft.body.window.next = pages * PAGE_ITEMS;
        draft.body.window.edge = None;
    }
    Ok(())
}
