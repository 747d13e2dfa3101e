//! Short words for grants: worker `pool`, instance `pool-1`, lane `work`, and defaults for the rest.

use ff_core::capability::Capabilities;
use ff_core::id::{ExecutionId, LeaseId, WorkerId, WorkerInstanceId};
use ff_core::limits;
use ff_core::operation::{
    ClaimExecution, ClaimResumedExecution, IssueClaimGrant, IssueGrantAndClaim, IssueReclaimGrant,
    IssuedReclaimGrant, ReclaimExecution, Reclaimed, Submit, TakenSlots, Task,
};

use crate::world::{World, lane, revoke};

pub const GRANT_MS: u64 = 5_000;

pub fn worker(name: &str) -> WorkerId {
    WorkerId::new(name).expect("a worker")
}

pub fn instance(name: &str) -> WorkerInstanceId {
    WorkerInstanceId::new(name).expect("an instance")
}

pub fn issue_grant(execution_id: ExecutionId) -> IssueClaimGrant {
    IssueClaimGrant {
        execution_id,
        worker_id: worker("pool"),
        worker_instance_id: instance("pool-1"),
        lane: lane("work"),
        capabilities: Capabilities::default(),
        grant_ttl_ms: GRANT_MS,
    }
}

pub fn claim_granted(execution_id: ExecutionId) -> ClaimExecution {
    ClaimExecution {
        execution_id,
        worker_id: worker("pool"),
        worker_instance_id: instance("pool-1"),
        lease_id: LeaseId::mint(),
        lease_ttl_ms: limits::LEASE_TTL_MS,
        slots: TakenSlots::default(),
    }
}

pub fn claim_resumed(execution_id: ExecutionId) -> ClaimResumedExecution {
    let ClaimExecution { worker_id, worker_instance_id, lease_id, lease_ttl_ms, slots, .. } =
        claim_granted(execution_id);
    ClaimResumedExecution {
        execution_id,
        worker_id,
        worker_instance_id,
        lease_id,
        lease_ttl_ms,
        slots,
    }
}

pub fn grant_and_claim(execution_id: ExecutionId) -> IssueGrantAndClaim {
    let ClaimExecution { worker_id, worker_instance_id, lease_id, lease_ttl_ms, slots, .. } =
        claim_granted(execution_id);
    IssueGrantAndClaim {
        execution_id,
        worker_id,
        worker_instance_id,
        lease_id,
        lease_ttl_ms,
        slots,
    }
}

pub fn issue_reclaim(execution_id: ExecutionId) -> IssueReclaimGrant {
    IssueReclaimGrant {
        execution_id,
        worker_id: worker("pool"),
        worker_instance_id: None,
        lane: lane("work"),
        capabilities: Capabilities::default(),
        grant_ttl_ms: GRANT_MS,
    }
}

pub fn reclaim(execution_id: ExecutionId) -> ReclaimExecution {
    let ClaimExecution { worker_id, worker_instance_id, lease_id, lease_ttl_ms, slots, .. } =
        claim_granted(execution_id);
    ReclaimExecution {
        execution_id,
        worker_id,
        worker_instance_id,
        lease_id,
        lease_ttl_ms,
        max_reclaim_count: None,
        slots,
    }
}

impl World {
    /// Submits and sets it aside.
    pub async fn granted(&self, submit: Submit) -> ExecutionId {
        let id = self.submit(submit).await;
        self.act(issue_grant(id)).await;
        id
    }

    /// Submits and claims; then the lease is revoked.
    pub async fn lost(&self, submit: Submit) -> Task {
        let task = self.start(submit).await;
        self.act(revoke(task.execution_id)).await;
        task
    }

    /// The same, set aside for whoever takes it up.
    pub async fn lost_and_granted(&self, submit: Submit) -> Task {
        let task = self.lost(submit).await;
        match self.act(issue_reclaim(task.execution_id)).await {
            IssuedReclaimGrant::Granted(_) => task,
            other => panic!("{other:?}"),
        }
    }

    /// A reclaim that must bring a task.
    pub async fn reclaimed(&self, reclaim: ReclaimExecution) -> Task {
        match self.act(reclaim).await {
            Reclaimed::Reclaimed(task) => *task,
            other => panic!("{other:?}"),
        }
    }
}
