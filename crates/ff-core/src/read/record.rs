//! The flat record that users see of an execution.

use std::sync::Arc;

use crate::capability::Capabilities;
use crate::event::EventId;
use crate::id::{
    AttemptId, ContentType, DocumentId, ExecutionId, FlowId, Home, Kind, LaneId, LeaseId,
    MemberName, Namespace, SuspensionId, WaitpointId, WorkerId, WorkerInstanceId,
};
use crate::policy::Policy;
use crate::state::{
    Execution, FailureClass, Grant, LifecyclePhase, Phase, PublicState, StateVector, Surroundings,
};
use crate::tags::Tags;
use crate::time::TimestampMs;

/// Everything but payload, results and earlier attempts.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub execution_id: ExecutionId,
    pub revision: u64,
    pub namespace: Namespace,
    pub lane: LaneId,
    pub kind: Kind,
    pub content_type: ContentType,
    pub creator_identity: String,
    pub priority: u16,
    pub tags: Tags,
    pub policy: Arc<Policy>,
    pub state: StateVector,
    pub created_at: TimestampMs,
    pub started_at: Option<TimestampMs>,
    pub completed_at: Option<TimestampMs>,
    pub last_transition_at: TimestampMs,
    pub delay_until: Option<TimestampMs>,
    pub deadline_at: Option<TimestampMs>,
    pub current_attempt_index: Option<u32>,
    pub current_attempt_id: Option<AttemptId>,
    pub total_attempt_count: u32,
    pub lease_id: Option<LeaseId>,
    pub lease_epoch: u64,
    pub worker_id: Option<WorkerId>,
    pub worker_instance_id: Option<WorkerInstanceId>,
    pub lease_expires_at: Option<TimestampMs>,
    pub lease_last_renewed_at: Option<TimestampMs>,
    /// Two thirds of the ttl after the last renewal.
    pub lease_renewal_deadline: Option<TimestampMs>,
    pub lease_reclaim_count: u32,
    pub retry_count: u32,
    pub replay_count: u32,
    pub failure_reason: Option<String>,
    pub failure_category: Option<String>,
    pub failure_class: Option<FailureClass>,
    pub cancellation_reason: Option<String>,
    pub cancelled_by: Option<String>,
    pub progress_pct: Option<u8>,
    pub progress_message: Option<String>,
    pub required_capabilities: Capabilities,
    pub last_capability_mismatch_at: Option<TimestampMs>,
    /// Who alone may claim it now.
    pub grant: Option<Grant>,
    pub last_event_id: EventId,
    pub trace_context: Option<String>,
    pub suspension_id: Option<SuspensionId>,
    pub suspension_reason: Option<String>,
    pub suspension_timeout_at: Option<TimestampMs>,
    /// Waitpoints that are not closed.
    pub waitpoint_ids: Vec<WaitpointId>,
    pub signal_count: u32,
    /// The flow it is a member of, and its name there.
    pub flow_id: Option<FlowId>,
    pub member_name: Option<MemberName>,
}

impl Record {
    /// Whether nothing more comes of it, unless it is replayed.
    pub fn has_ended(&self) -> bool {
        PublicState::ENDED.contains(&self.state.public_state)
    }

    /// As it reads amid these surroundings.
    #[must_use]
    pub fn amid(self, around: Surroundings) -> Self {
        Self { state: self.state.amid(around), ..self }
    }

    /// The flow that decides whether it goes on, if one does.
    pub fn awaited_flow(&self) -> Option<DocumentId> {
        let waits = self.state.lifecycle_phase == LifecyclePhase::Runnable;
        let flow = self.flow_id.filter(|_| waits)?;
        Some(DocumentId::flow_in(self.execution_id.partition(), flow))
    }

    /// The record of `execution` as it is at `now`.
    pub fn of(execution: &Execution, now: TimestampMs) -> Self {
        let about = &execution.about;
        let lease = execution.phase.lease();
        let terminal = execution.phase.terminal();
        let suspension = execution.phase.suspension();
        let cancellation = terminal.and_then(|terminal| terminal.cancellation.as_ref());
        let delay = match &execution.phase {
            Phase::Runnable(runnable) => runnable.causes.delay,
            _ => None,
        };
        let grant = execution.phase.grant().filter(|grant| !grant.is_over(now));
        let attempt = execution.attempt.as_ref();
        let member = execution.member.as_deref();
        let failure = execution.failure.as_ref();
        let progress = execution.progress.as_ref();
        Self {
            execution_id: execution.id,
            revision: execution.revision,
            namespace: about.namespace.clone(),
            lane: about.lane.clone(),
            kind: about.kind.clone(),
            content_type: about.content_type.clone(),
            creator_identity: about.creator_identity.clone(),
            priority: execution.priority,
            tags: execution.tags.clone(),
            policy: about.policy.clone(),
            state: execution.state_vector(now),
            created_at: about.created_at,
            started_at: execution.started_at,
            completed_at: terminal.map(|terminal| terminal.at),
            last_transition_at: execution.last_transition_at,
            delay_until: delay.map(|delay| delay.until),
            deadline_at: execution.deadline_at,
            current_attempt_index: attempt.map(|attempt| attempt.index),
            current_attempt_id: attempt.map(|attempt| attempt.id),
            total_attempt_count: execution.counts.attempts,
            lease_id: lease.map(|lease| lease.id),
            lease_epoch: execution.lease_epoch,
            worker_id: lease.map(|lease| lease.worker_id.clone()),
            worker_instance_id: lease.map(|lease| lease.worker_instance_id.clone()),
            lease_expires_at: lease.map(|lease| lease.expires_at),
            lease_last_renewed_at: lease.map(|lease| lease.renewed_at),
            lease_renewal_deadline: lease.map(|lease| lease.renewed_at.after(lease.ttl_ms * 2 / 3)),
            lease_reclaim_count: execution.counts.reclaims,
            retry_count: execution.counts.retries,
            replay_count: execution.counts.replays,
            failure_reason: failure.map(|failure| failure.reason.clone()),
            failure_category: failure.map(|failure| failure.category.clone()),
            failure_class: failure.map(|failure| failure.class),
            cancellation_reason: cancellation.map(|cancel| cancel.reason.clone()),
            cancelled_by: cancellation.map(|cancel| cancel.source.as_str().to_owned()),
            progress_pct: progress.map(|progress| progress.pct),
            progress_message: progress.map(|progress| progress.message.clone()),
            required_capabilities: about.policy.required_capabilities.clone(),
            last_capability_mismatch_at: execution.last_capability_mismatch_at,
            grant: grant.cloned(),
            last_event_id: EventId {
                home: Home::partition(execution.id.partition()),
                number: execution.last_event,
            },
            trace_context: about.trace_context.clone(),
            suspension_id: suspension.map(|suspension| suspension.id),
            suspension_reason: suspension.map(|suspension| suspension.reason.0.clone()),
            suspension_timeout_at: suspension.and_then(|s| s.timeout).map(|timeout| timeout.at),
            waitpoint_ids: execution.waits.open_at(now).map(|waitpoint| waitpoint.id).collect(),
            signal_count: execution.waits.signals,
            flow_id: member.map(|member| member.flow_id),
            member_name: member.and_then(|member| member.name.clone()),
        }
    }
}
