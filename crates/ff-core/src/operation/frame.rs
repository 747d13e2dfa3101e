//! Frames: pieces of output of the current attempt.

use super::command::Shape;
use crate::check::{check_bytes, check_range};
use crate::content::Content;
use crate::error::{Code, Refusal};
use crate::id::{ExecutionId, LeaseFence};
use crate::limits;
use crate::state::{FrameId, FrameMode};

/// Appends frames to the stream of the attempt under lease: all of them or none.
#[derive(Debug, Clone, PartialEq)]
pub struct AppendFrames {
    pub execution_id: ExecutionId,
    pub fence: LeaseFence,
    pub frames: Vec<NewFrame>,
}

/// A frame to append.
#[derive(Debug, Clone, PartialEq)]
pub struct NewFrame {
    /// `stdout`, `stderr`, `event`, `blob`, or a word of the worker's own.
    pub frame_type: String,
    pub content: Content,
    pub correlation_id: Option<String>,
    /// None: as the policy says.
    pub mode: Option<FrameMode>,
}

/// What became of each frame, in the same order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    pub frames: Vec<AppendedFrame>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendedFrame {
    pub id: FrameId,
    /// Frames ever appended to this stream, this one included.
    pub count: u64,
    /// Of a patch: the version of the summary that it made.
    pub summary_version: Option<u64>,
}

impl NewFrame {
    pub fn new(frame_type: impl Into<String>, content: Content) -> Self {
        Self { frame_type: frame_type.into(), content, correlation_id: None, mode: None }
    }

    #[must_use]
    pub fn with_mode(self, mode: FrameMode) -> Self {
        Self { mode: Some(mode), ..self }
    }

    fn check(&self) -> Result<(), Refusal> {
        check_type(&self.frame_type)?;
        let correlation = self.correlation_id.as_deref().unwrap_or("");
        check_bytes("correlation_id", correlation, limits::CATEGORY_BYTES)?;
        let (bytes, limit) = (self.content.bytes.len(), limits::FRAME_BYTES);
        if bytes > limit {
            let detail = format!("the frame has {bytes} bytes, the limit is {limit}");
            return Err(Refusal::at(Code::RetentionLimitExceeded, "payload", detail));
        }
        Ok(())
    }
}

/// Types that only the engine and the wire use are refused.
fn check_type(text: &str) -> Result<(), Refusal> {
    let refuse = |detail: String| Err(Refusal::at(Code::InvalidFrameType, "type", detail));
    if text.is_empty() || text.len() > limits::FRAME_TYPE_BYTES {
        return refuse(format!("a frame type has 1 to {} bytes", limits::FRAME_TYPE_BYTES));
    }
    if text.chars().any(char::is_control) {
        return refuse("a frame type holds no control characters".to_owned());
    }
    if text == "end" || text == "gap" || text.starts_with("attempt.") {
        return refuse(format!("the frame type {text} is reserved"));
    }
    Ok(())
}

impl Shape for AppendFrames {
    fn check_shape(&self) -> Result<(), Refusal> {
        let most = limits::FRAMES_APPENDED as u64;
        check_range("frames", self.frames.len() as u64, 1, most)?;
        for (number, frame) in self.frames.iter().enumerate() {
            frame.check().map_err(|refusal| refusal.under(number).under("frames"))?;
        }
        Ok(())
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}
