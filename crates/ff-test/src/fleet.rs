//! Short words for workers and lanes: worker `pool`, lane `work`, and defaults for the rest.

use ff_core::backend::BackendExt;
use ff_core::capability::Capabilities;
use ff_core::event::{Event, EventKind};
use ff_core::id::{DocumentId, ExecutionId, LeaseId, Namespace, Subject, WorkerInstanceId};
use ff_core::operation::{
    Attach, BlockForAdmission, DeregisterWorker, DrainWorker, HeartbeatWorker, LoseLease,
    MarkWorkerDead, NoteCancellations, RegisterWorker, SetLane, SetNamespace, SettleWorkerLoss,
    Submit, Task,
};
use ff_core::read::{
    DescribeLane, DescribeWorker, LaneSnapshot, LeasesOf, ListedLease, WorkerSnapshot,
};
use ff_core::state::{BlockingReason, CancelNotice, LaneState, LostBy};
use ff_core::time::TimestampMs;

use crate::grants::{instance, worker};
use crate::world::{World, lane};

/// How long the workers of tests may be silent.
pub const TTL: u64 = 60_000;

pub fn register(name: &str) -> RegisterWorker {
    RegisterWorker {
        namespace: Namespace::default(),
        worker_id: worker("pool"),
        worker_instance_id: instance(name),
        boot_id: "boot-1".to_owned(),
        lanes: vec![lane("work")],
        capabilities: Capabilities::default(),
        ttl_ms: TTL,
        max_concurrent: 10,
    }
}

pub fn beat(name: &str) -> HeartbeatWorker {
    HeartbeatWorker {
        namespace: Namespace::default(),
        worker_instance_id: instance(name),
        boot_id: "boot-1".to_owned(),
    }
}

pub fn drain(name: &str) -> DrainWorker {
    DrainWorker {
        namespace: Namespace::default(),
        worker_instance_id: instance(name),
        reason: String::new(),
    }
}

pub fn deregister(name: &str) -> DeregisterWorker {
    DeregisterWorker { namespace: Namespace::default(), worker_instance_id: instance(name) }
}

pub fn mark_dead(name: &str) -> MarkWorkerDead {
    let (namespace, worker_instance_id) = (Namespace::default(), instance(name));
    MarkWorkerDead { namespace, worker_instance_id, reason: "it burns".to_owned() }
}

pub fn set_namespace() -> SetNamespace {
    let (namespace, attach) = (Namespace::default(), Attach::default());
    SetNamespace { namespace, attach, retention: None, expected_revision: None }
}

pub fn set_lane(name: &str, state: LaneState) -> SetLane {
    SetLane { state: Some(state), ..SetLane::new(Namespace::default(), lane(name)) }
}

/// As whoever takes the leases of a lost worker away.
pub fn lose(task: &Task) -> LoseLease {
    let (execution_id, lease_id) = (task.execution_id, task.lease_id);
    LoseLease { execution_id, lease_id, by: LostBy::Revocation }
}

/// As whoever has cancelled a task of a worker.
pub fn note_cancelled(name: &str, execution_id: ExecutionId) -> NoteCancellations {
    let (namespace, worker_instance_id) = (Namespace::default(), instance(name));
    let (lease_id, reason, at) = (LeaseId::mint(), "not wanted".to_owned(), TimestampMs(0));
    let notices = vec![CancelNotice { execution_id, lease_id, reason, at }];
    NoteCancellations { namespace, worker_instance_id, notices }
}

pub fn settle_loss(name: &str) -> SettleWorkerLoss {
    let (namespace, worker_instance_id) = (Namespace::default(), instance(name));
    SettleWorkerLoss { namespace, worker_instance_id, acquired_before: TimestampMs(0) }
}

pub fn block(execution_id: ExecutionId, reason: BlockingReason) -> BlockForAdmission {
    BlockForAdmission { execution_id, reason, detail: "no room".to_owned(), by: None }
}

/// Ageing of lane `work`.
pub fn set_ageing(ms: u64) -> SetLane {
    SetLane { priority_ageing_ms: Some(ms), ..SetLane::new(Namespace::default(), lane("work")) }
}

pub fn worker_subject(name: &str) -> Subject {
    DocumentId::worker(&Namespace::default(), &instance(name)).into()
}

impl World {
    /// Work that requires these capabilities.
    pub fn needing(&self, tokens: &[&str]) -> Submit {
        let tokens: Vec<_> = tokens.iter().map(|token| format!("{token:?}")).collect();
        let tokens = tokens.join(",");
        let required = format!(r#"{{"required_capabilities":[{tokens}]}}"#);
        self.work_with(&format!(r#"{{"routing_requirements":{required}}}"#))
    }

    pub async fn worker(&self, name: &str) -> Option<WorkerSnapshot> {
        let (namespace, worker_instance_id) = (Namespace::default(), instance(name));
        let found =
            self.backend.ask(DescribeWorker { namespace, worker_instance_id, counted: true }).await;
        found.expect("an answer").map(|found| *found)
    }

    pub async fn lane(&self, name: &str) -> LaneSnapshot {
        let (namespace, lane) = (Namespace::default(), lane(name));
        *self.backend.ask(DescribeLane { namespace, lane }).await.expect("a lane")
    }

    /// Leases of an instance, all on one page.
    pub async fn leases_of(&self, name: &str) -> Vec<ListedLease> {
        let page = self.backend.ask(leases_of(&instance(name), None, 500)).await.expect("a page");
        assert_eq!(page.next_cursor, None);
        page.items
    }

    /// Events about a worker, oldest first.
    pub async fn worker_events(&self, name: &str) -> Vec<Event> {
        let subject = worker_subject(name);
        let log = self.log().await.into_iter().map(|envelope| envelope.event);
        log.filter(|event| event.subject == subject).collect()
    }

    pub async fn worker_history(&self, name: &str) -> Vec<EventKind> {
        self.worker_events(name).await.iter().map(|event| event.kind).collect()
    }
}

pub fn leases_of(name: &WorkerInstanceId, cursor: Option<String>, limit: u32) -> LeasesOf {
    let (namespace, worker_instance_id) = (Namespace::default(), Some(name.clone()));
    LeasesOf { namespace, worker_instance_id, cursor, limit }
}
