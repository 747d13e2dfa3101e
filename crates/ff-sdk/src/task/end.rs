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
///
/// ```
/// use ff_sdk::{ClaimedTask, EndError};
///
/// /// Completes, and says so when somebody else has the execution by now.
/// async fn finish(task: ClaimedTask) -> Result<(), EndError> {
///     match task.complete(None).await {
///         Err(EndError { task: None, error }) => Ok(println!("lost: {error}")),
///         Err(EndError { task: Some(task), .. }) => task.cancel("cannot be completed").await,
///         Ok(()) => Ok(()),
///     }
/// }
/// # use ff_sdk::{Submission, testing::TestEngine};
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = TestEngine::start().await;
/// # let task = engine.claimed(Submission::new("work")).await;
/// finish(task).await?;
/// # Ok(())
/// # }
/// ```
pub struct EndError {
    /// What went wrong.
    pub error: SdkError,
    /// The task, where it has not ended.
    pub task: Option<Box<ClaimedTask>>,
}

/// What became of an attempt that failed.
///
/// ```
/// # use ff_sdk::{Submission, testing::TestEngine};
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = TestEngine::start().await;
/// # let task = engine.claimed(Submission::new("work")).await;
/// use ff_sdk::FailOutcome;
///
/// match task.fail("no answer", "transient").await? {
///     FailOutcome::RetryScheduled { retry_count, .. } => assert_eq!(retry_count, 1),
///     FailOutcome::TerminalFailed => panic!("three retries are granted unless said"),
/// }
/// # Ok(())
/// # }
/// ```
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
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// let id = task.execution_id();
    /// task.complete(Some("42".into())).await?;
    /// assert_eq!(engine.client().execution(id).result::<u8>().await?, 42);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`EndError`] gives the task back while its lease lasts; without a task the execution is
    /// somebody else's: `lease_expired`, `lease_revoked`, `stale_lease`, `execution_not_active`.
    pub async fn complete(self, result: Option<Bytes>) -> Result<(), EndError> {
        self.complete_with(result.map(Content::new)).await
    }

    /// The same with a result of some content type.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_core::content::Content;
    ///
    /// task.complete_with(Some(Content::json(r#"{"width":200}"#))).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::complete`].
    pub async fn complete_with(self, result: Option<Content>) -> Result<(), EndError> {
        let complete = self.completion(result, None);
        self.end(complete).await.map(|_| ())
    }

    /// Completes, and claims one more task in the same step. None: there was none at hand, though
    /// there may be elsewhere.
    ///
    /// Saves a round trip where work waits. A worker that drains claims nothing more.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// for n in 0..3 {
    ///     engine.client().submit(Submission::new("line").payload(format!("{n}"))).await?;
    /// }
    /// let mut next = worker.claim_next().await?;
    /// let mut done = 0;
    /// while let Some(task) = next {
    ///     next = task.complete_and_claim(None).await?;
    ///     done += 1;
    /// }
    /// assert_eq!(done, 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::complete`]; nothing is claimed then.
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
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_sdk::FailOutcome;
    ///
    /// let failed = task.fail("no such customer", "permanent").await?;
    /// assert_eq!(failed, FailOutcome::TerminalFailed);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::complete`].
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
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_core::state::Outcome;
    ///
    /// let id = task.execution_id();
    /// task.cancel("the order was withdrawn").await?;
    /// engine.assert_outcome(id, Outcome::Cancelled).await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::complete`].
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
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// let task = engine.claimed(Submission::new("poll")).await;
    /// let later = engine.now().after(60_000);
    /// task.delay_execution(later).await?;
    /// assert!(worker.claim_next().await?.is_none());
    /// engine.advance(std::time::Duration::from_secs(60)).await;
    /// let task = worker.claim_next().await?.expect("it goes on");
    /// assert_eq!(task.attempt_index(), 0);
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::complete`].
    pub async fn delay_execution(self, until: TimestampMs) -> Result<(), EndError> {
        self.delay(DelayUntil::At(until)).await
    }

    /// Puts the task aside for so long, by the store's clock.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_core::state::PublicState;
    /// use std::time::Duration;
    ///
    /// let id = task.execution_id();
    /// task.delay_for(Duration::from_secs(60)).await?;
    /// engine.assert_state(id, PublicState::Delayed).await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::complete`].
    pub async fn delay_for(self, delay: Duration) -> Result<(), EndError> {
        self.delay(DelayUntil::For(millis(delay))).await
    }

    async fn delay(self, until: DelayUntil) -> Result<(), EndError> {
        let authority = Authority::Fence(self.fence());
        let delay = Delay { execution_id: self.execution_id(), authority, until };
        self.end(delay).await.map(|_| ())
    }

    /// Puts the task aside until all that it depends on in its flow has ended.
    ///
    /// For a member that has added others while it ran, with edges that lead to itself.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// # use std::collections::BTreeMap;
    /// use ff_core::operation::NewEdge;
    /// use ff_core::state::EdgeKind;
    ///
    /// let client = engine.client();
    /// let flow = client.create_flow("crawl", BTreeMap::new()).await?;
    /// let crawl = client.submit_to_flow(flow, Some("crawl"), Submission::new("crawl")).await?;
    /// let task = worker.claim_next().await?.expect("it runs");
    /// let page = client.submit_to_flow(flow, Some("page"), Submission::new("page")).await?;
    /// let (upstream, downstream) = (page.id(), crawl.id());
    /// let kind = EdgeKind::SuccessOnly;
    /// let edge = NewEdge { upstream, downstream, kind, name: None, data_passing_ref: None };
    /// client.add_edge(flow, edge).await?;
    /// task.move_to_waiting_children().await?;
    ///
    /// worker.claim_next().await?.expect("the page").complete(None).await?;
    /// let task = worker.claim_next().await?.expect("it goes on");
    /// assert_eq!(task.execution_id(), crawl.id());
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::complete`]; `execution_not_in_flow` for one that is no member.
    pub async fn move_to_waiting_children(self) -> Result<(), EndError> {
        self.wait_for_children(None).await
    }

    /// The same for some of them.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// # use std::collections::BTreeMap;
    /// # use ff_core::operation::NewEdge;
    /// # use ff_core::state::EdgeKind;
    /// # let client = engine.client();
    /// # let flow = client.create_flow("crawl", BTreeMap::new()).await?;
    /// # let crawl = client.submit_to_flow(flow, None, Submission::new("crawl")).await?;
    /// # let task = worker.claim_next().await?.expect("it runs");
    /// # let page = client.submit_to_flow(flow, None, Submission::new("page")).await?;
    /// # let (upstream, downstream, kind) = (page.id(), crawl.id(), EdgeKind::SuccessOnly);
    /// # let edge = NewEdge { upstream, downstream, kind, name: None, data_passing_ref: None };
    /// # client.add_edge(flow, edge).await?;
    /// task.move_to_waiting_for(vec![page.id()]).await?;
    /// worker.claim_next().await?.expect("the page").complete(None).await?;
    /// assert_eq!(worker.claim_next().await?.expect("it goes on").execution_id(), crawl.id());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::move_to_waiting_children`].
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
