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
    pub async fn add_to_flow(
        &self,
        flow_id: FlowId,
        execution_id: ExecutionId,
        name: Option<&str>,
    ) -> Result<AddedToFlow, SdkError> {
        let name = name.map(|name| parse("name", name)).transpose()?;
        self.insist(AddToFlow { flow_id, execution_id, name }).await
    }

    /// Adds an edge and makes it count: the downstream waits for it unless it has started.
    pub async fn add_edge(
        &self,
        flow_id: FlowId,
        edge: NewEdge,
    ) -> Result<(EdgeId, EdgeApplied), SdkError> {
        let EdgeStaged { edge_id, .. } = self.stage_edge(flow_id, edge, None).await?;
        Ok((edge_id, self.apply_edge(flow_id, edge_id).await?))
    }

    /// Adds an edge that counts once it is applied; refused if the graph has changed since this
    /// revision.
    pub async fn stage_edge(
        &self,
        flow_id: FlowId,
        edge: NewEdge,
        expected_graph_revision: Option<u64>,
    ) -> Result<EdgeStaged, SdkError> {
        let edge_id = EdgeId::mint();
        self.call(StageEdge { flow_id, edge_id, edge, expected_graph_revision }).await
    }

    /// Makes a staged edge count.
    pub async fn apply_edge(
        &self,
        flow_id: FlowId,
        edge_id: EdgeId,
    ) -> Result<EdgeApplied, SdkError> {
        self.insist(ApplyEdge { flow_id, edge_id }).await
    }

    /// When the edges that lead to a member let it go.
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
    pub async fn list_flow_members(
        &self,
        flow_id: FlowId,
        from: u32,
    ) -> Result<FlowMembers, SdkError> {
        self.ask(ListFlowMembers { flow_id, from, limit: limits::PAGE_MAX }).await
    }

    /// Edges of a flow, from the place where the page before ended; the first is at `(0, 0)`.
    pub async fn list_edges(
        &self,
        flow_id: FlowId,
        from: (u32, u32),
    ) -> Result<FlowEdges, SdkError> {
        self.ask(ListFlowEdges { flow_id, from, limit: limits::PAGE_MAX }).await
    }
}
