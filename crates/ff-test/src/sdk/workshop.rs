//! A store under test, and workers of it.

use std::sync::Arc;

use ff_core::backend::{Backend, BackendExt as _};
use ff_core::content::Content;
use ff_core::id::{ExecutionId, Kind};
use ff_core::layer::Layered;
use ff_core::operation::Submit;
use ff_core::read::{Describe, Record};
use ff_core::state::PublicState;
use ff_core::time::TimestampMs;
use ff_remote::{Options, Remote};
use ff_sdk::{ClaimedTask, Client, FlowFabricWorker, WorkerConfig};
use uuid::Uuid;

use super::Wire;
use crate::http::Site;
use crate::world::{Stage, lane, settle};

/// What an SDK test gets: a fresh store of its own, and the way to it that is under test.
pub struct Workshop {
    /// What the SDK talks to.
    pub backend: Arc<dyn Backend>,
    /// The way there.
    pub wire: Arc<Layered<Wire>>,
    stage: Arc<dyn Stage>,
    _site: Option<Site>,
}

impl Workshop {
    /// In the process of the store.
    pub fn on(stage: impl Stage) -> Self {
        let wire = Wire::to(stage.backend());
        Self::over(wire, Arc::new(stage), None)
    }

    /// Behind a server of its own.
    pub async fn behind_a_server(stage: impl Stage) -> Self {
        let stage: Arc<dyn Stage> = Arc::new(stage);
        let site = Site::before(Arc::clone(&stage)).await;
        let url = format!("http://{}", site.addr);
        let remote = Remote::connect(&url, Options::default()).await.expect("a connection");
        Self::over(Wire::to(Arc::new(remote)), stage, Some(site))
    }

    fn over(wire: Arc<Layered<Wire>>, stage: Arc<dyn Stage>, site: Option<Site>) -> Self {
        Self { backend: Arc::clone(&wire) as Arc<dyn Backend>, wire, stage, _site: site }
    }

    /// The store itself.
    pub fn store(&self) -> Arc<dyn Backend> {
        self.stage.backend()
    }

    /// Settings of worker `w` for lane `work`.
    pub fn config(&self) -> WorkerConfig {
        WorkerConfig::new("w").lane("work").max_concurrent_tasks(8)
    }

    pub async fn worker(&self) -> FlowFabricWorker {
        self.worker_with(self.config()).await
    }

    pub async fn worker_with(&self, config: WorkerConfig) -> FlowFabricWorker {
        let backend = Arc::clone(&self.backend);
        FlowFabricWorker::connect_with(config, Arc::clone(&backend), Some(backend))
            .await
            .expect("a worker")
    }

    pub fn client(&self) -> Client {
        Client::connect_with(Arc::clone(&self.backend))
    }

    /// Moves the store's clock without letting timers fire.
    pub async fn advance(&self, ms: i64) {
        self.stage.advance(ms).await;
    }

    /// Moves the store's clock and carries out all that is due by then.
    pub async fn pass(&self, ms: i64) {
        self.stage.advance(ms).await;
        settle(&*self.store()).await.expect("what is due is done");
    }

    /// A submit on lane `work` with an id of its own.
    pub fn work(&self) -> Submit {
        let id = ExecutionId::solo(Uuid::now_v7(), &self.backend.settings().partitions);
        let submit = Submit::new(id, lane("work"), Kind::new("test").expect("a kind"));
        Submit { payload: Content::json(r#"{"n":1}"#), ..submit }
    }

    pub async fn submit(&self, submit: Submit) -> ExecutionId {
        let id = submit.execution_id;
        self.store().call(submit).await.expect("submitted");
        id
    }

    /// A worker, and the task that it claimed of this.
    pub async fn started(&self, submit: Submit) -> (FlowFabricWorker, ClaimedTask) {
        let worker = self.worker().await;
        let task = self.start(&worker, submit).await;
        (worker, task)
    }

    /// Submits, and lets a worker claim it.
    pub async fn start(&self, worker: &FlowFabricWorker, submit: Submit) -> ClaimedTask {
        let id = self.submit(submit).await;
        let task = worker.claim_next().await.expect("a claim").expect("a task");
        assert_eq!(task.execution_id(), id);
        task
    }

    pub async fn now(&self) -> TimestampMs {
        self.store().server_time_ms().await.expect("the time")
    }

    pub async fn state(&self, execution_id: ExecutionId) -> PublicState {
        self.describe(execution_id).await.state.public_state
    }

    pub async fn describe(&self, execution_id: ExecutionId) -> Record {
        let record = self.store().ask(Describe { execution_id }).await.expect("an answer");
        *record.expect("an execution")
    }
}
