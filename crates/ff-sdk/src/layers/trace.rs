//! A span for every call of a handler.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use ff_observe::traces;
use tower::Service;
use tracing::Instrument as _;

use crate::runtime::{Failure, Outcome, TaskCall};

/// Puts a span `handle <kind>` around every call of a handler, with the execution, the attempt and
/// the outcome. It belongs to the trace of whoever submitted the execution, and goes where the
/// exporter of [`ff_observe::traces`] sends it.
///
/// ```
/// use ff_sdk::WorkerConfig;
/// use ff_sdk::layers::TraceTasks;
/// use ff_sdk::runtime::WorkerRuntime;
///
/// let runtime = WorkerRuntime::connect(WorkerConfig::new("w")).layer(TraceTasks);
/// # drop(runtime);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct TraceTasks;

impl<S> tower::Layer<S> for TraceTasks {
    type Service = TracedService<S>;

    fn layer(&self, inner: S) -> TracedService<S> {
        TracedService(inner)
    }
}

/// A handler under [`TraceTasks`].
///
/// Made by the runtime from the layer; nobody needs to name it.
#[derive(Debug, Clone)]
pub struct TracedService<S>(S);

impl<S> Service<TaskCall> for TracedService<S>
where
    S: Service<TaskCall, Response = Outcome, Error = Failure>,
    S::Future: Send + 'static,
{
    type Response = Outcome;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Outcome, Failure>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, call: TaskCall) -> Self::Future {
        let info = call.info();
        let kind = info.kind().as_str();
        let span =
            traces::task(kind, info.execution_id(), info.attempt_index(), info.trace_context());
        let answering = span.in_scope(|| self.0.call(call)).instrument(span.clone());
        Box::pin(async move {
            let answer = answering.await;
            match &answer {
                Ok(outcome) => traces::handled(&span, outcome.name(), false),
                Err(failure) => traces::handled(&span, failure.category_name(), true),
            }
            answer
        })
    }
}
