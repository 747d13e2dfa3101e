//! Flows that grow while they run: members, edges and rules one by one.

use std::collections::BTreeMap;

use ff_core::id::{EdgeId, ExecutionId, FlowId, MemberName};
use ff_core::limits;
use ff_core::operation::{
    AddToFlow, AddedToFlow, ApplyEdge, CreateFlow, EdgeApplied, EdgeStaged, GroupSet, InFlow,
    NewEdge, SetGroupPolicy, StageEdge, Submit,
};
use ff_core::read::{FlowEdges, FlowMembers, ListFlowEdges, ListFlowMembers};
use ff_core::state::Join;
use uuid::Uuid;

use super::manage::read_tags;
use super::{Client, Execution, Submission};
use crate::config::parse;
use crate::error::SdkError;

impl Client {
    /// Makes a flow without members, to which they are added one by one.
    ///
    /// For graphs that nobody knows beforehand; a known one is better
    /// [submitted](Self::submit_flow) whole.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use std::collections::BTreeMap;
    ///
    /// let flow = client.create_flow("crawl", BTreeMap::new()).await?;
    /// client.submit_to_flow(flow, Some("root"), Submission::new("fetch")).await?;
    /// assert_eq!(client.describe_flow(flow).await?.node_count, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] for a kind or tags that are none.
    pub async fn create_flow(
        &self,
        kind: &str,
        tags: BTreeMap<String, String>,
    ) -> Result<FlowId, SdkError> {
        let flow_id = FlowId::mint();
        let create = CreateFlow {
            namespace: self.namespace.clone(),
            tags: read_tags(tags)?,
            ..CreateFlow::new(flow_id, parse("kind", kind)?)
        };
        self.insist(create).await?;
        Ok(flow_id)
    }

    /// Submits an execution as a member of a flow. It runs when it can: stage its edges on a held
    /// one where it has to wait for others.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use std::collections::BTreeMap;
    ///
    /// let flow = client.create_flow("crawl", BTreeMap::new()).await?;
    /// let page = client.submit_to_flow(flow, Some("page"), Submission::new("fetch")).await?;
    /// assert_eq!(page.describe().await?.flow_id, Some(flow));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::submit`]; `flow_not_found`, `flow_already_terminal` of one that was cancelled.
    pub async fn submit_to_flow(
        &self,
        flow_id: FlowId,
        name: Option<&str>,
        submission: Submission,
    ) -> Result<Execution, SdkError> {
        let name = name.map(|name| parse::<MemberName>("name", name)).transpose()?;
        let now = self.clock_for(submission.needs_clock()).await?;
        let partitions = &self.backend().settings().partitions;
        let minted = ExecutionId::for_flow(Uuid::now_v7(), flow_id, partitions);
        let submit = submission.operation(minted, &self.namespace, now)?;
        let within = Some(InFlow { flow_id, name });
        let submitted = self.insist(Submit { within, ..submit }).await?;
        let id = submitted.execution_id();
        Ok(Execution::new(self.clone(), id, id != minted))
    }

    /// Makes an execution that is there a member. It must stand in the partition of the flow.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::operation::AddedToFlow;
    /// use std::collections::BTreeMap;
    ///
    /// let flow = client.create_flow("crawl", BTreeMap::new()).await?;
    /// let page = client.submit_to_flow(flow, Some("page"), Submission::new("fetch")).await?;
    /// let added = client.add_to_flow(flow, page.id(), Some("page")).await?;
    /// assert!(matches!(added, AddedToFlow::AlreadyMember { .. }));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `already_member_of_different_flow`, `flow_not_found`, `flow_already_terminal` and
    /// `execution_not_found`.
    pub async fn add_to_flow(
        &self,
        flow_id: FlowId,
        execution_id: ExecutionId,
        name: Option<&str>,
    ) -> Result<AddedToFlow, SdkError> {
        let name = name.map(|name| parse("name", name)).transpose()?;
        self.insist(AddToFlow { flow_id, execution_id, name }).await
    }

    /// Adds an edge that counts at once: the downstream waits for it unless it has started. Of one
    /// that is refused nothing is left.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::operation::{EdgeApplied, NewEdge};
    /// use ff_core::state::EdgeKind;
    /// use std::collections::BTreeMap;
    ///
    /// let flow = client.create_flow("crawl", BTreeMap::new()).await?;
    /// let page = client.submit_to_flow(flow, None, Submission::new("fetch")).await?;
    /// let index = client.submit_to_flow(flow, None, Submission::new("index").held()).await?;
    /// let edge = NewEdge {
    ///     upstream: page.id(),
    ///     downstream: index.id(),
    ///     kind: EdgeKind::SuccessOnly,
    ///     name: None,
    ///     data_passing_ref: None,
    /// };
    /// let (_, applied) = client.add_edge(flow, edge).await?;
    /// assert_eq!(applied, EdgeApplied::Applied { unresolved: 1 });
    /// client.release(index.id()).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `cycle_detected`, `self_referencing_edge`, `dependency_already_exists`,
    /// `execution_not_in_flow`, `flow_not_found`; `terminal` and `edge_group_fixed` when it is too
    /// late for the downstream to wait.
    pub async fn add_edge(
        &self,
        flow_id: FlowId,
        edge: NewEdge,
    ) -> Result<(EdgeId, EdgeApplied), SdkError> {
        let edge_id = EdgeId::mint();
        let (expected_graph_revision, apply) = (None, true);
        let stage = StageEdge { flow_id, edge_id, edge, expected_graph_revision, apply };
        let unresolved = self.call(stage).await?.unresolved.unwrap_or_default();
        Ok((edge_id, EdgeApplied::Applied { unresolved }))
    }

    /// Adds an edge that counts once it is applied; refused if the graph has changed since this
    /// revision.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// # use ff_core::operation::NewEdge;
    /// # use ff_core::state::EdgeKind;
    /// # use std::collections::BTreeMap;
    /// # let flow = client.create_flow("crawl", BTreeMap::new()).await?;
    /// # let page = client.submit_to_flow(flow, None, Submission::new("fetch")).await?;
    /// # let index = client.submit_to_flow(flow, None, Submission::new("index").held()).await?;
    /// # let (upstream, downstream, kind) = (page.id(), index.id(), EdgeKind::SuccessOnly);
    /// # let edge = NewEdge { upstream, downstream, kind, name: None, data_passing_ref: None };
    /// let seen = client.describe_flow(flow).await?.graph_revision;
    /// let staged = client.stage_edge(flow, edge, Some(seen)).await?;
    /// client.apply_edge(flow, staged.edge_id).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `stale_graph_revision`; else as [`Self::add_edge`].
    pub async fn stage_edge(
        &self,
        flow_id: FlowId,
        edge: NewEdge,
        expected_graph_revision: Option<u64>,
    ) -> Result<EdgeStaged, SdkError> {
        let edge_id = EdgeId::mint();
        let apply = false;
        self.call(StageEdge { flow_id, edge_id, edge, expected_graph_revision, apply }).await
    }

    /// Makes a staged edge count.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// # use ff_core::operation::{EdgeApplied, NewEdge};
    /// # use ff_core::state::EdgeKind;
    /// # use std::collections::BTreeMap;
    /// # let flow = client.create_flow("crawl", BTreeMap::new()).await?;
    /// # let page = client.submit_to_flow(flow, None, Submission::new("fetch")).await?;
    /// # let index = client.submit_to_flow(flow, None, Submission::new("index").held()).await?;
    /// # let (upstream, downstream, kind) = (page.id(), index.id(), EdgeKind::SuccessOnly);
    /// # let edge = NewEdge { upstream, downstream, kind, name: None, data_passing_ref: None };
    /// let staged = client.stage_edge(flow, edge, None).await?;
    /// client.apply_edge(flow, staged.edge_id).await?;
    /// let again = client.apply_edge(flow, staged.edge_id).await?;
    /// assert_eq!(again, EdgeApplied::AlreadyApplied);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `edge_not_found` and `flow_not_found`; `terminal` and `edge_group_fixed` when it is too late
    /// for the downstream to wait.
    pub async fn apply_edge(
        &self,
        flow_id: FlowId,
        edge_id: EdgeId,
    ) -> Result<EdgeApplied, SdkError> {
        self.insist(ApplyEdge { flow_id, edge_id }).await
    }

    /// When the edges that lead to a member let it go.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::operation::GroupSet;
    /// use ff_core::state::{Join, OnSatisfied};
    /// use std::collections::BTreeMap;
    ///
    /// let flow = client.create_flow("race", BTreeMap::new()).await?;
    /// let best = client.submit_to_flow(flow, None, Submission::new("best").held()).await?;
    /// let first = Join::AnyOf(OnSatisfied::CancelRemaining);
    /// assert_eq!(client.set_edge_group_policy(flow, best.id(), first).await?, GroupSet::Set);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `edge_group_fixed` once an edge of the member has resolved, `execution_not_in_flow`,
    /// `flow_not_found`.
    pub async fn set_edge_group_policy(
        &self,
        flow_id: FlowId,
        downstream: ExecutionId,
        join: Join,
    ) -> Result<GroupSet, SdkError> {
        self.insist(SetGroupPolicy { flow_id, downstream, join }).await
    }

    /// Members of a flow in the order in which they were added, from number `from` on: a page of up
    /// to 500.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("report").step("fetch", Submission::new("fetch"));
    /// let flow = client.submit_flow(flow).await?;
    /// let members = client.list_flow_members(flow.id(), 0).await?.items;
    /// assert_eq!(members[0].name.as_deref(), Some("fetch"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `flow_not_found`.
    pub async fn list_flow_members(
        &self,
        flow_id: FlowId,
        from: u32,
    ) -> Result<FlowMembers, SdkError> {
        self.ask(ListFlowMembers { flow_id, from, limit: limits::PAGE_MAX }).await
    }

    /// Edges of a flow, from the place where the page before ended; the first is at `(0, 0)`.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("report")
    ///     .step("fetch", Submission::new("fetch"))
    ///     .step("print", Submission::new("print")).after("fetch");
    /// let flow = client.submit_flow(flow).await?;
    /// let edges = client.list_edges(flow.id(), (0, 0)).await?.items;
    /// assert_eq!(Some(edges[0].upstream), flow.step("fetch").map(|step| step.id()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `flow_not_found`.
    pub async fn list_edges(
        &self,
        flow_id: FlowId,
        from: (u32, u32),
    ) -> Result<FlowEdges, SdkError> {
        self.ask(ListFlowEdges { flow_id, from, limit: limits::PAGE_MAX }).await
    }
}
