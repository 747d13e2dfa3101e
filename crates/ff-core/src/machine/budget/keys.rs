//! Keys of reports that were counted, remembered for 24 hours.
//!
//! A row for each key tells when; pages, one or more for an hour, name the keys, so that a timer can
//! take them away.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::super::Facts;
use super::super::draft::Halt;
use super::super::pages::{self, Page};
use super::super::rows::{Family, RowChange, RowKey};
use super::draft::BudgetDraft;
use crate::id::IdempotencyKey;
use crate::limits;
use crate::time::TimestampMs;

const HOUR_MS: u64 = 3_600_000;

/// A key in 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Digest([u8; 16]);

impl Digest {
    fn of(key: &IdempotencyKey) -> Self {
        let mut digest = [0; 16];
        digest.copy_from_slice(&Sha256::digest(key.as_bytes())[..16]);
        Self(digest)
    }

    fn row(self) -> RowKey {
        RowKey::named(Family::UsageKey, self.0)
    }
}

/// The rows that a report with this key looks at.
pub(super) fn rows(draft: &BudgetDraft, key: &IdempotencyKey) -> impl Iterator<Item = RowKey> {
    let page = pages::open(Family::UsageKeyPage, draft.body.keys.next);
    std::iter::once(Digest::of(key).row()).chain(page)
}

/// Whether a report with this key was counted in the last 24 hours.
pub(super) fn is_known(
    facts: &impl Facts,
    draft: &BudgetDraft,
    key: &IdempotencyKey,
) -> Result<bool, Halt> {
    let at: Option<TimestampMs> = draft.find_row(facts, &Digest::of(key).row())?;
    Ok(at.is_some_and(|at| !is_over(at, draft.now)))
}

fn is_over(at: TimestampMs, now: TimestampMs) -> bool {
    at.after(limits::USAGE_DEDUP_MS) <= now
}

pub(super) fn remember(
    facts: &impl Facts,
    draft: &mut BudgetDraft,
    key: &IdempotencyKey,
) -> Result<(), Halt> {
    let (digest, now) = (Digest::of(key), draft.now);
    let hour = now.since(TimestampMs(0)) / HOUR_MS;
    let list = (Family::UsageKeyPage, draft.body.keys.next);
    let number = pages::append(facts, draft, list, (hour, digest))?;
    let keys = &mut draft.body.keys;
    keys.next = number + 1;
    keys.until = keys.until.or(Some(end_of(hour)));
    draft.row(RowChange::put(digest.row(), &now));
    Ok(())
}

/// When every key of an hour is over.
fn end_of(hour: u64) -> TimestampMs {
    TimestampMs(0).after((hour + 1) * HOUR_MS).after(limits::USAGE_DEDUP_MS)
}

/// Takes the oldest page away, with its keys. One that was used again since is named by a later
/// page.
pub(super) fn sweep(facts: &impl Facts, draft: &mut BudgetDraft) -> Result<(), Halt> {
    let (keys, now) = (draft.body.keys, draft.now);
    let page: Option<Page<Digest>> = pages::find(facts, draft, Family::UsageKeyPage, keys.first)?;
    let rows: Vec<_> = page.iter().flat_map(|page| &page.items).map(|key| key.row()).collect();
    facts.want_rows(&(&draft.id).into(), &rows)?;
    for row in rows {
        let at: Option<TimestampMs> = draft.find_row(facts, &row)?;
        if at.is_none_or(|at| is_over(at, now)) {
            draft.row(RowChange::remove(row));
        }
    }
    pages::remove(draft, Family::UsageKeyPage, keys.first);
    let first = keys.first + 1;
    let next: Option<Page<Digest>> = pages::find(facts, draft, Family::UsageKeyPage, first)?;
    let keys = &mut draft.body.keys;
    keys.first = first;
    keys.until = next.map(|page| end_of(page.mark));
    Ok(())
}
