//! Short words for frames and streams.

use std::time::Duration;

use ff_core::backend::BackendExt;
use ff_core::content::Content;
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::operation::{
    AppendFrames, AppendedFrame, Claim, NewFrame, Submit, Task, Trim, Trimmed,
};
use ff_core::read::{ReadStream, ReadSummary, StreamPage, SummaryRead, Tail};
use ff_core::state::{Frame, FrameId, FrameMode, StreamEnd};
use ff_core::time::TimestampMs;

use crate::world::World;

/// A frame of output in the policy's mode.
pub fn frame(body: &str) -> NewFrame {
    NewFrame::new("stdout", Content::new(body.to_owned()))
}

/// A frame for those who watch now.
pub fn fleeting(body: &str) -> NewFrame {
    frame(body).with_mode(FrameMode::BestEffort)
}

/// A patch of the summary.
pub fn patch(body: &str) -> NewFrame {
    frame(body).with_mode(FrameMode::DurableSummary)
}

/// An append to the attempt of a task.
pub fn append(task: &Task, frames: Vec<NewFrame>) -> AppendFrames {
    AppendFrames { execution_id: task.execution_id, fence: task.fence(), frames }
}

/// So many frames of a mode, numbered from 0.
pub fn numbered(mode: FrameMode, count: usize) -> Vec<NewFrame> {
    let body = |n: usize| match mode {
        FrameMode::DurableSummary => format!(r#"{{"{n}":{n}}}"#),
        _ => n.to_string(),
    };
    (0..count).map(|n| frame(&body(n)).with_mode(mode)).collect()
}

/// Ids of what was appended.
pub fn ids(appended: &[AppendedFrame]) -> Vec<FrameId> {
    appended.iter().map(|frame| frame.id).collect()
}

/// How many frames of a mode are among these.
pub fn count_of(frames: &[Frame], mode: FrameMode) -> usize {
    frames.iter().filter(|frame| frame.mode == mode).count()
}

/// The bodies of frames, as text.
pub fn bodies(frames: &[Frame]) -> Vec<String> {
    let body = |frame: &Frame| String::from_utf8_lossy(&frame.content.bytes).into_owned();
    frames.iter().map(body).collect()
}

impl World {
    /// Appends frames and tells what became of each.
    pub async fn append(&self, task: &Task, frames: Vec<NewFrame>) -> Vec<AppendedFrame> {
        self.act(append(task, frames)).await.frames
    }

    /// Appends one frame of output.
    pub async fn print(&self, task: &Task, body: &str) -> FrameId {
        self.append(task, vec![frame(body)]).await[0].id
    }

    /// Appends these, a hundred at a time.
    pub async fn append_all(&self, task: &Task, frames: Vec<NewFrame>) -> Vec<AppendedFrame> {
        let mut appended = Vec::new();
        for some in frames.chunks(limits::FRAMES_APPENDED) {
            appended.extend(self.append(task, some.to_vec()).await);
        }
        appended
    }

    /// Submits and claims with the longest lease there is.
    pub async fn start_long(&self, submit: Submit) -> Task {
        let id = self.submit(submit).await;
        let lease_ttl_ms = limits::LEASE_TTL_MAX_MS;
        let task = self.claim_as(Claim { lease_ttl_ms, ..self.claim_request(1) }).await.remove(0);
        assert_eq!(task.execution_id, id);
        task
    }

    /// Removes frames that have outlived their time, in one step of at most so many.
    pub async fn trim_frames(&self, most: u32) -> Trimmed {
        let trim = Trim { events_before: TimestampMs(0), event_bytes: u64::MAX, most };
        self.backend.trim(trim).await.expect("trimmed")
    }

    /// Why the output of an attempt has ended.
    pub async fn stream_end(&self, id: ExecutionId, attempt_index: u32) -> Option<StreamEnd> {
        self.output(id, attempt_index).await.closed.map(|closed| closed.reason)
    }

    pub async fn read(&self, read: ReadStream) -> StreamPage {
        self.backend.ask(read).await.expect("a page of frames")
    }

    /// What is kept of an attempt's output from one cursor to another.
    pub async fn between(&self, all: &ReadStream, from: &str, to: &str) -> StreamPage {
        let cursor = |text: &str| text.parse().expect("a cursor");
        self.read(ReadStream { from: cursor(from), to: cursor(to), ..all.clone() }).await
    }

    /// All that is kept of an attempt's output.
    pub async fn output(&self, id: ExecutionId, attempt_index: u32) -> StreamPage {
        self.read(ReadStream::all(id, attempt_index)).await
    }

    /// What an attempt said behind a place, without waiting.
    pub async fn peek(&self, id: ExecutionId, attempt_index: u32, after: FrameId) -> StreamPage {
        let tail = Tail::after(id, attempt_index, after);
        self.backend.tail(tail, Duration::ZERO).await.expect("a page of frames")
    }

    pub async fn summary(&self, id: ExecutionId, attempt_index: u32) -> SummaryRead {
        let read = ReadSummary { execution_id: id, attempt_index };
        self.backend.ask(read).await.expect("a summary")
    }
}
