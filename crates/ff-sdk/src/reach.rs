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
    pub async fn describe_execution(&self, id: ExecutionId) -> Result<Record, SdkError> {
        self.client().describe(id).await
    }

    /// A flow, with how many of its members are in which state.
    pub async fn describe_flow(&self, flow_id: FlowId) -> Result<FlowSnapshot, SdkError> {
        self.client().describe_flow(flow_id).await
    }

    /// Executions of the worker's namespace, newest first. See [`crate::Client::search`].
    pub async fn list_executions(
        &self,
        filter: Filter,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<Page<Record>, SdkError> {
        self.client().search(filter, cursor, limit).await
    }

    /// Live workers of the worker's namespace.
    pub async fn list_workers(
        &self,
        cursor: Option<String>,
    ) -> Result<Page<WorkerSnapshot>, SdkError> {
        self.client().list_workers(cursor).await
    }

    /// Lanes of the worker's namespace.
    pub async fn list_lanes(&self, cursor: Option<String>) -> Result<Page<LaneSnapshot>, SdkError> {
        self.client().list_lanes(cursor).await
    }

    /// When the edges that lead to a member of a flow let it go.
    pub async fn set_edge_group_policy(
        &self,
        flow_id: FlowId,
        downstream: ExecutionId,
        join: Join,
    ) -> Result<GroupSet, SdkError> {
        self.client().set_edge_group_policy(flow_id, downstream, join).await
    }

    /// Makes another key sign waitpoint tokens, everywhere. Over a store only: for a server there is
    /// [`FlowFabricAdminClient::rotate_waitpoint_secret`].
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
