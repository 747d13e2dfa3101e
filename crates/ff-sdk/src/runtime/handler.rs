//! Handlers: async functions of extractors.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use ff_core::id::Kind;
use ff_core::state::FailureClass;
use futures_util::FutureExt as _;
use tokio::time::timeout;
use tower::Service;

use super::failure::{HANDLER_PANIC, HANDLER_TIMEOUT};
use super::{Failure, FromTask, IntoAnswer, Outcome, TaskCall};

/// What does the work of a kind: an async function, or a closure that gives a future, of up to four
/// [extractors](FromTask). What it returns says what becomes of the task: see [`IntoAnswer`].
///
/// ```
/// use ff_sdk::runtime::{Data, Failure, Payload, Task, TaskInfo};
///
/// struct Model;
///
/// async fn answer(
///     question: Payload<String>,
///     model: Data<Model>,
///     info: TaskInfo,
///     task: Task,
/// ) -> Result<String, Failure> {
///     let _model: &Model = &model;
///     task.update_progress(50, "thinking").await?;
///     Ok(format!("{}: {}", info.attempt_index(), *question))
/// }
/// # ff_sdk::runtime::check_handler(answer);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no handler of tasks",
    label = "not a handler",
    note = "a handler is an async function of up to four extractors: Payload<T>, PayloadBytes, \
            Data<T>, TaskInfo, Task",
    note = "it returns (), a plain value, Json(value), an Outcome, or a Result of such"
)]
pub trait Handler<Args>: Clone + Send + Sync + 'static {
    /// Does the work of one task.
    fn call(self, call: TaskCall) -> impl Future<Output = Result<Outcome, Failure>> + Send;
}

macro_rules! handlers {
    ($(($($extractor:ident),*))*) => {
        $(
            impl<F, Fut, $($extractor),*> Handler<($($extractor,)*)> for F
            where
                F: Fn($($extractor),*) -> Fut + Clone + Send + Sync + 'static,
                Fut: Future + Send,
                Fut::Output: IntoAnswer,
                $($extractor: FromTask + Send,)*
            {
                async fn call(self, call: TaskCall) -> Result<Outcome, Failure> {
                    // The call itself goes with the arguments: a handler that takes no `Task`
                    // holds none.
                    let answering = {
                        let _call = call;
                        self($($extractor::from_task(&_call)?),*)
                    };
                    answering.await.into_answer()
                }
            }
        )*
    };
}

handlers! {
    ()
    (A)
    (A, B)
    (A, B, C)
    (A, B, C, D)
}

/// Compiles if the argument is a handler, and does nothing else: for tests of handlers that are
/// registered elsewhere.
///
/// ```
/// use ff_sdk::runtime::{Payload, check_handler};
///
/// async fn greet(name: Payload<String>) -> String {
///     format!("hello {}", *name)
/// }
/// check_handler(greet);
/// ```
pub fn check_handler<Args>(handler: impl Handler<Args>) {
    drop(handler);
}

/// An answer under way.
pub(super) type Answering = Pin<Box<dyn Future<Output = Result<Outcome, Failure>> + Send>>;

/// A handler as the innermost service: what it panics with and how long it takes are failures like
/// any other to the layers around it.
#[derive(Clone)]
pub(super) struct HandlerService {
    call: Arc<dyn Fn(TaskCall) -> Answering + Send + Sync>,
    timeout: Option<Duration>,
}

impl HandlerService {
    pub(super) fn new<H: Handler<Args>, Args: 'static>(
        handler: H,
        timeout: Option<Duration>,
    ) -> Self {
        let call = move |call| Box::pin(handler.clone().call(call)) as Answering;
        Self { call: Arc::new(call), timeout }
    }
}

impl Service<TaskCall> for HandlerService {
    type Response = Outcome;
    type Error = Failure;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: TaskCall) -> Answering {
        let (handler, longest) = (Arc::clone(&self.call), self.timeout);
        Box::pin(async move {
            let kind = call.info().kind().clone();
            // The function may panic before it gives a future.
            let answering = AssertUnwindSafe(async move { handler(call).await }).catch_unwind();
            let answered = match longest {
                None => answering.await,
                Some(longest) => match timeout(longest, answering).await {
                    Ok(answered) => answered,
                    Err(_) => Ok(Err(timed_out(&kind, longest))),
                },
            };
            answered.unwrap_or_else(|panic| Err(panicked(&*panic)))
        })
    }
}

impl std::fmt::Debug for HandlerService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HandlerService").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

fn timed_out(kind: &Kind, longest: Duration) -> Failure {
    let reason = format!("the handler of {kind} took longer than {longest:?}");
    Failure::new(FailureClass::Timeout, reason).category(HANDLER_TIMEOUT)
}

/// The failure that a panic is.
pub(super) fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let said = panic.downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let reason = format!("the handler panicked: {}", said.unwrap_or("it said nothing"));
    Failure::transient(reason).category(HANDLER_PANIC)
}
