//! A lane: what an operator said of a queue.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Attached, List, Listing};
use crate::id::{LaneId, Namespace};
use crate::time::TimestampMs;

/// The record of a lane. A lane needs none: every name works, active and without ageing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    pub namespace: Namespace,
    pub name: LaneId,
    pub state: LaneState,
    /// What one level of priority is worth in time; 0: priority is strict.
    pub priority_ageing_ms: u64,
    /// What all its executions stand under.
    pub attached: Attached,
    /// When its state last changed.
    pub changed_at: TimestampMs,
    /// Why it is not active, in the words of whoever said so; empty: none were given.
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneState {
    #[default]
    Active,
    /// Submits are accepted, nothing is claimed.
    Paused,
    /// No submits; what is there is claimed.
    Draining,
    /// Neither.
    Disabled,
}

impl LaneState {
    pub const ALL: [Self; 4] = [Self::Active, Self::Paused, Self::Draining, Self::Disabled];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Draining => "draining",
            Self::Disabled => "disabled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    pub const fn takes_submits(self) -> bool {
        matches!(self, Self::Active | Self::Paused)
    }

    pub const fn gives_claims(self) -> bool {
        matches!(self, Self::Active | Self::Draining)
    }
}

impl Lane {
    /// A lane that nobody has said anything of.
    pub fn new(namespace: &Namespace, name: &LaneId) -> Self {
        Self {
            namespace: namespace.clone(),
            name: name.clone(),
            state: LaneState::default(),
            priority_ageing_ms: 0,
            attached: Attached::default(),
            changed_at: TimestampMs(0),
            reason: String::new(),
        }
    }

    /// In the order of names: their first 22 bytes are the place, the whole name decides ties. An
    /// instant has six bytes in every store.
    pub(super) fn listing(&self) -> Listing<'_> {
        let mut bytes = [0; 22];
        for (byte, of_name) in bytes.iter_mut().zip(self.name.bytes()) {
            *byte = of_name;
        }
        let (first, rest) = bytes.split_at(6);
        let at = first.iter().fold(0, |at, byte| at << 8 | i64::from(*byte));
        Listing {
            namespace: &self.namespace,
            list: List::Lane,
            at: TimestampMs(at),
            name: Uuid::from_slice(rest).unwrap_or_default(),
        }
    }
}
