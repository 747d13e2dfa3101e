//! What users see of a flow, and what they do to it as a whole.

use std::collections::BTreeMap;

use ff_core::id::{
    BudgetId, EdgeId, ExecutionId, FlowId, Kind, LaneId, MemberName, Namespace, QuotaPolicyId,
};
use ff_core::operation::{CancelFlow, FlowCancelled, FlowReplayed, ReplayFlow};
use ff_core::read::{self, EdgeSnapshot, FlowCancellation, FlowSnapshot, MemberSnapshot};
use ff_core::state::{
    self, Attached, CancelPolicy, EdgeKind, EdgeState, FlowState, GroupState, MemberCounts,
    OnSatisfied, PublicState,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::execution::{read_tags, tags};
use crate::graph::{JoinPolicy, join, join_parts};
use crate::list::{Counted, OneOrMany};
use crate::object::Invalid;
use crate::reading::{Unreadable, among};
use crate::search::tag;
use crate::time::{Time, some};

/// A flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Flow {
    pub flow_id: FlowId,
    pub revision: u64,
    pub namespace: Namespace,
    pub kind: Kind,
    /// `open`, `running`, `blocked`, `completed`, `failed` or `cancelled`.
    #[schema(value_type = String)]
    pub state: FlowState,
    pub graph_revision: u64,
    pub node_count: u32,
    pub edge_count: u32,
    /// Members by public state; those that are not named have none.
    #[schema(value_type = BTreeMap<String, u32>)]
    pub counts: BTreeMap<PublicState, u32>,
    /// Members that have ever started.
    #[serde(default)]
    pub started_count: u32,
    /// Members that wait and that nobody may claim: they are held, or no worker can run them.
    #[serde(default)]
    pub kept_back_count: u32,
    pub tags: BTreeMap<String, String>,
    pub budget_ids: Vec<BudgetId>,
    pub quota_policy_id: Option<QuotaPolicyId>,
    pub retention_ms: u64,
    pub created_at: Time,
    pub completed_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancellation: Option<Cancellation>,
}

/// How a flow was cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cancellation {
    pub cancellation_policy: String,
    pub reason: String,
    pub cancelled_at: Time,
}

/// An execution in a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Member {
    pub name: Option<MemberName>,
    pub execution_id: ExecutionId,
    pub lane: LaneId,
    pub public_state: PublicState,
    pub group: Group,
}

/// The edges to a member, taken together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Group {
    pub policy: JoinPolicy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub on_satisfied: Option<OnSatisfied>,
    /// `pending`, `satisfied`, `impossible` or `cancelled`.
    #[schema(value_type = String)]
    pub state: GroupState,
    /// Edges that count.
    pub edges: u32,
    pub satisfied: u32,
    pub impossible: u32,
}

/// A dependency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Edge {
    pub edge_id: EdgeId,
    pub upstream: ExecutionId,
    pub downstream: ExecutionId,
    #[schema(value_type = String)]
    pub kind: EdgeKind,
    pub name: Option<String>,
    pub data_passing_ref: Option<String>,
    /// `pending`, `satisfied` or `impossible`.
    #[schema(value_type = String)]
    pub state: EdgeState,
    /// It counts in the group of its downstream.
    pub applied: bool,
}

/// A flow with its members and edges. What does not fit is left to the lists, which go on with the
/// cursors that stand here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Graph {
    #[serde(flatten)]
    pub flow: Flow,
    pub members: Vec<Member>,
    pub edges: Vec<Edge>,
    /// Where the list of members goes on; null when all are here.
    pub members_cursor: Option<String>,
    /// Where the list of edges goes on; null when all are here.
    pub edges_cursor: Option<String>,
}

/// Which flows, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ListFlows {
    #[schema(value_type = Vec<String>)]
    pub state: OneOrMany<FlowState>,
    #[schema(value_type = Vec<Kind>)]
    pub kind: OneOrMany<Kind>,
    /// `key:value`; all of them.
    #[schema(value_type = Vec<String>)]
    pub tag: OneOrMany<String>,
    pub cursor: Option<String>,
    /// 1 to 500; 50 when absent.
    pub limit: Option<u32>,
    /// `estimate`: how many there are in all, counted up to a bound.
    pub count: Option<String>,
}

/// Nobody wants the outcome any more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cancel {
    /// `cancel_all` when absent, `cancel_pending` or `flow_only`.
    #[schema(value_type = Option<String>)]
    pub cancellation_policy: Option<CancelPolicy>,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cancelled {
    /// `cancelled`, or `cancellation_scheduled` while members are still to be cancelled.
    pub status: String,
    /// Of the first cancel.
    pub cancellation_policy: String,
    pub reason: String,
    /// Members that are still to be cancelled.
    pub member_count: u32,
    pub replayed: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Replay {
    /// Every failure that nothing handled, with what was skipped by it, when absent.
    pub members: Option<Vec<ExecutionId>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Replayed {
    /// `replayed` or `already_satisfied`.
    pub status: String,
    pub replayed: Vec<ExecutionId>,
    /// There are so many failures that some may follow that are not named here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// How many there are in each state that there are any in.
pub(crate) fn counts(counts: &MemberCounts) -> BTreeMap<PublicState, u32> {
    counts.iter().filter(|(_, count)| *count > 0).collect()
}

impl From<FlowSnapshot> for Flow {
    fn from(found: FlowSnapshot) -> Self {
        let cancellation = found.cancellation.map(|cancellation| Cancellation {
            cancellation_policy: cancellation.policy.to_owned(),
            reason: cancellation.reason,
            cancelled_at: cancellation.at.into(),
        });
        Self {
            flow_id: found.flow_id,
            revision: found.revision,
            namespace: found.namespace,
            kind: found.kind,
            state: found.state,
            graph_revision: found.graph_revision,
            node_count: found.node_count,
            edge_count: found.edge_count,
            counts: counts(&found.counts),
            started_count: found.counts.started,
            kept_back_count: found.counts.kept_back,
            tags: tags(&found.tags),
            budget_ids: found.attached.budget_ids,
            quota_policy_id: found.attached.quota_policy_id,
            retention_ms: found.retention_ms,
            created_at: found.created_at.into(),
            completed_at: some(found.completed_at),
            cancellation,
        }
    }
}

impl From<MemberSnapshot> for Member {
    fn from(found: MemberSnapshot) -> Self {
        let (policy, k, on_satisfied) = join_parts(found.group.join);
        let group = Group {
            policy,
            k,
            on_satisfied,
            state: found.group.state,
            edges: found.group.edges,
            satisfied: found.group.satisfied,
            impossible: found.group.impossible,
        };
        let MemberSnapshot { name, execution_id, lane, public_state, .. } = found;
        Self { name, execution_id, lane, public_state, group }
    }
}

impl From<EdgeSnapshot> for Edge {
    fn from(found: EdgeSnapshot) -> Self {
        Self {
            edge_id: found.edge_id,
            upstream: found.upstream,
            downstream: found.downstream,
            kind: found.kind,
            name: found.name,
            data_passing_ref: found.data_passing_ref,
            state: found.state,
            applied: found.applied,
        }
    }
}

impl ListFlows {
    /// Which flows, and which page of them.
    pub fn read(self, namespace: Namespace) -> Result<(read::FlowFilter, Counted), Invalid> {
        let texts: Vec<String> = self.tag.into();
        let filter = read::FlowFilter {
            namespace,
            states: self.state.into(),
            kinds: self.kind.into(),
            tags: texts.iter().map(|text| tag(text)).collect::<Result<_, _>>()?,
        };
        Ok((filter, Counted { cursor: self.cursor, limit: self.limit, count: self.count }))
    }
}

impl Cancel {
    pub fn operation(self, flow_id: FlowId) -> CancelFlow {
        let policy = self.cancellation_policy.unwrap_or(CancelPolicy::CancelAll);
        CancelFlow { flow_id, policy, reason: self.reason }
    }
}

impl From<FlowCancelled> for Cancelled {
    fn from(cancelled: FlowCancelled) -> Self {
        let status = match cancelled.scheduled {
            0 => "cancelled",
            1.. => "cancellation_scheduled",
        };
        Self {
            status: status.to_owned(),
            cancellation_policy: cancelled.policy.as_str().to_owned(),
            reason: cancelled.reason,
            member_count: cancelled.scheduled,
            replayed: cancelled.replayed,
        }
    }
}

impl Replay {
    pub fn operation(self, flow_id: FlowId) -> ReplayFlow {
        ReplayFlow { flow_id, members: self.members }
    }
}

impl From<FlowReplayed> for Replayed {
    fn from(replayed: FlowReplayed) -> Self {
        let (status, replayed, more) = match replayed {
            FlowReplayed::Replayed { members, more } => ("replayed", members, more),
            FlowReplayed::AlreadySatisfied => ("already_satisfied", Vec::new(), false),
        };
        Self { status: status.to_owned(), replayed, more }
    }
}

fn cancel_policy(text: &str) -> Result<CancelPolicy, Unreadable> {
    among("cancellation_policy", text, &CancelPolicy::ALL, CancelPolicy::as_str)
}

/// The counts that [`counts`] showed.
pub(crate) fn read_counts(counts: BTreeMap<PublicState, u32>) -> MemberCounts {
    let mut read = MemberCounts::default();
    counts.into_iter().for_each(|(state, count)| read.add(state as u8, count.into()));
    read
}

impl TryFrom<Flow> for FlowSnapshot {
    type Error = Unreadable;

    fn try_from(flow: Flow) -> Result<Self, Unreadable> {
        let cancellation = match flow.cancellation {
            Some(cancellation) => Some(FlowCancellation {
                policy: cancel_policy(&cancellation.cancellation_policy)?.as_str(),
                reason: cancellation.reason,
                at: cancellation.cancelled_at.into(),
            }),
            None => None,
        };
        let mut counts = read_counts(flow.counts);
        (counts.started, counts.kept_back) = (flow.started_count, flow.kept_back_count);
        Ok(Self {
            flow_id: flow.flow_id,
            revision: flow.revision,
            namespace: flow.namespace,
            kind: flow.kind,
            state: flow.state,
            graph_revision: flow.graph_revision,
            node_count: flow.node_count,
            edge_count: flow.edge_count,
            counts,
            tags: read_tags(flow.tags)?,
            created_at: flow.created_at.into(),
            completed_at: flow.completed_at.map(Into::into),
            cancellation,
            retention_ms: flow.retention_ms,
            attached: Attached::new(flow.budget_ids, flow.quota_policy_id),
        })
    }
}

impl TryFrom<Member> for MemberSnapshot {
    type Error = Unreadable;

    fn try_from(member: Member) -> Result<Self, Unreadable> {
        let Group { policy, k, on_satisfied, state, edges, satisfied, impossible } = member.group;
        let join = join(policy, k, on_satisfied)
            .map_err(|invalid| Unreadable::new("group", format!("{:?}", invalid.0)))?;
        Ok(Self {
            name: member.name,
            execution_id: member.execution_id,
            lane: member.lane,
            public_state: member.public_state,
            group: state::Group { join, edges, satisfied, impossible, state },
        })
    }
}

impl From<Edge> for EdgeSnapshot {
    fn from(edge: Edge) -> Self {
        Self {
            edge_id: edge.edge_id,
            upstream: edge.upstream,
            downstream: edge.downstream,
            kind: edge.kind,
            name: edge.name,
            data_passing_ref: edge.data_passing_ref,
            state: edge.state,
            applied: edge.applied,
        }
    }
}

impl From<CancelFlow> for Cancel {
    fn from(cancel: CancelFlow) -> Self {
        Self { cancellation_policy: Some(cancel.policy), reason: cancel.reason }
    }
}

impl TryFrom<Cancelled> for FlowCancelled {
    type Error = Unreadable;

    fn try_from(cancelled: Cancelled) -> Result<Self, Unreadable> {
        Ok(Self {
            policy: cancel_policy(&cancelled.cancellation_policy)?,
            reason: cancelled.reason,
            scheduled: cancelled.member_count,
            replayed: cancelled.replayed,
        })
    }
}

impl From<ReplayFlow> for Replay {
    fn from(replay: ReplayFlow) -> Self {
        Self { members: replay.members }
    }
}

impl TryFrom<Replayed> for FlowReplayed {
    type Error = Unreadable;

    fn try_from(replayed: Replayed) -> Result<Self, Unreadable> {
        match replayed.status.as_str() {
            "replayed" => {
                let Replayed { replayed: members, more, .. } = replayed;
                Ok(Self::Replayed { members, more })
            }
            "already_satisfied" => Ok(Self::AlreadySatisfied),
            other => Err(Unreadable::new("status", other)),
        }
    }
}
