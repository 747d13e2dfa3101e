//! The part of random sequences that sets executions aside and claims them by name.

use ff_core::id::{ExecutionId, LaneId, LeaseId, QuotaPolicyId, WorkerId, WorkerInstanceId};
use ff_core::operation::{
    ClaimExecution, ClaimResumedExecution, Command, IssueClaimGrant, IssueGrantAndClaim,
    IssueReclaimGrant, IssuedReclaimGrant, ReclaimExecution, Reclaimed, Reply, TakenSlots, Task,
};
use uuid::Uuid;

use super::op::Target;
use super::replay::capabilities;

/// What is done about a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantAct {
    Issue,
    Claim,
    ClaimResumed,
    GrantAndClaim,
    IssueReclaim,
    Reclaim,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantOp {
    pub act: GrantAct,
    pub target: Target,
    pub worker: u8,
    pub instance: u8,
    /// Names a lane of its own; else that of the execution.
    pub other_lane: bool,
    pub capabilities: u8,
    pub grant_ttl_ms: u64,
    pub lease_ttl_ms: u64,
    pub lease: u128,
    pub cap: Option<u32>,
    /// With a slot of the newest policy, for a lease of this epoch.
    pub slot: Option<u64>,
}

impl GrantOp {
    pub(super) fn command(
        &self,
        execution_id: ExecutionId,
        lane: LaneId,
        newest: QuotaPolicyId,
    ) -> Command {
        let slots = match self.slot {
            Some(lease_epoch) => TakenSlots {
                lease_epoch,
                quota_policy_ids: vec![newest],
                places: if self.lease.is_multiple_of(2) { vec![newest] } else { Vec::new() },
            },
            None => TakenSlots::default(),
        };
        let worker_id = WorkerId::new(format!("pool-{}", self.worker)).expect("a worker");
        let instance = format!("pool-{}-{}", self.worker, self.instance);
        let worker_instance_id = WorkerInstanceId::new(instance).expect("an instance");
        let other = || LaneId::new("elsewhere").expect("a lane");
        let lane = if self.other_lane { other() } else { lane };
        let capabilities = capabilities(self.capabilities);
        let grant_ttl_ms = self.grant_ttl_ms;
        match self.act {
            GrantAct::Issue => IssueClaimGrant {
                execution_id,
                worker_id,
                worker_instance_id,
                lane,
                capabilities,
                grant_ttl_ms,
            }
            .into(),
            GrantAct::IssueReclaim => {
                let worker_instance_id = (self.instance == 0).then_some(worker_instance_id);
                IssueReclaimGrant {
                    execution_id,
                    worker_id,
                    worker_instance_id,
                    lane,
                    capabilities,
                    grant_ttl_ms,
                }
                .into()
            }
            _ => self.claim(execution_id, worker_id, worker_instance_id, slots),
        }
    }

    fn claim(
        &self,
        execution_id: ExecutionId,
        worker_id: WorkerId,
        worker_instance_id: WorkerInstanceId,
        slots: TakenSlots,
    ) -> Command {
        let lease_ttl_ms = self.lease_ttl_ms;
        let lease_id = LeaseId::new(Uuid::from_u128(self.lease));
        match self.act {
            GrantAct::Issue | GrantAct::IssueReclaim | GrantAct::Claim => ClaimExecution {
                execution_id,
                worker_id,
                worker_instance_id,
                lease_id,
                lease_ttl_ms,
                slots,
            }
            .into(),
            GrantAct::ClaimResumed => ClaimResumedExecution {
                execution_id,
                worker_id,
                worker_instance_id,
                lease_id,
                lease_ttl_ms,
                slots,
            }
            .into(),
            GrantAct::GrantAndClaim => IssueGrantAndClaim {
                execution_id,
                worker_id,
                worker_instance_id,
                lease_id,
                lease_ttl_ms,
                slots,
            }
            .into(),
            GrantAct::Reclaim => ReclaimExecution {
                execution_id,
                worker_id,
                worker_instance_id,
                lease_id,
                lease_ttl_ms,
                max_reclaim_count: self.cap,
                slots,
            }
            .into(),
        }
    }
}

/// The execution that a reply set aside.
pub(super) fn granted(reply: &Reply) -> Option<ExecutionId> {
    match reply {
        Reply::IssueClaimGrant(grant)
        | Reply::GrantAdmitted(grant)
        | Reply::IssueReclaimGrant(IssuedReclaimGrant::Granted(grant)) => Some(grant.execution_id),
        _ => None,
    }
}

/// The tasks that a reply brought.
pub(super) fn tasks(reply: &Reply) -> &[Task] {
    match reply {
        Reply::Complete(completed) => &completed.tasks,
        Reply::ClaimExecution(task)
        | Reply::ClaimResumedExecution(task)
        | Reply::IssueGrantAndClaim(task)
        | Reply::ReclaimExecution(Reclaimed::Reclaimed(task)) => std::slice::from_ref(task),
        _ => &[],
    }
}
