//! The sliding window: when attempts began, in pages of rows, and places that are kept for those which are
//! about to.
//!
//! Entries are numbered, so the one that must leave before the next may come is found by its number,
//! however many there are: a check looks at the record and one page, a lease at two.

use super::super::Facts;
use super::super::draft::Halt;
use super::super::rows::{Family, RowChange, RowKey};
use super::draft::QuotaDraft;
use crate::limits;
use crate::time::TimestampMs;

const PAGE_ITEMS: u64 = 64;
/// Pages that leave are looked at so often at the most, in a crowd that fills many a second.
const TRIM_EVERY_MS: u64 = 1_000;
/// The oldest pages, in which the first entry is looked for that has not left: those before it are
/// taken away every moment.
const COUNTED_PAGES: u64 = 4;

fn row(page: u64) -> RowKey {
    RowKey::counted(Family::Admitted, page)
}

/// A page has entries in order; one that is gone has none.
fn page(facts: &impl Facts, draft: &QuotaDraft, number: u64) -> Result<Vec<TimestampMs>, Halt> {
    Ok(draft.find_row(facts, &row(number))?.unwrap_or_default())
}

/// The number of the entry that must leave before another claim may come once `more` places are kept.
fn edge_with(draft: &QuotaDraft, more: u32) -> Option<u64> {
    let size = draft.body.window_size().saturating_sub(more);
    (size > 0).then(|| draft.body.window.next.checked_sub(size.into())).flatten()
}

/// The page that keeping a place looks at.
pub(super) fn rows(draft: &QuotaDraft) -> Option<RowKey> {
    edge_with(draft, 1).map(|number| row(number / PAGE_ITEMS))
}

/// The pages that an attempt which begins looks at.
pub(super) fn rows_of_entry(draft: &QuotaDraft) -> Vec<RowKey> {
    if draft.body.window.kept == 0 {
        return Vec::new();
    }
    let mut pages = vec![draft.body.window.next / PAGE_ITEMS];
    pages.extend(edge_with(draft, 0).map(|number| number / PAGE_ITEMS));
    pages.dedup();
    pages.into_iter().map(row).collect()
}

/// Keeps a place for a claim, if the rate is limited: whether it does.
pub(super) fn keep_place(facts: &impl Facts, draft: &mut QuotaDraft) -> Result<bool, Halt> {
    if !draft.body.spec.limits_rate() {
        return Ok(false);
    }
    draft.body.window.kept += 1;
    find_edge(facts, draft)?;
    Ok(true)
}

/// A claim for which a place was kept has opened no attempt.
pub(super) fn give_back(facts: &impl Facts, draft: &mut QuotaDraft) -> Result<(), Halt> {
    draft.body.window.kept = draft.body.window.kept.saturating_sub(1);
    find_edge(facts, draft)
}

/// An attempt for which a place was kept has begun: it counts from now on.
pub(super) fn enter(facts: &impl Facts, draft: &mut QuotaDraft) -> Result<(), Halt> {
    let number = draft.body.window.next / PAGE_ITEMS;
    let mut entries = page(facts, draft, number)?;
    // Entries stay in order should the clock go back.
    let at = draft.now.max(draft.body.window.newest);
    entries.push(at);
    draft.row(RowChange::put(row(number), &entries));
    let window_ms = draft.body.spec.window_ms();
    let window = &mut draft.body.window;
    window.next += 1;
    window.kept = window.kept.saturating_sub(1);
    window.newest = at;
    window.trim_at.get_or_insert(at.after(window_ms));
    find_edge(facts, draft)
}

/// Finds the entry that must have left before the next may come.
fn find_edge(facts: &impl Facts, draft: &mut QuotaDraft) -> Result<(), Halt> {
    draft.body.window.edge = match edge_with(draft, 0) {
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
    if !draft.body.spec.limits_rate() {
        return Ok(u32::MAX);
    }
    let (window, size) = (draft.body.window, u64::from(draft.body.window_size()));
    let never_taken = size.saturating_sub(window.next);
    let oldest = window.next.saturating_sub(size);
    let end = window.next.min(oldest + u64::from(most_counted));
    let left = left_among(facts, draft, oldest, end)?;
    let free = never_taken.saturating_add(left).min(size);
    Ok(u32::try_from(free).unwrap_or(u32::MAX))
}

/// How many attempts are in the window, and places that are kept.
pub(super) fn taken_places(facts: &impl Facts, draft: &QuotaDraft) -> Result<u32, Halt> {
    let window = draft.body.window;
    let first = window.first * PAGE_ITEMS;
    let end = window.next.min(first + COUNTED_PAGES * PAGE_ITEMS);
    let left = left_among(facts, draft, first, end.max(first))?;
    let inside = window.next.saturating_sub(first + left);
    Ok(u32::try_from(inside).unwrap_or(u32::MAX).saturating_add(window.kept))
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
