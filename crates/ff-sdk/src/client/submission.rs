//! One piece of work, as it is submitted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ff_core::capability::Capabilities;
use ff_core::content::Content;
use ff_core::id::{BudgetId, ContentType, ExecutionId, IdempotencyKey, Namespace, QuotaPolicyId};
use ff_core::operation::{Operation as _, Submit};
use ff_core::policy::Policy;
use ff_core::tags::Tags;
use ff_core::time::TimestampMs;

use crate::config::parse;
use crate::error::SdkError;
use crate::presence::millis;

/// A piece of work for a worker. Only its kind must be said.
///
/// ```
/// use std::time::Duration;
/// use ff_sdk::Submission;
///
/// # fn main() -> Result<(), ff_sdk::SdkError> {
/// let submission = Submission::new("resize")
///     .lane("images")
///     .json(&serde_json::json!({ "file": "cat.png", "width": 200 }))?
///     .priority(10)
///     .tag("customer", "acme")
///     .idempotency_key("cat-200")
///     .max_retries(5)
///     .delay(Duration::from_secs(60))
///     .deadline(Duration::from_secs(3600));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    kind: String,
    lane: String,
    payload: Bytes,
    content_type: Option<String>,
    priority: i64,
    tags: BTreeMap<String, String>,
    idempotency_key: Option<String>,
    policy: Policy,
    capabilities: Vec<String>,
    starts: Starts,
    deadline_at: Option<TimestampMs>,
    held: bool,
    creator_identity: String,
    trace_context: Option<String>,
}

/// When it may be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Starts {
    Now,
    /// By the store's clock, from the submit on.
    After(Duration),
    At(TimestampMs),
}

impl Submission {
    /// Work of this kind on lane `default`, without a payload.
    pub fn new(kind: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            lane: "default".to_owned(),
            payload: Bytes::new(),
            content_type: None,
            priority: 0,
            tags: BTreeMap::new(),
            idempotency_key: None,
            policy: Policy::default(),
            capabilities: Vec::new(),
            starts: Starts::Now,
            deadline_at: None,
            held: false,
            creator_identity: String::new(),
            trace_context: None,
        }
    }

    /// The lane that it queues in.
    #[must_use]
    pub fn lane(self, lane: impl Into<String>) -> Self {
        Self { lane: lane.into(), ..self }
    }

    /// A payload as JSON. Fails where `value` cannot be written as JSON.
    pub fn json(self, value: &(impl serde::Serialize + ?Sized)) -> Result<Self, SdkError> {
        let bytes = serde_json::to_vec(value)
            .map_err(|error| SdkError::config("payload", error.to_string()))?;
        let content_type = Some(ContentType::json().to_string());
        Ok(Self { payload: bytes.into(), content_type, ..self })
    }

    /// Bytes that come along unchanged.
    #[must_use]
    pub fn payload(self, payload: impl Into<Bytes>) -> Self {
        Self { payload: payload.into(), ..self }
    }

    /// What the payload is; `application/octet-stream` unless said, or JSON.
    #[must_use]
    pub fn content_type(self, content_type: impl Into<String>) -> Self {
        Self { content_type: Some(content_type.into()), ..self }
    }

    /// 0 to 9000, higher first.
    #[must_use]
    pub fn priority(self, priority: i64) -> Self {
        Self { priority, ..self }
    }

    /// Adds a tag to search by.
    #[must_use]
    pub fn tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.insert(key.into(), value.into());
        self
    }

    /// Adds tags.
    #[must_use]
    pub fn tags<K: Into<String>, V: Into<String>>(
        mut self,
        tags: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        self.tags.extend(tags.into_iter().map(|(key, value)| (key.into(), value.into())));
        self
    }

    /// The same key and the same content again find the execution of the first submit.
    #[must_use]
    pub fn idempotency_key(self, key: impl Into<String>) -> Self {
        Self { idempotency_key: Some(key.into()), ..self }
    }

    /// Retries, timeouts, retention and all else that a policy says. Replaces what methods that
    /// change a part of it have said before.
    #[must_use]
    pub fn policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// The same as the JSON document of the API.
    pub fn policy_json(self, json: &str) -> Result<Self, SdkError> {
        let policy = Policy::from_json(json)
            .map_err(|refusal| SdkError::config("policy", refusal.detail))?;
        Ok(self.policy(policy))
    }

    /// Failures that are tried again; 0 for none.
    #[must_use]
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.policy.retry.max_retries = retries;
        self
    }

    /// How long one attempt may run.
    #[must_use]
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.policy.timeout.attempt_timeout_ms = Some(millis(timeout));
        self
    }

    /// Only workers that have said they can do this get it.
    #[must_use]
    pub fn requires(mut self, capability: impl Into<String>) -> Self {
        self.capabilities.push(capability.into());
        self
    }

    /// Its usage counts in this budget, and it waits while that is used up.
    #[must_use]
    pub fn budget(mut self, budget_id: BudgetId) -> Self {
        self.policy.attached.add([budget_id]);
        self
    }

    /// It needs a slot of this quota policy to run.
    #[must_use]
    pub fn quota(mut self, quota_policy_id: QuotaPolicyId) -> Self {
        self.policy.attached.quota_policy_id = Some(quota_policy_id);
        self
    }

    /// Starts no sooner than so long after the submit.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        Self { starts: Starts::After(delay), ..self }
    }

    /// Starts no sooner than at this instant of the store's clock.
    #[must_use]
    pub fn delay_until(self, at: TimestampMs) -> Self {
        Self { starts: Starts::At(at), ..self }
    }

    /// Expires so long after the submit, unless it has ended.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.policy.timeout.execution_deadline_ms = Some(millis(deadline));
        self
    }

    /// Expires at this instant of the store's clock, unless it has ended.
    #[must_use]
    pub fn deadline_at(self, at: TimestampMs) -> Self {
        Self { deadline_at: Some(at), ..self }
    }

    /// Starts held: nobody gets it until an operator lets it go.
    #[must_use]
    pub fn held(self) -> Self {
        Self { held: true, ..self }
    }

    /// Who wants it, as operators see it.
    #[must_use]
    pub fn creator_identity(self, who: impl Into<String>) -> Self {
        Self { creator_identity: who.into(), ..self }
    }

    /// A W3C trace context that the worker gets with the task.
    #[must_use]
    pub fn trace_context(self, context: impl Into<String>) -> Self {
        Self { trace_context: Some(context.into()), ..self }
    }

    /// Whether the store's clock must be read before it is submitted.
    pub(super) fn needs_clock(&self) -> bool {
        matches!(self.starts, Starts::After(_))
    }

    pub(super) fn key(&self) -> Result<Option<IdempotencyKey>, SdkError> {
        let key = self.idempotency_key.as_deref();
        key.map(|key| parse("idempotency_key", key)).transpose()
    }

    /// The operation. `now` is the store's clock, where it is needed.
    pub(super) fn operation(
        self,
        execution_id: ExecutionId,
        namespace: &Namespace,
        now: TimestampMs,
    ) -> Result<Submit, SdkError> {
        let idempotency_key = self.key()?;
        let content_type = match &self.content_type {
            Some(text) => parse("content_type", text)?,
            None => ContentType::default(),
        };
        let tags = Tags::new(self.tags.clone());
        let submit = Submit {
            namespace: namespace.clone(),
            payload: Content { content_type, bytes: self.payload.clone() },
            priority: self.priority,
            creator_identity: self.creator_identity.clone(),
            idempotency_key,
            tags: tags.map_err(|refusal| SdkError::config("tags", refusal.detail))?,
            policy: self.whole_policy()?,
            delay_until: match self.starts {
                Starts::Now => None,
                Starts::After(delay) => Some(now.after(millis(delay))),
                Starts::At(at) => Some(at),
            },
            execution_deadline_at: self.deadline_at,
            held: self.held,
            trace_context: self.trace_context.clone(),
            ..Submit::new(execution_id, parse("lane", &self.lane)?, parse("kind", &self.kind)?)
        };
        submit.check().map_err(SdkError::unsent)?;
        Ok(submit)
    }

    fn whole_policy(&self) -> Result<Arc<Policy>, SdkError> {
        let mut policy = self.policy.clone();
        if !self.capabilities.is_empty() {
            let known = policy.required_capabilities.tokens().map(str::to_owned);
            let all: Vec<String> = known.chain(self.capabilities.iter().cloned()).collect();
            policy.required_capabilities = Capabilities::new(&all)
                .map_err(|refusal| SdkError::config("capabilities", refusal.detail))?;
        }
        if policy == Policy::default() {
            return Ok(Policy::shared_default());
        }
        Ok(Arc::new(policy))
    }
}
