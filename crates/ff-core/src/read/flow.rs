//! What users see of a flow.

use serde::Serialize;

use super::Seen;
use super::walk::{Listed, Walk};
use crate::error::{Code, Refusal};
use crate::id::{EdgeId, ExecutionId, FlowId, Kind, LaneId, MemberName, Namespace};
use crate::state::{
    Attached, Document, EdgeKind, EdgeState, Execution, FlowState, Group, List, ListingPosition,
    MemberCounts, PublicState,
};
use crate::tags::Tags;
use crate::time::TimestampMs;

/// A flow with how many of its members are in which state; none if there is no such.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribeFlow {
    pub flow_id: FlowId,
}

/// Flows of a namespace, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListFlows {
    pub filter: FlowFilter,
    pub cursor: Option<String>,
    pub limit: u32,
}

/// Which of them; an empty list asks for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FlowFilter {
    pub namespace: Namespace,
    pub states: Vec<FlowState>,
    pub kinds: Vec<Kind>,
    pub tags: Vec<(String, String)>,
}

/// Events about a flow that are still kept, oldest first; its members have events of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListFlowEvents {
    pub flow_id: FlowId,
    /// The page begins behind this seq; 0 for the beginning.
    pub after_seq: u64,
    pub limit: u32,
}

impl ListFlowEvents {
    pub fn not_found(&self) -> Refusal {
        Refusal::at(Code::FlowNotFound, "flow_id", format!("no flow {}", self.flow_id))
    }
}

/// Members of a flow in the order in which they were added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListFlowMembers {
    pub flow_id: FlowId,
    /// The page begins with this number.
    pub from: u32,
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowMembers {
    pub items: Vec<MemberSnapshot>,
    /// Number to go on with; none at the end.
    pub next: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberSnapshot {
    pub name: Option<MemberName>,
    pub execution_id: ExecutionId,
    pub lane: LaneId,
    pub public_state: PublicState,
    pub group: Group,
}

/// Edges of a flow, those of one upstream after those of another. A page may be short while there
/// is more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListFlowEdges {
    pub flow_id: FlowId,
    /// The page begins with this edge of the upstream with this number.
    pub from: (u32, u32),
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowEdges {
    pub items: Vec<EdgeSnapshot>,
    /// Where to go on; none at the end.
    pub next: Option<(u32, u32)>,
}

/// One edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribeEdge {
    pub flow_id: FlowId,
    pub edge_id: EdgeId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeSnapshot {
    pub edge_id: EdgeId,
    pub upstream: ExecutionId,
    pub downstream: ExecutionId,
    pub kind: EdgeKind,
    pub name: Option<String>,
    pub data_passing_ref: Option<String>,
    pub state: EdgeState,
    /// It counts in its downstream's group.
    pub applied: bool,
}

/// How far one member is from being run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluateEligibility {
    pub flow_id: FlowId,
    pub execution_id: ExecutionId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Eligibility {
    Eligible,
    BlockedByDependencies,
    Impossible,
    NotRunnable,
    Owned,
    Terminal,
    NotFound,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowSnapshot {
    pub flow_id: FlowId,
    pub revision: u64,
    pub namespace: Namespace,
    pub kind: Kind,
    pub state: FlowState,
    pub graph_revision: u64,
    pub node_count: u32,
    pub edge_count: u32,
    pub counts: MemberCounts,
    pub tags: Tags,
    pub created_at: TimestampMs,
    pub completed_at: Option<TimestampMs>,
    pub cancellation: Option<FlowCancellation>,
    pub retention_ms: u64,
    /// What all its members stand under.
    pub attached: Attached,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlowCancellation {
    pub policy: &'static str,
    pub reason: String,
    pub at: TimestampMs,
}

impl FlowSnapshot {
    /// None of a document that is no flow, or one that is being removed.
    pub fn of(document: &Document, counts: &MemberCounts) -> Option<Self> {
        let flow = document.flow().filter(|flow| !flow.removing)?;
        let cancellation = flow.cancel.as_ref().map(|cancel| FlowCancellation {
            policy: cancel.policy.as_str(),
            reason: cancel.reason.clone(),
            at: cancel.at,
        });
        Some(Self {
            flow_id: flow.id,
            revision: document.revision,
            namespace: flow.namespace.clone(),
            kind: flow.kind.clone(),
            state: flow.state(counts),
            graph_revision: flow.graph_revision,
            node_count: flow.node_count(),
            edge_count: flow.edge_count(),
            counts: counts.clone(),
            tags: flow.tags.clone(),
            created_at: flow.created_at,
            completed_at: flow.end.map(|end| end.at),
            cancellation,
            retention_ms: flow.retention_ms,
            attached: flow.attached.clone(),
        })
    }
}

impl MemberSnapshot {
    pub(crate) fn of(execution: &Execution, name: Option<MemberName>) -> Self {
        let group = execution.member.as_ref().map(|member| member.group);
        Self {
            name,
            execution_id: execution.id,
            lane: execution.about.lane.clone(),
            public_state: execution.public_state(),
            group: group.unwrap_or_default(),
        }
    }
}

impl FlowFilter {
    fn matches(&self, snapshot: &FlowSnapshot) -> bool {
        self.namespace == snapshot.namespace
            && (self.states.is_empty() || self.states.contains(&snapshot.state))
            && (self.kinds.is_empty() || self.kinds.contains(&snapshot.kind))
            && self.tags.iter().all(|(key, value)| snapshot.tags.get(key) == Some(value))
    }
}

impl Walk for ListFlows {
    const LIST: List = List::Flow;

    type Item = FlowSnapshot;

    fn namespace(&self) -> &Namespace {
        &self.filter.namespace
    }

    fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    fn limit(&self) -> u32 {
        self.limit
    }

    fn see(&self, _: &ListingPosition, found: Listed<'_>, _: TimestampMs) -> Seen<FlowSnapshot> {
        let Listed::Document(document, counts) = found else { return Seen::Passed };
        FlowSnapshot::of(document, counts)
            .filter(|found| self.filter.matches(found))
            .map_or(Seen::Passed, Seen::Item)
    }

    fn scope(&self) -> String {
        format!("flows {:?}", self.filter)
    }
}
