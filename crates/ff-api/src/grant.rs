//! Grants: one execution set aside for one worker, which then claims it by name.

use ff_core::id::{
    ExecutionId, LaneId, LeaseId, Namespace, PartitionKey, WorkerId, WorkerInstanceId,
};
use ff_core::limits;
use ff_core::operation;
use ff_core::time::TimestampMs;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::problem::Failure;
use crate::reading::{Unreadable, parsed, present};
use crate::tokens::Tokens;

/// How long a grant lasts when nothing is said.
const GRANT_TTL_MS: u64 = 5_000;

/// The next execution for a worker, set aside by a grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimForWorker {
    pub lane: LaneId,
    pub worker_instance_id: WorkerInstanceId,
    #[serde(default)]
    pub capabilities: Tokens,
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
    /// Of the new lease; minted when absent. With the same one a repeated claim is told apart from
    /// another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_id: Option<LeaseId>,
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
    pub capabilities: Tokens,
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
            capabilities: self.capabilities.read()?,
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

    fn lease_id(&self) -> LeaseId {
        self.lease_id.unwrap_or_else(LeaseId::mint)
    }

    /// A new attempt from a grant.
    pub fn claim(&self, execution_id: ExecutionId) -> operation::ClaimExecution {
        operation::ClaimExecution {
            execution_id,
            worker_id: self.worker_id.clone(),
            worker_instance_id: self.worker_instance_id.clone(),
            lease_id: self.lease_id(),
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
            lease_id: self.lease_id(),
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
            lease_id: self.lease_id(),
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
            capabilities: self.capabilities.read()?,
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

impl From<operation::ClaimForWorker> for ClaimForWorker {
    /// Everything but the namespace and the worker, which stand beside the body.
    fn from(claim: operation::ClaimForWorker) -> Self {
        Self {
            lane: claim.lane,
            worker_instance_id: claim.worker_instance_id,
            capabilities: (&claim.capabilities).into(),
            grant_ttl_ms: Some(claim.grant_ttl_ms),
        }
    }
}

impl TryFrom<Grant> for operation::ClaimGrant {
    type Error = Unreadable;

    fn try_from(grant: Grant) -> Result<Self, Unreadable> {
        Ok(Self {
            execution_id: grant.execution_id,
            partition_key: parsed("partition_key", &grant.partition_key)?,
            grant_key: grant.grant_key,
            expires_at: TimestampMs(grant.expires_at_ms),
        })
    }
}

macro_rules! by_name {
    ($($operation:ident),*) => {$(
        impl From<operation::$operation> for ClaimByName {
            fn from(claim: operation::$operation) -> Self {
                Self {
                    worker_id: claim.worker_id,
                    worker_instance_id: claim.worker_instance_id,
                    lease_ttl_ms: Some(claim.lease_ttl_ms),
                    lease_id: Some(claim.lease_id),
                }
            }
        }
    )*};
}

by_name!(ClaimExecution, ClaimResumedExecution, IssueGrantAndClaim, ReclaimExecution);

impl From<operation::IssueReclaimGrant> for Reclaim {
    fn from(issue: operation::IssueReclaimGrant) -> Self {
        Self {
            worker_id: issue.worker_id,
            worker_instance_id: issue.worker_instance_id,
            lane: issue.lane,
            grant_ttl_ms: Some(issue.grant_ttl_ms),
            capabilities: (&issue.capabilities).into(),
        }
    }
}

impl TryFrom<Reclaimed> for operation::IssuedReclaimGrant {
    type Error = Unreadable;

    fn try_from(reclaimed: Reclaimed) -> Result<Self, Unreadable> {
        match reclaimed.status.as_str() {
            "granted" => {
                let grant = Grant {
                    execution_id: present("execution_id", reclaimed.execution_id)?,
                    partition_key: present("partition_key", reclaimed.partition_key)?,
                    grant_key: present("grant_key", reclaimed.grant_key)?,
                    expires_at_ms: present("expires_at_ms", reclaimed.expires_at_ms)?,
                };
                Ok(Self::Granted(grant.try_into()?))
            }
            "not_reclaimable" => {
                Ok(Self::NotReclaimable { detail: present("detail", reclaimed.detail)? })
            }
            "reclaim_cap_exceeded" => {
                let reclaim_count = present("reclaim_count", reclaimed.reclaim_count)?;
                Ok(Self::ReclaimCapExceeded { reclaim_count })
            }
            other => Err(Unreadable::new("status", other)),
        }
    }
}
