//! Suspend and resume: a stop that keeps the attempt.

use bytes::Bytes;

use super::IssuedWaitpoint;
use super::command::Shape;
use super::waitpoint::check_token_ttl;
use crate::check::{check_bytes, check_range, check_time};
use crate::error::{Code, Refusal};
use crate::id::{
    ExecutionId, Handle, IdempotencyKey, LeaseFence, SuspensionId, WaitpointId, WaitpointKey,
};
use crate::limits;
use crate::state::{Condition, PublicState, ResumePolicy, SuspensionReason, TimeoutBehavior};
use crate::time::TimestampMs;

/// Releases the lease until the condition is met; the attempt stays open.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspend {
    pub execution_id: ExecutionId,
    pub fence: LeaseFence,
    pub suspension_id: SuspensionId,
    pub bindings: Vec<Binding>,
    pub condition: Condition,
    pub resume_policy: ResumePolicy,
    pub reason: SuspensionReason,
    pub requester: Option<String>,
    pub timeout: Option<SuspendTimeout>,
    /// None: as the policy says.
    pub timeout_behavior: Option<TimeoutBehavior>,
    /// Handed to whoever goes on.
    pub metadata: Option<Bytes>,
    pub idempotency_key: Option<IdempotencyKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuspendTimeout {
    At(TimestampMs),
    /// From the store's now.
    For(u64),
}

/// A waitpoint of a suspension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// A new one.
    Fresh { waitpoint_id: WaitpointId, key: WaitpointKey, token_ttl_ms: Option<u64> },
    /// One that was made before.
    UsePending { waitpoint_id: WaitpointId },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Suspended {
    /// What was kept for its waitpoints meets the condition: the lease is kept, the task goes on.
    pub already_satisfied: bool,
    pub suspension_id: SuspensionId,
    pub waitpoints: Vec<IssuedWaitpoint>,
    pub handle: Handle,
    pub replayed: bool,
}

/// Resumes a suspended execution by hand.
#[derive(Debug, Clone, PartialEq)]
pub struct Resume {
    pub execution_id: ExecutionId,
    /// Who or what does it, for the record.
    pub trigger: String,
    /// None: as its resume policy says.
    pub delay_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResumedNow {
    pub public_state: PublicState,
}

impl Shape for Suspend {
    fn check_shape(&self) -> Result<(), Refusal> {
        let refuse = |detail: &str| Err(Refusal::invalid("bindings", detail));
        if self.bindings.is_empty() && !self.condition.is_deaf() {
            return refuse("waitpoints_empty: bind at least one waitpoint");
        }
        check_range("bindings", self.bindings.len() as u64, 0, limits::WAITPOINTS as u64)?;
        for (at, binding) in self.bindings.iter().enumerate() {
            if let Binding::Fresh { token_ttl_ms, .. } = binding {
                let checked = check_token_ttl(*token_ttl_ms);
                checked.map_err(|refusal| refusal.under("fresh").under(at).under("bindings"))?;
            }
            if self.bindings[..at].iter().any(|other| other.clashes(binding)) {
                let twice = "waitpoint_key_mismatch: a waitpoint is bound twice";
                return Err(Refusal::new(Code::InvalidInput, twice).under(at).under("bindings"));
            }
        }
        self.condition.check().map_err(|refusal| refusal.under("condition"))?;
        if self.bindings.iter().all(|binding| binding.key().is_some()) {
            let keys: Vec<_> = self.bindings.iter().filter_map(Binding::key).collect();
            self.check_keys(&keys)?;
        }
        match self.timeout {
            Some(SuspendTimeout::At(at)) => check_time("timeout_at", at)?,
            Some(SuspendTimeout::For(ms)) => {
                check_range("timeout_ms", ms, 0, limits::DURATION_MAX_MS)?;
            }
            None => {}
        }
        let delay = self.resume_policy.resume_delay_ms;
        check_range("resume_delay_ms", delay, 0, limits::DURATION_MAX_MS)
            .map_err(|refusal| refusal.under("resume_policy"))?;
        check_bytes("reason_code", &self.reason.0, limits::CATEGORY_BYTES)?;
        check_bytes("requester", self.requester.as_deref().unwrap_or(""), limits::CATEGORY_BYTES)?;
        match &self.metadata {
            Some(metadata) if metadata.len() > limits::METADATA_BYTES => Err(Refusal::at(
                Code::PayloadTooLarge,
                "metadata",
                format!(
                    "metadata has {} bytes, the limit is {}",
                    metadata.len(),
                    limits::METADATA_BYTES
                ),
            )),
            _ => Ok(()),
        }
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}

impl Suspend {
    /// A suspend with the default resume policy, and no timeout of its own.
    pub fn new(
        execution_id: ExecutionId,
        fence: LeaseFence,
        bindings: Vec<Binding>,
        condition: Condition,
    ) -> Self {
        Self {
            execution_id,
            fence,
            suspension_id: SuspensionId::mint(),
            bindings,
            condition,
            resume_policy: ResumePolicy::default(),
            reason: SuspensionReason::default(),
            requester: None,
            timeout: None,
            timeout_behavior: None,
            metadata: None,
            idempotency_key: None,
        }
    }

    /// Refuses when what is bound and what the condition names are not the same.
    pub(crate) fn check_keys(&self, bound: &[&WaitpointKey]) -> Result<(), Refusal> {
        let named = self.condition.waitpoints();
        if let Some(key) = named.iter().find(|key| !bound.contains(key)) {
            let detail =
                format!("waitpoint_key_mismatch: the condition names {key:?}, which is not bound");
            return Err(Refusal::invalid("condition", detail));
        }
        let unnamed = bound.iter().find(|key| !named.contains(key));
        match unnamed.filter(|_| !self.condition.is_deaf()) {
            Some(key) => {
                let detail =
                    format!("binding_not_in_condition: the condition does not name {key:?}");
                Err(Refusal::invalid("bindings", detail))
            }
            None => Ok(()),
        }
    }
}

impl Binding {
    /// A new waitpoint with a token that does not expire.
    pub fn fresh(key: WaitpointKey) -> Self {
        Self::Fresh { waitpoint_id: WaitpointId::mint(), key, token_ttl_ms: None }
    }

    pub fn waitpoint_id(&self) -> WaitpointId {
        match self {
            Self::Fresh { waitpoint_id, .. } | Self::UsePending { waitpoint_id } => *waitpoint_id,
        }
    }

    /// Its name, where the binding says it.
    pub fn key(&self) -> Option<&WaitpointKey> {
        match self {
            Self::Fresh { key, .. } => Some(key),
            Self::UsePending { .. } => None,
        }
    }

    fn clashes(&self, other: &Self) -> bool {
        self.waitpoint_id() == other.waitpoint_id()
            || self.key().is_some_and(|key| Some(key) == other.key())
    }
}

impl Shape for Resume {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_bytes("detail", &self.trigger, limits::REASON_BYTES)?;
        check_range("delay_ms", self.delay_ms.unwrap_or_default(), 0, limits::DURATION_MAX_MS)
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}
