//! Leaving alone what fails again and again: a kind of work, or a backend.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use ff_core::backend::{Backend, Pending};
use ff_core::error::EngineError;
use ff_core::id::Kind;
use ff_core::layer::{Layer, Layered};
use ff_core::operation::{Claim, Claimed, Command, Reply};
use ff_core::read::{Answer, Followed, Query, Topic};
use ff_core::state::FailureClass;
use tower::Service;

use super::breaker::{Breaker, Rule};
use crate::error::is_fault;
use crate::leases::lock;
use crate::runtime::{Failure, Outcome, TaskCall};

/// Opens after five failures in a row, for 30 seconds; then one trial decides whether it closes.
///
/// Around handlers each kind has a breaker of its own. While it is open tasks of that kind are not
/// run and do not fail: they are delayed until it may close, in the same attempt. Failures that are
/// permanent are of the task and not of the kind: they do not count.
///
/// Around a backend only faults count: a store or a server that does not answer. A refusal is an
/// answer and closes it. While it is open every call is answered with `unavailable` at once.
///
/// ```
/// use std::time::Duration;
/// use ff_sdk::layers::CircuitBreaker;
///
/// let patient = CircuitBreaker::new().failures(20).rest(Duration::from_secs(5));
/// ```
#[derive(Debug, Clone)]
pub struct CircuitBreaker {
    rule: Rule,
    kinds: Arc<Mutex<HashMap<Kind, Breaker>>>,
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self::new()
    }
}

impl CircuitBreaker {
    /// Five failures, 30 seconds.
    ///
    /// ```
    /// use ff_sdk::layers::CircuitBreaker;
    ///
    /// let breaker = CircuitBreaker::new();
    /// ```
    pub fn new() -> Self {
        Self::by(Rule { failures: 5, rest: Duration::from_secs(30) })
    }

    fn by(rule: Rule) -> Self {
        Self { rule, kinds: Arc::default() }
    }

    /// How many failures in a row open it; at least one.
    ///
    /// ```
    /// use ff_sdk::layers::CircuitBreaker;
    ///
    /// let patient = CircuitBreaker::new().failures(20);
    /// ```
    #[must_use]
    pub fn failures(self, failures: u32) -> Self {
        Self::by(Rule { failures: failures.max(1), ..self.rule })
    }

    /// How long it then stays open.
    ///
    /// ```
    /// use ff_sdk::layers::CircuitBreaker;
    /// use std::time::Duration;
    ///
    /// let brief = CircuitBreaker::new().rest(Duration::from_secs(5));
    /// ```
    #[must_use]
    pub fn rest(self, rest: Duration) -> Self {
        Self::by(Rule { rest, ..self.rule })
    }

    /// The same backend, left alone while it does not answer.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_core::error::Code;
    /// use ff_sdk::Client;
    /// use ff_sdk::layers::CircuitBreaker;
    ///
    /// let client = Client::connect_with(CircuitBreaker::new().around(engine.backend()));
    /// client.submit(Submission::new("greet")).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn around(&self, backend: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(Layered(Guarded { inner: backend, breaker: Mutex::new(Breaker::new(self.rule)) }))
    }
}

impl<S> tower::Layer<S> for CircuitBreaker {
    type Service = BreakerService<S>;

    fn layer(&self, inner: S) -> BreakerService<S> {
        BreakerService { inner, rule: self.rule, kinds: Arc::clone(&self.kinds) }
    }
}

/// A handler behind a [`CircuitBreaker`].
///
/// Made by the runtime from the layer; nobody needs to name it.
#[derive(Debug, Clone)]
pub struct BreakerService<S> {
    inner: S,
    rule: Rule,
    kinds: Arc<Mutex<HashMap<Kind, Breaker>>>,
}

impl<S> Service<TaskCall> for BreakerService<S>
where
    S: Service<TaskCall, Response = Outcome, Error = Failure> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Outcome;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Outcome, Failure>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, call: TaskCall) -> Self::Future {
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let (kinds, rule) = (Arc::clone(&self.kinds), self.rule);
        Box::pin(async move {
            let kind = call.info().kind().clone();
            let with = |act: &mut dyn FnMut(&mut Breaker)| {
                let mut kinds = lock(&kinds);
                act(kinds.entry(kind.clone()).or_insert_with(|| Breaker::new(rule)));
            };
            let mut admitted = Ok(());
            with(&mut |breaker| admitted = breaker.admit(Instant::now()));
            if let Err(away) = admitted {
                return Ok(Outcome::Delay(away));
            }
            let answer = inner.call(call).await;
            with(&mut |breaker| match &answer {
                Ok(_) if breaker.succeeded() => tracing::info!(%kind, "the kind works again"),
                Err(failure) if failure.class() == FailureClass::Permanent => {}
                Err(failure) if breaker.failed(Instant::now()) => {
                    tracing::warn!(%kind, %failure, "the kind fails again and again; it rests");
                }
                _ => {}
            });
            answer
        })
    }
}

struct Guarded {
    inner: Arc<dyn Backend>,
    breaker: Mutex<Breaker>,
}

impl Guarded {
    fn admit(&self) -> Result<(), EngineError> {
        lock(&self.breaker).admit(Instant::now()).map_err(|left| {
            let ms = left.as_millis();
            EngineError::unavailable(format!("it did not answer again and again; {ms} ms of rest"))
        })
    }

    /// A call is a fault when nothing in it was answered.
    fn heard(&self, fault: Option<&EngineError>) {
        let mut breaker = lock(&self.breaker);
        match fault {
            Some(error) if breaker.failed(Instant::now()) => {
                tracing::warn!(%error, "the backend does not answer; it is left alone");
            }
            None if breaker.succeeded() => tracing::info!("the backend answers again"),
            _ => {}
        }
    }

    fn heard_one<T>(&self, result: &Result<T, EngineError>) {
        self.heard(result.as_ref().err().filter(|error| is_outage(error)));
    }
}

/// Whether the backend did not answer. One that says it is busy has answered.
fn is_outage(error: &EngineError) -> bool {
    error.refusal().is_none() && is_fault(error)
}

impl Layer for Guarded {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn apply(&self, commands: Vec<Command>) -> Pending<'_, Vec<Result<Reply, EngineError>>> {
        Box::pin(async move {
            if let Err(error) = self.admit() {
                return vec![Err(error); commands.len()];
            }
            let replies = self.inner.apply(commands).await;
            let fault = |reply: &Result<Reply, EngineError>| {
                reply.as_ref().err().filter(|error| is_outage(error)).cloned()
            };
            let faults: Option<Vec<_>> = replies.iter().map(fault).collect();
            self.heard(faults.as_deref().and_then(<[_]>::first));
            replies
        })
    }

    fn take(&self, claim: Claim, wait: Duration) -> Pending<'_, Result<Claimed, EngineError>> {
        Box::pin(async move {
            self.admit()?;
            let taken = self.inner.take(claim, wait).await;
            self.heard_one(&taken);
            taken
        })
    }

    fn query(&self, query: Query) -> Pending<'_, Result<Answer, EngineError>> {
        Box::pin(async move {
            self.admit()?;
            let answer = self.inner.query(query).await;
            self.heard_one(&answer);
            answer
        })
    }

    fn follow(&self, topic: Topic, wait: Duration) -> Pending<'_, Result<Followed, EngineError>> {
        Box::pin(async move {
            self.admit()?;
            let followed = self.inner.follow(topic, wait).await;
            self.heard_one(&followed);
            followed
        })
    }
}
