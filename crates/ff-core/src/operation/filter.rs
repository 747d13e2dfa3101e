//! What a scanner is limited to.

use crate::id::Namespace;
use crate::state::{Document, Execution};
use crate::tags::Tags;

/// Empty: everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScannerFilter {
    pub namespace: Option<Namespace>,
    /// A key, and the value that it must have.
    pub tag: Option<(String, String)>,
}

impl ScannerFilter {
    pub const fn is_empty(&self) -> bool {
        self.namespace.is_none() && self.tag.is_none()
    }

    pub fn admits_execution(&self, execution: &Execution) -> bool {
        self.admits(&execution.about.namespace, Some(&execution.tags))
    }

    /// Of documents only flows have tags.
    pub fn admits_document(&self, document: &Document) -> bool {
        self.admits(document.namespace(), document.flow().map(|flow| &flow.tags))
    }

    /// Whether something of this namespace is let through. What has no tags to be looked at cannot be
    /// checked, and is passed over where a tag is asked for.
    pub fn admits(&self, namespace: &Namespace, tags: Option<&Tags>) -> bool {
        let has = |(key, value): &(String, String)| {
            tags.and_then(|tags| tags.get(key)).is_some_and(|found| found == value)
        };
        self.namespace.as_ref().is_none_or(|only| only == namespace)
            && self.tag.as_ref().is_none_or(has)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespace(name: &str) -> Namespace {
        Namespace::new(name).expect("a namespace")
    }

    #[test]
    fn a_filter_lets_through_what_it_can_check() {
        let tags = Tags::new([("team".to_owned(), "red".to_owned())]).expect("tags");
        let only = |name: &str| Some(namespace(name));
        let tag = |value: &str| Some(("team".to_owned(), value.to_owned()));
        let cases = [
            (None, None, None, true),
            (only("a"), None, None, true),
            (only("b"), None, Some(&tags), false),
            (None, tag("red"), Some(&tags), true),
            (None, tag("blue"), Some(&tags), false),
            (only("a"), tag("red"), None, false),
        ];
        for (namespace_only, tag, found, admitted) in cases {
            let filter = ScannerFilter { namespace: namespace_only, tag };
            assert_eq!(filter.admits(&namespace("a"), found), admitted, "{filter:?}");
        }
    }
}
