//! The calls that end a task.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use ff_core::content::Content;
use ff_core::error::EngineError;
use ff_core::id::{Authority, ExecutionId};
use ff_core::operation::{
    Cancel, ClaimNext, Complete, Delay, DelayUntil, Fail, Failed, Operation, WaitChildren,
};
use ff_core::state::CancelSource;
use ff_core::time::TimestampMs;
use tokio::sync::OwnedSemaphorePermit;

use super::ClaimedTask;
use crate::error::SdkError;
use crate::leases::is_terminal_renewal_error;
use crate::presence::millis;

/// The call that was to end a task did not.
///
/// When it is not known to have been decided, the task comes back, with its lease renewed as
/// before: it may be tried again.
pub struct EndError {
    /// What went wrong.
    pub error: SdkError,
    /// The task, where it has not ended.
    pub task: Option<Box<ClaimedTask>>,
}

/// What became of an attempt that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailOutcome {
    /// The policy grants another attempt.
    RetryScheduled {
        /// When it may be claimed again.
        delay_until: TimestampMs,
        /// Retries so far, this one included.
        retry_count: u32,
    },
    /// The execution has failed.
    TerminalFailed,
}

impl ClaimedTask {
    /// Ends the execution with success. Without a result none is kept; an empty one is a result.
    pub async fn complete(self, result: Option<Bytes>) -> Result<(), EndError> {
        self.complete_with(result.map(Content::new)).await
    }

    /// The same with a result of some content type.
    pub async fn complete_with(self, result: Option<Content>) -> Result<(), EndError> {
        let complete = self.completion(result, None);
        self.end(complete).await.map(|_| ())
    }

    /// Completes, and claims one more task in the same step. None: there was none at hand, though
    /// there may be elsewhere.
    pub async fn complete_and_claim(
        self,
        result: Option<Content>,
    ) -> Result<Option<ClaimedTask>, EndError> {
        if self.worker().is_draining() {
            self.complete_with(result).await?;
            return Ok(None);
        }
        let worker = self.worker().clone();
        let next = worker.claim_next_request();
        let complete = self.completion(result, Some(next));
        let (completed, permit) = self.end_keeping_permit(complete).await?;
        worker.charge(&completed.tasks);
        let task = completed.tasks.into_iter().next();
        Ok(task.zip(permit).map(|(task, permit)| worker.hold(task, permit, None)))
    }

    fn completion(&self, result: Option<Content>, next: Option<ClaimNext>) -> Complete {
        let authority = Authority::Fence(self.fence());
        Complete { execution_id: self.execution_id(), authority, result, next }
    }

    /// Ends the attempt with a failure. The category decides whether there may be another attempt:
    /// `permanent` and `cancelled` never are tried again, the rest is as the policy says.
    pub async fn fail(
        self,
        reason: impl Into<String>,
        category: impl Into<String>,
    ) -> Result<FailOutcome, EndError> {
        let fail = self.failure(reason.into(), category.into());
        self.fail_with(fail).await
    }

    /// A failure of this attempt, to be filled in: its class and when to try again.
    pub(crate) fn failure(&self, reason: String, category: String) -> Fail {
        let authority = Authority::Fence(self.fence());
        let execution_id = self.execution_id();
        Fail { execution_id, authority, reason, category, class: None, retry_after_ms: None }
    }

    pub(crate) async fn fail_with(self, fail: Fail) -> Result<FailOutcome, EndError> {
        Ok(match self.end(fail).await? {
            Failed::RetryScheduled { delay_until, retry_count, .. } => {
                FailOutcome::RetryScheduled { delay_until, retry_count }
            }
            Failed::TerminalFailed { .. } => FailOutcome::TerminalFailed,
        })
    }

    /// Ends the execution as cancelled.
    pub async fn cancel(self, reason: impl Into<String>) -> Result<(), EndError> {
        let cancel = Cancel {
            execution_id: self.execution_id(),
            reason: reason.into(),
            source: CancelSource::LeaseHolder,
            fence: Some(self.fence()),
        };
        self.end(cancel).await.map(|_| ())
    }

    /// Puts the task aside until `until`; the same attempt then goes on, with whoever claims it.
    pub async fn delay_execution(self, until: TimestampMs) -> Result<(), EndError> {
        self.delay(DelayUntil::At(until)).await
    }

    /// Puts the task aside for so long, by the store's clock.
    pub async fn delay_for(self, delay: Duration) -> Result<(), EndError> {
        self.delay(DelayUntil::For(millis(delay))).await
    }

    async fn delay(self, until: DelayUntil) -> Result<(), EndError> {
        let authority = Authority::Fence(self.fence());
        let delay = Delay { execution_id: self.execution_id(), authority, until };
        self.end(delay).await.map(|_| ())
    }

    /// Puts the task aside until all that it depends on in its flow has ended.
    pub async fn move_to_waiting_children(self) -> Result<(), EndError> {
        self.wait_for_children(None).await
    }

    /// The same for some of them.
    pub async fn move_to_waiting_for(self, children: Vec<ExecutionId>) -> Result<(), EndError> {
        self.wait_for_children(Some(children)).await
    }

    async fn wait_for_children(self, children: Option<Vec<ExecutionId>>) -> Result<(), EndError> {
        let authority = Authority::Fence(self.fence());
        let wait = WaitChildren { execution_id: self.execution_id(), authority, children };
        self.end(wait).await.map(|_| ())
    }

    /// Sends what ends the task. A refusal ends it as well: the lease is not this worker's any
    /// more, or the call was wrong and has changed nothing — then the task comes back.
    pub(super) async fn end<O: Operation + Clone>(
        self,
        operation: O,
    ) -> Result<O::Reply, EndError> {
        self.end_keeping_permit(operation).await.map(|(reply, _)| reply)
    }

    async fn end_keeping_permit<O: Operation + Clone>(
        mut self,
        operation: O,
    ) -> Result<(O::Reply, Option<OwnedSemaphorePermit>), EndError> {
        match self.insist(operation).await {
            Ok(reply) => {
                let permit = self.permit.take();
                self.let_go();
                Ok((reply, permit))
            }
            Err(error) => Err(self.not_ended(error)),
        }
    }

    pub(super) fn not_ended(mut self, error: EngineError) -> EndError {
        if is_terminal_renewal_error(&error) {
            self.let_go();
            return EndError { error: error.into(), task: None };
        }
        EndError { error: error.into(), task: Some(Box::new(self)) }
    }
}

impl fmt::Debug for EndError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndError")
            .field("error", &self.error)
            .field("has_task", &self.task.is_some())
            .finish()
    }
}

impl fmt::Display for EndError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for EndError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
