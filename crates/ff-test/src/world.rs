//! A backend under test, with short words for common acts.

use std::sync::Arc;
use std::time::Duration;

use ff_core::backend::{Backend, BackendExt, Pending};
use ff_core::capability::Capabilities;
use ff_core::error::{Code, EngineError};
use ff_core::event::EventKind;
use ff_core::id::{Authority, ExecutionId, Kind, LaneId, Namespace, WorkerId, WorkerInstanceId};
use ff_core::limits;
use ff_core::operation::{
    Claim, Complete, Completed, Fail, Failed, LaneOrder, LaneShare, Submit, Submitted, Task, Tick,
};
use ff_core::policy::Policy;
use ff_core::read::{Audit, Describe, ListEvents, Record};
use ff_core::state::PublicState;
use ff_core::time::TimestampMs;
use uuid::Uuid;

/// How long a test waits for what must come before it calls it missing.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A backend and the hand on its clock.
pub trait Stage: Send + Sync + 'static {
    fn backend(&self) -> Arc<dyn Backend>;

    /// Moves the store's clock.
    fn advance(&self, ms: i64) -> Pending<'_, ()>;
}

/// What a conformance test gets: a fresh store of its own.
pub struct World {
    pub backend: Arc<dyn Backend>,
    stage: Box<dyn Stage>,
}

pub fn lane(name: &str) -> LaneId {
    LaneId::new(name).expect("a lane")
}

pub fn policy(json: &str) -> Arc<Policy> {
    Arc::new(Policy::from_json(json).expect("a policy"))
}

pub fn capabilities(tokens: &[&str]) -> Capabilities {
    Capabilities::new(tokens).expect("capabilities")
}

/// The code of a refusal or fault.
pub fn code<T: std::fmt::Debug>(result: Result<T, EngineError>) -> Code {
    result.expect_err("a refusal").code()
}

impl World {
    pub fn new(stage: impl Stage) -> Self {
        Self { backend: stage.backend(), stage: Box::new(stage) }
    }

    pub async fn now(&self) -> TimestampMs {
        self.backend.server_time_ms().await.expect("the time")
    }

    /// Moves the clock without letting timers fire.
    pub async fn advance(&self, ms: i64) {
        self.stage.advance(ms).await;
    }

    /// Moves the clock and carries out all that is due by then.
    pub async fn pass(&self, ms: i64) {
        self.advance(ms).await;
        self.settle().await;
    }

    /// Carries out all that is due.
    pub async fn settle(&self) {
        let tick = || Tick { partition: None, most: limits::TICK_ENTRIES };
        while self.backend.call(tick()).await.expect("a tick").more {}
    }

    /// A submit on lane `work` with an id of its own.
    pub fn work(&self) -> Submit {
        self.work_on("work")
    }

    pub fn work_on(&self, name: &str) -> Submit {
        let id = ExecutionId::solo(Uuid::now_v7(), &self.backend.settings().partitions);
        Submit::new(id, lane(name), Kind::new("test").expect("a kind"))
    }

    pub fn work_with(&self, json: &str) -> Submit {
        Submit { policy: policy(json), ..self.work() }
    }

    /// Submits and must succeed.
    pub async fn submit(&self, submit: Submit) -> ExecutionId {
        match self.backend.call(submit).await {
            Ok(Submitted::Created { execution_id, .. }) => execution_id,
            other => panic!("submit: {other:?}"),
        }
    }

    /// A claim of one worker on lane `work`.
    pub fn claim_request(&self, max: u32) -> Claim {
        Claim {
            namespace: Namespace::default(),
            worker_id: WorkerId::new("pool").expect("a worker"),
            worker_instance_id: WorkerInstanceId::new("pool-1").expect("an instance"),
            lanes: vec![LaneShare::new(lane("work"))],
            order: LaneOrder::default(),
            capabilities: Capabilities::default(),
            max,
            lease_ttl_ms: limits::LEASE_TTL_MS,
            seed: Uuid::now_v7(),
        }
    }

    /// Up to `max` tasks of lane `work`, without waiting.
    pub async fn claim(&self, max: u32) -> Vec<Task> {
        self.claim_as(self.claim_request(max)).await
    }

    pub async fn claim_as(&self, claim: Claim) -> Vec<Task> {
        self.backend.claim(claim, Duration::ZERO).await.expect("a claim")
    }

    /// One task that must be there.
    pub async fn claim_one(&self) -> Task {
        self.claim(1).await.pop().expect("a task")
    }

    /// Submits and claims.
    pub async fn start(&self, submit: Submit) -> Task {
        let id = self.submit(submit).await;
        let task = self.claim_one().await;
        assert_eq!(task.execution_id, id);
        task
    }

    pub async fn complete(&self, task: &Task) -> Result<Completed, EngineError> {
        self.backend.call(complete(task)).await
    }

    pub async fn fail(&self, task: &Task, category: &str) -> Result<Failed, EngineError> {
        self.backend.call(fail(task, category)).await
    }

    /// The record, which must be there.
    pub async fn describe(&self, id: ExecutionId) -> Record {
        *self.find(id).await.expect("a record")
    }

    pub async fn find(&self, id: ExecutionId) -> Option<Box<Record>> {
        self.backend.ask(Describe { execution_id: id }).await.expect("an answer")
    }

    pub async fn public_state(&self, id: ExecutionId) -> PublicState {
        self.describe(id).await.state.public_state
    }

    /// Kinds of all events about an execution, oldest first.
    pub async fn history(&self, id: ExecutionId) -> Vec<EventKind> {
        let query = ListEvents { execution_id: id, after_seq: 0, limit: limits::PAGE_MAX };
        let events = self.backend.ask(query).await.expect("events");
        for (index, envelope) in events.items.iter().enumerate() {
            assert_eq!(envelope.event.seq, index as u64 + 1, "events are numbered without holes");
        }
        events.items.into_iter().map(|envelope| envelope.event.kind).collect()
    }

    /// Checks the invariants that a store can check on itself.
    pub async fn audit(&self) {
        let audited = self.backend.ask(Audit).await.expect("an audit");
        assert!(audited.violations.is_empty(), "{:#?}", audited.violations);
    }
}

pub fn complete(task: &Task) -> Complete {
    Complete {
        execution_id: task.execution_id,
        authority: Authority::Fence(task.fence()),
        result: None,
        next: None,
    }
}

pub fn fail(task: &Task, category: &str) -> Fail {
    Fail {
        execution_id: task.execution_id,
        authority: Authority::Fence(task.fence()),
        reason: "it broke".to_owned(),
        category: category.to_owned(),
        class: None,
        retry_after_ms: None,
    }
}
