//! What a task can do while it goes on.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ff_core::backend::BackendExt as _;
use ff_core::content::Content;
use ff_core::id::{BudgetId, IdempotencyKey, WaitpointId};
use ff_core::operation::{
    AppendFrames, CreatePendingWaitpoint, NewFrame, Renew, ReportToAll, ReportUsage, ResumeSignal,
    Spender, UpdateProgress, UsageReported,
};
use ff_core::read::{ObserveSignals, StreamCursor, Visibility};
use ff_core::state::FrameMode;
use ff_core::time::TimestampMs;
use tokio::time::Instant;
use uuid::Uuid;

use super::{AppendFrameOutcome, ClaimedTask, Usage, WaitpointTicket};
use crate::config::parse;
use crate::error::SdkError;
use crate::outage::Pauses;
use crate::stream::{self, StreamFrames};

impl ClaimedTask {
    /// Renews the lease now. It is renewed by itself while the task lives; this is for whoever
    /// wants to know.
    ///
    /// Answers with the new end of the lease, by the store's clock.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// let end = task.renew_lease().await?;
    /// assert!(end > engine.now());
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `lease_expired`, `lease_revoked`, `stale_lease` or `execution_not_active` when the lease is
    /// not this worker's any more: [`Self::cancelled`] is then ready.
    pub async fn renew_lease(&self) -> Result<TimestampMs, SdkError> {
        let (execution_id, fence) = (self.execution_id(), self.fence());
        let sent = Instant::now();
        let renewed = self.call(Renew { execution_id, fence, ttl_ms: None }).await;
        self.worker().leases().heard(self.lease(), sent, renewed.clone());
        Ok(renewed?.expires_at)
    }

    /// Says how far the task is: 0 to 100, and a word for people.
    ///
    /// The last word counts. It is shown by `ff get` and in
    /// [`Client::describe`](crate::Client::describe).
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// task.update_progress(40, "2 of 5 pages").await?;
    /// let record = engine.describe(task.execution_id()).await;
    /// assert_eq!(record.progress_pct, Some(40));
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `invalid_input` for more than 100; the codes of a lost lease, as [`Self::renew_lease`].
    pub async fn update_progress(
        &self,
        pct: u8,
        message: impl Into<String>,
    ) -> Result<(), SdkError> {
        let (execution_id, fence, message) = (self.execution_id(), self.fence(), message.into());
        self.call(UpdateProgress { execution_id, fence, pct, message }).await?;
        Ok(())
    }

    /// Counts usage against a budget. Sent again after a lost reply it counts once: by `dedup`, or
    /// by a key that is made here.
    ///
    /// A breach is an answer and no error: what was used has been used. Whoever runs decides
    /// whether to go on.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_core::operation::UsageReported;
    /// use ff_sdk::{NewBudget, Usage};
    ///
    /// let budget = NewBudget::new("tokens").limit("output_tokens", 100);
    /// let budget = engine.client().create_budget(budget).await?;
    /// let usage = Usage::new().output_tokens(120);
    /// let said = task.report_usage(budget, &usage, Some("call-1")).await?;
    /// assert!(matches!(said, UsageReported::HardBreach(_)));
    /// let again = task.report_usage(budget, &usage, Some("call-1")).await?;
    /// assert_eq!(again, UsageReported::AlreadyApplied);
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `budget_not_found`; [`SdkError::Config`] for a dimension or a key that is none.
    pub async fn report_usage(
        &self,
        budget_id: BudgetId,
        usage: &Usage,
        dedup: Option<&str>,
    ) -> Result<UsageReported, SdkError> {
        let report = ReportUsage {
            budget_id,
            spender: self.spender(),
            dimensions: usage.dimensions()?,
            dedup_key: Some(self.dedup_key(dedup)?),
            mode: None,
        };
        Ok(self.insist(report).await?)
    }

    /// The same for every budget that the execution stands under: its own, and those of its flow,
    /// lane and namespace.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::{NewBudget, Usage};
    ///
    /// let calls = NewBudget::new("calls").limit("calls", 9);
    /// let budget = engine.client().create_budget(calls).await?;
    /// let task = engine.claimed(Submission::new("ask").budget(budget)).await;
    /// let said = task.report_usage_to_all(&Usage::new().custom("calls", 1), None).await?;
    /// assert_eq!(said.len(), 1);
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::report_usage`].
    pub async fn report_usage_to_all(
        &self,
        usage: &Usage,
        dedup: Option<&str>,
    ) -> Result<Vec<(BudgetId, UsageReported)>, SdkError> {
        let report = ReportToAll {
            spender: self.spender(),
            dimensions: usage.dimensions()?,
            dedup_key: Some(self.dedup_key(dedup)?),
            mode: None,
        };
        Ok(self.worker().backend().report_to_all(report).await?)
    }

    fn spender(&self) -> Spender {
        Spender { execution_id: self.execution_id(), attempt_index: self.attempt_index() }
    }

    fn dedup_key(&self, given: Option<&str>) -> Result<IdempotencyKey, SdkError> {
        match given {
            Some(key) => parse("dedup_key", key),
            None => parse("dedup_key", &Uuid::now_v7().to_string()),
        }
    }

    /// Makes a waitpoint that keeps what is said to it for a suspend to come; the lease is kept.
    /// So the token can be given away before the task stops.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_sdk::{Signal, SuspendOutcome, Suspension};
    ///
    /// let ticket = task.create_pending_waitpoint("review", None).await?;
    /// // Whoever was given the token may be quicker than the task.
    /// let (id, review) = (task.execution_id(), Suspension::signal("review", "done")?);
    /// let done = Signal::new("done", ticket.token.clone());
    /// engine.client().deliver_signal(id, ticket.waitpoint_id, done).await?;
    /// match task.suspend_on(review.using(&ticket)).await? {
    ///     SuspendOutcome::AlreadySatisfied { task, .. } => task.complete(None).await?,
    ///     SuspendOutcome::Suspended(_) => panic!("it was said before"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `waitpoint_already_exists` for a name that an open waitpoint of the execution has; the codes
    /// of a lost lease, as [`Self::renew_lease`].
    pub async fn create_pending_waitpoint(
        &self,
        key: &str,
        expires_at: Option<TimestampMs>,
    ) -> Result<WaitpointTicket, SdkError> {
        let create = CreatePendingWaitpoint {
            execution_id: self.execution_id(),
            fence: self.fence(),
            waitpoint_id: WaitpointId::mint(),
            key: parse("waitpoint_key", key)?,
            expires_at,
            token_ttl_ms: None,
        };
        Ok(self.insist(create).await?.into())
    }

    /// Appends a piece of output, kept as the policy of the execution says. `metadata` is its
    /// correlation id.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// for word in ["Once", " upon", " a time"] {
    ///     task.append_frame("token", word, None).await?;
    /// }
    /// let id = task.execution_id();
    /// task.complete(None).await?;
    /// let mut output = engine.client().tail(id, 0);
    /// assert_eq!(output.next().await?.expect("the first piece").frame_type, "token");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `stale_owner_cannot_append` once the lease is another's, `stream_closed` once the attempt is
    /// over; `invalid_frame_type`, `payload_too_large` and `retention_limit_exceeded`. Not sent
    /// again by itself: a piece whose reply is lost may have been appended.
    pub async fn append_frame(
        &self,
        frame_type: impl Into<String>,
        payload: impl Into<Bytes>,
        metadata: Option<&str>,
    ) -> Result<AppendFrameOutcome, SdkError> {
        let frame = NewFrame::new(frame_type, Content::new(payload));
        self.append_one(NewFrame { correlation_id: metadata.map(str::to_owned), ..frame }).await
    }

    /// The same, kept as `mode` says.
    ///
    /// Durable pieces are kept, best-effort ones are for those who watch now, and a
    /// `DurableSummary` is a JSON merge patch on the summary of the attempt.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_core::state::FrameMode;
    ///
    /// let patch = r#"{"pages":3}"#;
    /// let mode = FrameMode::DurableSummary;
    /// let appended = task.append_frame_with_mode("summary", patch, None, mode).await?;
    /// assert_eq!(appended.summary_version, Some(1));
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::append_frame`]; `invalid_input` for a patch that is no JSON.
    pub async fn append_frame_with_mode(
        &self,
        frame_type: impl Into<String>,
        payload: impl Into<Bytes>,
        metadata: Option<&str>,
        mode: FrameMode,
    ) -> Result<AppendFrameOutcome, SdkError> {
        let frame = NewFrame::new(frame_type, Content::new(payload)).with_mode(mode);
        self.append_one(NewFrame { correlation_id: metadata.map(str::to_owned), ..frame }).await
    }

    async fn append_one(&self, frame: NewFrame) -> Result<AppendFrameOutcome, SdkError> {
        let appended = self.append_frames(vec![frame]).await?;
        appended.first().copied().ok_or_else(|| SdkError::Engine(no_frame()))
    }

    /// Appends up to a hundred pieces of output: all of them or none.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_core::content::Content;
    /// use ff_core::operation::NewFrame;
    ///
    /// let words = ["Once", " upon"].map(|word| NewFrame::new("token", Content::new(word)));
    /// let appended = task.append_frames(words.to_vec()).await?;
    /// assert_eq!(appended.last().map(|frame| frame.count), Some(2));
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::append_frame`].
    pub async fn append_frames(
        &self,
        frames: Vec<NewFrame>,
    ) -> Result<Vec<AppendFrameOutcome>, SdkError> {
        let (execution_id, fence) = (self.execution_id(), self.fence());
        Ok(self.call(AppendFrames { execution_id, fence, frames }).await?.frames)
    }

    /// Reads output of this attempt: from one place to another, both included.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_core::read::StreamCursor;
    ///
    /// task.append_frame("token", "Once", None).await?;
    /// let read = task.read_stream(StreamCursor::Start, StreamCursor::End, 100).await?;
    /// assert_eq!(read.frames.len(), 1);
    /// # task.complete(None).await?;
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
        let (id, attempt) = (self.execution_id(), self.attempt_index());
        let backend = self.worker().backend();
        stream::read_stream(&**backend, id, attempt, from, to, count_limit).await
    }

    /// Output of this attempt behind a place; waits up to `block` for the first of it.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_core::read::StreamCursor;
    /// use std::time::Duration;
    ///
    /// task.append_frame("token", "Once", None).await?;
    /// let begin = StreamCursor::from_beginning();
    /// let tail = task.tail_stream(begin, Duration::from_secs(1), 100).await?;
    /// assert_eq!(tail.frames.len(), 1);
    /// # task.complete(None).await?;
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
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_core::read::{StreamCursor, Visibility};
    /// use ff_core::state::FrameMode;
    /// use std::time::Duration;
    ///
    /// task.append_frame_with_mode("spinner", "|", None, FrameMode::BestEffort).await?;
    /// let (begin, only) = (StreamCursor::from_beginning(), Visibility::ExcludeBestEffort);
    /// let tail = task.tail_stream_with_visibility(begin, Duration::ZERO, 100, only).await?;
    /// assert!(tail.frames.is_empty());
    /// # task.complete(None).await?;
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
        let (id, attempt) = (self.execution_id(), self.attempt_index());
        let backend = self.worker().backend();
        let tail = stream::TailOptions { after, block, count_limit, visibility };
        stream::tail_stream_with(&**backend, id, attempt, tail).await
    }

    /// The signals that resumed this attempt, in the order in which they came; none if it was not
    /// resumed by signals. To be asked before the next suspend.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// # use ff_sdk::Suspension;
    /// # let task = engine.claimed(Submission::new("deploy")).await;
    /// # let id = task.execution_id();
    /// # task.suspend_on(Suspension::approval("go")?).await?;
    /// use ff_core::id::WaitpointKey;
    ///
    /// let go: WaitpointKey = "go".parse()?;
    /// engine.client().approve(id, go, "ada", Some("ship it")).await?;
    /// let task = worker.claim_next().await?.expect("it goes on");
    /// let said = task.resume_signals().await?;
    /// assert_eq!((said[0].name.as_str(), said[0].source_identity.as_str()), ("approved", "ada"));
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The codes of a lost lease, as [`Self::renew_lease`].
    pub async fn resume_signals(&self) -> Result<Vec<ResumeSignal>, SdkError> {
        let came_along = &self.task().extras.resume_signals;
        if !self.signals_at_store && came_along.iter().all(|signal| signal.payload.is_some()) {
            return Ok(came_along.clone());
        }
        let question = ObserveSignals { execution_id: self.execution_id(), fence: self.fence() };
        Ok(self.worker().backend().ask(question).await?)
    }

    /// Takes up the signals of a suspend that was satisfied already, as a claim would have brought
    /// them along. A store that does not answer is asked again while the lease lasts.
    pub(crate) async fn observe_signals(&mut self) -> Result<(), SdkError> {
        let mut pauses = Pauses::default();
        let signals = loop {
            match self.resume_signals().await {
                Err(error) if error.is_retryable() && Instant::now() < self.lease().deadline() => {
                    tokio::time::sleep(pauses.next()).await;
                }
                decided => break decided?,
            }
        };
        Arc::make_mut(&mut self.task).extras.resume_signals = signals;
        self.signals_at_store = false;
        Ok(())
    }
}

fn no_frame() -> ff_core::error::EngineError {
    ff_core::error::EngineError::bug("no frame in the reply to a frame")
}
