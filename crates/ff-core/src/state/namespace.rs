//! What holds for a whole namespace.

use serde::{Deserialize, Serialize};

use super::Attached;
use crate::id::Namespace;
use crate::policy::Retention;

/// The record of a namespace. A namespace needs none: every name works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceRecord {
    pub namespace: Namespace,
    pub attached: Attached,
    /// For policies that do not say; holds for what is submitted from now on.
    pub retention: Retention,
}

impl NamespaceRecord {
    /// A namespace that nobody has said anything of.
    pub fn new(namespace: &Namespace) -> Self {
        Self {
            namespace: namespace.clone(),
            attached: Attached::default(),
            retention: Retention::default(),
        }
    }
}
