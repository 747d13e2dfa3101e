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
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::runtime::{Failure, Task};
    ///
    /// async fn order(task: Task) -> Result<(), Failure> {
    ///     let bill = Submission::new("bill").idempotency_key("order-17").held();
    ///     task.client().submit(bill).await?;
    ///     Ok(())
    /// }
    ///
    /// let done = engine.run_handler(Submission::new("order"), order).await;
    /// engine.assert_completed(done.id()).await;
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// use ff_sdk::runtime::{Failure, Task};
    ///
    /// async fn count(task: Task) -> Result<u32, Failure> {
    ///     let mut n = 0;
    ///     while n < 1_000 && !task.is_cancelled() {
    ///         n += 1;
    ///     }
    ///     Ok(n)
    /// }
    /// # ff_sdk::runtime::check_handler(count);
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.0.lease.stopped().is_cancelled()
    }

    /// The same as a token, to be handed on.
    ///
    /// ```
    /// use ff_sdk::runtime::{Failure, Task};
    ///
    /// async fn download(task: Task) -> Result<(), Failure> {
    ///     let stop = task.cancellation();
    ///     tokio::spawn(async move { stop.cancelled().await });
    ///     Ok(())
    /// }
    /// # ff_sdk::runtime::check_handler(download);
    /// ```
    pub fn cancellation(&self) -> CancellationToken {
        self.0.lease.stopped().clone()
    }

    /// Why it should stop; none while it need not.
    ///
    /// ```
    /// use ff_sdk::StopReason;
    /// use ff_sdk::runtime::Task;
    ///
    /// async fn crawl(task: Task) {
    ///     task.cancelled().await;
    ///     if let Some(StopReason::Cancelled { reason }) = task.stop_reason() {
    ///         println!("nobody wants it any more: {reason}");
    ///     }
    /// }
    /// # ff_sdk::runtime::check_handler(crawl);
    /// ```
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.0.lease.reason().cloned()
    }
}

/// What a handler says while it works.
impl Task {
    /// Says how far the task is: 0 to 100, and a word for people.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::runtime::{Failure, Task};
    ///
    /// async fn fetch(task: Task) -> Result<(), Failure> {
    ///     task.update_progress(40, "2 of 5 pages").await?;
    ///     Ok(())
    /// }
    ///
    /// let done = engine.run_handler(Submission::new("fetch"), fetch).await;
    /// assert_eq!(done.describe().await?.progress_pct, Some(40));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`ClaimedTask::update_progress`], and `execution_not_active` once the handler has
    /// returned.
    pub async fn update_progress(
        &self,
        pct: u8,
        message: impl Into<String>,
    ) -> Result<(), SdkError> {
        self.held().await?.update_progress(pct, message).await
    }

    /// Renews the lease now. It is renewed by itself while the handler runs; this is for whoever
    /// wants to know that it is still this worker's.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::runtime::{Failure, Task};
    ///
    /// async fn charge(task: Task) -> Result<(), Failure> {
    ///     task.renew_lease().await?;
    ///     // What cannot be taken back stands here.
    ///     Ok(())
    /// }
    ///
    /// let done = engine.run_handler(Submission::new("charge"), charge).await;
    /// engine.assert_completed(done.id()).await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`ClaimedTask::renew_lease`].
    pub async fn renew_lease(&self) -> Result<TimestampMs, SdkError> {
        self.held().await?.renew_lease().await
    }

    /// Appends a piece of output, kept as the policy of the execution says. `metadata` is its
    /// correlation id.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::runtime::{Failure, Task};
    ///
    /// async fn story(task: Task) -> Result<(), Failure> {
    ///     for word in ["Once", " upon"] {
    ///         task.append_frame("token", word, None).await?;
    ///     }
    ///     Ok(())
    /// }
    ///
    /// let story = engine.run_handler(Submission::new("story"), story).await;
    /// assert_eq!(&story.tail().await?.next().await?.expect("a piece").content.bytes[..], b"Once");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`ClaimedTask::append_frame`].
    pub async fn append_frame(
        &self,
        frame_type: impl Into<String>,
        payload: impl Into<Bytes>,
        metadata: Option<&str>,
    ) -> Result<AppendFrameOutcome, SdkError> {
        self.held().await?.append_frame(frame_type, payload, metadata).await
    }

    /// The same, kept as `mode` says.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_core::state::FrameMode;
    /// use ff_sdk::runtime::{Failure, Task};
    ///
    /// async fn crawl(task: Task) -> Result<(), Failure> {
    ///     let mode = FrameMode::DurableSummary;
    ///     task.append_frame_with_mode("summary", r#"{"pages":3}"#, None, mode).await?;
    ///     Ok(())
    /// }
    ///
    /// let done = engine.run_handler(Submission::new("crawl"), crawl).await;
    /// let summary = engine.client().read_summary(done.id(), 0).await?;
    /// assert_eq!(summary.document, r#"{"pages":3}"#);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`ClaimedTask::append_frame_with_mode`].
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
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_core::content::Content;
    /// use ff_core::operation::NewFrame;
    /// use ff_sdk::runtime::{Failure, Task};
    ///
    /// async fn story(task: Task) -> Result<u64, Failure> {
    ///     let words = ["Once", " upon"].map(|word| NewFrame::new("token", Content::new(word)));
    ///     let appended = task.append_frames(words.to_vec()).await?;
    ///     Ok(appended.last().map_or(0, |frame| frame.count))
    /// }
    ///
    /// let story = engine.run_handler(Submission::new("story"), story).await;
    /// assert_eq!(story.result::<u64>().await?, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`ClaimedTask::append_frame`].
    pub async fn append_frames(
        &self,
        frames: Vec<NewFrame>,
    ) -> Result<Vec<AppendFrameOutcome>, SdkError> {
        self.held().await?.append_frames(frames).await
    }

    /// Counts usage against a budget. Sent again after a lost reply it counts once: by `dedup`, or
    /// by a key that is made here.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_core::id::BudgetId;
    /// use ff_sdk::runtime::{Failure, Payload, Task};
    /// use ff_sdk::{NewBudget, Usage};
    ///
    /// async fn ask(budget: Payload<BudgetId>, task: Task) -> Result<(), Failure> {
    ///     task.report_usage(*budget, &Usage::new().output_tokens(64), None).await?;
    ///     Ok(())
    /// }
    ///
    /// let budget = NewBudget::new("tokens").limit("output_tokens", 100);
    /// let budget = engine.client().create_budget(budget).await?;
    /// engine.run_handler(Submission::new("ask").json(&budget)?, ask).await;
    /// let status = engine.client().budget_status(budget).await?;
    /// assert!(status.dimensions.values().all(|it| it.used == 64));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`ClaimedTask::report_usage`].
    pub async fn report_usage(
        &self,
        budget_id: BudgetId,
        usage: &Usage,
        dedup: Option<&str>,
    ) -> Result<UsageReported, SdkError> {
        self.held().await?.report_usage(budget_id, usage, dedup).await
    }

    /// The same for every budget that the execution stands under.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::runtime::{Failure, Task};
    /// use ff_sdk::{NewBudget, Usage};
    ///
    /// async fn ask(task: Task) -> Result<(), Failure> {
    ///     task.report_usage_to_all(&Usage::new().output_tokens(64), None).await?;
    ///     Ok(())
    /// }
    ///
    /// let budget = NewBudget::new("tokens").limit("output_tokens", 100);
    /// let budget = engine.client().create_budget(budget).await?;
    /// engine.run_handler(Submission::new("ask").budget(budget), ask).await;
    /// let status = engine.client().budget_status(budget).await?;
    /// assert!(status.dimensions.values().all(|it| it.used == 64));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`ClaimedTask::report_usage`].
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
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_core::state::PublicState;
    /// use ff_sdk::Suspension;
    /// use ff_sdk::runtime::{Failure, Outcome, Task};
    ///
    /// async fn review(task: Task) -> Result<Outcome, Failure> {
    ///     let ticket = task.create_pending_waitpoint("review", None).await?;
    ///     println!("mail the token of {} now", ticket.key);
    ///     Ok(Outcome::suspend(Suspension::approval("review")?.using(&ticket)))
    /// }
    ///
    /// let waiting = engine.run_handler(Submission::new("review"), review).await;
    /// engine.assert_state(waiting.id(), PublicState::Suspended).await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`ClaimedTask::create_pending_waitpoint`].
    pub async fn create_pending_waitpoint(
        &self,
        key: &str,
        expires_at: Option<TimestampMs>,
    ) -> Result<WaitpointTicket, SdkError> {
        self.held().await?.create_pending_waitpoint(key, expires_at).await
    }

    /// The signals that resumed this attempt, with their bodies; none if it was not resumed by
    /// signals.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::runtime::{Failure, Task};
    ///
    /// async fn deploy(task: Task) -> Result<usize, Failure> {
    ///     Ok(task.resume_signals().await?.len())
    /// }
    ///
    /// let done = engine.run_handler(Submission::new("deploy"), deploy).await;
    /// assert_eq!(done.result::<usize>().await?, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`ClaimedTask::resume_signals`].
    pub async fn resume_signals(&self) -> Result<Vec<ResumeSignal>, SdkError> {
        self.held().await?.resume_signals().await
    }
}

/// Reading what was put out.
impl Task {
    /// Reads output of this attempt: from one place to another, both included.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_core::read::StreamCursor;
    /// use ff_sdk::runtime::{Failure, Task};
    ///
    /// async fn story(task: Task) -> Result<usize, Failure> {
    ///     task.append_frame("token", "Once", None).await?;
    ///     Ok(task.read_stream(StreamCursor::Start, StreamCursor::End, 100).await?.frames.len())
    /// }
    ///
    /// let done = engine.run_handler(Submission::new("story"), story).await;
    /// assert_eq!(done.result::<usize>().await?, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`stream::read_stream`].
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
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_core::read::StreamCursor;
    /// use ff_sdk::runtime::{Failure, Task};
    /// use std::time::Duration;
    ///
    /// async fn story(task: Task) -> Result<usize, Failure> {
    ///     task.append_frame("token", "Once", None).await?;
    ///     let begin = StreamCursor::from_beginning();
    ///     Ok(task.tail_stream(begin, Duration::from_secs(1), 100).await?.frames.len())
    /// }
    ///
    /// let done = engine.run_handler(Submission::new("story"), story).await;
    /// assert_eq!(done.result::<usize>().await?, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`stream::tail_stream`].
    pub async fn tail_stream(
        &self,
        after: StreamCursor,
        block: Duration,
        count_limit: u32,
    ) -> Result<StreamFrames, SdkError> {
        self.tail_stream_with_visibility(after, block, count_limit, Visibility::All).await
    }

    /// The same, with or without what is only for those who watch now.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_core::read::{StreamCursor, Visibility};
    /// use ff_core::state::FrameMode;
    /// use ff_sdk::runtime::{Failure, Task};
    /// use std::time::Duration;
    ///
    /// async fn spin(task: Task) -> Result<usize, Failure> {
    ///     task.append_frame_with_mode("spinner", "|", None, FrameMode::BestEffort).await?;
    ///     let (begin, kept) = (StreamCursor::from_beginning(), Visibility::ExcludeBestEffort);
    ///     let tail = task.tail_stream_with_visibility(begin, Duration::ZERO, 100, kept).await?;
    ///     Ok(tail.frames.len())
    /// }
    ///
    /// let done = engine.run_handler(Submission::new("spin"), spin).await;
    /// assert_eq!(done.result::<usize>().await?, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`stream::tail_stream`].
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
