//! What a check of the invariants found.

use serde::Serialize;

use crate::id::ExecutionId;

/// Outcome of an audit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Audited {
    /// Records that were looked at.
    pub checked: u64,
    /// The first violations, at most 1000.
    pub violations: Vec<Violation>,
}

/// Something that must never be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Which invariant, as `I9`.
    pub invariant: &'static str,
    pub execution_id: Option<ExecutionId>,
    pub detail: String,
}

impl Audited {
    const VIOLATIONS_MAX: usize = 1000;

    pub fn report(
        &mut self,
        invariant: &'static str,
        execution_id: Option<ExecutionId>,
        detail: impl Into<String>,
    ) {
        if self.violations.len() < Self::VIOLATIONS_MAX {
            self.violations.push(Violation { invariant, execution_id, detail: detail.into() });
        }
    }
}
