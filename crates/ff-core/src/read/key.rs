//! API keys, without their secrets.

use super::Seen;
use super::walk::{Listed, Walk};
use crate::id::{KeyId, Namespace};
use crate::state::{ApiKey, List, ListingPosition, Part};
use crate::time::TimestampMs;

/// One key; none if there is no such.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetKey {
    pub key_id: KeyId,
}

/// All keys, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListKeys {
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
        ApiKey::of(&document.body).cloned().map_or(Seen::Passed, Seen::Item)
    }

    fn scope(&self) -> String {
        "keys".to_owned()
    }
}
