//! Reading output, with or without a lease.
//!
//! A task [appends frames](crate::ClaimedTask::append_frame); each attempt has a stream of its own.
//! Most readers want [`Execution::tail`](crate::Execution::tail), which waits, goes on over faults
//! and ends with the attempt. The functions here are the single steps beneath it, over any backend:
//! [`read_stream`] for a stretch that is there, [`tail_stream`] for what comes behind a place.
//!
//! ```
//! # use ff_sdk::{Submission, testing::TestEngine};
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let engine = TestEngine::start().await;
//! # let task = engine.claimed(Submission::new("work")).await;
//! # for word in ["Once", " upon"] { task.append_frame("token", word, None).await?; }
//! # let id = task.execution_id();
//! # task.complete(None).await?;
//! # let backend = engine.backend();
//! use ff_core::read::StreamCursor;
//! use ff_sdk::stream::tail_stream;
//! use std::time::Duration;
//!
//! let (mut place, mut text) = (StreamCursor::from_beginning(), String::new());
//! loop {
//!     let page = tail_stream(&*backend, id, 0, place, Duration::from_secs(20), 100).await?;
//!     for frame in &page.frames {
//!         text.push_str(std::str::from_utf8(&frame.content.bytes)?);
//!     }
//!     match page.cursor() {
//!         Some(last) => place = last,
//!         None if page.is_closed() => break,
//!         None => {}
//!     }
//! }
//! assert_eq!(text, "Once upon");
//! # Ok(())
//! # }
//! ```

use std::time::Duration;

use ff_core::backend::{Backend, BackendExt as _};
use ff_core::error::EngineError;
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::read::{ReadStream, StreamCursor, StreamPage, Tail, Visibility};
use ff_core::state::{Frame, StreamEnd};
use ff_core::time::TimestampMs;
use tokio::time::timeout;

use crate::error::SdkError;
use crate::presence::millis;

/// The longest that one tail waits.
///
/// ```
/// assert_eq!(ff_sdk::stream::MAX_TAIL_BLOCK_MS, 30_000);
/// ```
pub const MAX_TAIL_BLOCK_MS: u64 = limits::TAIL_BLOCK_MS;
/// The most frames that one read brings.
///
/// ```
/// assert_eq!(ff_sdk::stream::STREAM_READ_HARD_CAP, 10_000);
/// ```
pub const STREAM_READ_HARD_CAP: u32 = limits::STREAM_READ_FRAMES;
/// What a reply may take besides the wait.
const SLACK: Duration = Duration::from_millis(500);

/// A stretch of output.
///
/// ```
/// # use ff_sdk::{Submission, testing::TestEngine};
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = TestEngine::start().await;
/// # let task = engine.claimed(Submission::new("work")).await;
/// # use ff_core::read::StreamCursor;
/// task.append_frame("token", "Once", None).await?;
/// let (from, to) = (StreamCursor::Start, StreamCursor::End);
/// let read = task.read_stream(from, to, 100).await?;
/// assert_eq!((read.frames.len(), read.is_closed()), (1, false));
/// # task.complete(None).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamFrames {
    /// In the order in which they were appended.
    pub frames: Vec<Frame>,
    /// When the attempt ended, if it has.
    pub closed_at: Option<TimestampMs>,
    /// How it ended.
    pub closed_reason: Option<StreamEnd>,
}

impl StreamFrames {
    /// The place of the last frame: a tail goes on behind it. None if there are no frames.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// # use ff_core::read::StreamCursor;
    /// # use std::time::Duration;
    /// task.append_frame("token", "Once", None).await?;
    /// let first = task.tail_stream(StreamCursor::from_beginning(), Duration::ZERO, 100).await?;
    /// let behind = first.cursor().expect("there was a frame");
    /// let next = task.tail_stream(behind, Duration::ZERO, 100).await?;
    /// assert!(next.frames.is_empty());
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn cursor(&self) -> Option<StreamCursor> {
        self.frames.last().map(|frame| frame.id.into())
    }

    /// Whether nothing will be appended any more.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// # use ff_core::read::StreamCursor;
    /// let (client, id) = (engine.client(), task.execution_id());
    /// task.complete(None).await?;
    /// let read = client.read_stream(id, 0, StreamCursor::Start, StreamCursor::End, 100).await?;
    /// assert!(read.is_closed());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_closed(&self) -> bool {
        self.closed_at.is_some()
    }
}

impl From<StreamPage> for StreamFrames {
    fn from(page: StreamPage) -> Self {
        Self {
            frames: page.frames,
            closed_at: page.closed.map(|closed| closed.at),
            closed_reason: page.closed.map(|closed| closed.reason),
        }
    }
}

/// What a tail asks for.
///
/// ```
/// use ff_sdk::stream::TailOptions;
/// use std::time::Duration;
///
/// let options = TailOptions { block: Duration::from_secs(5), ..TailOptions::default() };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TailOptions {
    /// What is behind this place.
    pub after: StreamCursor,
    /// How long to wait for the first of it; zero only looks.
    pub block: Duration,
    /// The most frames that it brings.
    pub count_limit: u32,
    /// With or without what is only for those who watch now.
    pub visibility: Visibility,
}

impl Default for TailOptions {
    fn default() -> Self {
        Self {
            after: StreamCursor::from_beginning(),
            block: Duration::ZERO,
            count_limit: limits::PAGE,
            visibility: Visibility::All,
        }
    }
}

/// Frames of an attempt from one place to another, both included.
///
/// Up to [`STREAM_READ_HARD_CAP`] of them: go on behind the last one for more.
///
/// ```
/// # use ff_sdk::{Submission, testing::TestEngine};
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = TestEngine::start().await;
/// # let task = engine.claimed(Submission::new("work")).await;
/// use ff_core::read::StreamCursor;
/// use ff_sdk::stream::read_stream;
///
/// task.append_frame("token", "Once", None).await?;
/// let (backend, id) = (engine.backend(), task.execution_id());
/// let read = read_stream(&*backend, id, 0, StreamCursor::Start, StreamCursor::End, 100).await?;
/// assert_eq!(read.frames[0].frame_type, "token");
/// # task.complete(None).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`SdkError::Config`] for a count that no read can bring; `attempt_not_found`,
/// `execution_not_found`.
pub async fn read_stream(
    backend: &dyn Backend,
    execution_id: ExecutionId,
    attempt_index: u32,
    from: StreamCursor,
    to: StreamCursor,
    count_limit: u32,
) -> Result<StreamFrames, SdkError> {
    validate_stream_read_count("read_stream", count_limit)?;
    let visibility = Visibility::All;
    let read = ReadStream { execution_id, attempt_index, from, to, limit: count_limit, visibility };
    Ok(backend.ask(read).await?.into())
}

/// Frames of an attempt behind a place; waits up to `block` for the first of them, and is empty
/// when the wait is over.
///
/// ```
/// # use ff_sdk::{Submission, testing::TestEngine};
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = TestEngine::start().await;
/// # let task = engine.claimed(Submission::new("work")).await;
/// use ff_core::read::StreamCursor;
/// use ff_sdk::stream::tail_stream;
/// use std::time::Duration;
///
/// task.append_frame("token", "Once", None).await?;
/// let (backend, id) = (engine.backend(), task.execution_id());
/// let (begin, second) = (StreamCursor::from_beginning(), Duration::from_secs(1));
/// let tail = tail_stream(&*backend, id, 0, begin, second, 100).await?;
/// assert_eq!(tail.frames.len(), 1);
/// # task.complete(None).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`SdkError::Config`] for a place, a wait or a count that a tail cannot have; `attempt_not_found`
/// until the attempt has begun; `execution_not_found`.
pub async fn tail_stream(
    backend: &dyn Backend,
    execution_id: ExecutionId,
    attempt_index: u32,
    after: StreamCursor,
    block: Duration,
    count_limit: u32,
) -> Result<StreamFrames, SdkError> {
    let options = TailOptions { after, block, count_limit, visibility: Visibility::All };
    tail_stream_with(backend, execution_id, attempt_index, options).await
}

/// The same, with or without what is only for those who watch now.
///
/// ```
/// # use ff_sdk::{Submission, testing::TestEngine};
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = TestEngine::start().await;
/// # let task = engine.claimed(Submission::new("work")).await;
/// use ff_core::read::Visibility;
/// use ff_core::state::FrameMode;
/// use ff_sdk::stream::{TailOptions, tail_stream_with};
///
/// task.append_frame_with_mode("spinner", "|", None, FrameMode::BestEffort).await?;
/// let options =
///     TailOptions { visibility: Visibility::ExcludeBestEffort, ..TailOptions::default() };
/// let tail = tail_stream_with(&*engine.backend(), task.execution_id(), 0, options).await?;
/// assert!(tail.frames.is_empty());
/// # task.complete(None).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`tail_stream`].
pub async fn tail_stream_with(
    backend: &dyn Backend,
    execution_id: ExecutionId,
    attempt_index: u32,
    options: TailOptions,
) -> Result<StreamFrames, SdkError> {
    let TailOptions { after, block, count_limit, visibility } = options;
    validate_tail_cursor(after)?;
    validate_stream_read_count("tail_stream", count_limit)?;
    if millis(block) > MAX_TAIL_BLOCK_MS {
        let message = format!("a tail waits up to {MAX_TAIL_BLOCK_MS} ms");
        return Err(SdkError::argument("tail_stream", "block_ms", message));
    }
    let tail = Tail { execution_id, attempt_index, after, limit: count_limit, visibility };
    let late = || EngineError::Timeout { detail: "no answer to a tail".to_owned() };
    let page = timeout(block + SLACK, backend.tail(tail, block)).await;
    Ok(page.unwrap_or_else(|_| Err(late()))?.into())
}

/// Refuses places that a tail cannot stand behind.
///
/// ```
/// use ff_core::read::StreamCursor;
/// use ff_sdk::stream::validate_tail_cursor;
///
/// assert!(validate_tail_cursor(StreamCursor::from_beginning()).is_ok());
/// assert!(validate_tail_cursor(StreamCursor::End).is_err());
/// ```
///
/// # Errors
///
/// [`SdkError::Config`] with the field `after`.
pub fn validate_tail_cursor(after: StreamCursor) -> Result<(), SdkError> {
    match after {
        StreamCursor::Start | StreamCursor::End => {
            let message = "a tail begins behind a place: ms, ms-seq, or from_beginning()";
            Err(SdkError::argument("tail_stream", "after", message))
        }
        StreamCursor::At(_) | StreamCursor::Id { .. } => Ok(()),
    }
}

/// Refuses a count that no read can bring.
///
/// ```
/// use ff_sdk::stream::validate_stream_read_count;
///
/// assert!(validate_stream_read_count("read_stream", 100).is_ok());
/// assert!(validate_stream_read_count("read_stream", 0).is_err());
/// ```
///
/// # Errors
///
/// [`SdkError::Config`] with the field `count_limit`.
pub fn validate_stream_read_count(context: &'static str, count_limit: u32) -> Result<(), SdkError> {
    if (1..=STREAM_READ_HARD_CAP).contains(&count_limit) {
        return Ok(());
    }
    let message = format!("1 to {STREAM_READ_HARD_CAP} frames, not {count_limit}");
    Err(SdkError::argument(context, "count_limit", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(cursor: StreamCursor) -> bool {
        let refused = validate_tail_cursor(cursor);
        matches!(
            refused,
            Err(SdkError::Config { context: Some("tail_stream"), field: "after", .. })
        )
    }

    #[test]
    fn rejects_start_cursor() {
        assert!(is_refused(StreamCursor::Start));
    }

    #[test]
    fn rejects_end_cursor() {
        assert!(is_refused(StreamCursor::End));
    }

    #[test]
    fn accepts_at_cursor() {
        validate_tail_cursor(StreamCursor::At(7)).unwrap();
        validate_tail_cursor(StreamCursor::from_beginning()).unwrap();
    }

    #[test]
    fn counts_are_bounded() {
        for good in [1, STREAM_READ_HARD_CAP] {
            validate_stream_read_count("read_stream", good).unwrap();
        }
        for bad in [0, STREAM_READ_HARD_CAP + 1] {
            let refused = validate_stream_read_count("read_stream", bad).unwrap_err();
            assert!(matches!(refused, SdkError::Config { field: "count_limit", .. }), "{bad}");
        }
    }
}
