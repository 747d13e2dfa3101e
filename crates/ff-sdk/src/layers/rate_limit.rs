//! A rate that is not exceeded: of handlers that start, or of operations that are sent.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use ff_core::backend::{Backend, Pending};
use ff_core::error::{Code, EngineError, Refusal};
use ff_core::layer::{Layer, Layered};
use ff_core::operation::{Claim, Claimed, Command, Reply};
use ff_core::read::{Answer, Followed, Query, Topic};
use tower::Service;

use super::bucket::Bucket;
use crate::leases::lock;
use crate::runtime::{Failure, Outcome, TaskCall};

/// At most so many in a second.
///
/// Around handlers it limits how many start: those beyond wait for their turn, in their slot and
/// with their lease renewed, so nothing more is claimed than slots are free. Given to
/// [`HandlerOptions::layer`](crate::runtime::HandlerOptions::layer) it counts that kind alone,
/// given to the runtime all of them together.
///
/// Around a backend it limits operations: each command of a batch is one, and so is each claim,
/// question and look at the log. Those beyond are refused with `rate_limited`
/// ([`EngineError::ResourceExhausted`]) before they are sent, with the time to wait; workers and
/// tasks of this SDK wait and try again by themselves.
///
/// ```
/// use ff_sdk::layers::RateLimit;
///
/// let limit = RateLimit::per_second(50.0).burst(10);
/// ```
#[derive(Debug, Clone)]
pub struct RateLimit {
    per_second: f64,
    burst: u32,
    /// All handlers that one layer is put around share it.
    started: Arc<OnceLock<Arc<Mutex<Bucket>>>>,
}

impl RateLimit {
    /// So many in a second on average, and one at once. What is no positive number counts as one in
    /// a thousand seconds.
    ///
    /// ```
    /// use ff_sdk::layers::RateLimit;
    ///
    /// let limit = RateLimit::per_second(0.5);
    /// ```
    pub fn per_second(per_second: f64) -> Self {
        let per_second = if per_second.is_nan() { 0.0 } else { per_second };
        Self { per_second: per_second.clamp(0.001, 1e9), burst: 1, started: Arc::default() }
    }

    /// So many at once after a time of rest.
    ///
    /// ```
    /// use ff_sdk::layers::RateLimit;
    ///
    /// let limit = RateLimit::per_second(50.0).burst(10);
    /// ```
    #[must_use]
    pub fn burst(self, burst: u32) -> Self {
        Self { burst: burst.max(1), started: Arc::default(), ..self }
    }

    /// The same backend, to which no more operations are sent.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_core::backend::BackendExt as _;
    /// use ff_core::error::Code;
    /// use ff_core::read::Due;
    /// use ff_sdk::layers::RateLimit;
    ///
    /// let limited = RateLimit::per_second(0.001).around(engine.backend());
    /// limited.ask(Due).await?;
    /// let refused = limited.ask(Due).await.unwrap_err();
    /// assert_eq!(refused.code(), Code::RateLimited);
    /// # Ok(())
    /// # }
    /// ```
    pub fn around(&self, backend: Arc<dyn Backend>) -> Arc<dyn Backend> {
        Arc::new(Layered(Limited { inner: backend, bucket: Mutex::new(self.bucket()) }))
    }

    fn bucket(&self) -> Bucket {
        Bucket::new(self.per_second, self.burst, Instant::now())
    }
}

impl<S> tower::Layer<S> for RateLimit {
    type Service = LimitedService<S>;

    fn layer(&self, inner: S) -> LimitedService<S> {
        let bucket = self.started.get_or_init(|| Arc::new(Mutex::new(self.bucket())));
        LimitedService { inner, bucket: Arc::clone(bucket) }
    }
}

/// A handler under a [`RateLimit`].
///
/// Made by the runtime from the layer; nobody needs to name it.
#[derive(Debug, Clone)]
pub struct LimitedService<S> {
    inner: S,
    bucket: Arc<Mutex<Bucket>>,
}

impl<S> Service<TaskCall> for LimitedService<S>
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
        // The one that is ready is the one that is called.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let bucket = Arc::clone(&self.bucket);
        Box::pin(async move {
            let wait = lock(&bucket).stand_in_line(Instant::now());
            if !wait.is_zero() {
                let place = Place(Some(bucket));
                tokio::time::sleep(wait).await;
                place.used();
            }
            inner.call(call).await
        })
    }
}

/// A place in line; dropped before its turn came, it is free for another.
struct Place(Option<Arc<Mutex<Bucket>>>);

impl Place {
    fn used(mut self) {
        self.0 = None;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(bucket) = &self.0 {
            lock(bucket).leave_line();
        }
    }
}

struct Limited {
    inner: Arc<dyn Backend>,
    bucket: Mutex<Bucket>,
}

impl Limited {
    fn pass(&self, count: usize) -> Result<(), EngineError> {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        lock(&self.bucket).try_pass(count, Instant::now()).map_err(refused)
    }
}

fn refused(wait: Duration) -> EngineError {
    let detail = format!("more operations than the limit allows; wait {} ms", wait.as_millis());
    Refusal::new(Code::RateLimited, detail).into()
}

impl Layer for Limited {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn apply(&self, commands: Vec<Command>) -> Pending<'_, Vec<Result<Reply, EngineError>>> {
        match self.pass(commands.len()) {
            Ok(()) => self.inner.apply(commands),
            Err(error) => Box::pin(async move { vec![Err(error); commands.len()] }),
        }
    }

    fn take(&self, claim: Claim, wait: Duration) -> Pending<'_, Result<Claimed, EngineError>> {
        match self.pass(1) {
            Ok(()) => self.inner.take(claim, wait),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn query(&self, query: Query) -> Pending<'_, Result<Answer, EngineError>> {
        match self.pass(1) {
            Ok(()) => self.inner.query(query),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn follow(&self, topic: Topic, wait: Duration) -> Pending<'_, Result<Followed, EngineError>> {
        match self.pass(1) {
            Ok(()) => self.inner.follow(topic, wait),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }
}
