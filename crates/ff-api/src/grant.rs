//! Grants: one execution set aside for one worker, which then claims it by name.

use ff_core::capability::Capabilities;
use ff_core::id::{
    ExecutionId, LaneId, LeaseId, Namespace, PartitionKey, WorkerId, WorkerInstanceId,
};
use ff_core::limits;
use ff_core::operation;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::problem::Failure;

/// How long a grant lasts when nothing is said.
const GRANT_TTL_MS: u64 = 5_000;

/// The next execution for a worker, set aside by a grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimForWorker {
    pub lane: LaneId,
    pub worker_instance_id: WorkerInstanceId,
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// 1 to 60 000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_ttl_ms: Option<u64>,
}

/// What the worker needs to use a grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Grant {
    pub execution_id: ExecutionId,
    pub partition_key: String,
    pub grant_key: String,
    pub expires_at_ms: i64,
}

/// A claim of one execution by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimByName {
    pub worker_id: WorkerId,
    pub worker_instance_id: WorkerInstanceId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ttl_ms: Option<u64>,
}

/// An execution whose lease was lost is set aside for this worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reclaim {
    pub worker_id: WorkerId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_instance_id: Option<WorkerInstanceId>,
    pub lane: LaneId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_ttl_ms: Option<u64>,
    #[serde(default)]
    pub capabilities: Vec<String>,
}

/// What became of it: `granted`, `not_reclaimable` or `reclaim_cap_exceeded`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reclaimed {
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_count: Option<u32>,
}

impl ClaimForWorker {
    pub fn operation(
        self,
        namespace: Namespace,
        worker_id: WorkerId,
    ) -> Result<operation::ClaimForWorker, Failure> {
        Ok(operation::ClaimForWorker {
            namespace,
            worker_id,
            worker_instance_id: self.worker_instance_id,
            lane: self.lane,
            capabilities: Capabilities::new(self.capabilities)?,
            grant_ttl_ms: self.grant_ttl_ms.unwrap_or(GRANT_TTL_MS),
        })
    }
}

impl From<operation::ClaimGrant> for Grant {
    fn from(grant: operation::ClaimGrant) -> Self {
        Self {
            execution_id: grant.execution_id,
            partition_key: PartitionKey::to_string(&grant.partition_key),
            grant_key: grant.grant_key,
            expires_at_ms: grant.expires_at.0,
        }
    }
}

impl ClaimByName {
    fn ttl_ms(&self) -> u64 {
        self.lease_ttl_ms.unwrap_or(limits::LEASE_TTL_MS)
    }

    /// A new attempt from a grant.
    pub fn claim(&self, execution_id: ExecutionId) -> operation::ClaimExecution {
        operation::ClaimExecution {
            execution_id,
            worker_id: self.worker_id.clone(),
            worker_instance_id: self.worker_instance_id.clone(),
            lease_id: LeaseId::mint(),
            lease_ttl_ms: self.ttl_ms(),
            slots: operation::TakenSlots::default(),
        }
    }

    /// The open attempt goes on, from a grant.
    pub fn claim_resumed(&self, execution_id: ExecutionId) -> operation::ClaimResumedExecution {
        operation::ClaimResumedExecution {
            execution_id,
            worker_id: self.worker_id.clone(),
            worker_instance_id: self.worker_instance_id.clone(),
            lease_id: LeaseId::mint(),
            lease_ttl_ms: self.ttl_ms(),
            slots: operation::TakenSlots::default(),
        }
    }

    /// An operator gives it to a worker.
    pub fn grant_and_claim(&self, execution_id: ExecutionId) -> operation::IssueGrantAndClaim {
        operation::IssueGrantAndClaim {
            execution_id,
            worker_id: self.worker_id.clone(),
            worker_instance_id: self.worker_instance_id.clone(),
            lease_id: LeaseId::mint(),
            lease_ttl_ms: self.ttl_ms(),
            slots: operation::TakenSlots::default(),
        }
    }
}

impl Reclaim {
    pub fn operation(
        self,
        execution_id: ExecutionId,
    ) -> Result<operation::IssueReclaimGrant, Failure> {
        Ok(operation::IssueReclaimGrant {
            execution_id,
            worker_id: self.worker_id,
            worker_instance_id: self.worker_instance_id,
            lane: self.lane,
            capabilities: Capabilities::new(self.capabilities)?,
            grant_ttl_ms: self.grant_ttl_ms.unwrap_or(GRANT_TTL_MS),
        })
    }
}

impl From<operation::IssuedReclaimGrant> for Reclaimed {
    fn from(issued: operation::IssuedReclaimGrant) -> Self {
        let none = |status: &str| Self {
            status: status.to_owned(),
            execution_id: None,
            partition_key: None,
            grant_key: None,
            expires_at_ms: None,
            detail: None,
            reclaim_count: None,
        };
        match issued {
            operation::IssuedReclaimGrant::Granted(grant) => {
                let grant = Grant::from(grant);
                Self {
                    execution_id: Some(grant.execution_id),
                    partition_key: Some(grant.partition_key),
                    grant_key: Some(grant.grant_key),
                    expires_at_ms: Some(grant.expires_at_ms),
                    ..none("granted")
                }
            }
            operation::IssuedReclaimGrant::NotReclaimable { detail } => {
                Self { detail: Some(detail), ..none("not_reclaimable") }
            }
            operation::IssuedReclaimGrant::ReclaimCapExceeded { reclaim_count } => {
                Self { reclaim_count: Some(reclaim_count), ..none("reclaim_cap_exceeded") }
            }
        }
    }
}
