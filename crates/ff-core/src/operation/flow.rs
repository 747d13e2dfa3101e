//! Flows: made, tagged, cancelled, replayed, removed.

use super::command::Shape;
use crate::check::{check_bytes, check_range};
use crate::error::Refusal;
use crate::id::{DocumentId, ExecutionId, FlowId, Kind, MemberName, Namespace};
use crate::limits;
use crate::partition::PartitionConfig;
use crate::state::{Attached, CancelPolicy};
use crate::tags::Tags;

/// Makes a flow without members.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateFlow {
    pub flow_id: FlowId,
    pub namespace: Namespace,
    pub kind: Kind,
    pub tags: Tags,
    /// How long it is kept once it has ended; 24 hours if not given.
    pub retention_ms: Option<u64>,
    /// What all its members stand under.
    pub attached: Attached,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowCreated {
    Created,
    AlreadySatisfied,
}

/// Puts tags over the ones that the flow has.
#[derive(Debug, Clone, PartialEq)]
pub struct SetFlowTags {
    pub flow_id: FlowId,
    pub tags: Tags,
    /// Refuses if it has changed since.
    pub expected_revision: Option<u64>,
}

/// The flow that a new execution becomes a member of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InFlow {
    pub flow_id: FlowId,
    pub name: Option<MemberName>,
}

/// Makes an execution that is there a member. It stands in the partition of the flow.
#[derive(Debug, Clone, PartialEq)]
pub struct AddToFlow {
    pub flow_id: FlowId,
    pub execution_id: ExecutionId,
    pub name: Option<MemberName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddedToFlow {
    Added { node_count: u32 },
    AlreadyMember { node_count: u32 },
}

/// Ends a flow for ever. What becomes of its members is said by the policy.
#[derive(Debug, Clone, PartialEq)]
pub struct CancelFlow {
    pub flow_id: FlowId,
    pub policy: CancelPolicy,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowCancelled {
    /// Of the first cancel.
    pub policy: CancelPolicy,
    pub reason: String,
    /// Members that are still to be cancelled; 0: all is done.
    pub scheduled: u32,
    pub replayed: bool,
}

/// Replays members of a flow that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayFlow {
    pub flow_id: FlowId,
    /// None: every failure that nothing handled, and what was skipped because of it.
    pub members: Option<Vec<ExecutionId>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowReplayed {
    Replayed {
        members: Vec<ExecutionId>,
        /// There are so many failures that some may follow that are not named here.
        more: bool,
    },
    AlreadySatisfied,
}

/// Removes a flow that has ended, with all its members.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteFlow {
    pub flow_id: FlowId,
}

/// Does a share of what a flow has left to do; the tick does the same.
#[derive(Debug, Clone, PartialEq)]
pub struct CascadeCompletion {
    pub flow_id: FlowId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cascaded {
    /// There is more.
    pub more: bool,
}

impl CreateFlow {
    /// A flow with nothing but defaults.
    pub fn new(flow_id: FlowId, kind: Kind) -> Self {
        Self {
            flow_id,
            namespace: Namespace::default(),
            kind,
            tags: Tags::default(),
            retention_ms: None,
            attached: Attached::default(),
        }
    }

    pub(super) fn check(&self) -> Result<(), Refusal> {
        let retention_ms = self.retention_ms.unwrap_or_default();
        check_range("retention_ms", retention_ms, 0, limits::DURATION_MAX_MS)?;
        self.attached.check()
    }
}

/// An operation on one flow.
macro_rules! on_flow {
    ($($operation:ident $(, |$op:ident| $check:expr)?;)*) => {
        $(impl Shape for $operation {
            $(fn check_shape(&self) -> Result<(), Refusal> {
                let $op = self;
                $check
            })?

            fn target(&self) -> Option<ExecutionId> {
                None
            }

            fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
                Some(DocumentId::flow(self.flow_id, partitions))
            }
        })*
    };
}
pub(super) use on_flow;

on_flow! {
    CreateFlow, |op| op.check();
    SetFlowTags, |op| op.tags.check_point_write();
    CancelFlow, |op| check_bytes("reason", &op.reason, limits::REASON_BYTES);
    ReplayFlow, |op| check_members(op.members.as_deref());
    DeleteFlow;
    CascadeCompletion;
}

fn check_members(members: Option<&[ExecutionId]>) -> Result<(), Refusal> {
    let Some(members) = members else { return Ok(()) };
    check_range("members", members.len() as u64, 1, limits::FLOW_STEP.into())
}

impl Shape for AddToFlow {
    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::flow(self.flow_id, partitions))
    }
}
