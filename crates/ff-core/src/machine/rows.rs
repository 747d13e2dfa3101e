//! Rows beside an execution or a document: what most operations do not need, kept apart from the
//! record.
//!
//! A row has a family, a name and opaque bytes. Rows change only together with the record they stand
//! beside, and go with it.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Facts;
use super::draft::Halt;
use crate::error::{Code, Refusal};
use crate::id::Subject;

/// Rows of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Accepted signals, by number.
    Signal,
    /// Bodies of signals that are too large for their row.
    SignalBody,
    /// Numbers of signals, by idempotency key.
    SignalKey,
    /// Closed waitpoints, by id.
    Waitpoint,
    /// What suspends answered, by number.
    Suspend,
    /// What the last suspend left for whoever goes on.
    Metadata,
    /// Summaries, by number of their attempt.
    Summary,
    /// Of a flow: its members, its edges and its failures, in pages.
    Member,
    Topology,
    Failure,
    /// Of a flow: numbers of members by name, and of edges by id.
    MemberName,
    EdgeId,
    /// Of a flow: what is left to be done, by number.
    Work,
    /// Of a flow: members of a submitted graph that are not there yet, in chunks.
    Unfold,
    /// Of a member: edges from it and to it, and those it waits for, in pages.
    Out,
    In,
    Children,
    /// When a usage report was counted, by its key.
    UsageKey,
    /// Keys of usage reports by hour, in pages.
    UsageKeyPage,
    /// What an execution used of a budget, by period and execution.
    Ledger,
    /// Executions with a ledger by period, in pages.
    LedgerPage,
    /// When claims were admitted, in pages.
    Admitted,
    /// Numbers of slots, by execution and epoch.
    Slot,
    /// Who holds a slot, by its number.
    Holder,
    /// Slots that are to be confirmed, in order.
    PendingSlot,
    /// Executions that wait for a slot and a place in the window, the best at the root of a heap.
    Waiting,
    /// The same of those that wait for a slot alone.
    Resuming,
    /// Executions that stand among them.
    Waiter,
}

impl Family {
    pub const ALL: [Self; 28] = [
        Self::Signal,
        Self::SignalBody,
        Self::SignalKey,
        Self::Waitpoint,
        Self::Suspend,
        Self::Metadata,
        Self::Summary,
        Self::Member,
        Self::Topology,
        Self::Failure,
        Self::MemberName,
        Self::EdgeId,
        Self::Work,
        Self::Unfold,
        Self::Out,
        Self::In,
        Self::Children,
        Self::UsageKey,
        Self::UsageKeyPage,
        Self::Ledger,
        Self::LedgerPage,
        Self::Admitted,
        Self::Slot,
        Self::Holder,
        Self::PendingSlot,
        Self::Waiting,
        Self::Resuming,
        Self::Waiter,
    ];

    /// Whether rows of this kind are mostly asked for to learn that there is none yet. A store may
    /// then try without having looked, if it finds out in time that there is one.
    pub const fn is_mostly_new(self) -> bool {
        matches!(self, Self::UsageKey | Self::Ledger | Self::Slot)
    }

    /// The number under which stores keep it; never given to another family.
    pub const fn code(self) -> u8 {
        match self {
            Self::Signal => 1,
            Self::SignalBody => 2,
            Self::SignalKey => 3,
            Self::Waitpoint => 4,
            Self::Suspend => 5,
            Self::Metadata => 6,
            Self::Summary => 7,
            Self::Member => 8,
            Self::Topology => 9,
            Self::Failure => 10,
            Self::MemberName => 11,
            Self::EdgeId => 12,
            Self::Work => 13,
            Self::Unfold => 14,
            Self::Out => 15,
            Self::In => 16,
            Self::Children => 17,
            Self::UsageKey => 32,
            Self::UsageKeyPage => 33,
            Self::Ledger => 34,
            Self::LedgerPage => 35,
            Self::Admitted => 36,
            Self::Slot => 37,
            Self::Holder => 38,
            Self::PendingSlot => 39,
            Self::Waiting => 40,
            Self::Waiter => 41,
            Self::Resuming => 42,
        }
    }
}

/// Names a row of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowKey {
    pub family: Family,
    pub name: Bytes,
}

impl RowKey {
    pub fn numbered(family: Family, number: u32) -> Self {
        Self { family, name: Bytes::copy_from_slice(&number.to_be_bytes()) }
    }

    /// Numbers that a busy document may count beyond 32 bits.
    pub(super) fn counted(family: Family, number: u64) -> Self {
        Self { family, name: Bytes::copy_from_slice(&number.to_be_bytes()) }
    }

    pub fn named(family: Family, name: impl AsRef<[u8]>) -> Self {
        Self { family, name: Bytes::copy_from_slice(name.as_ref()) }
    }
}

/// A row to write, or, without bytes, to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowChange {
    pub key: RowKey,
    pub bytes: Option<Bytes>,
}

impl RowChange {
    pub(super) fn put<T: Serialize>(key: RowKey, value: &T) -> Self {
        // What is kept in rows always encodes.
        Self { key, bytes: Some(postcard::to_stdvec(value).unwrap_or_default().into()) }
    }

    pub(super) fn remove(key: RowKey) -> Self {
        Self { key, bytes: None }
    }
}

/// Reads a row back.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    postcard::from_bytes(bytes)
        .map_err(|error| Refusal::new(Code::Corruption, format!("a row does not decode: {error}")))
}

/// A row as the changes of a step leave it.
pub(super) fn find_changed<T: DeserializeOwned>(
    facts: &impl Facts,
    of: &Subject,
    changes: &[RowChange],
    key: &RowKey,
) -> Result<Option<T>, Halt> {
    match changes.iter().rev().find(|change| change.key == *key) {
        Some(RowChange { bytes: Some(bytes), .. }) => Ok(Some(decode(bytes)?)),
        Some(RowChange { bytes: None, .. }) => Ok(None),
        None => find(facts, of.clone(), key),
    }
}

/// A row that may be absent.
pub(super) fn find<T: DeserializeOwned>(
    facts: &impl Facts,
    of: impl Into<Subject>,
    key: &RowKey,
) -> Result<Option<T>, Halt> {
    match facts.row(&of.into(), key)? {
        Some(bytes) => Ok(Some(decode(&bytes)?)),
        None => Ok(None),
    }
}
