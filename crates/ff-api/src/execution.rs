//! What users see of an execution.

use std::collections::BTreeMap;
use std::sync::Arc;

use ff_core::capability::Capabilities;
use ff_core::content::Content;
use ff_core::id::{
    AttemptId, BudgetId, ContentType, ExecutionId, FlowId, Kind, LaneId, LeaseId, MemberName,
    Namespace, QuotaPolicyId, SuspensionId, WaitpointId, WorkerId, WorkerInstanceId,
};
use ff_core::operation;
use ff_core::policy::Policy;
use ff_core::read;
use ff_core::state::{
    AttemptProgress, BlockingReason, EligibilityState, FailureClass, LifecyclePhase,
    OwnershipState, PublicState,
};
use ff_core::tags::Tags;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::attempt::Attempt;
use crate::bytes::Base64;
use crate::reading::{Unreadable, among, parsed, present, word};
use crate::time::{Time, some};

/// Tags as a plain map.
pub fn tags(tags: &Tags) -> BTreeMap<String, String> {
    tags.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// The flat state vector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StateVector {
    pub lifecycle_phase: LifecyclePhase,
    pub ownership_state: OwnershipState,
    pub eligibility_state: EligibilityState,
    pub blocking_reason: BlockingReason,
    pub blocking_detail: String,
    /// `none` while it is not terminal.
    pub terminal_outcome: String,
    pub attempt_state: AttemptProgress,
    pub public_state: PublicState,
}

/// Only the state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct State {
    pub public_state: PublicState,
    pub state_vector: StateVector,
}

/// A lease was given back and the attempt goes on later: the state, and whether this is a repeated
/// reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PutAside {
    pub public_state: PublicState,
    pub state_vector: StateVector,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_until: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unresolved: Option<u32>,
    pub replayed: bool,
}

/// Who alone may claim an execution now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GrantShown {
    pub kind: String,
    pub worker_id: WorkerId,
    pub worker_instance_id: Option<WorkerInstanceId>,
    pub expires_at: Time,
}

/// An execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Record {
    pub execution_id: ExecutionId,
    pub revision: u64,
    pub namespace: Namespace,
    pub lane: LaneId,
    pub kind: Kind,
    pub public_state: PublicState,
    pub state_vector: StateVector,
    pub priority: u16,
    pub content_type: ContentType,
    pub creator_identity: String,
    pub tags: BTreeMap<String, String>,
    #[schema(value_type = Object)]
    pub policy: serde_json::Value,
    pub created_at: Time,
    pub started_at: Option<Time>,
    pub completed_at: Option<Time>,
    pub last_transition_at: Time,
    pub delay_until: Option<Time>,
    pub deadline_at: Option<Time>,
    pub current_attempt_index: Option<u32>,
    pub current_attempt_id: Option<AttemptId>,
    pub total_attempt_count: u32,
    pub lease_id: Option<LeaseId>,
    pub lease_epoch: u64,
    pub worker_id: Option<WorkerId>,
    pub worker_instance_id: Option<WorkerInstanceId>,
    pub lease_expires_at: Option<Time>,
    pub lease_last_renewed_at: Option<Time>,
    pub lease_renewal_deadline: Option<Time>,
    pub lease_reclaim_count: u32,
    pub retry_count: u32,
    pub replay_count: u32,
    pub failure_reason: Option<String>,
    pub failure_category: Option<String>,
    pub failure_class: Option<FailureClass>,
    pub cancellation_reason: Option<String>,
    pub cancelled_by: Option<String>,
    pub flow_id: Option<FlowId>,
    pub member_name: Option<MemberName>,
    pub budget_ids: Vec<BudgetId>,
    pub quota_policy_id: Option<QuotaPolicyId>,
    pub suspension_id: Option<SuspensionId>,
    pub suspension_reason: Option<String>,
    pub suspension_timeout_at: Option<Time>,
    /// Waitpoints that are not closed.
    pub waitpoint_ids: Vec<WaitpointId>,
    pub signal_count: u32,
    pub progress_pct: Option<u8>,
    pub progress_message: Option<String>,
    pub required_capabilities: Vec<String>,
    pub last_capability_mismatch_at: Option<Time>,
    pub grant: Option<GrantShown>,
    pub last_event_id: String,
    pub trace_context: Option<String>,
    /// On demand: `include=payload`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_b64: Option<Base64>,
    /// On demand, where there is one: `include=result`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_b64: Option<Base64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_content_type: Option<ContentType>,
    /// On demand: `include=attempts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Vec<Attempt>>,
}

/// A payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Payload {
    pub payload_b64: Base64,
    pub content_type: ContentType,
}

/// A result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Outcome {
    pub result_b64: Base64,
    pub content_type: ContentType,
}

/// Why an execution is where it is, and what would change it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    pub cause: String,
    pub summary: String,
    #[schema(value_type = Object)]
    pub evidence: serde_json::Value,
    pub unblock: Vec<Action>,
    pub earliest_start_at: Option<Time>,
}

/// One way to act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Action {
    pub summary: String,
    pub cli: String,
    pub route: String,
}

impl From<ff_core::state::StateVector> for StateVector {
    fn from(vector: ff_core::state::StateVector) -> Self {
        let outcome = vector.terminal_outcome;
        Self {
            lifecycle_phase: vector.lifecycle_phase,
            ownership_state: vector.ownership_state,
            eligibility_state: vector.eligibility_state,
            blocking_reason: vector.blocking_reason,
            blocking_detail: vector.blocking_detail,
            terminal_outcome: outcome.map_or("none", |outcome| outcome.as_str()).to_owned(),
            attempt_state: vector.attempt_state,
            public_state: vector.public_state,
        }
    }
}

impl From<ff_core::state::StateVector> for State {
    fn from(vector: ff_core::state::StateVector) -> Self {
        Self { public_state: vector.public_state, state_vector: vector.into() }
    }
}

impl From<read::Record> for Record {
    fn from(record: read::Record) -> Self {
        Self {
            execution_id: record.execution_id,
            revision: record.revision,
            namespace: record.namespace,
            lane: record.lane,
            kind: record.kind,
            public_state: record.state.public_state,
            state_vector: record.state.into(),
            priority: record.priority,
            content_type: record.content_type,
            creator_identity: record.creator_identity,
            tags: tags(&record.tags),
            policy: record.policy.to_json(),
            created_at: record.created_at.into(),
            started_at: some(record.started_at),
            completed_at: some(record.completed_at),
            last_transition_at: record.last_transition_at.into(),
            delay_until: some(record.delay_until),
            deadline_at: some(record.deadline_at),
            current_attempt_index: record.current_attempt_index,
            current_attempt_id: record.current_attempt_id,
            total_attempt_count: record.total_attempt_count,
            lease_id: record.lease_id,
            lease_epoch: record.lease_epoch,
            worker_id: record.worker_id,
            worker_instance_id: record.worker_instance_id,
            lease_expires_at: some(record.lease_expires_at),
            lease_last_renewed_at: some(record.lease_last_renewed_at),
            lease_renewal_deadline: some(record.lease_renewal_deadline),
            lease_reclaim_count: record.lease_reclaim_count,
            retry_count: record.retry_count,
            replay_count: record.replay_count,
            failure_reason: record.failure_reason,
            failure_category: record.failure_category,
            failure_class: record.failure_class,
            cancellation_reason: record.cancellation_reason,
            cancelled_by: record.cancelled_by,
            flow_id: record.flow_id,
            member_name: record.member_name,
            budget_ids: record.policy.attached.budget_ids.clone(),
            quota_policy_id: record.policy.attached.quota_policy_id,
            suspension_id: record.suspension_id,
            suspension_reason: record.suspension_reason,
            suspension_timeout_at: some(record.suspension_timeout_at),
            waitpoint_ids: record.waitpoint_ids,
            signal_count: record.signal_count,
            progress_pct: record.progress_pct,
            progress_message: record.progress_message,
            required_capabilities: record
                .required_capabilities
                .tokens()
                .map(str::to_owned)
                .collect(),
            last_capability_mismatch_at: some(record.last_capability_mismatch_at),
            grant: record.grant.map(Into::into),
            last_event_id: record.last_event_id.to_string(),
            trace_context: record.trace_context,
            payload_b64: None,
            result_b64: None,
            result_content_type: None,
            attempts: None,
        }
    }
}

impl From<ff_core::state::Grant> for GrantShown {
    fn from(grant: ff_core::state::Grant) -> Self {
        Self {
            kind: grant.kind.as_str().to_owned(),
            worker_id: grant.worker_id,
            worker_instance_id: grant.worker_instance_id,
            expires_at: grant.expires_at.into(),
        }
    }
}

impl Record {
    /// With the result that it has.
    pub fn add_result(&mut self, result: Content) {
        self.result_b64 = Some(Base64(result.bytes));
        self.result_content_type = Some(result.content_type);
    }
}

impl From<read::Explanation> for Explanation {
    fn from(explanation: read::Explanation) -> Self {
        let action = |action: read::Action| Action {
            summary: action.summary,
            cli: action.cli,
            route: action.route,
        };
        Self {
            cause: explanation.cause.as_str().to_owned(),
            summary: explanation.summary,
            evidence: explanation.evidence,
            unblock: explanation.unblock.into_iter().map(action).collect(),
            earliest_start_at: some(explanation.earliest_start_at),
        }
    }
}

/// Tags of an answer.
pub(crate) fn read_tags(tags: BTreeMap<String, String>) -> Result<Tags, Unreadable> {
    Tags::new(tags).map_err(|refusal| Unreadable::new("tags", refusal))
}

impl TryFrom<StateVector> for ff_core::state::StateVector {
    type Error = Unreadable;

    fn try_from(vector: StateVector) -> Result<Self, Unreadable> {
        let terminal_outcome = match vector.terminal_outcome.as_str() {
            "none" => None,
            outcome => Some(word("terminal_outcome", outcome)?),
        };
        Ok(Self {
            lifecycle_phase: vector.lifecycle_phase,
            ownership_state: vector.ownership_state,
            eligibility_state: vector.eligibility_state,
            blocking_reason: vector.blocking_reason,
            blocking_detail: vector.blocking_detail,
            terminal_outcome,
            attempt_state: vector.attempt_state,
            public_state: vector.public_state,
        })
    }
}

impl TryFrom<GrantShown> for ff_core::state::Grant {
    type Error = Unreadable;

    /// The slots that were taken for it are the server's own affair and are not told.
    fn try_from(grant: GrantShown) -> Result<Self, Unreadable> {
        Ok(Self {
            kind: word("kind", &grant.kind)?,
            worker_id: grant.worker_id,
            worker_instance_id: grant.worker_instance_id,
            expires_at: grant.expires_at.into(),
            slots: Vec::new(),
            places: Vec::new(),
            claimant: None,
            lapsed: false,
            recalled: false,
        })
    }
}

impl TryFrom<Record> for read::Record {
    type Error = Unreadable;

    fn try_from(record: Record) -> Result<Self, Unreadable> {
        let required = Capabilities::new(record.required_capabilities)
            .map_err(|refusal| Unreadable::new("required_capabilities", refusal))?;
        let policy = Policy::from_json(&record.policy.to_string())
            .map_err(|refusal| Unreadable::new("policy", refusal))?;
        let at = |time: Option<Time>| time.map(Into::into);
        Ok(Self {
            execution_id: record.execution_id,
            revision: record.revision,
            namespace: record.namespace,
            lane: record.lane,
            kind: record.kind,
            content_type: record.content_type,
            creator_identity: record.creator_identity,
            priority: record.priority,
            tags: read_tags(record.tags)?,
            policy: Arc::new(policy),
            state: record.state_vector.try_into()?,
            created_at: record.created_at.into(),
            started_at: at(record.started_at),
            completed_at: at(record.completed_at),
            last_transition_at: record.last_transition_at.into(),
            delay_until: at(record.delay_until),
            deadline_at: at(record.deadline_at),
            current_attempt_index: record.current_attempt_index,
            current_attempt_id: record.current_attempt_id,
            total_attempt_count: record.total_attempt_count,
            lease_id: record.lease_id,
            lease_epoch: record.lease_epoch,
            worker_id: record.worker_id,
            worker_instance_id: record.worker_instance_id,
            lease_expires_at: at(record.lease_expires_at),
            lease_last_renewed_at: at(record.lease_last_renewed_at),
            lease_renewal_deadline: at(record.lease_renewal_deadline),
            lease_reclaim_count: record.lease_reclaim_count,
            retry_count: record.retry_count,
            replay_count: record.replay_count,
            failure_reason: record.failure_reason,
            failure_category: record.failure_category,
            failure_class: record.failure_class,
            cancellation_reason: record.cancellation_reason,
            cancelled_by: record.cancelled_by,
            progress_pct: record.progress_pct,
            progress_message: record.progress_message,
            required_capabilities: required,
            last_capability_mismatch_at: at(record.last_capability_mismatch_at),
            grant: record.grant.map(TryInto::try_into).transpose()?,
            last_event_id: parsed("last_event_id", &record.last_event_id)?,
            trace_context: record.trace_context,
            suspension_id: record.suspension_id,
            suspension_reason: record.suspension_reason,
            suspension_timeout_at: at(record.suspension_timeout_at),
            waitpoint_ids: record.waitpoint_ids,
            signal_count: record.signal_count,
            flow_id: record.flow_id,
            member_name: record.member_name,
        })
    }
}

impl TryFrom<Explanation> for read::Explanation {
    type Error = Unreadable;

    fn try_from(told: Explanation) -> Result<Self, Unreadable> {
        let action = |Action { summary, cli, route }| read::Action { summary, cli, route };
        Ok(Self {
            cause: among("cause", &told.cause, &read::Cause::ALL, read::Cause::as_str)?,
            summary: told.summary,
            evidence: told.evidence,
            unblock: told.unblock.into_iter().map(action).collect(),
            earliest_start_at: told.earliest_start_at.map(Into::into),
        })
    }
}

impl From<Outcome> for Content {
    fn from(outcome: Outcome) -> Self {
        Self { bytes: outcome.result_b64.0, content_type: outcome.content_type }
    }
}

impl TryFrom<PutAside> for operation::Delayed {
    type Error = Unreadable;

    fn try_from(aside: PutAside) -> Result<Self, Unreadable> {
        Ok(Self {
            delay_until: present("delay_until", aside.delay_until)?.into(),
            public_state: aside.public_state,
            replayed: aside.replayed,
        })
    }
}

impl TryFrom<PutAside> for operation::WaitingChildren {
    type Error = Unreadable;

    fn try_from(aside: PutAside) -> Result<Self, Unreadable> {
        Ok(Self {
            unresolved: present("unresolved", aside.unresolved)?,
            public_state: aside.public_state,
            replayed: aside.replayed,
        })
    }
}
