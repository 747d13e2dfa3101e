//! One task after the other, each from its claim to its end.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ff_core::content::Content;
use futures_util::FutureExt as _;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::call::DataMap;
use super::failure::RUNTIME_NO_HANDLER;
use super::handler::panicked;
use super::kinds::{Kinds, Served};
use super::{Failure, Outcome, Task, TaskCall};
use crate::error::{SdkError, is_fault};
use crate::leases::StopReason;
use crate::presence::millis;
use crate::task::{ClaimedTask, EndError, SuspendOutcome, Suspension};
use crate::worker::FlowFabricWorker;

/// What all running tasks share.
pub(super) struct Shop {
    pub(super) worker: FlowFabricWorker,
    pub(super) kinds: Kinds,
    pub(super) data: Arc<DataMap>,
    pub(super) stop_grace: Duration,
    /// Ends everything without waiting for anything.
    pub(super) at_once: CancellationToken,
    /// Whether there was more work than slots when somebody last looked.
    pub(super) more: AtomicBool,
    /// Completions under way.
    pub(super) completing: AtomicUsize,
}

/// A completion under way, also one that is dropped.
struct Completing<'a>(&'a AtomicUsize);

impl Drop for Completing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What became of a task after a call of its handler.
enum After {
    Ended,
    /// It has brought another one along.
    Next(ClaimedTask),
    /// The handler is to be called again, under the same lease.
    Again(ClaimedTask),
}

impl Shop {
    /// Runs a task, and whatever its completion brings along.
    pub(super) async fn work(&self, task: ClaimedTask) {
        let mut next = Some(task);
        while let Some(task) = next.take() {
            tokio::select! {
                then = self.run(task) => next = then,
                () = self.at_once.cancelled() => {}
            }
        }
    }

    async fn run(&self, mut task: ClaimedTask) -> Option<ClaimedTask> {
        let Some(served) = self.kinds.get(task.execution_kind()) else {
            let reason = format!("this worker has no handler for {}", task.execution_kind());
            fail(task, Failure::transient(reason).category(RUNTIME_NO_HANDLER)).await;
            return None;
        };
        let _turn = match served.turn() {
            Ok(turn) => turn,
            Err(away) => {
                give_back(task, away).await;
                return None;
            }
        };
        loop {
            match self.call(served, task).await {
                After::Ended => return None,
                After::Next(next) => return Some(next),
                After::Again(same) => task = same,
            }
        }
    }

    async fn call(&self, served: &Served, task: ClaimedTask) -> After {
        let execution_id = task.execution_id();
        let handle = Task::new(task);
        let answer = self.answer(served, &handle).await;
        let Some(task) = handle.take().await else { return After::Ended };
        match (task.stop_reason(), answer) {
            (_, None) => {
                tracing::debug!(%execution_id, "a handler that was told to stop was dropped");
                After::Ended
            }
            (Some(StopReason::Cancelled { .. } | StopReason::LeaseLost { .. }), _) => {
                tracing::debug!(%execution_id, "what the handler returned came too late");
                After::Ended
            }
            // Its lease is still this worker's: what is done is done. A failure of a handler that
            // was told to stop is none of the task's, which goes to another worker.
            (Some(StopReason::ShuttingDown), Some(Err(failure))) => {
                tracing::debug!(%execution_id, %failure, "stopped before it was done");
                After::Ended
            }
            (_, Some(Ok(outcome))) => self.send(task, outcome).await,
            (None, Some(Err(failure))) => {
                fail(task, failure).await;
                After::Ended
            }
        }
    }

    /// What the handler answers; none when it was told to stop and did not in time.
    async fn answer(&self, served: &Served, task: &Task) -> Option<Result<Outcome, Failure>> {
        let call = TaskCall::new(task.clone(), Arc::clone(&self.data));
        let service = served.service.clone();
        // Handlers catch their own panics; this is for layers.
        let answering = AssertUnwindSafe(service.oneshot(call)).catch_unwind();
        let too_late = async {
            task.cancelled().await;
            sleep(self.stop_grace).await;
        };
        tokio::select! {
            biased;
            answer = answering => Some(answer.unwrap_or_else(|panic| Err(panicked(&*panic)))),
            () = too_late => None,
        }
    }

    async fn send(&self, task: ClaimedTask, outcome: Outcome) -> After {
        let what = outcome.name();
        let sent = match outcome {
            Outcome::None => return self.complete(task, None).await,
            Outcome::Complete(content) => return self.complete(task, Some(content)).await,
            Outcome::Suspend(suspension) => return suspend(task, *suspension).await,
            Outcome::Delay(delay) => task.delay_for(delay).await,
            Outcome::DelayUntil(until) => task.delay_execution(until).await,
            Outcome::WaitChildren(None) => task.move_to_waiting_children().await,
            Outcome::WaitChildren(Some(children)) => task.move_to_waiting_for(children).await,
            Outcome::Cancel { reason } => task.cancel(reason).await,
        };
        if let Err(error) = sent {
            not_sent(error, what).await;
        }
        After::Ended
    }

    /// While there is work a completion asks for more of it. When others complete at the same
    /// moment it does not: one claim for all slots that are then free costs less.
    async fn complete(&self, task: ClaimedTask, result: Option<Content>) -> After {
        let alone = self.completing.fetch_add(1, Ordering::Relaxed) == 0;
        let _completing = Completing(&self.completing);
        let sent = if alone && self.more.load(Ordering::Relaxed) {
            task.complete_and_claim(result).await
        } else {
            task.complete_with(result).await.map(|()| None)
        };
        match sent {
            Ok(Some(next)) => After::Next(next),
            Ok(None) => After::Ended,
            Err(error) => {
                not_sent(error, "completed").await;
                After::Ended
            }
        }
    }
}

/// Waits; or goes on at once, told of what has been said already.
async fn suspend(task: ClaimedTask, suspension: Suspension) -> After {
    let mut task = match task.suspend_on(suspension).await {
        Ok(SuspendOutcome::Suspended(_)) => return After::Ended,
        Ok(SuspendOutcome::AlreadySatisfied { task, .. }) => task,
        Err(error) => {
            not_sent(error, "suspended").await;
            return After::Ended;
        }
    };
    match task.observe_signals().await {
        Ok(()) => After::Again(*task),
        Err(error) => {
            // The lease is over, or was when this was asked: whoever has it next is told.
            tracing::debug!(%error, execution_id = %task.execution_id(), "resumed elsewhere");
            After::Ended
        }
    }
}

async fn fail(task: ClaimedTask, failure: Failure) {
    let execution_id = task.execution_id();
    tracing::debug!(%execution_id, %failure, "the task fails");
    if let Err(error) = task.fail_by(failure).await {
        not_failed(&error);
    }
}

/// For a while: others may run it meanwhile.
async fn give_back(task: ClaimedTask, away: Duration) {
    let execution_id = task.execution_id();
    tracing::debug!(%execution_id, ms = millis(away), "the kind runs as often as it may");
    if let Err(error) = task.delay_for(away).await {
        not_failed(&error);
    }
}

/// What the handler wants is not possible: that is its failure. What could not be sent while the
/// lease lasted is nobody's business any more.
async fn not_sent(error: EndError, what: &'static str) {
    let EndError { error, task } = error;
    let decided = error.engine_error().is_none_or(|error| !is_fault(error));
    match task {
        Some(task) if decided => {
            let reason = format!("the task could not be {what}: {error}");
            let failure = match error.is_retryable() {
                true => Failure::transient(reason),
                false => Failure::permanent(reason),
            };
            fail(*task, failure).await;
        }
        task => not_failed(&EndError { error, task }),
    }
}

fn not_failed(error: &EndError) {
    let SdkError::Engine(_) = &error.error else {
        tracing::warn!(%error, "the end of a task was not sent while its lease lasted");
        return;
    };
    tracing::debug!(%error, "a task had ended otherwise");
}

impl ClaimedTask {
    async fn fail_by(self, failure: Failure) -> Result<(), EndError> {
        let fail = self.failure(failure.reason().to_owned(), failure.category_name().to_owned());
        let retry_after_ms = failure.delay().map(millis);
        let fail = ff_core::operation::Fail {
            class: Some(failure.class()),
            retry_after_ms: retry_after_ms.map(|ms| ms.min(ff_core::limits::DURATION_MAX_MS)),
            ..fail
        };
        self.fail_with(fail).await.map(drop)
    }
}
