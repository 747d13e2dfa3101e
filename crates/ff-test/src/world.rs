//! A backend under test, with short words for common acts.

use std::sync::Arc;
use std::time::Duration;

use ff_core::backend::{Backend, BackendExt, Pending};
use ff_core::capability::Capabilities;
use ff_core::content::Content;
use ff_core::error::{Code, EngineError};
use ff_core::event::{Envelope, Event, EventKind};
use ff_core::id::{
    Authority, ExecutionId, IdempotencyKey, Kind, LaneId, Namespace, WorkerId, WorkerInstanceId,
};
use ff_core::limits;
use ff_core::operation::{
    Cancel, Claim, Command, Complete, Completed, Delay, DelayUntil, Fail, Failed, Hold, LaneOrder,
    LaneShare, Operation, Renew, Reply, Revoke, SetTags, Submit, Submitted, Task, UpdateProgress,
};
use ff_core::policy::Policy;
use ff_core::read::{
    Describe, EventFilter, Filter, Follow, From, ListAttempts, ListEvents, ReadResult, Record,
    Search,
};
use ff_core::state::{Attempt, CancelSource, PublicState};
use ff_core::tags::Tags;
use ff_core::time::TimestampMs;
pub use ff_engine::acts::settle;
use uuid::Uuid;

use crate::registered::Registered;
use crate::sound;

/// How long a test waits for what must come before it calls it missing.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A backend and the hand on its clock.
pub trait Stage: Send + Sync + 'static {
    fn backend(&self) -> Arc<dyn Backend>;

    /// Moves the store's clock.
    fn advance(&self, ms: i64) -> Pending<'_, ()>;

    /// Takes what the test has left in a store that others use too: they look through all of it.
    fn clear(&self) -> Pending<'_, ()> {
        Box::pin(std::future::ready(()))
    }
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

pub fn namespace(name: &str) -> Namespace {
    Namespace::new(name).expect("a namespace")
}

pub fn tags(pairs: &[(&str, &str)]) -> Tags {
    let owned = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Tags::new(owned).expect("tags")
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
        Self { backend: Arc::new(Registered::before(stage.backend())), stage: Box::new(stage) }
    }

    /// The same for a while, on a stage that goes on without it; its clock cannot be moved here.
    pub fn on(stage: &impl Stage) -> Self {
        Self::new(crate::stages::InItsTime(stage.backend()))
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
        settle(&*self.backend).await.expect("all that is due");
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

    /// A submit with an idempotency key, on the key's partition.
    pub fn work_keyed(&self, key: &str) -> Submit {
        self.keyed_in(Namespace::default(), key)
    }

    pub fn keyed_in(&self, namespace: Namespace, key: &str) -> Submit {
        let key = IdempotencyKey::new(key).expect("a key");
        let partitions = &self.backend.settings().partitions;
        let execution_id = ExecutionId::for_key(Uuid::now_v7(), &namespace, &key, partitions);
        Submit { execution_id, namespace, idempotency_key: Some(key), ..self.work() }
    }

    /// Carries out an operation that must succeed.
    pub async fn act<O: Operation>(&self, operation: O) -> O::Reply {
        self.backend.call(operation).await.unwrap_or_else(|error| panic!("{}: {error}", O::NAME))
    }

    /// Any command, among them those of a list.
    pub async fn command(&self, command: Command) -> Result<Reply, EngineError> {
        self.backend.apply(vec![command]).await.pop().expect("a reply")
    }

    /// The operation is refused with this code, and its execution stays exactly as it was.
    pub async fn refuses(&self, operation: impl Into<Command>, expected: Code) {
        self.refuses_saying(operation, expected, "").await;
    }

    /// The same, and the refusal says this word.
    pub async fn refuses_saying(&self, operation: impl Into<Command>, expected: Code, word: &str) {
        let command = operation.into();
        let id = command.execution_id().expect("an operation on one execution");
        let (before, shown) = (self.find(id).await, format!("{command:?}"));
        match self.command(command).await {
            Ok(reply) => panic!("{shown:.300}: expected {expected}, got {reply:?}"),
            Err(error) => {
                assert_eq!(error.code(), expected, "{shown:.300}: {error}");
                assert!(error.to_string().contains(word), "{shown:.300}: no {word:?} in {error}");
            }
        }
        assert_eq!(self.find(id).await, before, "{shown:.300} was refused and changed something");
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
            sets_aside: false,
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

    /// Submits, claims and completes.
    pub async fn finish(&self, submit: Submit) -> Task {
        let task = self.start(submit).await;
        self.complete(&task).await.expect("completed");
        task
    }

    /// Ids of up to `max` tasks of lane `work`, in the order of the reply.
    pub async fn claim_ids(&self, max: u32) -> Vec<ExecutionId> {
        self.claim(max).await.iter().map(|task| task.execution_id).collect()
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
        self.events(id).await.into_iter().map(|event| event.kind).collect()
    }

    /// All events about an execution, oldest first.
    pub async fn events(&self, id: ExecutionId) -> Vec<Event> {
        let query = ListEvents { execution_id: id, after_seq: 0, limit: limits::PAGE_MAX };
        let events = self.backend.ask(query).await.expect("events");
        for (index, envelope) in events.items.iter().enumerate() {
            assert_eq!(envelope.event.seq, index as u64 + 1, "events are numbered without holes");
        }
        events.items.into_iter().map(|envelope| envelope.event).collect()
    }

    /// The whole log from its oldest kept event.
    pub async fn log(&self) -> Vec<Envelope> {
        let (mut log, mut from) = (Vec::new(), From::Start);
        loop {
            let follow = Follow {
                filter: EventFilter::default(),
                from,
                limit: limits::PAGE_MAX,
                each: false,
            };
            let page = self.backend.events(follow, Duration::ZERO).await.expect("events");
            if page.items.is_empty() {
                return log;
            }
            log.extend(page.items);
            from = From::Cursor(page.cursor);
        }
    }

    /// All attempts of an execution.
    pub async fn attempts(&self, id: ExecutionId) -> Vec<Attempt> {
        let query = ListAttempts { execution_id: id, after: None, limit: limits::PAGE_MAX };
        self.backend.ask(query).await.expect("attempts").items
    }

    /// Result of the last success.
    pub async fn result(&self, id: ExecutionId) -> Result<Content, EngineError> {
        self.backend.ask(ReadResult { execution_id: id, attempt_index: None }).await
    }

    /// Ids that a search finds on its first page, which must be the only one with items.
    pub async fn search(&self, filter: Filter) -> Vec<ExecutionId> {
        let search = Search { filter, cursor: None, limit: limits::PAGE_MAX };
        let page = self.backend.ask(search).await.expect("a page");
        page.items.into_iter().map(|record| record.execution_id).collect()
    }

    /// Checks the invariants that a store can check on itself.
    pub async fn audit(&self) {
        let violations = sound::violations(&*self.backend).await.expect("an audit");
        assert!(violations.is_empty(), "{violations:#?}");
    }

    /// The world has ended, and nothing of it stays.
    pub async fn clear(self) {
        self.stage.clear().await;
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

pub fn renew(task: &Task) -> Renew {
    Renew { execution_id: task.execution_id, fence: task.fence(), ttl_ms: None }
}

pub fn progress(task: &Task, pct: u8) -> UpdateProgress {
    let message = format!("{pct} of 100");
    UpdateProgress { execution_id: task.execution_id, fence: task.fence(), pct, message }
}

pub fn delay(task: &Task, ms: u64) -> Delay {
    Delay {
        execution_id: task.execution_id,
        authority: Authority::Fence(task.fence()),
        until: DelayUntil::For(ms),
    }
}

/// A cancel by an operator.
pub fn cancel(id: ExecutionId) -> Cancel {
    Cancel {
        execution_id: id,
        reason: "not wanted".to_owned(),
        source: CancelSource::OperatorOverride,
        fence: None,
    }
}

/// A cancel by the worker that runs the task.
pub fn cancel_held(task: &Task) -> Cancel {
    Cancel {
        source: CancelSource::LeaseHolder,
        fence: Some(task.fence()),
        ..cancel(task.execution_id)
    }
}

pub fn revoke(id: ExecutionId) -> Revoke {
    Revoke { execution_id: id, reason: "maintenance".to_owned(), expected_lease_id: None }
}

pub fn hold(id: ExecutionId) -> Hold {
    Hold { execution_id: id, detail: "audit".to_owned() }
}

pub fn set_tags(id: ExecutionId, pairs: &[(&str, &str)]) -> SetTags {
    SetTags { execution_id: id, tags: tags(pairs), expected_revision: None }
}

/// Every operation that a worker shows its fence with.
pub fn fenced(task: &Task) -> [Command; 6] {
    [
        renew(task).into(),
        progress(task, 50).into(),
        complete(task).into(),
        fail(task, "transient").into(),
        delay(task, 1_000).into(),
        cancel_held(task).into(),
    ]
}
