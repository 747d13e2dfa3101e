//! Rows beside an execution: what most operations do not need, kept apart from the record.
//!
//! A row has a family, a name and opaque bytes. Rows change only together with their execution's
//! record, and go with it.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Facts;
use super::draft::Halt;
use crate::error::{Code, Refusal};
use crate::id::ExecutionId;

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
}

impl Family {
    pub const ALL: [Self; 7] = [
        Self::Signal,
        Self::SignalBody,
        Self::SignalKey,
        Self::Waitpoint,
        Self::Suspend,
        Self::Metadata,
        Self::Summary,
    ];

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

/// A row that may be absent.
pub(super) fn find<T: DeserializeOwned>(
    facts: &impl Facts,
    id: ExecutionId,
    key: &RowKey,
) -> Result<Option<T>, Halt> {
    match facts.row(id, key)? {
        Some(bytes) => Ok(Some(decode(&bytes)?)),
        None => Ok(None),
    }
}
