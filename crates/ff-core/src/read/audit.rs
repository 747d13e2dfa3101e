//! What a check of the invariants found.

use serde::Serialize;

use crate::id::ExecutionId;
use crate::state::Execution;

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

    /// Counters within the policy, and a lease only with an attempt.
    pub fn check_counts(&mut self, execution: &Execution) {
        let policy = execution.policy();
        let counts = execution.counts;
        let within = counts.retries <= policy.retry.max_retries
            && counts.reclaims <= policy.timeout.max_reclaim_count
            && counts.replays <= policy.max_replay_count;
        if !within {
            self.report("I13", Some(execution.id), format!("{counts:?} beyond the policy"));
        }
        if execution.phase.lease().is_some() && execution.live_fence().is_none() {
            self.report("I2", Some(execution.id), "a lease without an attempt");
        }
    }

    /// Attempts without holes: `earlier` ones are kept beside the record, the highest index among
    /// them being `highest`.
    pub fn check_attempts(&mut self, execution: &Execution, earlier: u32, highest: Option<u32>) {
        let total = execution.counts.attempts;
        let current = execution.attempt.as_ref().map(|attempt| attempt.index);
        let sound = earlier == total.saturating_sub(1)
            && highest == earlier.checked_sub(1)
            && current == total.checked_sub(1);
        if !sound {
            let detail =
                format!("{total} attempts, {earlier} kept up to {highest:?}, now {current:?}");
            self.report("I12", Some(execution.id), detail);
        }
    }
}
