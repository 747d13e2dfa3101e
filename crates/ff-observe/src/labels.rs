//! Values of labels that callers choose, bounded in number.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

use ff_core::tally::{LABELS, OTHER};
use prometheus_client::encoding::EncodeLabelSet;

/// Names that were seen, up to a number; all others are one.
#[derive(Debug, Default)]
pub(crate) struct Names(RwLock<HashSet<Arc<str>>>);

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Lane {
    pub(crate) lane: Arc<str>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Called {
    pub(crate) operation: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Ended {
    pub(crate) outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Handled {
    pub(crate) kind: Arc<str>,
    pub(crate) outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Because {
    pub(crate) reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Route {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(crate) struct Answered {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) status: u16,
}

impl Names {
    pub(crate) fn label(&self, name: &str) -> Arc<str> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some(known) = known {
            return known;
        }
        let mut names = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if names.len() >= LABELS {
            return OTHER.into();
        }
        let name: Arc<str> = name.into();
        names.insert(Arc::clone(&name));
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded() {
        let names = Names::default();
        for number in 0..LABELS {
            assert_eq!(&*names.label(&number.to_string()), number.to_string());
        }
        assert_eq!(&*names.label("one more"), OTHER);
        assert_eq!(&*names.label("7"), "7", "who was there stays");
    }
}
