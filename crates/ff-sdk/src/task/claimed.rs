//! The task itself: what came with its claim, its lease, and how its calls are sent.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ff_core::backend::BackendExt as _;
use ff_core::error::EngineError;
use ff_core::id::{AttemptId, ContentType, ExecutionId, Handle, Kind, LaneId, LeaseFence, LeaseId};
use ff_core::operation::{Input, Operation, Revoke, Task};
use ff_core::tags::Tags;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::connection::CALL;
use crate::error::{SdkError, is_fault};
use crate::leases::{Lease, StopReason, UNHEALTHY_AFTER};
use crate::outage::Pauses;
use crate::worker::FlowFabricWorker;

use super::EndError;

/// A claimed execution under a lease that is renewed while this value lives.
///
/// It ends by one of the calls that consume it: [`complete`](Self::complete),
/// [`fail`](Self::fail), [`cancel`](Self::cancel), [`delay_execution`](Self::delay_execution),
/// [`move_to_waiting_children`](Self::move_to_waiting_children) or [`suspend`](Self::suspend). Each
/// of them is sent again by itself when the reply is lost: it counts once. When it could not be
/// sent at all, the error gives the task back.
///
/// Dropped without an end it warns, stops renewing and lets go of the execution, which another
/// worker may then take up.
///
/// ```
/// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = TestEngine::start().await;
/// # let worker = engine.worker(WorkerConfig::new("w")).await;
/// # engine.client().submit(Submission::new("sum").json(&[1, 2, 3])?).await?;
/// let task = worker.claim_next().await?.expect("there is work");
/// let numbers: Vec<i64> = serde_json::from_slice(task.input_payload())?;
/// task.update_progress(50, "adding up").await?;
/// let sum: i64 = numbers.iter().sum();
/// task.complete(Some(sum.to_string().into())).await?;
/// # Ok(())
/// # }
/// ```
pub struct ClaimedTask {
    pub(super) task: Arc<Task>,
    lease: Arc<Lease>,
    worker: FlowFabricWorker,
    /// Given back when the task has ended, whichever way.
    pub(super) permit: Option<OwnedSemaphorePermit>,
    /// Set by the call that ended it.
    has_ended: bool,
    /// The signals that resumed it did not come with the claim.
    pub(super) signals_at_store: bool,
}

impl ClaimedTask {
    pub(crate) fn new(
        task: Task,
        lease: Arc<Lease>,
        worker: FlowFabricWorker,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let task = Arc::new(task);
        Self {
            task,
            lease,
            worker,
            permit: Some(permit),
            has_ended: false,
            signals_at_store: false,
        }
    }

    /// The execution that this is an attempt of.
    pub fn execution_id(&self) -> ExecutionId {
        self.task.execution_id
    }

    /// The number of this attempt, from 0.
    pub fn attempt_index(&self) -> u32 {
        self.task.attempt_index
    }

    /// The id of this attempt.
    pub fn attempt_id(&self) -> AttemptId {
        self.task.attempt_id
    }

    /// The id of the lease.
    pub fn lease_id(&self) -> LeaseId {
        self.task.lease_id
    }

    /// Counts the leases of the execution: a later one shuts out all before it.
    pub fn lease_epoch(&self) -> u64 {
        self.task.lease_epoch
    }

    /// The lane that it came from.
    pub fn lane_id(&self) -> &LaneId {
        &self.task.lane
    }

    /// What is to be done: the word by which handlers are chosen.
    pub fn execution_kind(&self) -> &Kind {
        &self.task.kind
    }

    /// The bytes that it was submitted with.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// let task = engine.claimed(Submission::new("greet").payload("Ada")).await;
    /// assert_eq!(&task.input_payload()[..], b"Ada");
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn input_payload(&self) -> &Bytes {
        &self.task.payload
    }

    /// What these bytes are.
    pub fn content_type(&self) -> &ContentType {
        &self.task.content_type
    }

    /// The tags of the execution.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// let task = engine.claimed(Submission::new("bill").tag("tenant", "acme")).await;
    /// assert_eq!(task.tags().get("tenant"), Some("acme"));
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn tags(&self) -> &Tags {
        &self.task.tags
    }

    /// Outcomes and results of the members of its flow that it waited for, by the names of edges.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// # use ff_sdk::Flow;
    /// let flow = Flow::new("report")
    ///     .step("fetch", Submission::new("fetch"))
    ///     .step("print", Submission::new("print")).after("fetch").input_as("page");
    /// engine.client().submit_flow(flow).await?;
    /// let fetch = worker.claim_next().await?.expect("the first step");
    /// fetch.complete(Some("a page".into())).await?;
    ///
    /// let print = worker.claim_next().await?.expect("the second step");
    /// let page = print.inputs()["page"].result.as_ref().expect("its result");
    /// assert_eq!(&page.bytes[..], b"a page");
    /// # print.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn inputs(&self) -> &BTreeMap<String, Input> {
        &self.task.extras.inputs
    }

    /// What the suspend before left for this part of the attempt.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// use ff_core::state::PublicState;
    /// use ff_sdk::Suspension;
    /// use std::time::Duration;
    ///
    /// let task = engine.claimed(Submission::new("remind")).await;
    /// let hour = Duration::from_secs(3600);
    /// task.suspend_on(Suspension::sleep(hour).metadata("page 7")).await?;
    /// engine.advance(hour).await;
    /// let task = worker.claim_next().await?.expect("it goes on");
    /// assert_eq!(task.metadata().map(|left| &left[..]), Some(&b"page 7"[..]));
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn metadata(&self) -> Option<&Bytes> {
        self.task.extras.metadata.as_ref()
    }

    /// Everything that came with the claim.
    pub fn task(&self) -> &Task {
        &self.task
    }

    pub(crate) fn shared_task(&self) -> Arc<Task> {
        Arc::clone(&self.task)
    }

    /// Stands for lease id, epoch and attempt id in calls over HTTP.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// let text = task.handle().encode();
    /// assert!(!text.is_empty());
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn handle(&self) -> &Handle {
        &self.task.handle
    }

    pub(crate) fn fence(&self) -> LeaseFence {
        self.task.fence()
    }

    /// Whether fewer than three renewals in a row have failed.
    ///
    /// A task whose lease is ill may stop what cannot be taken back until it is healthy again. One
    /// whose lease is lost is told so by [`Self::cancelled`].
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// assert!(task.is_lease_healthy());
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_lease_healthy(&self) -> bool {
        self.consecutive_renewal_failures() < UNHEALTHY_AFTER
    }

    /// Renewals that have failed since the last one that did not.
    pub fn consecutive_renewal_failures(&self) -> u32 {
        self.lease.failures()
    }

    /// Waits until the task should stop: it was cancelled, its lease was lost, or the time that a
    /// shutdown leaves it is over. [`Self::stop_reason`] then says which.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_sdk::StopReason;
    ///
    /// engine.cancel(task.execution_id(), "not needed").await;
    /// task.cancelled().await;
    /// let reason = "not needed".to_owned();
    /// assert_eq!(task.stop_reason(), Some(StopReason::Cancelled { reason }));
    /// # Ok(())
    /// # }
    /// ```
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + 'static {
        self.lease.stopped().clone().cancelled_owned()
    }

    /// Whether the task should stop.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// let mut left = 3;
    /// while left > 0 && !task.is_cancelled() {
    ///     left -= 1;
    /// }
    /// task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.lease.stopped().is_cancelled()
    }

    /// The same as a token, to be handed on.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// let stop = task.cancellation();
    /// let download = tokio::spawn(async move {
    ///     tokio::select! {
    ///         () = stop.cancelled() => "stopped",
    ///         () = std::future::ready(()) => "done",
    ///     }
    /// });
    /// # download.await?;
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn cancellation(&self) -> CancellationToken {
        self.lease.stopped().clone()
    }

    /// Why it should stop; none while it need not.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// assert_eq!(task.stop_reason(), None);
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.lease.reason().cloned()
    }

    pub(crate) fn lease(&self) -> &Arc<Lease> {
        &self.lease
    }

    pub(crate) fn worker(&self) -> &FlowFabricWorker {
        &self.worker
    }

    /// One call, which may take its time and no longer.
    pub(super) async fn call<O: Operation>(&self, operation: O) -> Result<O::Reply, EngineError> {
        let late = || EngineError::Timeout { detail: format!("no answer to {}", O::NAME) };
        let pending = self.worker.backend().call(operation);
        let reply = timeout(CALL, pending).await.unwrap_or_else(|_| Err(late()));
        self.worker.outage().heard(&reply);
        reply
    }

    /// Sends an operation that may be repeated until it is decided, or the lease is over.
    pub(super) async fn insist<O: Operation + Clone>(
        &self,
        operation: O,
    ) -> Result<O::Reply, EngineError> {
        let mut pauses = Pauses::default();
        loop {
            match self.call(operation.clone()).await {
                Err(error) if is_fault(&error) => {
                    let left = self.lease.deadline().saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(error);
                    }
                    tokio::time::sleep(pauses.next().min(left)).await;
                }
                decided => return decided,
            }
        }
    }

    /// The execution is somebody else's business from now on.
    pub(super) fn let_go(&mut self) {
        self.has_ended = true;
        self.worker.leases().release(&self.lease);
        self.permit = None;
    }
}

impl Drop for ClaimedTask {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        self.let_go();
        let execution_id = self.task.execution_id;
        if self.lease.stopped().is_cancelled() {
            tracing::debug!(%execution_id, "a task that should stop was dropped");
            return;
        }
        tracing::warn!(%execution_id, "a task was dropped without an outcome");
        // Without this the execution would wait until its lease runs out.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let backend = Arc::clone(self.worker.backend());
            let revoke = Revoke {
                execution_id,
                reason: "dropped without an outcome".to_owned(),
                expected_lease_id: Some(self.task.lease_id),
            };
            runtime.spawn(async move {
                let let_go = timeout(Duration::from_secs(1), backend.call(revoke)).await;
                tracing::debug!(%execution_id, ?let_go, "let go of a dropped task");
            });
        }
    }
}

impl fmt::Debug for ClaimedTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimedTask")
            .field("execution_id", &self.task.execution_id)
            .field("kind", &self.task.kind)
            .field("attempt_index", &self.task.attempt_index)
            .field("lease_epoch", &self.task.lease_epoch)
            .finish_non_exhaustive()
    }
}

impl From<EndError> for SdkError {
    fn from(error: EndError) -> Self {
        error.error
    }
}
