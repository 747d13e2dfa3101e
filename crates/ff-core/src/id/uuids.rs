//! Identifiers that are a UUID: any version is accepted from a caller, version 7 is minted.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::partition::{PartitionConfig, partition_of_uuid};

/// The text is not a lower-case hyphenated UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a lower-case hyphenated uuid")]
pub struct UuidParseError;

/// Parses the one text form; other spellings of the same UUID are refused, so that text and value
/// are one to one.
pub(crate) fn parse_uuid(text: &str) -> Result<Uuid, UuidParseError> {
    let uuid = Uuid::try_parse(text).map_err(|_| UuidParseError)?;
    let mut buffer = Uuid::encode_buffer();
    if uuid.hyphenated().encode_lower(&mut buffer) == text { Ok(uuid) } else { Err(UuidParseError) }
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            pub const fn new(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// A new identifier of version 7.
            pub fn mint() -> Self {
                Self(Uuid::now_v7())
            }

            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = UuidParseError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                parse_uuid(text).map(Self)
            }
        }
    };
}

uuid_id! {
    /// A flow: a DAG of executions.
    FlowId
}
uuid_id! {
    /// A dependency of one member of a flow on another.
    EdgeId
}
uuid_id! {
    /// Counters with limits, by dimension.
    BudgetId
}
uuid_id! {
    /// One act on many executions.
    BulkId
}
uuid_id! {
    /// A rate window and a concurrency cap.
    QuotaPolicyId
}
uuid_id! {
    /// One lease: the right of one worker instance to run one attempt for a while.
    LeaseId
}
uuid_id! {
    /// One attempt at an execution. Equal to the id of the lease that opened it.
    AttemptId
}

uuid_id! {
    /// An address that messages for one execution are sent to.
    WaitpointId
}
uuid_id! {
    /// One stop of an execution.
    SuspensionId
}
uuid_id! {
    /// One message.
    SignalId
}

impl FlowId {
    /// Where the flow and all its members stand.
    pub fn partition(self, config: &PartitionConfig) -> u16 {
        partition_of_uuid(self.0, config.flow)
    }
}

impl BudgetId {
    /// Where the budget stands.
    pub fn partition(self, config: &PartitionConfig) -> u16 {
        partition_of_uuid(self.0, config.budget)
    }
}

impl QuotaPolicyId {
    /// Where the quota policy stands.
    pub fn partition(self, config: &PartitionConfig) -> u16 {
        partition_of_uuid(self.0, config.quota)
    }
}

impl LeaseId {
    /// The `offset`-th lease id of a claim that brought `seed`. Counting up from one seed gives
    /// every task of a claim its own id without randomness in the store.
    pub fn from_seed(seed: Uuid, offset: u32) -> Self {
        Self(Uuid::from_u128(seed.as_u128().wrapping_add(u128::from(offset))))
    }
}

impl From<LeaseId> for AttemptId {
    fn from(lease: LeaseId) -> Self {
        Self(lease.0)
    }
}
