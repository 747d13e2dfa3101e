//! Edges of a flow: staged, applied, resolved; groups; and waiting for children.

use super::command::Shape;
use super::flow::on_flow;
use crate::check::{check_bytes, check_range};
use crate::error::{Code, Refusal};
use crate::id::{Authority, DocumentId, EdgeId, ExecutionId, FlowId};
use crate::limits;
use crate::partition::PartitionConfig;
use crate::state::{EdgeKind, Join, Outcome, PublicState};

/// A dependency of one member on another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEdge {
    pub upstream: ExecutionId,
    pub downstream: ExecutionId,
    pub kind: EdgeKind,
    /// Under which the downstream finds its result; the upstream's name if not given.
    pub name: Option<String>,
    /// Not empty: the upstream's result becomes the downstream's payload.
    pub data_passing_ref: Option<String>,
}

/// Adds an edge to the graph. It counts once it is applied, which may be in the same step.
#[derive(Debug, Clone, PartialEq)]
pub struct StageEdge {
    pub flow_id: FlowId,
    pub edge_id: EdgeId,
    pub edge: NewEdge,
    /// Refuses if the graph has changed since.
    pub expected_graph_revision: Option<u64>,
    /// Applies it as well. What an apply refuses is refused then, and nothing is written.
    pub apply: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeStaged {
    pub edge_id: EdgeId,
    pub graph_revision: u64,
    /// Edges that the downstream still waits for; none if the edge was not applied.
    pub unresolved: Option<u32>,
}

/// Makes a staged edge count: a downstream that has not started waits for it.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplyEdge {
    pub flow_id: FlowId,
    pub edge_id: EdgeId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeApplied {
    Applied { unresolved: u32 },
    AlreadyApplied,
}

/// Sets the join rule of all edges that lead to a member.
#[derive(Debug, Clone, PartialEq)]
pub struct SetGroupPolicy {
    pub flow_id: FlowId,
    pub downstream: ExecutionId,
    pub join: Join,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupSet {
    Set,
    AlreadySet,
}

/// Resolves one edge whose upstream has ended so, if that was not done yet.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolveEdge {
    pub flow_id: FlowId,
    pub edge_id: EdgeId,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeResolution {
    Satisfied,
    Impossible,
    /// The upstream has not ended so, or the edge does not count.
    Pending,
    /// It has resolved, and its group has decided.
    AlreadyFired,
    AlreadyResolved,
}

/// Releases the lease until other members have ended; the same attempt goes on then.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitChildren {
    pub execution_id: ExecutionId,
    pub authority: Authority,
    /// None: all upstreams.
    pub children: Option<Vec<ExecutionId>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingChildren {
    /// Children that have not ended.
    pub unresolved: u32,
    /// `waiting_children`, `resumable` when there is nothing to wait for, or `cancelled` with its flow.
    pub public_state: PublicState,
    pub replayed: bool,
}

impl NewEdge {
    fn check(&self) -> Result<(), Refusal> {
        if self.upstream == self.downstream {
            let detail = "an edge leads from one member to another";
            return Err(Refusal::at(Code::SelfReferencingEdge, "downstream", detail));
        }
        check_texts(self.name.as_ref(), self.data_passing_ref.as_ref())
    }

    pub(crate) fn passes(&self) -> bool {
        self.data_passing_ref.as_ref().is_some_and(|text| !text.is_empty())
    }
}

pub(super) fn check_texts(
    name: Option<&String>,
    data_passing_ref: Option<&String>,
) -> Result<(), Refusal> {
    let texts = [("name", name), ("data_passing_ref", data_passing_ref)];
    for (field, text) in texts {
        if let Some(text) = text {
            check_bytes(field, text, limits::EDGE_NAME_BYTES)?;
        }
    }
    if name.is_some_and(String::is_empty) {
        return Err(Refusal::invalid("name", "the name of an edge is not empty"));
    }
    Ok(())
}

pub(super) fn check_join(join: &Join) -> Result<(), Refusal> {
    match join {
        Join::AllOf | Join::AnyOf(_) => Ok(()),
        Join::Quorum(k, _) => check_range("k", (*k).into(), 1, limits::FLOW_EDGES.into()),
    }
}

on_flow! {
    StageEdge, |op| op.edge.check();
    ApplyEdge;
    ResolveEdge;
}

impl Shape for SetGroupPolicy {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_join(&self.join)
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.downstream)
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::flow(self.flow_id, partitions))
    }
}

impl Shape for WaitChildren {
    fn check_shape(&self) -> Result<(), Refusal> {
        let count = self.children.as_ref().map_or(0, Vec::len);
        check_range("children", count as u64, 0, limits::FLOW_MEMBERS.into())
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}
