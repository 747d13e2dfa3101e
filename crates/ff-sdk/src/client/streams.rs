//! Output of attempts, followed to its end.

use std::collections::VecDeque;
use std::time::Duration;

use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::read::{
    EventFilter, ReadSummary, StreamCursor, Subscription, SummaryRead, Visibility,
};
use ff_core::state::{Frame, StreamEnd};

use super::Client;
use crate::error::SdkError;
use crate::outage::Pauses;
use crate::stream::{StreamFrames, TailOptions, read_stream, tail_stream_with};

/// How long one look waits for output.
const BLOCK: Duration = Duration::from_secs(20);

/// Output of one attempt, piece by piece. Holds at most a page of it.
///
/// ```
/// # use ff_sdk::testing::TestEngine;
/// # use ff_sdk::{Submission, WorkerConfig};
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = TestEngine::start().await;
/// # let execution = engine.client().submit(Submission::new("write")).await?;
/// # let worker = engine.worker(WorkerConfig::new("w")).await;
/// # let task = worker.claim_next().await?.expect("a task");
/// # for word in ["Once", " upon"] { task.append_frame("token", word, None).await?; }
/// # task.complete(None).await?;
/// let (mut tail, mut text) = (execution.tail().await?, String::new());
/// while let Some(frame) = tail.next().await? {
///     text.push_str(std::str::from_utf8(&frame.content.bytes)?);
/// }
/// assert_eq!(text, "Once upon");
/// # Ok(())
/// # }
/// ```
pub struct OutputTail {
    client: Client,
    execution_id: ExecutionId,
    attempt_index: u32,
    visibility: Visibility,
    after: StreamCursor,
    frames: VecDeque<Frame>,
    closed: Option<StreamEnd>,
}

impl OutputTail {
    /// Begins behind this place, where an earlier tail ended.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// for word in ["Once", " upon"] {
    ///     task.append_frame("token", word, None).await?;
    /// }
    /// let (client, id) = (engine.client(), task.execution_id());
    /// let mut tail = client.tail(id, 0);
    /// tail.next().await?;
    /// let place = tail.cursor();
    /// let next = client.tail(id, 0).after(place).next().await?.expect("a piece");
    /// assert_eq!(&next.content.bytes[..], b" upon");
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn after(self, after: StreamCursor) -> Self {
        Self { after, ..self }
    }

    /// Leaves out what is only for those who watch now.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_core::state::FrameMode;
    ///
    /// task.append_frame_with_mode("spinner", "|", None, FrameMode::BestEffort).await?;
    /// task.append_frame("token", "Once", None).await?;
    /// let mut tail = engine.client().tail(task.execution_id(), 0).without_best_effort();
    /// assert_eq!(tail.next().await?.expect("a piece").frame_type, "token");
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn without_best_effort(self) -> Self {
        Self { visibility: Visibility::ExcludeBestEffort, ..self }
    }

    /// Behind the last piece that [`Self::next`] gave.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// task.append_frame("token", "Once", None).await?;
    /// let mut tail = engine.client().tail(task.execution_id(), 0);
    /// let first = tail.next().await?.expect("a piece");
    /// assert_eq!(tail.cursor(), first.id.into());
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn cursor(&self) -> StreamCursor {
        self.after
    }

    /// How the attempt ended, once [`Self::next`] has answered with nothing.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_core::state::StreamEnd;
    ///
    /// let mut tail = engine.client().tail(task.execution_id(), 0);
    /// task.complete(None).await?;
    /// assert!(tail.next().await?.is_none());
    /// assert_eq!(tail.closed_reason(), Some(StreamEnd::AttemptSuccess));
    /// # Ok(())
    /// # }
    /// ```
    pub fn closed_reason(&self) -> Option<StreamEnd> {
        self.closed.filter(|_| self.frames.is_empty())
    }

    /// The next piece; waits for it. None when the attempt has ended. Goes on over faults of the
    /// store. Dropping the call loses nothing.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// task.append_frame("token", "Once", None).await?;
    /// let mut tail = engine.client().tail(task.execution_id(), 0);
    /// task.complete(None).await?;
    /// while let Some(frame) = tail.next().await? {
    ///     print!("{}", String::from_utf8_lossy(&frame.content.bytes));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `execution_not_found`, also when it is removed meanwhile.
    pub async fn next(&mut self) -> Result<Option<Frame>, SdkError> {
        let mut pauses = Pauses::default();
        loop {
            if let Some(frame) = self.frames.pop_front() {
                self.after = StreamCursor::from(frame.id);
                return Ok(Some(frame));
            }
            if self.closed.is_some() {
                return Ok(None);
            }
            match self.look().await {
                Ok(page) => {
                    // A full page of a closed stream may have more behind it.
                    self.closed = page.closed_reason.filter(|_| page.frames.is_empty());
                    self.frames = page.frames.into();
                }
                Err(SdkError::Backend(_)) => tokio::time::sleep(pauses.next()).await,
                Err(error) if error.code() == Some(Code::AttemptNotFound) => {
                    if !self.has_begun().await? {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until the attempt begins; false when the execution has ended without it.
    async fn has_begun(&self) -> Result<bool, SdkError> {
        let mut kinds_of_event = Subscription::Completions.kinds_of_event();
        kinds_of_event.push(EventKind::Claimed);
        let filter = EventFilter { kinds_of_event, ..EventFilter::default() };
        let mut events = self.client.subscribe(filter);
        // The place in the log comes first: nothing is missed between the look and the wait.
        events.begin().await?;
        loop {
            let record = self.client.describe(self.execution_id).await?;
            if record.current_attempt_index.is_some_and(|index| index >= self.attempt_index) {
                return Ok(true);
            }
            if record.has_ended() {
                return Ok(false);
            }
            events.next_about(self.execution_id).await?;
        }
    }

    async fn look(&self) -> Result<StreamFrames, SdkError> {
        let options = TailOptions {
            after: self.after,
            block: BLOCK,
            count_limit: limits::PAGE_MAX,
            visibility: self.visibility,
        };
        let (id, attempt) = (self.execution_id, self.attempt_index);
        tail_stream_with(&**self.client.backend(), id, attempt, options).await
    }
}

impl Client {
    /// Output of one attempt of an execution, from its beginning to the end of the attempt.
    ///
    /// It may be asked for before the attempt begins: [`OutputTail::next`] then waits for that.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// let client = engine.client();
    /// let story = client.submit(Submission::new("write")).await?;
    /// let mut tail = client.tail(story.id(), 0);
    /// let task = worker.claim_next().await?.expect("there is work");
    /// task.append_frame("token", "Once", None).await?;
    /// assert_eq!(tail.next().await?.expect("a piece").frame_type, "token");
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn tail(&self, execution_id: ExecutionId, attempt_index: u32) -> OutputTail {
        OutputTail {
            client: self.clone(),
            execution_id,
            attempt_index,
            visibility: Visibility::All,
            after: StreamCursor::from_beginning(),
            frames: VecDeque::new(),
            closed: None,
        }
    }

    /// Frames of an attempt from one place to another, both included: up to 10,000.
    ///
    /// See [`crate::stream::read_stream`].
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_core::read::StreamCursor;
    ///
    /// task.append_frame("token", "Once", None).await?;
    /// let (from, to) = (StreamCursor::Start, StreamCursor::End);
    /// let read = engine.client().read_stream(task.execution_id(), 0, from, to, 100).await?;
    /// assert_eq!(read.frames.len(), 1);
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`crate::stream::read_stream`].
    pub async fn read_stream(
        &self,
        execution_id: ExecutionId,
        attempt_index: u32,
        from: StreamCursor,
        to: StreamCursor,
        count_limit: u32,
    ) -> Result<StreamFrames, SdkError> {
        let backend = &**self.backend();
        read_stream(backend, execution_id, attempt_index, from, to, count_limit).await
    }

    /// The JSON document that the summary frames of an attempt have made, and how many made it.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_core::state::FrameMode;
    ///
    /// for patch in [r#"{"pages":1}"#, r#"{"pages":2}"#] {
    ///     task.append_frame_with_mode("summary", patch, None, FrameMode::DurableSummary).await?;
    /// }
    /// let summary = engine.client().read_summary(task.execution_id(), 0).await?;
    /// assert_eq!((summary.document.as_str(), summary.version), (r#"{"pages":2}"#, 2));
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `attempt_not_found` and `execution_not_found`.
    pub async fn read_summary(
        &self,
        execution_id: ExecutionId,
        attempt_index: u32,
    ) -> Result<SummaryRead, SdkError> {
        self.ask(ReadSummary { execution_id, attempt_index }).await
    }
}
