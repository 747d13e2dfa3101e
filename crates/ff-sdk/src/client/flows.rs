//! Flows: submitted, waited for, looked at, cancelled, replayed.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use ff_core::backend::BackendExt as _;
use ff_core::id::{ExecutionId, FlowId};
use ff_core::limits;
use ff_core::operation::{
    CancelFlow, DeleteFlow, FlowCancelled, FlowReplayed, Operation as _, ReplayFlow, SetFlowTags,
    TagsSet,
};
use ff_core::read::{Events, FlowFilter, FlowSnapshot, ListFlowEvents, ListFlows, Page};
use ff_core::state::{CancelPolicy, FlowState};

use super::manage::read_tags;
use super::{Client, Execution, Flow};
use crate::error::SdkError;
use crate::patience::{PATIENCE, insist, within_time};

/// How long the store may take for a whole graph.
const GRAPH: Duration = Duration::from_secs(60);

/// A flow and its steps by name.
///
/// ```
/// use std::time::Duration;
/// use ff_sdk::{Client, Flow, Submission};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ff_sdk::SdkError> {
/// # let client = Client::connect("sqlite::memory:").await?;
/// let flow = Flow::new("report")
///     .step("fetch", Submission::new("fetch"))
///     .step("print", Submission::new("print"))
///     .after("fetch");
/// let flow = client.submit_flow(flow).await?;
/// let fetch = flow.step("fetch").expect("a step of this name");
/// fetch.cancel("no paper").await?;
/// let finished = flow.wait(Duration::from_secs(10)).await?;
/// assert!(!finished.is_success());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct FlowHandle {
    client: Client,
    id: FlowId,
    steps: BTreeMap<String, ExecutionId>,
    was_there: bool,
}

/// A flow that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedFlow {
    /// `completed`, `failed` or `cancelled`.
    pub state: FlowState,
    /// All that is known of it, with how many steps ended in which way.
    pub flow: Box<FlowSnapshot>,
}

impl FinishedFlow {
    /// Whether it completed.
    pub fn is_success(&self) -> bool {
        self.state == FlowState::Completed
    }
}

impl FlowHandle {
    /// Its id.
    pub fn id(&self) -> FlowId {
        self.id
    }

    /// Whether it was submitted before, under the same idempotency key.
    pub fn was_there_already(&self) -> bool {
        self.was_there
    }

    /// A step, by its name; none if the flow was made without one of this name.
    pub fn step(&self, name: &str) -> Option<Execution> {
        self.steps.get(name).map(|id| self.client.execution(*id))
    }

    /// Names and executions of all steps that the flow was submitted with.
    pub fn steps(&self) -> &BTreeMap<String, ExecutionId> {
        &self.steps
    }

    /// Waits until the last step has ended.
    pub async fn wait(&self, timeout: Duration) -> Result<FinishedFlow, SdkError> {
        self.client.wait_for_flow(self.id, timeout).await
    }

    /// How it is now.
    pub async fn describe(&self) -> Result<FlowSnapshot, SdkError> {
        self.client.describe_flow(self.id).await
    }

    /// Cancels every step that has not ended.
    pub async fn cancel(&self, reason: &str) -> Result<FlowCancelled, SdkError> {
        self.client.cancel_flow(self.id, CancelPolicy::CancelAll, reason, Duration::ZERO).await
    }
}

impl fmt::Debug for FlowHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowHandle")
            .field("id", &self.id.to_string())
            .field("steps", &self.steps.keys())
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Submits a whole graph: all of it or nothing. Sent again when the reply is lost.
    ///
    /// # Errors
    ///
    /// Before anything is submitted: [`SdkError::Config`] with the name of what is wrong, and the
    /// codes `cycle_detected`, `self_referencing_edge`, `execution_not_in_flow` (a name that no step
    /// has) and `dependency_already_exists`.
    pub async fn submit_flow(&self, flow: Flow) -> Result<FlowHandle, SdkError> {
        let now = self.clock_for(flow.needs_clock()).await?;
        let partitions = &self.backend().settings().partitions;
        let graph = flow.operation(&self.namespace, partitions, now)?;
        let minted = graph.members.first().map(|member| member.submit.execution_id);
        let send = || within_time(GRAPH, "submit_flow", self.backend().submit_graph(graph.clone()));
        let made = insist(PATIENCE, send).await?;
        let was_there = made.members.first().map(|(_, id)| *id) != minted;
        let steps = made.members.into_iter().map(|(name, id)| (name.to_string(), id)).collect();
        Ok(FlowHandle { client: self.clone(), id: made.flow_id, steps, was_there })
    }

    /// Waits until the last member of a flow has ended; the store tells when.
    pub async fn wait_for_flow(
        &self,
        flow_id: FlowId,
        timeout: Duration,
    ) -> Result<FinishedFlow, SdkError> {
        let flow = self.wait_until_flow(flow_id, timeout).await?;
        Ok(FinishedFlow { state: flow.state, flow })
    }

    /// A flow, with how many of its members are in which state.
    pub async fn describe_flow(&self, flow_id: FlowId) -> Result<FlowSnapshot, SdkError> {
        Ok(*self.look_at_flow(flow_id).await?)
    }

    /// Flows of the client's namespace, newest first: a page of up to `limit`.
    pub async fn list_flows(
        &self,
        filter: FlowFilter,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<Page<FlowSnapshot>, SdkError> {
        let filter = FlowFilter { namespace: self.namespace.clone(), ..filter };
        self.ask(ListFlows { filter, cursor, limit }).await
    }

    /// Events about a flow, oldest first; its members have events of their own.
    pub async fn list_flow_events(
        &self,
        flow_id: FlowId,
        after_seq: u64,
    ) -> Result<Events, SdkError> {
        self.ask(ListFlowEvents { flow_id, after_seq, limit: limits::PAGE_MAX }).await
    }

    /// Ends a flow for ever. Members of a large one may still be on their way to their end when this
    /// answers; with a `wait` it answers when they have ended, or with a timeout, and the cancel
    /// stands.
    pub async fn cancel_flow(
        &self,
        flow_id: FlowId,
        policy: CancelPolicy,
        reason: &str,
        wait: Duration,
    ) -> Result<FlowCancelled, SdkError> {
        let cancel = CancelFlow { flow_id, policy, reason: reason.to_owned() };
        cancel.check().map_err(SdkError::unsent)?;
        let send = || {
            let cancelling = self.backend().cancel_flow(cancel.clone(), wait);
            within_time(wait.saturating_add(GRAPH), "cancel_flow", cancelling)
        };
        if wait.is_zero() {
            return Ok(insist(PATIENCE, send).await?);
        }
        Ok(send().await?)
    }

    /// Runs members of a flow that has ended once more: these, or every failure that nothing handled
    /// with what was skipped because of it.
    pub async fn replay_flow(
        &self,
        flow_id: FlowId,
        members: Option<Vec<ExecutionId>>,
    ) -> Result<FlowReplayed, SdkError> {
        self.call(ReplayFlow { flow_id, members }).await
    }

    /// Puts tags over those that the flow has. Keys have the form `<caller>.<field>`.
    pub async fn set_flow_tags(
        &self,
        flow_id: FlowId,
        tags: BTreeMap<String, String>,
    ) -> Result<TagsSet, SdkError> {
        let tags = read_tags(tags)?;
        self.insist(SetFlowTags { flow_id, tags, expected_revision: None }).await
    }

    /// Removes a flow that has ended, with all its members.
    pub async fn delete_flow(&self, flow_id: FlowId) -> Result<(), SdkError> {
        self.call(DeleteFlow { flow_id }).await?;
        Ok(())
    }
}
