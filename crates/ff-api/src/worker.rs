//! Workers: registered, refreshed, drained, gone.

use ff_core::act;
use ff_core::capability::Capabilities;
use ff_core::id::{ExecutionId, LaneId, LeaseId, Namespace, WorkerId, WorkerInstanceId};
use ff_core::limits;
use ff_core::operation::{RegisterWorker, WorkerRegistered};
use ff_core::read::WorkerSnapshot;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::lease::{RenewItem, renewed};
use crate::problem::{Failure, Problem};
use crate::reading::Unreadable;
use crate::time::Time;
use crate::tokens::Tokens;

/// One boot of a worker instance makes itself known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Register {
    pub worker_id: WorkerId,
    pub worker_instance_id: WorkerInstanceId,
    /// Tells one process from the next of the same name.
    pub boot_id: String,
    pub lanes: Vec<LaneId>,
    #[serde(default)]
    pub capabilities: Tokens,
    /// Silent for so long it is dead; twice the default lease when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Registered {
    /// `registered` or `refreshed`.
    pub status: String,
    pub ttl_ms: u64,
    pub next_expiry_at: Time,
}

/// A registered worker instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Worker {
    pub namespace: Namespace,
    pub worker_id: WorkerId,
    pub worker_instance_id: WorkerInstanceId,
    pub boot_id: String,
    /// `live`, `draining` or `dead`.
    pub status: String,
    pub lanes: Vec<LaneId>,
    pub capabilities: Vec<String>,
    pub ttl_ms: u64,
    pub max_concurrent: u32,
    pub registered_at: Time,
    pub last_heartbeat_at: Time,
    pub expires_at: Time,
    /// Leases that it holds.
    pub running: u32,
    pub draining: bool,
}

/// A worker says that it lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    pub boot_id: String,
    /// The leases that it holds; renewed by the same call.
    #[serde(default)]
    pub leases: Vec<RenewItem>,
    /// `cursor` of the heartbeat before: what was stopped since is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// What a worker is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct News {
    pub next_expiry_at: Time,
    pub cancellations: Vec<Cancellation>,
    pub paused_lanes: Vec<LaneId>,
    /// It must claim nothing more.
    pub drain: bool,
    /// In the order in which they were listed.
    pub leases: Vec<LeaseNews>,
    /// Tasks that were taken from the worker since `after`, or since it began to wait.
    #[serde(default)]
    pub stopped: Vec<StoppedTask>,
    /// Where the next heartbeat goes on; absent for one that neither waited nor went on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// A task that was taken from its worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoppedTask {
    pub execution_id: ExecutionId,
    /// The lease that is over.
    pub lease_epoch: u64,
    /// `cancelled`, or `lost`: the lease ran out or was revoked, or a deadline has passed.
    pub by: String,
    pub reason: String,
}

/// A task that nobody wants any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cancellation {
    pub execution_id: ExecutionId,
    pub lease_id: LeaseId,
    pub reason: String,
}

/// What became of one lease.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LeaseNews {
    pub execution_id: ExecutionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reason {
    pub reason: String,
}

impl Register {
    pub fn operation(self, namespace: Namespace) -> Result<RegisterWorker, Failure> {
        Ok(RegisterWorker {
            namespace,
            worker_id: self.worker_id,
            worker_instance_id: self.worker_instance_id,
            boot_id: self.boot_id,
            lanes: self.lanes,
            capabilities: self.capabilities.read()?,
            ttl_ms: self.ttl_ms.unwrap_or(2 * limits::LEASE_TTL_MS),
            max_concurrent: self.max_concurrent.unwrap_or(1),
        })
    }
}

impl From<WorkerSnapshot> for Worker {
    fn from(worker: WorkerSnapshot) -> Self {
        Self {
            namespace: worker.namespace,
            worker_id: worker.worker_id,
            worker_instance_id: worker.worker_instance_id,
            boot_id: worker.boot_id,
            status: if worker.draining { "draining" } else { "live" }.to_owned(),
            lanes: worker.lanes,
            capabilities: worker.capabilities.tokens().map(str::to_owned).collect(),
            ttl_ms: worker.ttl_ms,
            max_concurrent: worker.max_concurrent,
            registered_at: worker.registered_at.into(),
            last_heartbeat_at: worker.last_heartbeat_at.into(),
            expires_at: worker.expires_at.into(),
            running: worker.running,
            draining: worker.draining,
        }
    }
}

impl From<RegisterWorker> for Register {
    /// Everything but the namespace, which stands beside the body.
    fn from(register: RegisterWorker) -> Self {
        Self {
            worker_id: register.worker_id,
            worker_instance_id: register.worker_instance_id,
            boot_id: register.boot_id,
            lanes: register.lanes,
            capabilities: (&register.capabilities).into(),
            ttl_ms: Some(register.ttl_ms),
            max_concurrent: Some(register.max_concurrent),
        }
    }
}

impl TryFrom<Registered> for WorkerRegistered {
    type Error = Unreadable;

    fn try_from(registered: Registered) -> Result<Self, Unreadable> {
        let next_expiry = registered.next_expiry_at.into();
        match registered.status.as_str() {
            "registered" => Ok(Self::Registered { next_expiry }),
            "refreshed" => Ok(Self::Refreshed { next_expiry }),
            other => Err(Unreadable::new("status", other)),
        }
    }
}

impl TryFrom<Worker> for WorkerSnapshot {
    type Error = Unreadable;

    fn try_from(worker: Worker) -> Result<Self, Unreadable> {
        let capabilities = Capabilities::new(worker.capabilities)
            .map_err(|refusal| Unreadable::new("capabilities", refusal))?;
        Ok(Self {
            namespace: worker.namespace,
            worker_id: worker.worker_id,
            worker_instance_id: worker.worker_instance_id,
            boot_id: worker.boot_id,
            lanes: worker.lanes,
            capabilities,
            ttl_ms: worker.ttl_ms,
            max_concurrent: worker.max_concurrent,
            registered_at: worker.registered_at.into(),
            last_heartbeat_at: worker.last_heartbeat_at.into(),
            expires_at: worker.expires_at.into(),
            running: worker.running,
            draining: worker.draining,
        })
    }
}

impl From<act::Heartbeat> for Heartbeat {
    /// Who it is stands beside the body.
    fn from(heartbeat: act::Heartbeat) -> Self {
        let act::Heartbeat { boot_id, leases, after, .. } = heartbeat;
        Self { boot_id, leases: leases.into_iter().map(Into::into).collect(), after }
    }
}

impl From<act::Stopped> for StoppedTask {
    fn from(stopped: act::Stopped) -> Self {
        let (by, reason) = match stopped.by {
            act::StoppedBy::Cancel { reason } => ("cancelled", reason),
            act::StoppedBy::Loss => ("lost", String::new()),
        };
        let act::Stopped { execution_id, lease_epoch, .. } = stopped;
        Self { execution_id, lease_epoch, by: by.to_owned(), reason }
    }
}

impl From<StoppedTask> for act::Stopped {
    fn from(stopped: StoppedTask) -> Self {
        let StoppedTask { execution_id, lease_epoch, by, reason } = stopped;
        let by = match &by[..] {
            "cancelled" => act::StoppedBy::Cancel { reason },
            _ => act::StoppedBy::Loss,
        };
        Self { execution_id, lease_epoch, by }
    }
}

impl From<News> for act::News {
    fn from(news: News) -> Self {
        let cancellation = |Cancellation { execution_id, lease_id, reason }| act::Cancellation {
            execution_id,
            lease_id,
            reason,
        };
        let leases = news.leases.into_iter();
        Self {
            next_expiry: news.next_expiry_at.into(),
            cancellations: news.cancellations.into_iter().map(cancellation).collect(),
            paused_lanes: news.paused_lanes,
            drain: news.drain,
            leases: leases.map(|lease| renewed(lease.expires_at, lease.problem)).collect(),
            stopped: news.stopped.into_iter().map(Into::into).collect(),
            cursor: news.cursor,
        }
    }
}
