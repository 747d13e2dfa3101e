//! The task as its handler holds it.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ff_core::error::{Code, Refusal};
use ff_core::id::BudgetId;
use ff_core::operation::{NewFrame, ResumeSignal, UsageReported};
use ff_core::read::{StreamCursor, Visibility};
use ff_core::state::FrameMode;
use ff_core::time::TimestampMs;
use tokio::sync::{RwLock, RwLockReadGuard};
use tokio_util::sync::CancellationToken;

use super::TaskInfo;
use crate::client::Client;
use crate::error::SdkError;
use crate::leases::{Lease, StopReason};
use crate::stream::{self, StreamFrames, TailOptions};
use crate::task::{AppendFrameOutcome, ClaimedTask, Usage, WaitpointTicket};
use crate::worker::FlowFabricWorker;

/// A task while its handler runs: progress, output, usage, waitpoints, and whether to stop. An
/// extractor, and cheap to clone.
///
/// It does not end the task: that is what the handler's return value does, see
/// [`Outcome`](super::Outcome). A clone that outlives the handler is told so by an error with the
/// code `execution_not_active`.
///
/// ```
/// use ff_sdk::Suspension;
/// use ff_sdk::runtime::{Failure, Outcome, Task, TaskInfo};
///
/// /// Gives the token of its waitpoint away, and only then waits.
/// async fn review(task: Task, info: TaskInfo) -> Result<Outcome, Failure> {
///     if !info.resume_signals().is_empty() {
///         return Ok(Outcome::None);
///     }
///     let ticket = task.create_pending_waitpoint("review", None).await?;
///     send_mail(ticket.token.expose());
///     Ok(Outcome::suspend(Suspension::approval("review")?.using(&ticket)))
/// }
/// # fn send_mail(_: &str) {}
/// # ff_sdk::runtime::check_handler(review);
/// ```
#[derive(Clone)]
pub struct Task(Arc<Held>);

struct Held {
    info: TaskInfo,
    lease: Arc<Lease>,
    worker: FlowFabricWorker,
    /// None once the handler has returned. Calls under way keep it from being taken out.
    claimed: RwLock<Option<ClaimedTask>>,
}

impl Task {
    pub(super) fn new(claimed: ClaimedTask) -> Self {
        Self(Arc::new(Held {
            info: TaskInfo::new(claimed.shared_task()),
            lease: Arc::clone(claimed.lease()),
            worker: claimed.worker().clone(),
            claimed: RwLock::new(Some(claimed)),
        }))
    }

    /// The task, to be ended; clones of this handle have nothing any more.
    pub(super) async fn take(&self) -> Option<ClaimedTask> {
        self.0.claimed.write().await.take()
    }

    async fn held(&self) -> Result<RwLockReadGuard<'_, ClaimedTask>, SdkError> {
        let ended = || Refusal::new(Code::ExecutionNotActive, "the handler of this task returned");
        let claimed = self.0.claimed.read().await;
        RwLockReadGuard::try_map(claimed, Option::as_ref).map_err(|_| ended().into())
    }

    /// What the task is.
    pub fn info(&self) -> &TaskInfo {
        &self.0.info
    }

    /// A client over the same connection: to submit, to signal, to read.
    pub fn client(&self) -> Client {
        self.0.worker.client()
    }

    /// Waits until the handler should stop: the execution was cancelled, its lease was lost, or the
    /// time that a shutdown leaves is over. [`Self::stop_reason`] then says which. A handler that
    /// goes on is dropped after [`WorkerRuntime::stop_grace`](super::WorkerRuntime::stop_grace).
    ///
    /// ```
    /// use ff_sdk::runtime::{Failure, Task};
    ///
    /// async fn crawl(task: Task) -> Result<(), Failure> {
    ///     tokio::select! {
    ///         pages = fetch_all() => Ok(pages),
    ///         () = task.cancelled() => Err(Failure::transient("told to stop")),
    ///     }
    /// }
    /// # async fn fetch_all() {}
    /// # ff_sdk::runtime::check_handler(crawl);
    /// ```
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + 'static {
        self.0.lease.stopped().clone().cancelled_owned()
    }

    /// Whether the handler should stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.lease.stopped().is_cancelled()
    }

    /// The same as a token, to be handed on.
    pub fn cancellation(&self) -> CancellationToken {
        self.0.lease.stopped().clone()
    }

    /// Why it should stop; none while it need not.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.0.lease.reason().cloned()
    }
}

/// What a handler says while it works.
impl Task {
    /// Says how far the task is: 0 to 100, and a word for people.
    pub async fn update_progress(
        &self,
        pct: u8,
        message: impl Into<String>,
    ) -> Result<(), SdkError> {
        self.held().await?.update_progress(pct, message).await
    }

    /// Renews the lease now. It is renewed by itself while the handler runs; this is for whoever
    /// wants to know that it is still this worker's.
    pub async fn renew_lease(&self) -> Result<TimestampMs, SdkError> {
        self.held().await?.renew_lease().await
    }

    /// Appends a piece of output, kept as the policy of the execution says. `metadata` is its
    /// correlation id.
    pub async fn append_frame(
        &self,
        frame_type: impl Into<String>,
        payload: impl Into<Bytes>,
        metadata: Option<&str>,
    ) -> Result<AppendFrameOutcome, SdkError> {
        self.held().await?.append_frame(frame_type, payload, metadata).await
    }

    /// The same, kept as `mode` says.
    pub async fn append_frame_with_mode(
        &self,
        frame_type: impl Into<String>,
        payload: impl Into<Bytes>,
        metadata: Option<&str>,
        mode: FrameMode,
    ) -> Result<AppendFrameOutcome, SdkError> {
        self.held().await?.append_frame_with_mode(frame_type, payload, metadata, mode).await
    }

    /// Appends up to a hundred pieces of output: all of them or none.
    pub async fn append_frames(
        &self,
        frames: Vec<NewFrame>,
    ) -> Result<Vec<AppendFrameOutcome>, SdkError> {
        self.held().await?.append_frames(frames).await
    }

    /// Counts usage against a budget. Sent again after a lost reply it counts once: by `dedup`, or
    /// by a key that is made here.
    pub async fn report_usage(
        &self,
        budget_id: BudgetId,
        usage: &Usage,
        dedup: Option<&str>,
    ) -> Result<UsageReported, SdkError> {
        self.held().await?.report_usage(budget_id, usage, dedup).await
    }

    /// The same for every budget that the execution stands under.
    pub async fn report_usage_to_all(
        &self,
        usage: &Usage,
        dedup: Option<&str>,
    ) -> Result<Vec<(BudgetId, UsageReported)>, SdkError> {
        self.held().await?.report_usage_to_all(usage, dedup).await
    }

    /// Makes a waitpoint whose token can be given away before the handler returns
    /// [`Outcome::suspend`](super::Outcome::suspend) with
    /// [`Suspension::using`](crate::Suspension::using).
    pub async fn create_pending_waitpoint(
        &self,
        key: &str,
        expires_at: Option<TimestampMs>,
    ) -> Result<WaitpointTicket, SdkError> {
        self.held().await?.create_pending_waitpoint(key, expires_at).await
    }

    /// The signals that resumed this attempt, with their bodies; none if it was not resumed by
    /// signals.
    pub async fn resume_signals(&self) -> Result<Vec<ResumeSignal>, SdkError> {
        self.held().await?.resume_signals().await
    }
}

/// Reading what was put out.
impl Task {
    /// Reads output of this attempt: from one place to another, both included.
    pub async fn read_stream(
        &self,
        from: StreamCursor,
        to: StreamCursor,
        count_limit: u32,
    ) -> Result<StreamFrames, SdkError> {
        let (id, attempt) = (self.info().execution_id(), self.info().attempt_index());
        let backend = self.0.worker.backend();
        stream::read_stream(&**backend, id, attempt, from, to, count_limit).await
    }

    /// Output of this attempt behind a place; waits up to `block` for the first of it.
    pub async fn tail_stream(
        &self,
        after: StreamCursor,
        block: Duration,
        count_limit: u32,
    ) -> Result<StreamFrames, SdkError> {
        self.tail_stream_with_visibility(after, block, count_limit, Visibility::All).await
    }

    /// The same, with or without what is only for those who watch now.
    pub async fn tail_stream_with_visibility(
        &self,
        after: StreamCursor,
        block: Duration,
        count_limit: u32,
        visibility: Visibility,
    ) -> Result<StreamFrames, SdkError> {
        let (id, attempt) = (self.info().execution_id(), self.info().attempt_index());
        let tail = TailOptions { after, block, count_limit, visibility };
        stream::tail_stream_with(&**self.0.worker.backend(), id, attempt, tail).await
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Task").field(&self.0.info).finish()
    }
}
