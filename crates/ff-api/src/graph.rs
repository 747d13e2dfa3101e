//! A whole graph in one request, and its parts one by one.

use std::collections::BTreeMap;

use ff_core::id::{
    BudgetId, EdgeId, ExecutionId, FlowId, IdempotencyKey, Kind, MemberName, Namespace,
    QuotaPolicyId,
};
use ff_core::operation::{
    self, AddToFlow, AddedToFlow, CreateFlow, EdgeStaged, FlowCreated, GraphEdge, GraphGroup,
    GraphMember, NewEdge, SetGroupPolicy, StageEdge, Submit as SubmitOperation, SubmitFlow,
    SubmittedFlow,
};
use ff_core::partition::PartitionConfig;
use ff_core::state::{Attached, EdgeKind, Join, OnSatisfied};
use ff_core::tags::Tags;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::execution::tags;
use crate::json::Json;
use crate::list::named;
use crate::object::{Invalid, Object};
use crate::problem::Failure;
use crate::reading::Unreadable;
use crate::submit::Submit;

/// A new flow: with members, edges and groups, or without any.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewFlow {
    /// Minted when absent; with an idempotency key it follows from the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_id: Option<FlowId>,
    pub kind: Kind,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// What all its members stand under.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budget_ids: Vec<BudgetId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_policy_id: Option<QuotaPolicyId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
    /// How long it is kept once it has ended; 24 hours when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention_ms: Option<u64>,
    /// Each has a `name` and the fields of a submit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<NewMember>)]
    pub members: Vec<Json>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<EdgeByName>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupByName>,
}

/// A member of a graph: its name, and the execution.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct NewMember {
    pub name: MemberName,
    #[serde(flatten)]
    pub submit: Submit,
}

/// An edge between members by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EdgeByName {
    pub from: MemberName,
    pub to: MemberName,
    /// `success_only`, `always` or `failure_only`.
    #[serde(default, alias = "dependency_kind")]
    #[schema(value_type = String)]
    pub kind: EdgeKind,
    /// Under which the downstream finds the result; the upstream's name when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Not empty: the upstream's result becomes the downstream's payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_passing_ref: Option<String>,
}

/// The join rule of a member, which is named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupByName {
    pub member: MemberName,
    pub policy: JoinPolicy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub on_satisfied: Option<OnSatisfied>,
}

/// When the edges to a member let it go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetGroup {
    pub policy: JoinPolicy,
    /// Of a quorum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<u32>,
    /// `cancel_remaining` or `let_run`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub on_satisfied: Option<OnSatisfied>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JoinPolicy {
    AllOf,
    AnyOf,
    Quorum,
}

/// What became of a new flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FlowReply {
    /// `created`, or `duplicate` when the id or the key was there already.
    pub status: String,
    pub flow_id: FlowId,
    #[schema(value_type = BTreeMap<String, String>)]
    pub members: BTreeMap<MemberName, ExecutionId>,
    /// In the order of the request.
    pub edges: Vec<EdgeMade>,
    pub graph_revision: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EdgeMade {
    pub edge_id: EdgeId,
    pub from: MemberName,
    pub to: MemberName,
}

/// A member that is added: an execution that is there, or a submit. Which of them it is, is told by
/// the fields that are there.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(untagged)]
pub enum MemberForm {
    Existing(AddMember),
    New(Box<NewMember>),
}

/// An execution that is there, by its id.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddMember {
    pub execution_id: ExecutionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<MemberName>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MemberAdded {
    /// `added` or `already_member`.
    pub status: String,
    pub execution_id: ExecutionId,
    pub node_count: u32,
}

/// A dependency of one member on another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddEdge {
    /// Minted when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge_id: Option<EdgeId>,
    pub upstream: ExecutionId,
    pub downstream: ExecutionId,
    /// `success_only`, `always` or `failure_only`.
    #[serde(default, alias = "dependency_kind")]
    #[schema(value_type = String)]
    pub kind: EdgeKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_passing_ref: Option<String>,
    /// Refuses if the graph has changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_graph_revision: Option<u64>,
    /// Counts at once; else when it is applied.
    #[serde(default = "yes")]
    pub apply: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EdgeAdded {
    pub edge_id: EdgeId,
    pub graph_revision: u64,
    /// Edges that the downstream still waits for; absent while the edge is not applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unresolved: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyEdge {
    pub edge_id: EdgeId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EdgeApplied {
    /// `applied` or `already_applied`.
    pub status: String,
    /// Edges that the downstream still waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unresolved: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupSet {
    /// `set` or `already_set`.
    pub status: String,
}

fn yes() -> bool {
    true
}

/// The operation that a new flow is.
#[derive(Debug)]
pub enum FlowOperation {
    Empty(CreateFlow),
    Graph(Box<SubmitFlow>),
}

/// The parts of a join rule, as forms show them.
pub(crate) fn join_parts(join: Join) -> (JoinPolicy, Option<u32>, Option<OnSatisfied>) {
    match join {
        Join::AllOf => (JoinPolicy::AllOf, None, None),
        Join::AnyOf(on_satisfied) => (JoinPolicy::AnyOf, None, Some(on_satisfied)),
        Join::Quorum(k, on_satisfied) => (JoinPolicy::Quorum, Some(k), Some(on_satisfied)),
    }
}

pub(crate) fn join(
    policy: JoinPolicy,
    k: Option<u32>,
    on_satisfied: Option<OnSatisfied>,
) -> Result<Join, Invalid> {
    match (policy, k) {
        (JoinPolicy::Quorum, None) => Err(Invalid::at("k", "a quorum says how many")),
        (JoinPolicy::Quorum, Some(k)) => Ok(Join::Quorum(k, on_satisfied.unwrap_or_default())),
        (_, Some(_)) => Err(Invalid::at("k", "only a quorum says how many")),
        (JoinPolicy::AnyOf, None) => Ok(Join::AnyOf(on_satisfied.unwrap_or_default())),
        (JoinPolicy::AllOf, None) if on_satisfied.is_some() => {
            Err(Invalid::at("on_satisfied", "all_of leaves nobody over"))
        }
        (JoinPolicy::AllOf, None) => Ok(Join::AllOf),
    }
}

impl NewFlow {
    /// The operation. `key` is the one of header or body.
    pub fn operation(
        self,
        namespace: &Namespace,
        key: Option<&IdempotencyKey>,
        partitions: &PartitionConfig,
    ) -> Result<FlowOperation, Failure> {
        let by_key = key.map(|key| FlowId::for_key(namespace, key));
        let flow_id = named("flow_id", self.flow_id, by_key)?.unwrap_or_else(FlowId::mint);
        let flow = CreateFlow {
            tags: Tags::new(self.tags)?,
            retention_ms: self.retention_ms,
            attached: Attached::new(self.budget_ids, self.quota_policy_id),
            namespace: namespace.clone(),
            ..CreateFlow::new(flow_id, self.kind)
        };
        if self.members.is_empty() && self.edges.is_empty() && self.groups.is_empty() {
            return Ok(FlowOperation::Empty(flow));
        }
        let mut members = Vec::with_capacity(self.members.len());
        for (number, json) in self.members.iter().enumerate() {
            let member = read_member(json, flow_id, namespace, partitions);
            members.push(member.map_err(|failure| failure.under(&format!("/members/{number}")))?);
        }
        let mut groups = Vec::with_capacity(self.groups.len());
        for (number, group) in self.groups.into_iter().enumerate() {
            let join = join(group.policy, group.k, group.on_satisfied);
            let join =
                join.map_err(|invalid| Failure::from(invalid).under(&format!("/groups/{number}")))?;
            groups.push(GraphGroup { member: group.member, join });
        }
        let edges = self.edges.into_iter().map(Into::into).collect();
        let edge_seed = Uuid::now_v7();
        Ok(FlowOperation::Graph(Box::new(SubmitFlow { flow, members, edges, groups, edge_seed })))
    }
}

fn read_member(
    json: &Json,
    flow_id: FlowId,
    namespace: &Namespace,
    partitions: &PartitionConfig,
) -> Result<GraphMember, Failure> {
    let mut fields = Object::from_body(json.text().as_bytes())?;
    let name = fields.take("name")?.ok_or_else(|| Invalid::at("name", "a member has a name"))?;
    let submit = Submit::read(fields)?;
    if submit.flow_id.is_some() || submit.member_name.is_some() {
        return Err(Invalid::at("flow_id", "the flow is the one of the graph").into());
    }
    let submit = Submit { flow_id: Some(flow_id), ..submit };
    let submit = submit.operation(namespace.clone(), None, partitions)?;
    Ok(GraphMember { name, submit: SubmitOperation { within: None, ..submit } })
}

impl From<EdgeByName> for GraphEdge {
    fn from(edge: EdgeByName) -> Self {
        let EdgeByName { from, to, kind, name, data_passing_ref } = edge;
        Self { from, to, kind, name, data_passing_ref }
    }
}

impl FlowReply {
    /// Of a graph. `edges` are those of the request.
    pub fn of_graph(submitted: SubmittedFlow, edges: &[GraphEdge]) -> Self {
        let status = if submitted.duplicate { "duplicate" } else { "created" };
        let edges = submitted.edges.into_iter().zip(edges).map(|(edge_id, edge)| EdgeMade {
            edge_id,
            from: edge.from.clone(),
            to: edge.to.clone(),
        });
        Self {
            status: status.to_owned(),
            flow_id: submitted.flow_id,
            members: submitted.members.into_iter().collect(),
            edges: edges.collect(),
            graph_revision: submitted.graph_revision,
        }
    }

    /// Of a flow without members.
    pub fn of_empty(is_new: bool, flow_id: FlowId, graph_revision: u64) -> Self {
        let status = if is_new { "created" } else { "duplicate" }.to_owned();
        let (members, edges) = (BTreeMap::new(), Vec::new());
        Self { status, flow_id, members, edges, graph_revision }
    }

    pub fn is_new(&self) -> bool {
        self.status == "created"
    }
}

/// A submit of a member, with the name that it gets in the flow.
pub fn submit_member(mut fields: Object, flow_id: FlowId) -> Result<Submit, Invalid> {
    fields.rename("name", "member_name")?;
    let submit = Submit::read(fields)?;
    if submit.flow_id.is_some_and(|other| other != flow_id) {
        return Err(Invalid::at("flow_id", "path and body name different flows"));
    }
    Ok(Submit { flow_id: Some(flow_id), ..submit })
}

impl AddMember {
    pub fn operation(self, flow_id: FlowId) -> AddToFlow {
        AddToFlow { flow_id, execution_id: self.execution_id, name: self.name }
    }
}

impl AddEdge {
    pub fn operation(self, flow_id: FlowId) -> StageEdge {
        let edge = NewEdge {
            upstream: self.upstream,
            downstream: self.downstream,
            kind: self.kind,
            name: self.name,
            data_passing_ref: self.data_passing_ref,
        };
        StageEdge {
            flow_id,
            edge_id: self.edge_id.unwrap_or_else(EdgeId::mint),
            edge,
            expected_graph_revision: self.expected_graph_revision,
            apply: self.apply,
        }
    }
}

impl SetGroup {
    pub fn operation(
        self,
        flow_id: FlowId,
        downstream: ExecutionId,
    ) -> Result<SetGroupPolicy, Invalid> {
        let join = join(self.policy, self.k, self.on_satisfied)?;
        Ok(SetGroupPolicy { flow_id, downstream, join })
    }
}

impl From<operation::GroupSet> for GroupSet {
    fn from(set: operation::GroupSet) -> Self {
        let status = match set {
            operation::GroupSet::Set => "set",
            operation::GroupSet::AlreadySet => "already_set",
        };
        Self { status: status.to_owned() }
    }
}

impl From<operation::EdgeApplied> for EdgeApplied {
    fn from(applied: operation::EdgeApplied) -> Self {
        let (status, unresolved) = match applied {
            operation::EdgeApplied::Applied { unresolved } => ("applied", Some(unresolved)),
            operation::EdgeApplied::AlreadyApplied => ("already_applied", None),
        };
        Self { status: status.to_owned(), unresolved }
    }
}

impl From<CreateFlow> for NewFlow {
    /// Everything but the namespace, which stands beside the body.
    fn from(create: CreateFlow) -> Self {
        Self {
            flow_id: Some(create.flow_id),
            kind: create.kind,
            tags: tags(&create.tags),
            budget_ids: create.attached.budget_ids,
            quota_policy_id: create.attached.quota_policy_id,
            idempotency_key: None,
            retention_ms: create.retention_ms,
            members: Vec::new(),
            edges: Vec::new(),
            groups: Vec::new(),
        }
    }
}

impl TryFrom<SubmitFlow> for NewFlow {
    type Error = serde_json::Error;

    fn try_from(submit: SubmitFlow) -> Result<Self, serde_json::Error> {
        let member = |GraphMember { name, submit }| {
            Json::from_value(&NewMember { name, submit: submit.into() })
        };
        let group = |GraphGroup { member, join }| {
            let (policy, k, on_satisfied) = join_parts(join);
            GroupByName { member, policy, k, on_satisfied }
        };
        Ok(Self {
            members: submit.members.into_iter().map(member).collect::<Result<_, _>>()?,
            edges: submit.edges.into_iter().map(Into::into).collect(),
            groups: submit.groups.into_iter().map(group).collect(),
            ..submit.flow.into()
        })
    }
}

impl From<GraphEdge> for EdgeByName {
    fn from(edge: GraphEdge) -> Self {
        let GraphEdge { from, to, kind, name, data_passing_ref } = edge;
        Self { from, to, kind, name, data_passing_ref }
    }
}

impl TryFrom<FlowReply> for FlowCreated {
    type Error = Unreadable;

    fn try_from(reply: FlowReply) -> Result<Self, Unreadable> {
        match reply.status.as_str() {
            "created" => Ok(Self::Created),
            "duplicate" => Ok(Self::AlreadySatisfied),
            other => Err(Unreadable::new("status", other)),
        }
    }
}

impl FlowReply {
    /// The reply to a graph with these members, whose order is the one of the request.
    pub fn read(mut self, members: &[MemberName]) -> Result<SubmittedFlow, Unreadable> {
        let named = members.iter().filter_map(|name| self.members.remove_entry(name)).collect();
        Ok(SubmittedFlow {
            flow_id: self.flow_id,
            members: named,
            edges: self.edges.iter().map(|edge| edge.edge_id).collect(),
            graph_revision: self.graph_revision,
            duplicate: FlowCreated::try_from(self)? == FlowCreated::AlreadySatisfied,
        })
    }
}

impl From<AddToFlow> for AddMember {
    fn from(add: AddToFlow) -> Self {
        Self { execution_id: add.execution_id, name: add.name }
    }
}

impl TryFrom<MemberAdded> for AddedToFlow {
    type Error = Unreadable;

    fn try_from(added: MemberAdded) -> Result<Self, Unreadable> {
        let node_count = added.node_count;
        match added.status.as_str() {
            "added" => Ok(Self::Added { node_count }),
            "already_member" => Ok(Self::AlreadyMember { node_count }),
            other => Err(Unreadable::new("status", other)),
        }
    }
}

impl From<StageEdge> for AddEdge {
    fn from(stage: StageEdge) -> Self {
        let NewEdge { upstream, downstream, kind, name, data_passing_ref } = stage.edge;
        Self {
            edge_id: Some(stage.edge_id),
            upstream,
            downstream,
            kind,
            name,
            data_passing_ref,
            expected_graph_revision: stage.expected_graph_revision,
            apply: stage.apply,
        }
    }
}

impl From<EdgeAdded> for EdgeStaged {
    fn from(added: EdgeAdded) -> Self {
        let EdgeAdded { edge_id, graph_revision, unresolved } = added;
        Self { edge_id, graph_revision, unresolved }
    }
}

impl From<EdgeStaged> for EdgeAdded {
    fn from(staged: EdgeStaged) -> Self {
        let EdgeStaged { edge_id, graph_revision, unresolved } = staged;
        Self { edge_id, graph_revision, unresolved }
    }
}

impl TryFrom<EdgeApplied> for operation::EdgeApplied {
    type Error = Unreadable;

    fn try_from(applied: EdgeApplied) -> Result<Self, Unreadable> {
        match (applied.status.as_str(), applied.unresolved) {
            ("applied", Some(unresolved)) => Ok(Self::Applied { unresolved }),
            ("already_applied", _) => Ok(Self::AlreadyApplied),
            (other, _) => Err(Unreadable::new("status", other)),
        }
    }
}

impl From<SetGroupPolicy> for SetGroup {
    fn from(set: SetGroupPolicy) -> Self {
        let (policy, k, on_satisfied) = join_parts(set.join);
        Self { policy, k, on_satisfied }
    }
}

impl TryFrom<GroupSet> for operation::GroupSet {
    type Error = Unreadable;

    fn try_from(set: GroupSet) -> Result<Self, Unreadable> {
        match set.status.as_str() {
            "set" => Ok(Self::Set),
            "already_set" => Ok(Self::AlreadySet),
            other => Err(Unreadable::new("status", other)),
        }
    }
}
