//! What an execution stands under.

use crate::id::{ExecutionId, LaneId, LeaseId, Namespace, QuotaPolicyId};
use crate::operation::Applicant;
use crate::state::{Execution, Standing};

/// All budgets and quota policies that apply to an execution; none if there is no such.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadStanding {
    pub execution_id: ExecutionId,
}

/// All budgets and quota policies that apply to every execution of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadLaneStanding {
    pub namespace: Namespace,
    pub lane: LaneId,
}

/// What a claim of an execution has to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingFound {
    /// As a claim would find it; the id of the lease is nil.
    pub applicant: Applicant,
    /// Quota policies of which its grant holds a slot.
    pub held: Vec<QuotaPolicyId>,
}

impl StandingFound {
    pub fn of(execution: &Execution, standing: Standing) -> Self {
        let held = execution.slots().into_iter().map(|slot| slot.quota_policy_id);
        let lease_id = LeaseId::new(uuid::Uuid::nil());
        let applicant = Applicant::of(execution, lease_id, execution.standing_score(), standing);
        Self { applicant, held: held.collect() }
    }
}
