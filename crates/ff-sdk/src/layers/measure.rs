//! How long handlers take, and how they end.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use ff_observe::Metrics;
use tower::Service;

use crate::runtime::{Failure, HANDLER_PANIC, HANDLER_TIMEOUT, Outcome, TaskCall};

/// Measures every call of a handler: `ff_handler_duration_seconds` by kind and outcome. Added by
/// [`WorkerRuntime::metrics`](crate::runtime::WorkerRuntime::metrics).
///
/// ```
/// use ff_sdk::layers::{MeasureTasks, Metrics};
///
/// let metrics = Metrics::default();
/// let layer = MeasureTasks::new(&metrics);
/// ```
#[derive(Debug, Clone)]
pub struct MeasureTasks(Metrics);

impl MeasureTasks {
    /// Into these metrics.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::layers::{MeasureTasks, Metrics};
    /// use ff_sdk::runtime::HandlerOptions;
    ///
    /// let metrics = Metrics::default();
    /// let only_this_kind = HandlerOptions::new().layer(MeasureTasks::new(&metrics));
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(metrics: &Metrics) -> Self {
        Self(metrics.clone())
    }
}

impl<S> tower::Layer<S> for MeasureTasks {
    type Service = MeasuredService<S>;

    fn layer(&self, inner: S) -> MeasuredService<S> {
        MeasuredService { inner, metrics: self.0.clone() }
    }
}

/// A handler under [`MeasureTasks`].
///
/// Made by the runtime from the layer; nobody needs to name it.
#[derive(Debug, Clone)]
pub struct MeasuredService<S> {
    inner: S,
    metrics: Metrics,
}

impl<S> Service<TaskCall> for MeasuredService<S>
where
    S: Service<TaskCall, Response = Outcome, Error = Failure>,
    S::Future: Send + 'static,
{
    type Response = Outcome;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Outcome, Failure>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, call: TaskCall) -> Self::Future {
        let (kind, metrics) = (call.info().kind().clone(), self.metrics.clone());
        let begun = Instant::now();
        let answering = self.inner.call(call);
        Box::pin(async move {
            let answer = answering.await;
            metrics.handled(kind.as_str(), outcome(&answer), begun.elapsed());
            answer
        })
    }
}

/// Few words, whatever categories handlers make up.
fn outcome(answer: &Result<Outcome, Failure>) -> &'static str {
    match answer {
        Ok(outcome) => outcome.name(),
        Err(failure) if failure.category_name() == HANDLER_TIMEOUT => "timeout",
        Err(failure) if failure.category_name() == HANDLER_PANIC => "panicked",
        Err(_) => "failed",
    }
}
