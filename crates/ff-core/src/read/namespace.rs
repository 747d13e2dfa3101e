//! What users see of a namespace.

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
