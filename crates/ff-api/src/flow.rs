//! What users see of a flow, and what they do to it as a whole.

use std::collections::BTreeMap;

use ff_core::id::{
    BudgetId, EdgeId, ExecutionId, FlowId, Kind, MemberName, Namespace, QuotaPolicyId,
};
use ff_core::operation::{CancelFlow, FlowCancelled, FlowReplayed, ReplayFlow};
use ff_core::read::{self, EdgeSnapshot, FlowSnapshot, MemberSnapshot};
use ff_core::state::{
    CancelPolicy, EdgeKind, EdgeState, FlowState, GroupState, Join, MemberCounts, OnSatisfied,
    PublicState,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::execution::tags;
use crate::graph::JoinPolicy;
use crate::list::{Counted, OneOrMany};
use crate::object::Invalid;
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
        let (policy, k, on_satisfied) = match found.group.join {
            Join::AllOf => (JoinPolicy::AllOf, None, None),
            Join::AnyOf(on_satisfied) => (JoinPolicy::AnyOf, None, Some(on_satisfied)),
            Join::Quorum(k, on_satisfied) => (JoinPolicy::Quorum, Some(k), Some(on_satisfied)),
        };
        let group = Group {
            policy,
            k,
            on_satisfied,
            state: found.group.state,
            edges: found.group.edges,
            satisfied: found.group.satisfied,
            impossible: found.group.impossible,
        };
        let MemberSnapshot { name, execution_id, public_state, .. } = found;
        Self { name, execution_id, public_state, group }
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
        let status = if cancelled.scheduled == 0 { "cancelled" } else { "cancellation_scheduled" };
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
        let (status, replayed) = match replayed {
            FlowReplayed::Replayed { members } => ("replayed", members),
            FlowReplayed::AlreadySatisfied => ("already_satisfied", Vec::new()),
        };
        Self { status: status.to_owned(), replayed }
    }
}
