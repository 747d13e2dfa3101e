//! What users see of a namespace.

use super::{Leaf, Page};
use crate::cursor;
use crate::error::Refusal;
use crate::id::Namespace;
use crate::state::NamespaceRecord;

/// What was said of a namespace; every name is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribeNamespace {
    pub namespace: Namespace,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceSnapshot {
    pub record: NamespaceRecord,
    /// 0 while nobody has said anything of it.
    pub revision: u64,
}

/// Namespaces in which something stands, in the order of their names: executions that have not ended,
/// workers, flows, limits and the like. A store may also tell of some in which something stood before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListNamespaces {
    pub cursor: Option<String>,
    pub limit: u32,
}

impl ListNamespaces {
    const SCOPE: &'static str = "namespaces";

    /// Where the page begins: behind this name.
    pub fn behind(&self) -> Result<Option<Namespace>, Refusal> {
        self.cursor.as_ref().map(|text| cursor::decode(Self::SCOPE, text)).transpose()
    }

    /// The page that was made.
    pub fn page(leaf: Leaf<Namespace, Namespace>) -> Page<Namespace> {
        leaf.finish(|last| cursor::encode(Self::SCOPE, &last))
    }
}
