//! Suspend: a stop that keeps the attempt, and what must be heard before it goes on.

use ff_core::id::{
    ExecutionId, Handle, IdempotencyKey, LeaseFence, SignalName, SuspensionId, WaitpointId,
    WaitpointKey,
};
use ff_core::operation::{self, SuspendTimeout};
use ff_core::state::{self, CountKind, Matcher, SetMode};
use ff_core::token::WaitpointToken;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::bytes::Base64;
use crate::object::Invalid;
use crate::problem::Failure;
use crate::reading::{Unreadable, each};
use crate::time::Time;

/// Makes a waitpoint that keeps signals for a suspend to come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateWaitpoint {
    pub key: WaitpointKey,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waitpoint_id: Option<WaitpointId>,
    /// When it closes if no suspend has used it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_ttl_ms: Option<u64>,
}

/// A waitpoint with the token that opens it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Waitpoint {
    pub waitpoint_id: WaitpointId,
    pub key: WaitpointKey,
    pub token: String,
    /// It was made before, and this is its token once more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
}

/// Releases the lease until the condition is met; the attempt stays open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Suspend {
    #[serde(default)]
    pub bindings: Vec<Binding>,
    pub condition: Condition,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspension_id: Option<SuspensionId>,
    /// `waiting_for_signal` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason_code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requester: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// `fail`, `cancel`, `expire`, `auto_resume_with_timeout_signal` or `escalate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_behavior: Option<String>,
    #[serde(default)]
    pub resume_policy: ResumePolicy,
    /// Text handed to whoever goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
    /// The same as bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_b64: Option<Base64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
}

/// What became of it: `suspended` or `already_satisfied`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Suspended {
    pub status: String,
    pub suspension_id: SuspensionId,
    pub waitpoints: Vec<Waitpoint>,
    pub handle: String,
    pub replayed: bool,
}

/// A waitpoint of a suspension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Binding {
    Fresh(FreshWaitpoint),
    UsePending(PendingWaitpoint),
}

/// A new waitpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FreshWaitpoint {
    pub key: WaitpointKey,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waitpoint_id: Option<WaitpointId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_ttl_ms: Option<u64>,
}

/// A waitpoint that was made before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PendingWaitpoint {
    pub waitpoint_id: WaitpointId,
}

/// What must be heard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Condition {
    /// The first matching signal; without a name any.
    Single(SingleSignal),
    SignalSet(SignalSet),
    OperatorOnly,
    TimeoutOnly,
    #[schema(no_recursion)]
    AllOf(Vec<Self>),
    Count(Count),
}

/// A signal of one name, or of any, on one waitpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SingleSignal {
    pub waitpoint_key: WaitpointKey,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<SignalName>,
}

/// Signals of several names on one waitpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalSet {
    pub waitpoint_key: WaitpointKey,
    pub names: Vec<SignalName>,
    pub mode: Mode,
}

/// So many different things, over several waitpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Count {
    pub n: u32,
    pub kind: Counted,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<SignalName>,
    pub waitpoints: Vec<WaitpointKey>,
}

/// How many of its names a set must hear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Any,
    All,
    Count(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    DistinctWaitpoints,
    DistinctSignals,
    DistinctSources,
}

/// What becomes of signals and waitpoints when an execution goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResumePolicy {
    pub consume_matched_signals: bool,
    pub close_waitpoint_on_resume: bool,
    pub retain_signal_buffer_until_closed: bool,
    pub resume_delay_ms: u64,
}

impl Default for ResumePolicy {
    fn default() -> Self {
        state::ResumePolicy::default().into()
    }
}

impl CreateWaitpoint {
    pub fn operation(
        self,
        execution_id: ExecutionId,
        fence: LeaseFence,
    ) -> operation::CreatePendingWaitpoint {
        operation::CreatePendingWaitpoint {
            execution_id,
            fence,
            waitpoint_id: self.waitpoint_id.unwrap_or_else(WaitpointId::mint),
            key: self.key,
            expires_at: self.expires_at.map(Into::into),
            token_ttl_ms: self.token_ttl_ms,
        }
    }
}

impl From<operation::IssuedWaitpoint> for Waitpoint {
    fn from(issued: operation::IssuedWaitpoint) -> Self {
        Self {
            waitpoint_id: issued.waitpoint_id,
            key: issued.key,
            token: issued.token.expose().to_owned(),
            replayed: issued.replayed,
        }
    }
}

impl Suspend {
    pub fn operation(
        self,
        execution_id: ExecutionId,
        fence: LeaseFence,
    ) -> Result<operation::Suspend, Failure> {
        let timeout = match (self.timeout_at, self.timeout_ms) {
            (None, None) => None,
            (Some(at), None) => Some(SuspendTimeout::At(at.into())),
            (None, Some(ms)) => Some(SuspendTimeout::For(ms)),
            (Some(_), Some(_)) => {
                let message = "give timeout_at or timeout_ms, not both";
                return Err(Invalid::at("timeout_ms", message).into());
            }
        };
        let metadata = match (self.metadata, self.metadata_b64) {
            (Some(_), Some(_)) => {
                let message = "give metadata or metadata_b64, not both";
                return Err(Invalid::at("metadata_b64", message).into());
            }
            (Some(text), None) => Some(text.into()),
            (None, bytes) => bytes.map(|bytes| bytes.0),
        };
        let behavior = self.timeout_behavior.as_deref().map(str::parse).transpose();
        let bindings = self.bindings.into_iter().map(Binding::operation).collect();
        let condition = self.condition.operation();
        Ok(operation::Suspend {
            suspension_id: self.suspension_id.unwrap_or_else(SuspensionId::mint),
            resume_policy: self.resume_policy.operation(),
            reason: self.reason_code.map_or_else(Default::default, state::SuspensionReason),
            requester: self.requester,
            timeout,
            timeout_behavior: behavior.map_err(|error| Invalid::at("timeout_behavior", error))?,
            metadata,
            idempotency_key: self.idempotency_key,
            ..operation::Suspend::new(execution_id, fence, bindings, condition)
        })
    }
}

impl From<operation::Suspended> for Suspended {
    fn from(suspended: operation::Suspended) -> Self {
        let satisfied = suspended.already_satisfied;
        Self {
            status: if satisfied { "already_satisfied" } else { "suspended" }.to_owned(),
            suspension_id: suspended.suspension_id,
            waitpoints: suspended.waitpoints.into_iter().map(Into::into).collect(),
            handle: suspended.handle.encode(),
            replayed: suspended.replayed,
        }
    }
}

impl Binding {
    fn operation(self) -> operation::Binding {
        match self {
            Self::Fresh(fresh) => operation::Binding::Fresh {
                waitpoint_id: fresh.waitpoint_id.unwrap_or_else(WaitpointId::mint),
                key: fresh.key,
                token_ttl_ms: fresh.token_ttl_ms,
            },
            Self::UsePending(PendingWaitpoint { waitpoint_id }) => {
                operation::Binding::UsePending { waitpoint_id }
            }
        }
    }
}

fn matcher(name: Option<SignalName>) -> Matcher {
    name.map_or(Matcher::Wildcard, Matcher::ByName)
}

impl Condition {
    /// The same for the machine. A document that was read is nested 64 deep at most, so this walks
    /// down no further.
    pub fn operation(self) -> state::Condition {
        match self {
            Self::Single(SingleSignal { waitpoint_key, name }) => {
                state::Condition::Single { waitpoint: waitpoint_key, name: matcher(name) }
            }
            Self::SignalSet(SignalSet { waitpoint_key, names, mode }) => {
                let mode = match mode {
                    Mode::Any => SetMode::Any,
                    Mode::All => SetMode::All,
                    Mode::Count(n) => SetMode::Count(n),
                };
                state::Condition::SignalSet { waitpoint: waitpoint_key, names, mode }
            }
            Self::OperatorOnly => state::Condition::OperatorOnly,
            Self::TimeoutOnly => state::Condition::TimeoutOnly,
            Self::AllOf(members) => {
                state::Condition::AllOf(members.into_iter().map(Self::operation).collect())
            }
            Self::Count(Count { n, kind, name, waitpoints }) => {
                let kind = match kind {
                    Counted::DistinctWaitpoints => CountKind::DistinctWaitpoints,
                    Counted::DistinctSignals => CountKind::DistinctSignals,
                    Counted::DistinctSources => CountKind::DistinctSources,
                };
                state::Condition::Count(state::Count { n, kind, name: matcher(name), waitpoints })
            }
        }
    }
}

impl ResumePolicy {
    fn operation(self) -> state::ResumePolicy {
        state::ResumePolicy {
            consume_matched_signals: self.consume_matched_signals,
            close_waitpoint_on_resume: self.close_waitpoint_on_resume,
            retain_signal_buffer_until_closed: self.retain_signal_buffer_until_closed,
            resume_delay_ms: self.resume_delay_ms,
        }
    }
}

impl From<operation::CreatePendingWaitpoint> for CreateWaitpoint {
    fn from(create: operation::CreatePendingWaitpoint) -> Self {
        Self {
            key: create.key,
            waitpoint_id: Some(create.waitpoint_id),
            expires_at: create.expires_at.map(Into::into),
            token_ttl_ms: create.token_ttl_ms,
        }
    }
}

impl TryFrom<Waitpoint> for operation::IssuedWaitpoint {
    type Error = Unreadable;

    fn try_from(issued: Waitpoint) -> Result<Self, Unreadable> {
        // What was sent stays out of the error: it is a secret.
        let token = WaitpointToken::parse(&issued.token)
            .map_err(|refusal| Unreadable::new("token", refusal.code))?;
        let Waitpoint { waitpoint_id, key, replayed, .. } = issued;
        Ok(Self { waitpoint_id, key, token, replayed })
    }
}

impl From<operation::Suspend> for Suspend {
    fn from(suspend: operation::Suspend) -> Self {
        let (timeout_at, timeout_ms) = match suspend.timeout {
            None => (None, None),
            Some(SuspendTimeout::At(at)) => (Some(at.into()), None),
            Some(SuspendTimeout::For(ms)) => (None, Some(ms)),
        };
        Self {
            bindings: suspend.bindings.into_iter().map(Into::into).collect(),
            condition: suspend.condition.into(),
            suspension_id: Some(suspend.suspension_id),
            reason_code: Some(suspend.reason.0),
            requester: suspend.requester,
            timeout_at,
            timeout_ms,
            timeout_behavior: suspend.timeout_behavior.map(|it| it.as_str().to_owned()),
            resume_policy: suspend.resume_policy.into(),
            metadata: None,
            metadata_b64: suspend.metadata.map(Base64),
            idempotency_key: suspend.idempotency_key,
        }
    }
}

impl Suspended {
    /// The reply, of a store of this kind.
    pub fn read(self, store: &str) -> Result<operation::Suspended, Unreadable> {
        let handle = Handle::decode(&self.handle, store)
            .map_err(|refusal| Unreadable::new("handle", refusal))?;
        let already_satisfied = match self.status.as_str() {
            "suspended" => false,
            "already_satisfied" => true,
            other => return Err(Unreadable::new("status", other)),
        };
        Ok(operation::Suspended {
            already_satisfied,
            suspension_id: self.suspension_id,
            waitpoints: each(self.waitpoints)?,
            handle,
            replayed: self.replayed,
        })
    }
}

impl From<operation::Binding> for Binding {
    fn from(binding: operation::Binding) -> Self {
        match binding {
            operation::Binding::Fresh { waitpoint_id, key, token_ttl_ms } => {
                Self::Fresh(FreshWaitpoint { key, waitpoint_id: Some(waitpoint_id), token_ttl_ms })
            }
            operation::Binding::UsePending { waitpoint_id } => {
                Self::UsePending(PendingWaitpoint { waitpoint_id })
            }
        }
    }
}

fn name(matcher: Matcher) -> Option<SignalName> {
    match matcher {
        Matcher::Wildcard => None,
        Matcher::ByName(name) => Some(name),
    }
}

impl From<state::Condition> for Condition {
    fn from(condition: state::Condition) -> Self {
        match condition {
            state::Condition::Single { waitpoint, name: matcher } => {
                Self::Single(SingleSignal { waitpoint_key: waitpoint, name: name(matcher) })
            }
            state::Condition::SignalSet { waitpoint, names, mode } => {
                let mode = match mode {
                    SetMode::Any => Mode::Any,
                    SetMode::All => Mode::All,
                    SetMode::Count(n) => Mode::Count(n),
                };
                Self::SignalSet(SignalSet { waitpoint_key: waitpoint, names, mode })
            }
            state::Condition::OperatorOnly => Self::OperatorOnly,
            state::Condition::TimeoutOnly => Self::TimeoutOnly,
            state::Condition::AllOf(members) => {
                Self::AllOf(members.into_iter().map(Into::into).collect())
            }
            state::Condition::Count(state::Count { n, kind, name: matcher, waitpoints }) => {
                let kind = match kind {
                    CountKind::DistinctWaitpoints => Counted::DistinctWaitpoints,
                    CountKind::DistinctSignals => Counted::DistinctSignals,
                    CountKind::DistinctSources => Counted::DistinctSources,
                };
                Self::Count(Count { n, kind, name: name(matcher), waitpoints })
            }
        }
    }
}

impl From<state::ResumePolicy> for ResumePolicy {
    fn from(policy: state::ResumePolicy) -> Self {
        Self {
            consume_matched_signals: policy.consume_matched_signals,
            close_waitpoint_on_resume: policy.close_waitpoint_on_resume,
            retain_signal_buffer_until_closed: policy.retain_signal_buffer_until_closed,
            resume_delay_ms: policy.resume_delay_ms,
        }
    }
}
