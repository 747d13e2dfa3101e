//! What a worker reaches beyond its own tasks: thin, over its client.

use std::time::Duration;

use ff_core::capability::Capabilities;
use ff_core::id::{ExecutionId, FlowId, LaneId};
use ff_core::operation::{ClaimForWorker, GroupSet, Rotated, WaitpointRef};
use ff_core::read::{Filter, FlowSnapshot, LaneSnapshot, Page, Record, WorkerSnapshot};
use ff_core::state::Join;

use crate::admin::FlowFabricAdminClient;
use crate::config::parse;
use crate::error::SdkError;
use crate::presence::millis;
use crate::task::{ClaimedTask, Signal, SignalOutcome};
use crate::worker::FlowFabricWorker;

impl FlowFabricWorker {
    /// Says something to a waitpoint, of an execution of any lane.
    ///
    /// See [`Client::deliver_signal`](crate::Client::deliver_signal).
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// # use ff_sdk::{Suspension, SuspendOutcome};
    /// use ff_sdk::Signal;
    ///
    /// # let task = engine.claimed(Submission::new("order")).await;
    /// # let id = task.execution_id();
    /// # let wait = Suspension::signal("payment", "paid")?;
    /// # let SuspendOutcome::Suspended(at) = task.suspend_on(wait).await? else { panic!() };
    /// # let ticket = at.waitpoint().expect("a waitpoint").clone();
    /// worker.deliver_signal(id, ticket.waitpoint_id, Signal::new("paid", ticket.token)).await?;
    /// let task = worker.claim_next().await?.expect("it goes on");
    /// assert_eq!(task.resume_signals().await?[0].name.as_str(), "paid");
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Client::deliver_signal`](crate::Client::deliver_signal).
    pub async fn deliver_signal(
        &self,
        execution_id: ExecutionId,
        waitpoint: impl Into<WaitpointRef>,
        signal: Signal,
    ) -> Result<SignalOutcome, SdkError> {
        self.client().deliver_signal(execution_id, waitpoint, signal).await
    }

    /// Asks a scheduler for the next execution of a lane that this worker may run, and takes it up.
    /// None: there is nothing for it. The grant lasts `ttl`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use ff_sdk::FlowFabricAdminClient;
    /// # use ff_sdk::testing::TestEngine;
    /// # use ff_sdk::{Submission, WorkerConfig};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// # engine.client().submit(Submission::new("greet")).await?;
    /// let admin = FlowFabricAdminClient::connect_with(engine.backend());
    /// let task = worker.claim_via_server(&admin, "default", Duration::from_secs(5)).await?;
    /// task.expect("there is work").complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::WorkerAtCapacity`] before a grant is asked for.
    pub async fn claim_via_server(
        &self,
        admin: &FlowFabricAdminClient,
        lane: &str,
        ttl: Duration,
    ) -> Result<Option<ClaimedTask>, SdkError> {
        let lane: LaneId = parse("lane", lane)?;
        let config = self.config();
        if self.running_tasks() >= config.max_concurrent_tasks {
            return Err(SdkError::WorkerAtCapacity);
        }
        let claim = ClaimForWorker {
            namespace: parse("namespace", &config.namespace)?,
            worker_id: parse("worker_id", &config.worker_id)?,
            worker_instance_id: parse("worker_instance_id", self.worker_instance_id())?,
            lane: lane.clone(),
            capabilities: Capabilities::new(&config.capabilities)?,
            grant_ttl_ms: millis(ttl),
        };
        match admin.claim_for_worker(claim).await? {
            Some(grant) => Ok(Some(self.claim_from_grant(&lane, &grant).await?)),
            None => Ok(None),
        }
    }

    /// All that is known of an execution, but for payload and results.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// # let greeting = engine.client().submit(Submission::new("greet")).await?;
    /// let record = worker.describe_execution(greeting.id()).await?;
    /// assert_eq!(record.kind.as_str(), "greet");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The code `execution_not_found`.
    pub async fn describe_execution(&self, id: ExecutionId) -> Result<Record, SdkError> {
        self.client().describe(id).await
    }

    /// A flow, with how many of its members are in which state.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// # use ff_sdk::Flow;
    /// # let flow = Flow::new("report").step("fetch", Submission::new("fetch"));
    /// # let flow = engine.client().submit_flow(flow).await?;
    /// assert_eq!(worker.describe_flow(flow.id()).await?.node_count, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The code `flow_not_found`.
    pub async fn describe_flow(&self, flow_id: FlowId) -> Result<FlowSnapshot, SdkError> {
        self.client().describe_flow(flow_id).await
    }

    /// Executions of the worker's namespace, newest first. See [`crate::Client::search`].
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// use ff_core::read::Filter;
    ///
    /// engine.client().submit(Submission::new("greet")).await?;
    /// let page = worker.list_executions(Filter::default(), None, 50).await?;
    /// assert_eq!(page.items.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The code `invalid_cursor` for a cursor of another list.
    pub async fn list_executions(
        &self,
        filter: Filter,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<Page<Record>, SdkError> {
        self.client().search(filter, cursor, limit).await
    }

    /// Live workers of the worker's namespace.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// let workers = worker.list_workers(None).await?.items;
    /// assert_eq!(&*workers[0].worker_instance_id, worker.worker_instance_id());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The code `invalid_cursor` for a cursor of another list.
    pub async fn list_workers(
        &self,
        cursor: Option<String>,
    ) -> Result<Page<WorkerSnapshot>, SdkError> {
        self.client().list_workers(cursor).await
    }

    /// Lanes of the worker's namespace.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// engine.client().submit(Submission::new("resize").lane("images")).await?;
    /// let lanes = worker.list_lanes(None).await?.items;
    /// assert!(lanes.iter().any(|lane| lane.lane.as_str() == "images"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The code `invalid_cursor` for a cursor of another list.
    pub async fn list_lanes(&self, cursor: Option<String>) -> Result<Page<LaneSnapshot>, SdkError> {
        self.client().list_lanes(cursor).await
    }

    /// When the edges that lead to a member of a flow let it go.
    ///
    /// See [`Client::set_edge_group_policy`](crate::Client::set_edge_group_policy).
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// # use ff_sdk::Flow;
    /// use ff_core::state::{Join, OnSatisfied};
    ///
    /// # let flow = Flow::new("race")
    /// #     .step("a", Submission::new("ask"))
    /// #     .step("b", Submission::new("ask"))
    /// #     .step("best", Submission::new("best")).after("a").after("b");
    /// # let flow = engine.client().submit_flow(flow).await?;
    /// let best = flow.step("best").expect("a step").id();
    /// let first = Join::AnyOf(OnSatisfied::CancelRemaining);
    /// worker.set_edge_group_policy(flow.id(), best, first).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Client::set_edge_group_policy`](crate::Client::set_edge_group_policy).
    pub async fn set_edge_group_policy(
        &self,
        flow_id: FlowId,
        downstream: ExecutionId,
        join: Join,
    ) -> Result<GroupSet, SdkError> {
        self.client().set_edge_group_policy(flow_id, downstream, join).await
    }

    /// Makes another key sign waitpoint tokens, everywhere. Over a store only: for a server there
    /// is [`FlowFabricAdminClient::rotate_waitpoint_secret`].
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// let secret = "5e".repeat(32);
    /// let rotated = worker.rotate_waitpoint_hmac_secret_all("k2", &secret, None).await?;
    /// assert_eq!(rotated.current_kid.as_str(), "k2");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`FlowFabricAdminClient::rotate_waitpoint_secret`].
    pub async fn rotate_waitpoint_hmac_secret_all(
        &self,
        new_kid: &str,
        new_secret_hex: &str,
        grace: Option<Duration>,
    ) -> Result<Rotated, SdkError> {
        let admin = FlowFabricAdminClient::connect_with(self.backend().clone());
        admin.rotate_waitpoint_secret(new_kid, new_secret_hex, grace).await
    }
}
