//! Reconcile: a page of records compared with what lists and counts them. Not a transition: records
//! stay as they are.

use serde::Serialize;

use super::ScannerFilter;
use crate::check::check_range;
use crate::error::Refusal;
use crate::id::DocumentKind;
use crate::limits;
use crate::read::Audited;

/// Checks some records, or some entries of indexes, and makes right what records decide by themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct Reconcile {
    pub part: Part,
    pub filter: ScannerFilter,
    /// Where the page before ended.
    pub cursor: Option<String>,
    /// Most records or entries of this page.
    pub limit: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Part {
    /// Executions: each stands in its queue, among the timers and in its lists.
    Executions,
    /// Documents: the same, with counts of the executions that belong to them.
    Documents(DocumentKind),
    /// Entries of queues, timers and lists: each names a record that says the same.
    Entries,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reconciled {
    pub found: Audited,
    /// Records whose entries, and entries that, were wrong and are right now.
    pub mended: u32,
    /// None: it was the last page.
    pub next_cursor: Option<String>,
}

impl Reconcile {
    pub fn check(&self) -> Result<(), Refusal> {
        check_range("limit", self.limit.into(), 1, limits::PAGE_MAX.into())
    }

    /// What its cursors are bound to.
    pub fn scope(&self) -> String {
        format!("reconcile {:?}", self.part)
    }
}
