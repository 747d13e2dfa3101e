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
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let greeting = client.submit(Submission::new("greet")).await?;
    /// assert_eq!(greeting.describe().await?.lane.as_str(), "default");
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let picture = client.submit(Submission::new("resize").lane("images")).await?;
    /// assert_eq!(picture.describe().await?.lane.as_str(), "images");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn lane(self, lane: impl Into<String>) -> Self {
        Self { lane: lane.into(), ..self }
    }

    /// A payload as JSON. Fails where `value` cannot be written as JSON.
    ///
    /// The content type is then `application/json`.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let greeting = client.submit(Submission::new("greet").json("Ada")?).await?;
    /// let context = client.read_context(greeting.id()).await?;
    /// assert_eq!(&context.payload[..], br#""Ada""#);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] where the value cannot be written as JSON.
    pub fn json(self, value: &(impl serde::Serialize + ?Sized)) -> Result<Self, SdkError> {
        let bytes = serde_json::to_vec(value)
            .map_err(|error| SdkError::config("payload", error.to_string()))?;
        let content_type = Some(ContentType::json().to_string());
        Ok(Self { payload: bytes.into(), content_type, ..self })
    }

    /// Bytes that come along unchanged.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let picture = client.submit(Submission::new("resize").payload(vec![0xff, 0xd8])).await?;
    /// assert_eq!(client.read_context(picture.id()).await?.payload.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn payload(self, payload: impl Into<Bytes>) -> Self {
        Self { payload: payload.into(), ..self }
    }

    /// What the payload is; `application/octet-stream` unless said, or JSON.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let picture = Submission::new("resize").payload(vec![0xff, 0xd8]);
    /// let picture = client.submit(picture.content_type("image/jpeg")).await?;
    /// assert_eq!(picture.describe().await?.content_type.as_str(), "image/jpeg");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn content_type(self, content_type: impl Into<String>) -> Self {
        Self { content_type: Some(content_type.into()), ..self }
    }

    /// 0 to 9000, higher first.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// engine.client().submit(Submission::new("later")).await?;
    /// engine.client().submit(Submission::new("first").priority(10)).await?;
    /// let task = worker.claim_next().await?.expect("there is work");
    /// assert_eq!(task.execution_kind().as_str(), "first");
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn priority(self, priority: i64) -> Self {
        Self { priority, ..self }
    }

    /// Adds a tag to search by.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let bill = client.submit(Submission::new("bill").tag("tenant", "acme")).await?;
    /// assert_eq!(bill.describe().await?.tags.get("tenant"), Some("acme"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.insert(key.into(), value.into());
        self
    }

    /// Adds tags.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let tags = [("tenant", "acme"), ("month", "may")];
    /// let bill = client.submit(Submission::new("bill").tags(tags)).await?;
    /// assert_eq!(bill.describe().await?.tags.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn tags<K: Into<String>, V: Into<String>>(
        mut self,
        tags: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        self.tags.extend(tags.into_iter().map(|(key, value)| (key.into(), value.into())));
        self
    }

    /// The same key and the same content again find the execution of the first submit.
    ///
    /// With other content it is refused with `idempotency_mismatch`.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::error::Code;
    ///
    /// let greeting = Submission::new("greet").idempotency_key("order-17");
    /// let first = client.submit(greeting.clone().payload("Ada")).await?;
    /// let again = client.submit(greeting.clone().payload("Ada")).await?;
    /// assert_eq!(again.id(), first.id());
    /// let refused = client.submit(greeting.payload("Grace")).await.unwrap_err();
    /// assert_eq!(refused.code(), Some(Code::IdempotencyMismatch));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn idempotency_key(self, key: impl Into<String>) -> Self {
        Self { idempotency_key: Some(key.into()), ..self }
    }

    /// Retries, timeouts, retention and all else that a policy says. Replaces what methods that
    /// change a part of it have said before.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::policy::Policy;
    ///
    /// let mut patient = Policy::default();
    /// patient.retry.max_retries = 20;
    /// let mail = client.submit(Submission::new("mail").policy(patient)).await?;
    /// assert_eq!(mail.describe().await?.policy.retry.max_retries, 20);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// The same as the JSON document of the API.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let patient = r#"{ "retry_policy": { "max_retries": 20 } }"#;
    /// let mail = client.submit(Submission::new("mail").policy_json(patient)?).await?;
    /// assert_eq!(mail.describe().await?.policy.retry.max_retries, 20);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] that names what is wrong in the document.
    pub fn policy_json(self, json: &str) -> Result<Self, SdkError> {
        let policy = Policy::from_json(json)
            .map_err(|refusal| SdkError::config("policy", refusal.detail))?;
        Ok(self.policy(policy))
    }

    /// Failures that are tried again; 0 for none.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// use ff_sdk::FailOutcome;
    ///
    /// engine.client().submit(Submission::new("charge").max_retries(0)).await?;
    /// let task = worker.claim_next().await?.expect("there is work");
    /// assert_eq!(task.fail("no answer", "transient").await?, FailOutcome::TerminalFailed);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.policy.retry.max_retries = retries;
        self
    }

    /// How long one attempt may run.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_core::state::Outcome;
    /// use std::time::Duration;
    ///
    /// let minute = Duration::from_secs(60);
    /// let slow = Submission::new("slow").attempt_timeout(minute).max_retries(0);
    /// let task = engine.claimed(slow).await;
    /// engine.advance(minute).await;
    /// assert!(engine.describe(task.execution_id()).await.has_ended());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.policy.timeout.attempt_timeout_ms = Some(millis(timeout));
        self
    }

    /// Only workers that have said they can do this get it.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// use ff_sdk::WorkerConfig;
    ///
    /// engine.client().submit(Submission::new("render").requires("gpu")).await?;
    /// assert!(worker.claim_next().await?.is_none());
    /// let able = engine.worker(WorkerConfig::new("renderer").capability("gpu")).await;
    /// able.claim_next().await?.expect("there is work").complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn requires(mut self, capability: impl Into<String>) -> Self {
        self.capabilities.push(capability.into());
        self
    }

    /// Its usage counts in this budget, and it waits while that is used up.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::NewBudget;
    ///
    /// let budget = client.create_budget(NewBudget::new("tokens").limit("tokens", 100)).await?;
    /// client.submit(Submission::new("ask").budget(budget)).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn budget(mut self, budget_id: BudgetId) -> Self {
        self.policy.attached.add([budget_id]);
        self
    }

    /// It needs a slot of this quota policy to run.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// use ff_core::state::QuotaSpec;
    /// # use ff_sdk::WorkerConfig;
    ///
    /// # let spec = QuotaSpec {
    /// #     window_seconds: 0, max_requests_per_window: 0, max_concurrent: 1, jitter_ms: 0,
    /// # };
    /// # let worker = engine.worker(WorkerConfig::new("many").max_concurrent_tasks(8)).await;
    /// let client = engine.client();
    /// let one_at_a_time = client.create_quota_policy(spec).await?;
    /// for _ in 0..3 {
    ///     client.submit(Submission::new("call").quota(one_at_a_time)).await?;
    /// }
    /// assert_eq!(worker.claim(3, std::time::Duration::ZERO).await?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn quota(mut self, quota_policy_id: QuotaPolicyId) -> Self {
        self.policy.attached.quota_policy_id = Some(quota_policy_id);
        self
    }

    /// Starts no sooner than so long after the submit.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_core::state::PublicState;
    /// use std::time::Duration;
    ///
    /// let hour = Duration::from_secs(3600);
    /// let later = engine.client().submit(Submission::new("remind").delay(hour)).await?;
    /// engine.assert_state(later.id(), PublicState::Delayed).await;
    /// engine.advance(hour).await;
    /// engine.assert_state(later.id(), PublicState::Waiting).await;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        Self { starts: Starts::After(delay), ..self }
    }

    /// Starts no sooner than at this instant of the store's clock.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let midnight = client.server_time().await?.after(3_600_000);
    /// let report = client.submit(Submission::new("report").delay_until(midnight)).await?;
    /// assert_eq!(report.describe().await?.delay_until, Some(midnight));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn delay_until(self, at: TimestampMs) -> Self {
        Self { starts: Starts::At(at), ..self }
    }

    /// Expires so long after the submit, unless it has ended.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_core::state::Outcome;
    /// use std::time::Duration;
    ///
    /// let minute = Duration::from_secs(60);
    /// let code = engine.client().submit(Submission::new("one-time-code").deadline(minute)).await?;
    /// engine.advance(minute).await;
    /// engine.assert_outcome(code.id(), Outcome::Expired).await;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.policy.timeout.execution_deadline_ms = Some(millis(deadline));
        self
    }

    /// Expires at this instant of the store's clock, unless it has ended.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let end = client.server_time().await?.after(60_000);
    /// let code = client.submit(Submission::new("one-time-code").deadline_at(end)).await?;
    /// assert_eq!(code.describe().await?.deadline_at, Some(end));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn deadline_at(self, at: TimestampMs) -> Self {
        Self { deadline_at: Some(at), ..self }
    }

    /// Starts held: nobody gets it until an operator lets it go.
    ///
    /// See [`Client::release`](super::Client::release).
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// let greeting = engine.client().submit(Submission::new("greet").held()).await?;
    /// assert!(worker.claim_next().await?.is_none());
    /// engine.client().release(greeting.id()).await?;
    /// worker.claim_next().await?.expect("it was let go").complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn held(self) -> Self {
        Self { held: true, ..self }
    }

    /// Who wants it, as operators see it.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let greeting = client.submit(Submission::new("greet").creator_identity("shop")).await?;
    /// assert_eq!(greeting.describe().await?.creator_identity, "shop");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn creator_identity(self, who: impl Into<String>) -> Self {
        Self { creator_identity: who.into(), ..self }
    }

    /// A W3C trace context that the worker gets with the task.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// let context = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    /// let task = engine.claimed(Submission::new("greet").trace_context(context)).await;
    /// assert_eq!(task.task().trace_context.as_deref(), Some(context));
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn trace_context(self, context: impl Into<String>) -> Self {
        Self { trace_context: Some(context.into()), ..self }
    }

    pub(crate) fn kind(&self) -> &str {
        &self.kind
    }

    pub(crate) fn lane_name(&self) -> &str {
        &self.lane
    }

    /// What a worker must be able to do to get it.
    pub(crate) fn required(&self) -> Vec<String> {
        let by_policy = self.policy.required_capabilities.tokens().map(str::to_owned);
        by_policy.chain(self.capabilities.iter().cloned()).collect()
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
            policy.required_capabilities = Capabilities::new(self.required())
                .map_err(|refusal| SdkError::config("capabilities", refusal.detail))?;
        }
        if policy == Policy::default() {
            return Ok(Policy::shared_default());
        }
        Ok(Arc::new(policy))
    }
}
