//! Leases: claimed and renewed.

use ff_core::capability::Capabilities;
use ff_core::error::EngineError;
use ff_core::id::{AttemptId, ExecutionId, LaneId, LeaseId, Namespace, WorkerId, WorkerInstanceId};
use ff_core::limits;
use ff_core::operation::{self, LaneOrder, LaneShare, Renew};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::fence::Fence;
use crate::object::Invalid;
use crate::problem::{Failure, Problem};
use crate::reading::Unreadable;
use crate::task::Task;
use crate::time::Time;
use crate::tokens::Tokens;

/// Work for one worker instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    pub worker_id: WorkerId,
    pub worker_instance_id: WorkerInstanceId,
    /// As registered when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes: Option<Vec<Lane>>,
    /// `weighted` (the default) or `ordered`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// As registered when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Tokens>,
    /// 1 to 1000.
    #[serde(default = "one")]
    pub max: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ttl_ms: Option<u64>,
}

fn one() -> u32 {
    1
}

/// A lane of a claim: its name, or with a weight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Lane {
    Name(LaneId),
    Weighted(WeightedLane),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WeightedLane {
    pub lane: LaneId,
    /// 1 to 1000.
    #[serde(default = "one")]
    pub weight: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tasks {
    pub tasks: Vec<Task>,
}

/// More work for the worker that completes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Next {
    #[serde(default = "one")]
    pub max: u32,
    /// As registered when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes: Option<Vec<Lane>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// As registered when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Tokens>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ttl_ms: Option<u64>,
}

/// One lease to renew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewItem {
    pub execution_id: ExecutionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_id: Option<LeaseId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_epoch: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<AttemptId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// As the lease was made when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

/// Many leases to renew, each on its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewMany {
    pub items: Vec<RenewItem>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RenewedMany {
    pub items: Vec<RenewedItem>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RenewedItem {
    pub execution_id: ExecutionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

/// A later expiry of one lease.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RenewLease {
    pub ttl_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Renewed {
    pub expires_at: Time,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// 0 to 100.
    pub pct: u64,
    #[serde(default)]
    pub message: String,
}

/// What is registered of the worker, for what a claim leaves out.
#[derive(Debug, Clone, Default)]
pub struct Offered {
    pub lanes: Vec<LaneId>,
    pub capabilities: Capabilities,
}

impl Offered {
    /// What is claimed of, where that is said; else what is registered.
    fn or(
        self,
        lanes: Option<Vec<Lane>>,
        capabilities: Option<Tokens>,
    ) -> Result<(Vec<LaneShare>, Capabilities), Failure> {
        let lanes = match lanes {
            Some(lanes) => shares(lanes),
            None => self.lanes.into_iter().map(LaneShare::new).collect(),
        };
        let capabilities = match capabilities {
            Some(tokens) => tokens.read()?,
            None => self.capabilities,
        };
        Ok((lanes, capabilities))
    }
}

impl Claim {
    /// Whether it says all by itself.
    pub fn is_complete(&self) -> bool {
        self.lanes.is_some() && self.capabilities.is_some()
    }

    pub fn operation(
        self,
        namespace: Namespace,
        offered: Option<Offered>,
    ) -> Result<operation::Claim, Failure> {
        let (lanes, capabilities) =
            offered.unwrap_or_default().or(self.lanes, self.capabilities)?;
        Ok(operation::Claim {
            namespace,
            lanes,
            order: order(self.order.as_deref())?,
            capabilities,
            max: self.max,
            lease_ttl_ms: self.lease_ttl_ms.unwrap_or(limits::LEASE_TTL_MS),
            ..operation::Claim::new(self.worker_id, self.worker_instance_id, [])
        })
    }
}

impl Next {
    /// Whether it says all by itself.
    pub fn is_complete(&self) -> bool {
        self.lanes.is_some() && self.capabilities.is_some()
    }

    pub fn operation(self, offered: Option<Offered>) -> Result<operation::ClaimNext, Failure> {
        let (lanes, capabilities) =
            offered.unwrap_or_default().or(self.lanes, self.capabilities)?;
        Ok(operation::ClaimNext {
            max: self.max,
            lanes,
            order: order(self.order.as_deref())?,
            capabilities,
            lease_ttl_ms: self.lease_ttl_ms.unwrap_or(limits::LEASE_TTL_MS),
            seed: LeaseId::mint().uuid(),
        })
    }
}

impl Lane {
    pub fn name(&self) -> &LaneId {
        match self {
            Self::Name(lane) => lane,
            Self::Weighted(weighted) => &weighted.lane,
        }
    }
}

fn shares(lanes: Vec<Lane>) -> Vec<LaneShare> {
    let share = |lane| match lane {
        Lane::Name(lane) => LaneShare::new(lane),
        Lane::Weighted(WeightedLane { lane, weight }) => {
            LaneShare { weight, ..LaneShare::new(lane) }
        }
    };
    lanes.into_iter().map(share).collect()
}

fn order(text: Option<&str>) -> Result<LaneOrder, Invalid> {
    match text {
        None | Some("weighted") => Ok(LaneOrder::Weighted),
        Some("ordered") => Ok(LaneOrder::Ordered),
        Some(_) => Err(Invalid::at("order", "order is weighted or ordered")),
    }
}

impl RenewItem {
    pub fn operation(&self, store: &str) -> Result<Renew, Failure> {
        let fence = Fence {
            lease_id: self.lease_id,
            lease_epoch: self.lease_epoch,
            attempt_id: self.attempt_id,
            handle: self.handle.clone(),
        };
        let execution_id = self.execution_id;
        let fence = fence.required(execution_id, store)?;
        Ok(Renew { execution_id, fence, ttl_ms: self.ttl_ms })
    }
}

impl From<operation::Claim> for Claim {
    /// Everything but the namespace, which stands beside the body, and what only a process that claims
    /// on a store itself keeps: the rota's credits and the first of the new leases' ids.
    fn from(claim: operation::Claim) -> Self {
        Self {
            worker_id: claim.worker_id,
            worker_instance_id: claim.worker_instance_id,
            lanes: Some(claim.lanes.into_iter().map(Into::into).collect()),
            order: Some(order_name(claim.order)),
            capabilities: Some((&claim.capabilities).into()),
            max: claim.max,
            lease_ttl_ms: Some(claim.lease_ttl_ms),
        }
    }
}

impl From<operation::ClaimNext> for Next {
    fn from(next: operation::ClaimNext) -> Self {
        Self {
            max: next.max,
            lanes: Some(next.lanes.into_iter().map(Into::into).collect()),
            order: Some(order_name(next.order)),
            capabilities: Some((&next.capabilities).into()),
            lease_ttl_ms: Some(next.lease_ttl_ms),
        }
    }
}

impl From<LaneShare> for Lane {
    fn from(share: LaneShare) -> Self {
        let LaneShare { lane, weight, .. } = share;
        if weight == 1 { Self::Name(lane) } else { Self::Weighted(WeightedLane { lane, weight }) }
    }
}

fn order_name(order: LaneOrder) -> String {
    match order {
        LaneOrder::Weighted => "weighted".to_owned(),
        LaneOrder::Ordered => "ordered".to_owned(),
    }
}

impl From<Renew> for RenewItem {
    fn from(renew: Renew) -> Self {
        let Fence { lease_id, lease_epoch, attempt_id, handle } = renew.fence.into();
        let Renew { execution_id, ttl_ms, .. } = renew;
        Self { execution_id, lease_id, lease_epoch, attempt_id, handle, ttl_ms }
    }
}

/// What became of one lease of many.
pub(crate) fn renewed(
    expires_at: Option<Time>,
    problem: Option<Problem>,
) -> Result<operation::Renewed, EngineError> {
    match (expires_at, problem) {
        (_, Some(problem)) => Err(problem.into()),
        (Some(at), None) => Ok(operation::Renewed { expires_at: at.into() }),
        (None, None) => Err(EngineError::bug("a lease is neither renewed nor refused")),
    }
}

impl RenewedItem {
    /// The same, of the lease with this number in a list: what is wrong stands in it.
    #[must_use]
    pub fn placed(self, list: &str, number: usize) -> Self {
        let problem = self.problem.map(|problem| problem.placed(&format!("/{list}/{number}")));
        Self { problem, ..self }
    }

    /// What became of it.
    pub fn outcome(self) -> Result<operation::Renewed, EngineError> {
        renewed(self.expires_at, self.problem)
    }
}

impl From<Renewed> for operation::Renewed {
    fn from(renewed: Renewed) -> Self {
        Self { expires_at: renewed.expires_at.into() }
    }
}

impl Tasks {
    /// The tasks, of a store of this kind.
    pub fn read(self, store: &str) -> Result<Vec<operation::Task>, Unreadable> {
        self.tasks.into_iter().map(|task| task.read(store)).collect()
    }
}
