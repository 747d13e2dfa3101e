//! Submit: the beginning of an execution.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::InFlow;
use super::command::Shape;
use crate::check::{check_bytes, check_time};
use crate::content::{Content, check_size};
use crate::error::Refusal;
use crate::event::EventId;
use crate::id::{
    ContentType, DocumentId, ExecutionId, FlowId, IdempotencyKey, Kind, LaneId, Namespace,
};
use crate::limits;
use crate::partition::PartitionConfig;
use crate::policy::Policy;
use crate::state::PublicState;
use crate::tags::Tags;
use crate::time::TimestampMs;

/// Makes an execution.
#[derive(Debug, Clone, PartialEq)]
pub struct Submit {
    /// Minted by the caller's side, on the partition that [`ExecutionId`]'s constructors choose.
    pub execution_id: ExecutionId,
    pub namespace: Namespace,
    pub lane: LaneId,
    pub kind: Kind,
    pub payload: Content,
    /// 0 to 9000, clamped; higher first.
    pub priority: i64,
    pub creator_identity: String,
    pub idempotency_key: Option<IdempotencyKey>,
    pub tags: Tags,
    pub policy: Arc<Policy>,
    pub delay_until: Option<TimestampMs>,
    pub execution_deadline_at: Option<TimestampMs>,
    /// Starts as held by an operator.
    pub held: bool,
    /// Becomes a member of a flow; the id then stands in the flow's partition
    /// ([`ExecutionId::for_flow`]).
    pub within: Option<InFlow>,
    /// W3C trace context, handed to the worker with the task.
    pub trace_context: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Submitted {
    Created {
        execution_id: ExecutionId,
        public_state: PublicState,
        /// After clamping.
        priority: u16,
        event_id: EventId,
    },
    /// The key or id was used before with the same content.
    Duplicate {
        execution_id: ExecutionId,
        /// As it is now; none when the execution has been removed.
        public_state: Option<PublicState>,
    },
}

impl Submit {
    /// A submit with nothing but defaults.
    pub fn new(execution_id: ExecutionId, lane: LaneId, kind: Kind) -> Self {
        Self {
            execution_id,
            namespace: Namespace::default(),
            lane,
            kind,
            payload: Content::default(),
            priority: 0,
            creator_identity: String::new(),
            idempotency_key: None,
            tags: Tags::default(),
            policy: Policy::shared_default(),
            delay_until: None,
            execution_deadline_at: None,
            held: false,
            within: None,
            trace_context: None,
        }
    }

    /// What a repeated submit must have in common with the first.
    pub fn fingerprint(&self) -> [u8; 32] {
        let Content { content_type, bytes } = &self.payload;
        let flow = self.within.as_ref().map(|within| within.flow_id);
        fingerprint(&self.lane, &self.kind, content_type, bytes, flow, &self.policy)
    }
}

/// SHA-256 over the parts that make up the content, each with its length before it.
pub(crate) fn fingerprint(
    lane: &LaneId,
    kind: &Kind,
    content_type: &ContentType,
    payload: &[u8],
    flow: Option<FlowId>,
    policy: &Policy,
) -> [u8; 32] {
    let policy = policy.normal_form();
    let flow = flow.map(|flow| flow.to_string()).unwrap_or_default();
    let parts: [&[u8]; 6] = [
        lane.as_bytes(),
        kind.as_bytes(),
        content_type.as_bytes(),
        payload,
        flow.as_bytes(),
        policy.as_bytes(),
    ];
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

impl Submitted {
    pub fn execution_id(&self) -> ExecutionId {
        match self {
            Self::Created { execution_id, .. } | Self::Duplicate { execution_id, .. } => {
                *execution_id
            }
        }
    }
}

impl Shape for Submit {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_bytes("creator_identity", &self.creator_identity, limits::CREATOR_BYTES)?;
        if let Some(context) = &self.trace_context {
            check_bytes("trace_context", context, limits::TRACE_CONTEXT_BYTES)?;
        }
        if let Some(at) = self.delay_until {
            check_time("delay_until", at)?;
        }
        if let Some(at) = self.execution_deadline_at {
            check_time("execution_deadline_at", at)?;
        }
        self.policy.attached.check()?;
        self.policy.check().map_err(|refusal| refusal.under("policy"))?;
        check_size("payload", &self.payload.bytes)
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        self.within.as_ref().map(|within| DocumentId::flow(within.flow_id, partitions))
    }
}
