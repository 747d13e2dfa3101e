//! A quota policy: a rate window and a concurrency cap.

use serde::{Deserialize, Serialize};
use sha1::{Digest as _, Sha1};

use super::index::earliest;
use super::{Due, DueKind, List, Listing};
use crate::id::{ExecutionId, Namespace, QuotaPolicyId};
use crate::limits;
use crate::time::TimestampMs;

/// The record of a quota policy. When claims were admitted, who holds a slot and who waits for one
/// stand in rows beside it; the record alone tells whether one more is admitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaPolicy {
    pub id: QuotaPolicyId,
    pub namespace: Namespace,
    pub spec: QuotaSpec,
    /// What a create that is repeated is compared with.
    pub created_as: QuotaSpec,
    /// Counts changes of the spec: what a change on condition compares.
    pub definition: u64,
    pub created_at: TimestampMs,
    pub window: RateWindow,
    /// Slots that are taken, numbered from 0 without holes.
    pub slots: u32,
    pub pending: PendingSlots,
    /// Slots whose executions are to be asked: pending ones whose time is over, and now and then
    /// those that are held.
    pub overdue: Vec<SlotId>,
    /// When that is told again.
    pub ask_at: Option<TimestampMs>,
    /// The slot to go on with when those that are held are looked at, and when.
    pub patrol: u32,
    pub patrol_at: Option<TimestampMs>,
    /// Executions that wait in line: for a slot and a place in the window.
    pub waiting: u32,
    /// Those that go on with an attempt, and wait for a slot alone.
    pub resuming: u32,
    /// When it is looked whether somebody in line may come.
    pub wake_at: Option<TimestampMs>,
    /// Executions whose turn it is once their part of the jitter is over, and when that is.
    pub resting: Vec<(TimestampMs, ExecutionId)>,
    /// Executions whose turn it is: they are to be let go.
    pub waking: Vec<ExecutionId>,
    /// When that is told again.
    pub tell_at: Option<TimestampMs>,
}

/// 0 switches a part off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QuotaSpec {
    pub window_seconds: u64,
    pub max_requests_per_window: u32,
    pub max_concurrent: u32,
    /// Spreads those who come when the window opens over so much time.
    pub jitter_ms: u64,
}

/// When attempts began: numbered `..next`, in pages of which those from `first` on are kept. A number
/// without its entry has left the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RateWindow {
    pub first: u64,
    pub next: u64,
    /// Places that are kept for claims whose leases have not been heard of. Each counts until it has, and
    /// from then on for the length of the window: so in any such span no more attempts begin than are
    /// allowed, however long a claim takes.
    pub kept: u32,
    /// When the one began that must have left before the next may come: the last but as many as are
    /// allowed beside the places that are kept.
    pub edge: Option<TimestampMs>,
    pub newest: TimestampMs,
    /// When the first page is looked at.
    pub trim_at: Option<TimestampMs>,
}

/// A slot: the lease that it was taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SlotId {
    pub execution_id: ExecutionId,
    pub lease_epoch: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub slot: SlotId,
    pub since: TimestampMs,
    /// Not confirmed yet: when its execution is to be asked.
    pub pending_until: Option<TimestampMs>,
}

/// Slots in the order in which they were taken, `first..next`; those that were confirmed or given
/// back meanwhile are passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PendingSlots {
    pub first: u64,
    pub next: u64,
    /// When the first of them is looked at.
    pub until: Option<TimestampMs>,
}

/// Whether one more claim is admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Admit,
    RateExceeded { retry_after_ms: u64 },
    ConcurrencyExceeded { retry_after_ms: u64 },
}

impl QuotaSpec {
    pub const fn limits_rate(&self) -> bool {
        self.max_requests_per_window > 0
    }

    pub const fn limits_concurrency(&self) -> bool {
        self.max_concurrent > 0
    }

    pub const fn window_ms(&self) -> u64 {
        self.window_seconds * 1000
    }

    /// A point of `[0, jitter_ms]` chosen by the first eight hex digits of SHA-1 of the id's text.
    pub(crate) fn jitter(&self, id: ExecutionId) -> u64 {
        let digest = Sha1::digest(id.to_string().as_bytes());
        let point = digest.iter().take(4).fold(0_u64, |sum, &byte| sum << 8 | u64::from(byte));
        point % (self.jitter_ms + 1)
    }
}

impl QuotaPolicy {
    /// What a claim of this execution would be told. A claim that goes on with an attempt takes a
    /// slot and no place in the window.
    pub fn verdict(&self, id: ExecutionId, opens_attempt: bool, now: TimestampMs) -> Verdict {
        if opens_attempt && let Some(left) = self.closed_until(now) {
            let retry_after_ms = left.since(now) + self.spec.jitter(id);
            return Verdict::RateExceeded { retry_after_ms };
        }
        if self.free_slots() == 0 {
            let retry_after_ms = limits::SLOT_RETRY_MS + self.spec.jitter(id);
            return Verdict::ConcurrencyExceeded { retry_after_ms };
        }
        Verdict::Admit
    }

    /// Whether the window lets nobody in, and until when. Where all of it is kept for claims, the first
    /// of them has yet to begin.
    pub fn closed_until(&self, now: TimestampMs) -> Option<TimestampMs> {
        if self.spec.limits_rate() && self.window_size() == 0 {
            return Some(now.after(self.spec.window_ms()));
        }
        self.opens_at().filter(|at| *at > now)
    }

    /// When the window lets somebody in, if it was ever full.
    pub(crate) fn opens_at(&self) -> Option<TimestampMs> {
        self.window.edge.map(|edge| edge.after(self.spec.window_ms()))
    }

    /// How many attempts may have begun in it beside the places that are kept.
    pub(crate) const fn window_size(&self) -> u32 {
        self.spec.max_requests_per_window.saturating_sub(self.window.kept)
    }

    /// How many stand in line.
    pub const fn in_line(&self) -> u32 {
        self.waiting.saturating_add(self.resuming)
    }

    /// How many more slots may be taken.
    pub const fn free_slots(&self) -> u32 {
        if self.spec.limits_concurrency() {
            self.spec.max_concurrent.saturating_sub(self.slots)
        } else {
            u32::MAX
        }
    }

    pub(super) fn due(&self) -> Option<Due> {
        let at = |kind| move |at| Due { at, kind };
        let looked_at = [
            self.resting.iter().map(|(at, _)| *at).min(),
            self.pending.until,
            self.window.trim_at,
            self.ask_at,
            self.patrol_at,
            self.wake_at,
            self.tell_at,
        ];
        earliest(looked_at.map(|instant| instant.map(at(DueKind::QuotaReconciler))))
    }

    /// Newest first: the order of the list is that of negated time.
    pub(super) fn listing(&self) -> Listing<'_> {
        Listing {
            namespace: &self.namespace,
            list: List::QuotaPolicy,
            at: TimestampMs(-self.created_at.0),
            name: self.id.uuid(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn jitter_comes_from_the_id_and_stays_in_its_range() {
        let spec = |jitter_ms| QuotaSpec { jitter_ms, ..QuotaSpec::default() };
        let id = ExecutionId::new(3, Uuid::from_u128(7));
        // SHA-1 of {fp:3}:00000000-0000-0000-0000-000000000007 begins with 0x0b5d281f.
        assert_eq!(spec(limits::QUOTA_JITTER_MAX_MS).jitter(id), 0x0b5d281f % 86_400_001);
        for jitter_ms in [0, 1, 2, 1_000, limits::QUOTA_JITTER_MAX_MS] {
            assert!(spec(jitter_ms).jitter(id) <= jitter_ms);
        }
        let points: std::collections::BTreeSet<_> = (0..200_u128)
            .map(|n| ExecutionId::new(0, Uuid::from_u128(n)))
            .map(|id| spec(1).jitter(id))
            .collect();
        assert_eq!(points, [0, 1].into(), "both ends are reached");
    }
}
