//! Stopping until somebody has said what the task waits for.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ff_core::id::{SignalName, SuspensionId, WaitpointId, WaitpointKey};
use ff_core::operation::{Binding, IssuedWaitpoint, Suspend, SuspendTimeout, Suspended};
use ff_core::state::{
    Condition, Count, CountKind, Matcher, ResumePolicy, SetMode, SuspensionReason, TimeoutBehavior,
};
use ff_core::time::TimestampMs;
use ff_core::token::WaitpointToken;

use super::{ClaimedTask, EndError};
use crate::config::parse;
use crate::error::SdkError;
use crate::presence::millis;

/// A signal that a suspended task listens to.
///
/// ```
/// use ff_sdk::ConditionMatcher;
///
/// let any = ConditionMatcher::default();
/// assert!(any.signal_name.is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConditionMatcher {
    /// Empty: any signal.
    pub signal_name: String,
}

impl ConditionMatcher {
    /// Signals of this name; of an empty one: any.
    ///
    /// ```
    /// use ff_sdk::{ConditionMatcher, TimeoutBehavior};
    ///
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// let both = [ConditionMatcher::named("paid"), ConditionMatcher::named("packed")];
    /// task.suspend("waiting_for_signal", &both, None, TimeoutBehavior::Fail).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn named(signal_name: impl Into<String>) -> Self {
        Self { signal_name: signal_name.into() }
    }

    fn matcher(&self) -> Result<Matcher, SdkError> {
        if self.signal_name.is_empty() {
            return Ok(Matcher::Wildcard);
        }
        Ok(Matcher::ByName(parse("signal_name", &self.signal_name)?))
    }
}

/// What a task waits for.
///
/// ```
/// use std::time::Duration;
/// use ff_sdk::{Suspension, TimeoutBehavior};
///
/// # fn main() -> Result<(), ff_sdk::SdkError> {
/// let review = Suspension::approval("review")?
///     .reason("waiting_for_approval")
///     .timeout(Duration::from_secs(24 * 3600))
///     .on_timeout(TimeoutBehavior::Escalate);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Suspension {
    condition: Condition,
    bindings: Vec<Binding>,
    /// Waitpoints that every task makes anew.
    fresh: Vec<WaitpointKey>,
    resume_policy: ResumePolicy,
    reason: SuspensionReason,
    timeout: Option<SuspendTimeout>,
    timeout_behavior: Option<TimeoutBehavior>,
    metadata: Option<Bytes>,
}

impl Suspension {
    /// A condition over waitpoints that are made with it, or were before.
    ///
    /// The whole language of conditions; the other constructors are its common sentences.
    ///
    /// ```
    /// use ff_core::operation::Binding;
    /// use ff_core::state::{Condition, Matcher};
    /// use ff_sdk::Suspension;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let on = |key: &str| Ok::<_, ff_core::id::TextError>(Condition::Single {
    ///     waitpoint: key.parse()?,
    ///     name: Matcher::Wildcard,
    /// });
    /// let both = Condition::AllOf(vec![on("paid")?, on("packed")?]);
    /// let bindings = vec![Binding::fresh("paid".parse()?), Binding::fresh("packed".parse()?)];
    /// let suspension = Suspension::on(both, bindings);
    /// # Ok(())
    /// # }
    /// ```
    pub fn on(condition: Condition, bindings: Vec<Binding>) -> Self {
        Self {
            condition,
            bindings,
            fresh: Vec::new(),
            resume_policy: ResumePolicy::default(),
            reason: SuspensionReason::default(),
            timeout: None,
            timeout_behavior: None,
            metadata: None,
        }
    }

    /// At a waitpoint of this name, which each task makes for itself: one `Suspension` serves many.
    fn at(key: WaitpointKey, condition: Condition) -> Self {
        Self { fresh: vec![key], ..Self::on(condition, Vec::new()) }
    }

    /// The first signal of this name on a new waitpoint.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// use ff_sdk::{Signal, SuspendOutcome, Suspension};
    ///
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("order")).await;
    /// let id = task.execution_id();
    /// let payment = Suspension::signal("payment", "paid")?;
    /// let SuspendOutcome::Suspended(at) = task.suspend_on(payment).await? else {
    ///     panic!("nobody has paid yet");
    /// };
    /// let ticket = at.waitpoint().expect("a waitpoint").clone();
    /// let paid = Signal::new("paid", ticket.token);
    /// engine.client().deliver_signal(id, ticket.waitpoint_id, paid).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] for a key or a name that is none.
    pub fn signal(key: &str, name: &str) -> Result<Self, SdkError> {
        let waitpoint: WaitpointKey = parse("waitpoint_key", key)?;
        let name = ConditionMatcher::named(name).matcher()?;
        Ok(Self::at(waitpoint.clone(), Condition::Single { waitpoint, name }))
    }

    /// A yes or a no: `approved` or `denied`, as `ff approve` and `ff deny` send them.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_core::id::WaitpointKey;
    /// use ff_sdk::Suspension;
    ///
    /// let id = task.execution_id();
    /// task.suspend_on(Suspension::approval("review")?).await?;
    /// let review: WaitpointKey = "review".parse()?;
    /// engine.client().approve(id, review, "ada", None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] for a key that is none.
    pub fn approval(key: &str) -> Result<Self, SdkError> {
        let waitpoint: WaitpointKey = parse("waitpoint_key", key)?;
        let name = |text: &str| parse::<SignalName>("signal_name", text);
        let names = vec![name("approved")?, name("denied")?];
        let fresh = waitpoint.clone();
        Ok(Self::at(fresh, Condition::SignalSet { waitpoint, names, mode: SetMode::Any }))
    }

    /// The same word from so many different people or systems.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_core::state::PublicState;
    /// use ff_sdk::{Signal, SuspendOutcome, Suspension};
    ///
    /// let (id, client) = (task.execution_id(), engine.client());
    /// let two = Suspension::distinct_sources("go", "approved", 2)?;
    /// let SuspendOutcome::Suspended(at) = task.suspend_on(two).await? else { panic!() };
    /// let ticket = at.waitpoint().expect("a waitpoint").clone();
    /// for name in ["ada", "ada", "grace"] {
    ///     engine.assert_state(id, PublicState::Suspended).await;
    ///     let yes = Signal::new("approved", ticket.token.clone()).source("user", name);
    ///     client.deliver_signal(id, ticket.waitpoint_id, yes).await?;
    /// }
    /// engine.assert_state(id, PublicState::Resumable).await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] for a key or a name that is none.
    pub fn distinct_sources(key: &str, name: &str, n: u32) -> Result<Self, SdkError> {
        let waitpoint: WaitpointKey = parse("waitpoint_key", key)?;
        let name = ConditionMatcher::named(name).matcher()?;
        let waitpoints = vec![waitpoint.clone()];
        let count = Count { n, kind: CountKind::DistinctSources, name, waitpoints };
        Ok(Self::at(waitpoint, Condition::Count(count)))
    }

    /// Nothing but time.
    ///
    /// No lease is held meanwhile, and no worker waits.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// use ff_sdk::Suspension;
    /// use std::time::Duration;
    ///
    /// let day = Duration::from_secs(86_400);
    /// let task = engine.claimed(Submission::new("remind")).await;
    /// task.suspend_on(Suspension::sleep(day)).await?;
    /// engine.advance(day).await;
    /// worker.claim_next().await?.expect("it goes on").complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn sleep(duration: Duration) -> Self {
        Self::on(Condition::TimeoutOnly, Vec::new())
            .timeout(duration)
            .on_timeout(TimeoutBehavior::AutoResume)
    }

    /// Waits for this and for the other. What was said of the other besides its condition, such as
    /// a timeout, is left out.
    ///
    /// ```
    /// use ff_sdk::Suspension;
    ///
    /// # fn main() -> Result<(), ff_sdk::SdkError> {
    /// let people = Suspension::distinct_sources("people", "approved", 2)?;
    /// let both = people.and(Suspension::signal("checks", "passed")?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        let Self { condition, bindings, fresh, .. } = other;
        self.condition = match self.condition {
            Condition::AllOf(mut all) => {
                all.push(condition);
                Condition::AllOf(all)
            }
            one => Condition::AllOf(vec![one, condition]),
        };
        // Both may listen at one waitpoint: it is made once.
        for binding in bindings {
            if !binding.key().is_some_and(|key| self.makes(key)) {
                self.bindings.push(binding);
            }
        }
        for key in fresh {
            if !self.makes(&key) {
                self.fresh.push(key);
            }
        }
        self
    }

    fn makes(&self, key: &WaitpointKey) -> bool {
        self.fresh.contains(key) || self.bindings.iter().any(|binding| binding.key() == Some(key))
    }

    /// Uses a waitpoint that [`ClaimedTask::create_pending_waitpoint`] made, with all that was
    /// said to it since, instead of a new one of the same name.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_sdk::Suspension;
    ///
    /// let ticket = task.create_pending_waitpoint("review", None).await?;
    /// let review = Suspension::approval("review")?.using(&ticket);
    /// task.suspend_on(review).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn using(mut self, pending: &WaitpointTicket) -> Self {
        let waitpoint_id = pending.waitpoint_id;
        self.fresh.retain(|key| *key != pending.key);
        self.bindings.retain(|binding| binding.key() != Some(&pending.key));
        self.bindings.push(Binding::UsePending { waitpoint_id });
        self
    }

    /// Why, in a word: `waiting_for_approval` and some others show as a blocking reason of their
    /// own.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ff_sdk::Suspension;
    ///
    /// let review = Suspension::approval("review")?.reason("waiting_for_approval");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn reason(self, reason: impl Into<String>) -> Self {
        Self { reason: SuspensionReason(reason.into()), ..self }
    }

    /// How long to wait, by the store's clock; absent: as the policy says.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ff_sdk::Suspension;
    /// use std::time::Duration;
    ///
    /// let review = Suspension::approval("review")?.timeout(Duration::from_secs(3600));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(SuspendTimeout::For(millis(timeout))), ..self }
    }

    /// Until when to wait.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_sdk::Suspension;
    ///
    /// let tonight = engine.now().after(8 * 3_600_000);
    /// task.suspend_on(Suspension::approval("review")?.timeout_at(tonight)).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn timeout_at(self, at: TimestampMs) -> Self {
        Self { timeout: Some(SuspendTimeout::At(at)), ..self }
    }

    /// What happens then.
    ///
    /// The execution fails unless this or its policy says otherwise.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_core::state::Outcome;
    /// use ff_sdk::{Suspension, TimeoutBehavior};
    /// use std::time::Duration;
    ///
    /// let (id, hour) = (task.execution_id(), Duration::from_secs(3600));
    /// let review = Suspension::approval("review")?.timeout(hour);
    /// task.suspend_on(review.on_timeout(TimeoutBehavior::Cancel)).await?;
    /// engine.advance(hour).await;
    /// engine.assert_outcome(id, Outcome::Cancelled).await;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn on_timeout(self, behavior: TimeoutBehavior) -> Self {
        Self { timeout_behavior: Some(behavior), ..self }
    }

    /// Bytes for whoever goes on: see [`ClaimedTask::metadata`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ff_sdk::Suspension;
    /// use std::time::Duration;
    ///
    /// let nap = Suspension::sleep(Duration::from_secs(60)).metadata(r#"{"page":7}"#);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn metadata(self, metadata: impl Into<Bytes>) -> Self {
        Self { metadata: Some(metadata.into()), ..self }
    }

    /// What becomes of signals and of the execution once the wait is over.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ff_core::state::ResumePolicy;
    /// use ff_sdk::Suspension;
    ///
    /// let a_minute_later = ResumePolicy { resume_delay_ms: 60_000, ..ResumePolicy::default() };
    /// let review = Suspension::approval("review")?.resume_policy(a_minute_later);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn resume_policy(self, resume_policy: ResumePolicy) -> Self {
        Self { resume_policy, ..self }
    }
}

/// A waitpoint and the token that opens it. The token is for whoever may answer, and for nobody's
/// log.
///
/// ```
/// # use ff_sdk::{Submission, testing::TestEngine};
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = TestEngine::start().await;
/// # let task = engine.claimed(Submission::new("work")).await;
/// let ticket = task.create_pending_waitpoint("review", None).await?;
/// let link = format!("https://shop.example/review?token={}", ticket.token.expose());
/// assert!(!format!("{ticket:?}").contains(ticket.token.expose()), "printed redacted");
/// # task.complete(None).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct WaitpointTicket {
    /// The id of the waitpoint.
    pub waitpoint_id: WaitpointId,
    /// Its name inside its execution.
    pub key: WaitpointKey,
    /// Whoever shows it may speak to the waitpoint.
    pub token: WaitpointToken,
}

impl From<IssuedWaitpoint> for WaitpointTicket {
    fn from(issued: IssuedWaitpoint) -> Self {
        Self { waitpoint_id: issued.waitpoint_id, key: issued.key, token: issued.token }
    }
}

/// Where a task waits.
///
/// ```
/// # use ff_sdk::{Submission, testing::TestEngine};
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = TestEngine::start().await;
/// # let task = engine.claimed(Submission::new("work")).await;
/// use ff_sdk::{SuspendOutcome, Suspension};
///
/// let review = Suspension::approval("review")?;
/// if let SuspendOutcome::Suspended(at) = task.suspend_on(review).await? {
///     assert_eq!(at.waitpoints[0].key.as_str(), "review");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SuspendedAt {
    /// The id of this wait.
    pub suspension_id: SuspensionId,
    /// In the order in which they were bound.
    pub waitpoints: Vec<WaitpointTicket>,
}

impl SuspendedAt {
    /// The first waitpoint; none when only time or an operator ends the wait.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_sdk::{SuspendOutcome, Suspension};
    /// use std::time::Duration;
    ///
    /// let nap = Suspension::sleep(Duration::from_secs(60));
    /// let SuspendOutcome::Suspended(at) = task.suspend_on(nap).await? else { panic!() };
    /// assert!(at.waitpoint().is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn waitpoint(&self) -> Option<&WaitpointTicket> {
        self.waitpoints.first()
    }
}

/// What became of a suspend.
///
/// ```
/// use ff_sdk::{ClaimedTask, EndError, SuspendOutcome, Suspension};
///
/// async fn review(task: ClaimedTask, until: Suspension) -> Result<(), EndError> {
///     match task.suspend_on(until).await? {
///         SuspendOutcome::Suspended(_) => Ok(()),
///         SuspendOutcome::AlreadySatisfied { task, .. } => task.complete(None).await,
///     }
/// }
/// # use ff_sdk::{Submission, testing::TestEngine};
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = TestEngine::start().await;
/// # let task = engine.claimed(Submission::new("work")).await;
/// review(task, Suspension::approval("review")?).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub enum SuspendOutcome {
    /// The lease is over; whoever claims the execution next goes on with the attempt.
    Suspended(SuspendedAt),
    /// What it was to wait for had been said already: the task goes on.
    AlreadySatisfied {
        /// Where it would have waited.
        at: SuspendedAt,
        /// With its lease, and [`ClaimedTask::resume_signals`] tells what was said.
        task: Box<ClaimedTask>,
    },
}

impl ClaimedTask {
    /// Stops until a signal comes that matches: with up to one matcher the first that does, with
    /// several all of them. The waitpoint is new and called `wpk:<id>`.
    ///
    /// [`Self::suspend_on`] says more: names of waitpoints, conditions, what is left for whoever
    /// goes on.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_sdk::{ConditionMatcher, SuspendOutcome, TimeoutBehavior};
    /// use std::time::Duration;
    ///
    /// let paid = [ConditionMatcher::named("paid")];
    /// let week = Some(Duration::from_secs(7 * 86_400));
    /// let then = TimeoutBehavior::Cancel;
    /// let outcome = task.suspend("waiting_for_payment", &paid, week, then).await?;
    /// assert!(matches!(outcome, SuspendOutcome::Suspended(_)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::complete`]; [`SdkError::Config`] for a name that is none, with the task.
    pub async fn suspend(
        self,
        reason: impl Into<String>,
        matchers: &[ConditionMatcher],
        timeout: Option<Duration>,
        behavior: TimeoutBehavior,
    ) -> Result<SuspendOutcome, EndError> {
        match simple(matchers) {
            Ok(suspension) => {
                let suspension = suspension.reason(reason).on_timeout(behavior);
                let suspension = Suspension {
                    timeout: timeout.map(|timeout| SuspendTimeout::For(millis(timeout))),
                    ..suspension
                };
                self.suspend_on(suspension).await
            }
            Err(error) => Err(EndError { error, task: Some(Box::new(self)) }),
        }
    }

    /// Stops until a condition is met.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// use ff_core::id::WaitpointKey;
    /// use ff_sdk::Suspension;
    ///
    /// let task = engine.claimed(Submission::new("deploy")).await;
    /// let id = task.execution_id();
    /// task.suspend_on(Suspension::approval("go")?).await?;
    /// let go: WaitpointKey = "go".parse()?;
    /// engine.client().approve(id, go, "ada", None).await?;
    /// worker.claim_next().await?.expect("it goes on").complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::complete`]; `waitpoint_already_exists`, and `pending_waitpoint_expired` of one
    /// that is [used](Suspension::using).
    pub async fn suspend_on(self, suspension: Suspension) -> Result<SuspendOutcome, EndError> {
        let metadata = suspension.metadata.clone();
        let fresh = suspension.fresh.into_iter().map(Binding::fresh);
        let bindings = suspension.bindings.into_iter().chain(fresh).collect();
        let suspend = Suspend {
            resume_policy: suspension.resume_policy,
            reason: suspension.reason,
            requester: Some("worker".to_owned()),
            timeout: suspension.timeout,
            timeout_behavior: suspension.timeout_behavior,
            metadata: suspension.metadata,
            ..Suspend::new(self.execution_id(), self.fence(), bindings, suspension.condition)
        };
        match self.insist(suspend).await {
            Ok(suspended) => Ok(self.suspended(suspended, metadata)),
            Err(error) => Err(self.not_ended(error)),
        }
    }

    fn suspended(mut self, suspended: Suspended, metadata: Option<Bytes>) -> SuspendOutcome {
        let waitpoints = suspended.waitpoints.into_iter().map(Into::into).collect();
        let at = SuspendedAt { suspension_id: suspended.suspension_id, waitpoints };
        if suspended.already_satisfied {
            let extras = &mut Arc::make_mut(&mut self.task).extras;
            extras.metadata = metadata;
            // What came with the claim is of another suspension: the store tells of this one.
            extras.resume_signals.clear();
            self.signals_at_store = true;
            return SuspendOutcome::AlreadySatisfied { at, task: Box::new(self) };
        }
        self.let_go();
        SuspendOutcome::Suspended(at)
    }
}

fn simple(matchers: &[ConditionMatcher]) -> Result<Suspension, SdkError> {
    let waitpoint_id = WaitpointId::mint();
    let waitpoint: WaitpointKey = parse("waitpoint_key", &format!("wpk:{waitpoint_id}"))?;
    let single = |matcher: &ConditionMatcher| {
        let waitpoint = waitpoint.clone();
        Ok(Condition::Single { waitpoint, name: matcher.matcher()? })
    };
    let condition = match matchers {
        [] => single(&ConditionMatcher::default())?,
        [matcher] => single(matcher)?,
        several => Condition::AllOf(several.iter().map(single).collect::<Result<_, SdkError>>()?),
    };
    let key = waitpoint.clone();
    Ok(Suspension::on(condition, vec![Binding::Fresh { waitpoint_id, key, token_ttl_ms: None }]))
}
