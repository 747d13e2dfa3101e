//! Flows: submitted, waited for, looked at, cancelled, replayed.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use ff_core::backend::BackendExt as _;
use ff_core::id::{ExecutionId, FlowId};
use ff_core::limits;
use ff_core::operation::{
    CancelFlow, FlowCancelled, FlowReplayed, Operation as _, ReplayFlow, SetFlowTags, TagsSet,
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
///
/// ```
/// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = TestEngine::start().await;
/// # let worker = engine.worker(WorkerConfig::new("w")).await;
/// use ff_sdk::Flow;
/// use std::time::Duration;
///
/// let flow = Flow::new("report").step("fetch", Submission::new("fetch"));
/// let flow = engine.client().submit_flow(flow).await?;
/// worker.claim_next().await?.expect("fetch").complete(None).await?;
/// let finished = flow.wait(Duration::from_secs(10)).await?;
/// assert_eq!((finished.is_success(), finished.flow.node_count), (true, 1));
/// # Ok(())
/// # }
/// ```
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
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("report").step("fetch", Submission::new("fetch"));
    /// let flow = flow.idempotency_key("may");
    /// assert!(!client.submit_flow(flow.clone()).await?.was_there_already());
    /// assert!(client.submit_flow(flow).await?.was_there_already());
    /// # Ok(())
    /// # }
    /// ```
    pub fn was_there_already(&self) -> bool {
        self.was_there
    }

    /// A step, by its name; none if the flow was made without one of this name.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("report").step("fetch", Submission::new("fetch"));
    /// let flow = client.submit_flow(flow).await?;
    /// assert!(flow.step("fetch").is_some() && flow.step("print").is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn step(&self, name: &str) -> Option<Execution> {
        self.steps.get(name).map(|id| self.client.execution(*id))
    }

    /// Names and executions of all steps that the flow was submitted with.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("report").step("fetch", Submission::new("fetch"));
    /// let flow = client.submit_flow(flow).await?;
    /// assert_eq!(flow.steps().keys().collect::<Vec<_>>(), ["fetch"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn steps(&self) -> &BTreeMap<String, ExecutionId> {
        &self.steps
    }

    /// Waits until the last step has ended.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::Flow;
    /// use std::time::Duration;
    ///
    /// let flow = Flow::new("report").step("fetch", Submission::new("fetch"));
    /// let flow = client.submit_flow(flow).await?;
    /// flow.cancel("not today").await?;
    /// assert!(!flow.wait(Duration::from_secs(10)).await?.is_success());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Client::wait_for_flow`].
    pub async fn wait(&self, timeout: Duration) -> Result<FinishedFlow, SdkError> {
        self.client.wait_for_flow(self.id, timeout).await
    }

    /// How it is now.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::state::PublicState;
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("report").step("fetch", Submission::new("fetch"));
    /// let flow = client.submit_flow(flow).await?;
    /// assert_eq!(flow.describe().await?.counts.of(PublicState::Waiting), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `flow_not_found`.
    pub async fn describe(&self) -> Result<FlowSnapshot, SdkError> {
        self.client.describe_flow(self.id).await
    }

    /// Cancels every step that has not ended.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::state::FlowState;
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("report").step("fetch", Submission::new("fetch"));
    /// let flow = client.submit_flow(flow).await?;
    /// flow.cancel("not today").await?;
    /// assert_eq!(flow.describe().await?.state, FlowState::Cancelled);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Client::cancel_flow`].
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
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::error::Code;
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("report")
    ///     .step("fetch", Submission::new("fetch"))
    ///     .step("print", Submission::new("print")).after("fetch");
    /// assert_eq!(client.submit_flow(flow).await?.steps().len(), 2);
    ///
    /// let circle = Flow::new("circle")
    ///     .step("hen", Submission::new("lay")).after("egg")
    ///     .step("egg", Submission::new("hatch")).after("hen");
    /// let refused = client.submit_flow(circle).await.unwrap_err();
    /// assert_eq!(refused.code(), Some(Code::CycleDetected));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Before anything is submitted: [`SdkError::Config`] with the name of what is wrong, and the
    /// codes `cycle_detected`, `self_referencing_edge`, `execution_not_in_flow` (a name that no
    /// step has) and `dependency_already_exists`.
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
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::Flow;
    /// use std::time::Duration;
    ///
    /// let flow = Flow::new("report").step("fetch", Submission::new("fetch"));
    /// let flow = client.submit_flow(flow).await?;
    /// flow.cancel("not today").await?;
    /// let finished = client.wait_for_flow(flow.id(), Duration::from_secs(10)).await?;
    /// assert!(!finished.is_success());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `timeout` when it has not ended in time, and `flow_not_found`.
    pub async fn wait_for_flow(
        &self,
        flow_id: FlowId,
        timeout: Duration,
    ) -> Result<FinishedFlow, SdkError> {
        let flow = self.wait_until_flow(flow_id, timeout).await?;
        Ok(FinishedFlow { state: flow.state, flow })
    }

    /// A flow, with how many of its members are in which state.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("report").step("fetch", Submission::new("fetch"));
    /// let flow = client.submit_flow(flow).await?;
    /// assert_eq!(client.describe_flow(flow.id()).await?.kind.as_str(), "report");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `flow_not_found`.
    pub async fn describe_flow(&self, flow_id: FlowId) -> Result<FlowSnapshot, SdkError> {
        Ok(*self.look_at_flow(flow_id).await?)
    }

    /// Flows of the client's namespace, newest first: a page of up to `limit`.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::read::FlowFilter;
    /// use ff_sdk::Flow;
    ///
    /// client.submit_flow(Flow::new("report").step("fetch", Submission::new("fetch"))).await?;
    /// let reports = FlowFilter { kinds: vec!["report".parse()?], ..FlowFilter::default() };
    /// assert_eq!(client.list_flows(reports, None, 50).await?.items.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `invalid_cursor` for a cursor of another list.
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
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("report").step("fetch", Submission::new("fetch"));
    /// let flow = client.submit_flow(flow).await?;
    /// let events = client.list_flow_events(flow.id(), 0).await?.items;
    /// assert_eq!(events[0].event.kind.as_str(), "flow.created");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `flow_not_found`.
    pub async fn list_flow_events(
        &self,
        flow_id: FlowId,
        after_seq: u64,
    ) -> Result<Events, SdkError> {
        self.ask(ListFlowEvents { flow_id, after_seq, limit: limits::PAGE_MAX }).await
    }

    /// Ends a flow for ever. Members of a large one may still be on their way to their end when
    /// this answers; with a `wait` it answers when they have ended, or with a timeout, and the
    /// cancel stands.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::state::CancelPolicy;
    /// use ff_sdk::Flow;
    /// use std::time::Duration;
    ///
    /// let flow = Flow::new("report").step("fetch", Submission::new("fetch"));
    /// let flow = client.submit_flow(flow).await?;
    /// let all = CancelPolicy::CancelAll;
    /// client.cancel_flow(flow.id(), all, "not today", Duration::from_secs(5)).await?;
    /// assert!(flow.step("fetch").expect("a step").describe().await?.has_ended());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `flow_already_terminal` when it has ended in another way, `flow_not_found`, and `timeout`
    /// when members have not ended within the wait.
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

    /// Runs members of a flow that has ended once more: these, or every failure that nothing
    /// handled with what was skipped because of it.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// use ff_core::operation::FlowReplayed;
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("report").step("fetch", Submission::new("fetch"));
    /// let flow = engine.client().submit_flow(flow).await?;
    /// worker.claim_next().await?.expect("fetch").fail("gone", "permanent").await?;
    /// let replayed = engine.client().replay_flow(flow.id(), None).await?;
    /// assert!(matches!(replayed, FlowReplayed::Replayed { members, .. } if members.len() == 1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `flow_not_terminal` while it runs, `max_replays_exhausted`, `execution_not_in_flow` and
    /// `flow_not_found`.
    pub async fn replay_flow(
        &self,
        flow_id: FlowId,
        members: Option<Vec<ExecutionId>>,
    ) -> Result<FlowReplayed, SdkError> {
        self.call(ReplayFlow { flow_id, members }).await
    }

    /// Puts tags over those that the flow has. Keys have the form `<caller>.<field>`.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("report").step("fetch", Submission::new("fetch"));
    /// let flow = client.submit_flow(flow).await?;
    /// let tags = [("crm.customer".to_owned(), "acme".to_owned())];
    /// client.set_flow_tags(flow.id(), tags.into()).await?;
    /// assert_eq!(flow.describe().await?.tags.get("crm.customer"), Some("acme"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::set_tags`], and `flow_not_found`.
    pub async fn set_flow_tags(
        &self,
        flow_id: FlowId,
        tags: BTreeMap<String, String>,
    ) -> Result<TagsSet, SdkError> {
        let tags = read_tags(tags)?;
        self.insist(SetFlowTags { flow_id, tags, expected_revision: None }).await
    }

    /// Removes a flow that has ended, with all its members.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("report").step("fetch", Submission::new("fetch"));
    /// let flow = client.submit_flow(flow).await?;
    /// flow.cancel("not today").await?;
    /// client.delete_flow(flow.id()).await?;
    /// assert!(flow.describe().await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `flow_not_terminal` while it runs; `flow_not_found`.
    pub async fn delete_flow(&self, flow_id: FlowId) -> Result<(), SdkError> {
        within_time(GRAPH, "delete_flow", self.backend().delete_flow(flow_id)).await?;
        Ok(())
    }
}
