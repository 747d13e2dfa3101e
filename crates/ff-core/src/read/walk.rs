//! Questions that walk over a list of a namespace.

use super::Seen;
use crate::cursor;
use crate::error::Refusal;
use crate::id::Namespace;
use crate::state::{Document, Execution, List, ListingPosition, MemberCounts};
use crate::time::TimestampMs;

/// What a [`Walk`] says of itself, of a question whose fields have these names.
macro_rules! paged {
    () => {
        fn namespace(&self) -> &$crate::id::Namespace {
            &self.namespace
        }

        fn cursor(&self) -> Option<&str> {
            self.cursor.as_deref()
        }

        fn limit(&self) -> u32 {
            self.limit
        }
    };
}

pub(super) use paged;

/// What an entry of a list leads to.
#[derive(Debug, Clone, Copy)]
pub enum Listed<'a> {
    Execution(&'a Execution),
    /// With the counts of its members, where it has any.
    Document(&'a Document, &'a MemberCounts),
}

/// A question that walks over a list of a namespace, in the order of its entries.
pub trait Walk: Sync {
    const LIST: List;

    type Item: Send;

    fn namespace(&self) -> &Namespace;

    fn cursor(&self) -> Option<&str>;

    fn limit(&self) -> u32;

    /// What an entry of the list is to this question.
    fn see(&self, at: &ListingPosition, found: Listed<'_>, now: TimestampMs) -> Seen<Self::Item>;

    /// What a cursor is bound to.
    fn scope(&self) -> String;

    /// Where the page begins: behind this place.
    fn behind(&self) -> Result<Option<ListingPosition>, Refusal> {
        self.cursor().map(|text| cursor::decode(&self.scope(), text)).transpose()
    }

    /// The cursor that goes on behind a place.
    fn cursor_after(&self, position: ListingPosition) -> String {
        cursor::encode(&self.scope(), &position)
    }
}
