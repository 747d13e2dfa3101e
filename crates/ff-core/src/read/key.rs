//! API keys, without their secrets.

use super::Seen;
use super::walk::{Listed, Walk};
use crate::id::{KeyId, Namespace};
use crate::state::{Access, ApiKey, List, ListingPosition, Part};
use crate::time::TimestampMs;

/// One key; none if there is no such.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetKey {
    pub key_id: KeyId,
}

/// All keys, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListKeys {
    /// Only keys that may do no more than this.
    pub within: Option<Access>,
    pub cursor: Option<String>,
    pub limit: u32,
}

impl Walk for ListKeys {
    const LIST: List = List::Key;

    type Item = ApiKey;

    fn namespace(&self) -> &Namespace {
        Namespace::any()
    }

    fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    fn limit(&self) -> u32 {
        self.limit
    }

    fn see(&self, _: &ListingPosition, found: Listed<'_>, _: TimestampMs) -> Seen<ApiKey> {
        let Listed::Document(document, _) = found else { return Seen::Passed };
        let wanted =
            |key: &&ApiKey| self.within.as_ref().is_none_or(|access| key.access.is_within(access));
        let found = ApiKey::of(&document.body).filter(wanted);
        found.cloned().map_or(Seen::Passed, Seen::Item)
    }

    fn scope(&self) -> String {
        format!("keys {:?}", self.within)
    }
}
