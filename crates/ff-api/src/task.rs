//! A task: one claimed execution with all that its handler needs.

use std::collections::BTreeMap;

use ff_core::content::Content;
use ff_core::id::{
    AttemptId, ContentType, ExecutionId, FlowId, Handle, Kind, LaneId, LeaseId, MemberName,
    Namespace, SignalId, SignalName,
};
use ff_core::operation;
use ff_core::state::AttemptType;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::bytes::Base64;
use crate::execution::{read_tags, tags};
use crate::reading::{Unreadable, word};
use crate::time::{Time, some};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Task {
    pub execution_id: ExecutionId,
    pub namespace: Namespace,
    pub lane: LaneId,
    pub kind: Kind,
    pub priority: u16,
    pub payload_b64: Base64,
    pub content_type: ContentType,
    pub tags: BTreeMap<String, String>,
    pub attempt_index: u32,
    pub attempt_id: AttemptId,
    pub attempt_type: AttemptType,
    pub lease_id: LeaseId,
    pub lease_epoch: u64,
    pub expires_at: Time,
    pub ttl_ms: u64,
    /// Stands for lease id, epoch and attempt id in later calls.
    pub handle: String,
    pub retry_count: u32,
    pub reclaim_count: u32,
    pub previous_failure: Option<PreviousFailure>,
    /// Outcomes and results of the members that it waited for, by the names of edges.
    pub inputs: BTreeMap<String, Input>,
    /// The signals that resumed it.
    pub resume_signals: Vec<Signal>,
    /// What the suspend left; null when that is no text.
    pub metadata: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_b64: Option<Base64>,
    pub deadline_at: Option<Time>,
    pub attempt_deadline_at: Option<Time>,
    pub flow_id: Option<FlowId>,
    pub member_name: Option<MemberName>,
    pub created_at: Time,
    pub trace_context: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PreviousFailure {
    pub reason: String,
    pub category: String,
}

/// What a task is told of a member that it waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Input {
    pub execution_id: ExecutionId,
    pub outcome: String,
    /// False: there is a result, too large to come along.
    pub inline: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_b64: Option<Base64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<ContentType>,
}

/// A signal as its receiver sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Signal {
    pub signal_id: SignalId,
    pub name: SignalName,
    pub category: String,
    pub source_type: String,
    pub source_identity: String,
    pub correlation_id: Option<String>,
    pub accepted_at: Time,
    /// Null: too large to come along; the execution's signals have it.
    pub payload_b64: Option<Base64>,
    /// Size of the payload, also when it did not come along.
    #[serde(default)]
    pub payload_bytes: u32,
    pub content_type: ContentType,
}

/// The signals that resumed an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Signals {
    pub signals: Vec<Signal>,
}

impl From<operation::ResumeSignal> for Signal {
    fn from(signal: operation::ResumeSignal) -> Self {
        Self {
            signal_id: signal.signal_id,
            name: signal.name,
            category: signal.category,
            source_type: signal.source_type,
            source_identity: signal.source_identity,
            correlation_id: signal.correlation_id,
            accepted_at: signal.accepted_at.into(),
            payload_b64: signal.payload.map(Base64),
            payload_bytes: signal.bytes,
            content_type: signal.content_type,
        }
    }
}

impl From<operation::Input> for Input {
    fn from(input: operation::Input) -> Self {
        let (result_b64, content_type) = match input.result {
            Some(result) => (Some(Base64(result.bytes)), Some(result.content_type)),
            None => (None, None),
        };
        Self {
            execution_id: input.execution_id,
            outcome: input.outcome.as_str().to_owned(),
            inline: input.inline,
            result_b64,
            content_type,
        }
    }
}

impl From<operation::Task> for Task {
    fn from(task: operation::Task) -> Self {
        let operation::Extras { resume_signals, metadata, inputs } = task.extras;
        let text = metadata.as_ref().and_then(|bytes| std::str::from_utf8(bytes).ok());
        let text = text.map(str::to_owned);
        Self {
            execution_id: task.execution_id,
            namespace: task.namespace,
            lane: task.lane,
            kind: task.kind,
            priority: task.priority,
            payload_b64: Base64(task.payload),
            content_type: task.content_type,
            tags: tags(&task.tags),
            attempt_index: task.attempt_index,
            attempt_id: task.attempt_id,
            attempt_type: task.attempt_type,
            lease_id: task.lease_id,
            lease_epoch: task.lease_epoch,
            expires_at: task.expires_at.into(),
            ttl_ms: task.ttl_ms,
            handle: task.handle.encode(),
            retry_count: task.retry_count,
            reclaim_count: task.reclaim_count,
            previous_failure: task.previous_failure.map(|failure| PreviousFailure {
                reason: failure.reason,
                category: failure.category,
            }),
            inputs: inputs.into_iter().map(|(name, input)| (name, input.into())).collect(),
            resume_signals: resume_signals.into_iter().map(Into::into).collect(),
            metadata_b64: metadata.filter(|_| text.is_none()).map(Base64),
            metadata: text,
            deadline_at: some(task.deadline_at),
            attempt_deadline_at: some(task.attempt_deadline_at),
            flow_id: task.flow_id,
            member_name: task.member_name,
            created_at: task.created_at.into(),
            trace_context: task.trace_context,
        }
    }
}

impl From<Signal> for operation::ResumeSignal {
    fn from(signal: Signal) -> Self {
        let payload = signal.payload_b64.map(|payload| payload.0);
        Self {
            signal_id: signal.signal_id,
            name: signal.name,
            category: signal.category,
            source_type: signal.source_type,
            source_identity: signal.source_identity,
            correlation_id: signal.correlation_id,
            accepted_at: signal.accepted_at.into(),
            content_type: signal.content_type,
            bytes: signal.payload_bytes,
            payload,
        }
    }
}

impl TryFrom<Input> for operation::Input {
    type Error = Unreadable;

    fn try_from(input: Input) -> Result<Self, Unreadable> {
        let content_type = input.content_type.unwrap_or_default();
        let result = input.result_b64.map(|Base64(bytes)| Content { bytes, content_type });
        Ok(Self {
            execution_id: input.execution_id,
            outcome: word("outcome", &input.outcome)?,
            inline: input.inline,
            result,
        })
    }
}

impl Task {
    /// The task, of a store of this kind.
    pub fn read(self, store: &str) -> Result<operation::Task, Unreadable> {
        let handle = Handle::decode(&self.handle, store)
            .map_err(|refusal| Unreadable::new("handle", refusal))?;
        let metadata = self.metadata_b64.map(|bytes| bytes.0);
        let inputs = self.inputs.into_iter().map(|(name, input)| Ok((name, input.try_into()?)));
        let extras = operation::Extras {
            resume_signals: self.resume_signals.into_iter().map(Into::into).collect(),
            metadata: metadata.or(self.metadata.map(Into::into)),
            inputs: inputs.collect::<Result<_, Unreadable>>()?,
        };
        Ok(operation::Task {
            execution_id: self.execution_id,
            namespace: self.namespace,
            lane: self.lane,
            kind: self.kind,
            priority: self.priority,
            payload: self.payload_b64.0,
            content_type: self.content_type,
            tags: read_tags(self.tags)?,
            attempt_index: self.attempt_index,
            attempt_id: self.attempt_id,
            attempt_type: self.attempt_type,
            lease_id: self.lease_id,
            lease_epoch: self.lease_epoch,
            expires_at: self.expires_at.into(),
            ttl_ms: self.ttl_ms,
            handle,
            retry_count: self.retry_count,
            reclaim_count: self.reclaim_count,
            previous_failure: self.previous_failure.map(|failure| operation::PreviousFailure {
                reason: failure.reason,
                category: failure.category,
            }),
            deadline_at: self.deadline_at.map(Into::into),
            attempt_deadline_at: self.attempt_deadline_at.map(Into::into),
            created_at: self.created_at.into(),
            trace_context: self.trace_context,
            flow_id: self.flow_id,
            member_name: self.member_name,
            extras,
        })
    }
}
