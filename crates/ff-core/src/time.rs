//! Points in time: Unix milliseconds of the store's clock.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Unix milliseconds. Only the store's clock makes one that decides anything.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct TimestampMs(pub i64);

impl TimestampMs {
    /// Later by `ms`; stops at the last representable instant instead of wrapping.
    #[must_use]
    pub fn after(self, ms: u64) -> Self {
        Self(self.0.saturating_add_unsigned(ms))
    }

    /// Earlier by `ms`; stops at the first representable instant instead of wrapping.
    #[must_use]
    pub fn before(self, ms: u64) -> Self {
        Self(self.0.saturating_sub_unsigned(ms))
    }

    /// Milliseconds from `earlier` to this; 0 when `earlier` is not earlier.
    pub fn since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

impl fmt::Display for TimestampMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
