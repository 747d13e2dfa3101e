//! Workers: over the connection of a client, and as operators see them.

use std::sync::Arc;

use ff_core::error::{Code, Refusal};
use ff_core::limits;
use ff_core::operation::{DrainWorker, MarkWorkerDead, Settled, WorkerGone};
use ff_core::read::{
    DescribeWorker, LeasesOf, ListExpiredLeases, ListWorkers, ListedLease, Page, WorkerSnapshot,
};
use ff_engine::acts;

use super::Client;
use crate::config::{WorkerConfig, parse};
use crate::error::SdkError;
use crate::patience::within;
use crate::worker::FlowFabricWorker;

impl Client {
    /// A worker over the client's connection and in its namespace: what the config says of URL,
    /// token, namespace and engine is not looked at. The connection stays open when the worker
    /// leaves.
    ///
    /// ```
    /// # use ff_sdk::{Client, Submission, WorkerConfig};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ff_sdk::SdkError> {
    /// let client = Client::connect("sqlite::memory:").await?;
    /// client.submit(Submission::new("greet")).await?;
    /// let worker = client.worker(WorkerConfig::new("greeter")).await?;
    /// let task = worker.claim_next().await?.expect("what was submitted");
    /// task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`FlowFabricWorker::connect`].
    pub async fn worker(&self, config: WorkerConfig) -> Result<FlowFabricWorker, SdkError> {
        let (config, backend) = (config.namespace(self.namespace.to_string()), self.backend());
        let completion = Some(Arc::clone(backend));
        FlowFabricWorker::connect_with(config, Arc::clone(backend), completion).await
    }

    /// Live workers of the client's namespace, in the order of registration.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// let workers = engine.client().list_workers(None).await?.items;
    /// assert_eq!(workers[0].worker_id.as_str(), "w");
    /// # drop(worker);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `invalid_cursor` for a cursor of another list.
    pub async fn list_workers(
        &self,
        cursor: Option<String>,
    ) -> Result<Page<WorkerSnapshot>, SdkError> {
        let namespace = self.namespace.clone();
        self.ask(ListWorkers { namespace, within: None, cursor, limit: limits::PAGE }).await
    }

    /// One worker, by the name of its process. `worker_not_found` when it is none, or dead.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// let described = engine.client().describe_worker(worker.worker_instance_id()).await?;
    /// assert_eq!((described.running, described.max_concurrent), (0, 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `worker_not_found`.
    pub async fn describe_worker(
        &self,
        worker_instance_id: &str,
    ) -> Result<WorkerSnapshot, SdkError> {
        let (namespace, instance) = (self.namespace.clone(), worker_instance_id);
        let worker_instance_id = parse("worker_instance_id", instance)?;
        let counted = true;
        let found = self.ask(DescribeWorker { namespace, worker_instance_id, counted }).await?;
        let missing = || {
            let detail = format!("no worker {instance}");
            Refusal::at(Code::WorkerNotFound, "worker_instance_id", detail)
        };
        Ok(*found.ok_or_else(missing)?)
    }

    /// The worker gets no more tasks; those that it runs may end.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// engine.client().drain_worker(worker.worker_instance_id()).await?;
    /// worker.drained().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `worker_not_found`.
    pub async fn drain_worker(&self, worker_instance_id: &str) -> Result<Settled, SdkError> {
        let worker_instance_id = parse("worker_instance_id", worker_instance_id)?;
        let namespace = self.namespace.clone();
        let reason = String::new();
        self.insist(DrainWorker { namespace, worker_instance_id, reason }).await
    }

    /// The worker is known to be dead: what it ran is claimable by others at once. True if it was
    /// registered.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// # engine.client().submit(Submission::new("greet")).await?;
    /// let task = worker.claim_next().await?.expect("there is work");
    /// let name = worker.worker_instance_id();
    /// assert!(engine.client().mark_worker_dead(name, "its machine is gone").await?);
    /// let other = engine.worker(ff_sdk::WorkerConfig::new("other")).await;
    /// assert!(other.claim_next().await?.is_some());
    /// # drop(task);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] for a name that is none.
    pub async fn mark_worker_dead(
        &self,
        worker_instance_id: &str,
        reason: &str,
    ) -> Result<bool, SdkError> {
        let mark = MarkWorkerDead {
            namespace: self.namespace.clone(),
            worker_instance_id: parse("worker_instance_id", worker_instance_id)?,
            reason: reason.to_owned(),
        };
        let marked = acts::mark_dead(&**self.backend(), mark);
        let gone = within("mark_worker_dead", marked).await?;
        Ok(matches!(gone, WorkerGone::Gone(_)))
    }

    /// Leases that are held in the client's namespace: of one worker process, or all. Over a store
    /// only: no route tells of them.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// let leases = engine.client().list_leases(None, None).await?.items;
    /// assert_eq!(leases[0].execution_id, task.execution_id());
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `route_not_found` over a server; `invalid_cursor` for a cursor of another list.
    pub async fn list_leases(
        &self,
        worker_instance_id: Option<&str>,
        cursor: Option<String>,
    ) -> Result<Page<ListedLease>, SdkError> {
        let instance = worker_instance_id.map(|id| parse("worker_instance_id", id)).transpose()?;
        let (namespace, worker_instance_id) = (self.namespace.clone(), instance);
        self.ask(LeasesOf { namespace, worker_instance_id, cursor, limit: limits::PAGE }).await
    }

    /// Leases that have run out and that no timer has handled yet.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// assert!(client.list_expired_leases(None).await?.items.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::list_leases`].
    pub async fn list_expired_leases(
        &self,
        cursor: Option<String>,
    ) -> Result<Page<ListedLease>, SdkError> {
        let namespace = self.namespace.clone();
        self.ask(ListExpiredLeases { namespace, cursor, limit: limits::PAGE }).await
    }
}
