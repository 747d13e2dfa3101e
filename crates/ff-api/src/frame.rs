//! Frames: pieces of output of an attempt.

use ff_core::content::Content;
use ff_core::id::{ContentType, ExecutionId, LeaseFence};
use ff_core::operation;
use ff_core::read::{
    ReadStream, StreamClosed, StreamCursor, StreamPage, SummaryRead, Tail, Visibility,
};
use ff_core::state::{self, StreamEnd};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::bytes::{Base64, content};
use crate::json::Json;
use crate::nullable::given;
use crate::object::Invalid;
use crate::problem::{Failure, FieldError};
use crate::reading::{Unreadable, among, each, parsed};
use crate::time::Time;

/// Frames on one page when nothing is said: of a read, of a tail, and most.
const READ_FRAMES: u32 = 100;
const TAIL_FRAMES: u32 = 50;
const FRAMES_MAX: u32 = 1_000;

/// Output to append: all of it or nothing.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Append {
    pub frames: Vec<NewFrame>,
}

/// A frame to append.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewFrame {
    #[serde(rename = "type")]
    pub type_: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_b64: Option<Base64>,
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub payload_json: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<ContentType>,
    /// `durable`, `durable_summary` or `best_effort`; as the policy says when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Appended {
    pub frames: Vec<AppendedFrame>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AppendedFrame {
    pub id: String,
    /// Frames ever appended to this stream, this one included.
    pub count: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_version: Option<u64>,
}

/// A piece of output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Frame {
    pub id: String,
    #[serde(rename = "type")]
    pub type_: String,
    pub mode: String,
    pub payload_b64: Base64,
    pub content_type: ContentType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
}

/// A stretch of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Stream {
    pub frames: Vec<Frame>,
    /// Frames ever appended.
    pub count: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trimmed_before: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_reason: Option<String>,
    /// More of what was asked for follows behind these.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// The summary of an attempt.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    pub document: Json,
    pub version: u64,
}

/// Which frames, both ends included.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReadFrames {
    /// `start`, `end`, `ms` or `ms-seq`.
    pub from: Option<String>,
    pub to: Option<String>,
    /// Followed from here: what comes behind this frame.
    pub after: Option<String>,
    /// 1 to 1000; 100 when absent.
    pub limit: Option<u32>,
    /// `all` or `exclude_best_effort`.
    pub visibility: Option<String>,
}

/// What comes behind a frame.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TailFrames {
    /// `ms-seq`; `0-0` when absent.
    pub after: Option<String>,
    /// How long to wait for the first of them; 0 to 30 000.
    pub block_ms: u64,
    /// 1 to 1000; 50 when absent.
    pub limit: Option<u32>,
    /// `all` or `exclude_best_effort`.
    pub visibility: Option<String>,
}

impl NewFrame {
    /// The operation's part; `raw` is the payload when it came as the body itself.
    pub fn operation(self, raw: Option<Content>) -> Result<operation::NewFrame, Failure> {
        let mode = self.mode.as_deref().map(str::parse).transpose();
        let body = content("payload", self.payload_b64, self.payload_json, self.content_type)?;
        Ok(operation::NewFrame {
            frame_type: self.type_,
            content: raw.or(body).unwrap_or_default(),
            correlation_id: self.correlation_id,
            mode: mode.map_err(|error| Invalid::at("mode", error))?,
        })
    }
}

impl Append {
    pub fn operation(
        self,
        execution_id: ExecutionId,
        fence: LeaseFence,
    ) -> Result<operation::AppendFrames, Failure> {
        let frames = self.frames.into_iter().enumerate().map(|(number, frame)| {
            let frame = frame.operation(None);
            frame.map_err(|failure| failure.under(&format!("/frames/{number}")))
        });
        Ok(operation::AppendFrames {
            execution_id,
            fence,
            frames: frames.collect::<Result<_, _>>()?,
        })
    }
}

impl From<operation::Appended> for Appended {
    fn from(appended: operation::Appended) -> Self {
        let frame = |frame: operation::AppendedFrame| AppendedFrame {
            id: frame.id.to_string(),
            count: frame.count,
            summary_version: frame.summary_version,
        };
        Self { frames: appended.frames.into_iter().map(frame).collect() }
    }
}

impl From<state::Frame> for Frame {
    fn from(frame: state::Frame) -> Self {
        Self {
            id: frame.id.to_string(),
            type_: frame.frame_type,
            mode: frame.mode.as_str().to_owned(),
            payload_b64: Base64(frame.content.bytes),
            content_type: frame.content.content_type,
            correlation_id: frame.correlation_id,
        }
    }
}

impl From<StreamPage> for Stream {
    fn from(page: StreamPage) -> Self {
        Self {
            frames: page.frames.into_iter().map(Into::into).collect(),
            count: page.count,
            trimmed_before: page.trimmed_before.map(|id| id.to_string()),
            closed_at: page.closed.map(|closed| closed.at.into()),
            closed_reason: page.closed.map(|closed| closed.reason.as_str().to_owned()),
            more: page.more,
        }
    }
}

impl From<SummaryRead> for Summary {
    fn from(read: SummaryRead) -> Self {
        let document = serde_json::value::RawValue::from_string(read.document);
        Self { document: Json(document.unwrap_or_default()), version: read.version }
    }
}

fn cursor(name: &str, text: Option<&str>, default: StreamCursor) -> Result<StreamCursor, Failure> {
    let Some(text) = text else { return Ok(default) };
    text.parse().map_err(|refusal| {
        let mut failure = Failure::from(refusal);
        failure.errors.iter_mut().for_each(|error| name.clone_into(&mut error.pointer));
        failure
    })
}

fn frames(limit: Option<u32>, default: u32) -> Result<u32, Failure> {
    let limit = limit.unwrap_or(default);
    if (1..=FRAMES_MAX).contains(&limit) {
        return Ok(limit);
    }
    let message = format!("limit is {limit}, allowed is 1 to {FRAMES_MAX}");
    Err(Invalid(vec![FieldError::parameter("limit", message)]).into())
}

fn seen(text: Option<&str>) -> Result<Visibility, Failure> {
    match text {
        None | Some("all") => Ok(Visibility::All),
        Some("exclude_best_effort") => Ok(Visibility::ExcludeBestEffort),
        Some(_) => {
            let message = "visibility is all or exclude_best_effort";
            Err(Invalid(vec![FieldError::parameter("visibility", message)]).into())
        }
    }
}

impl ReadFrames {
    pub fn question(
        &self,
        execution_id: ExecutionId,
        attempt_index: u32,
    ) -> Result<ReadStream, Failure> {
        Ok(ReadStream {
            execution_id,
            attempt_index,
            from: cursor("from", self.from.as_deref(), StreamCursor::Start)?,
            to: cursor("to", self.to.as_deref(), StreamCursor::End)?,
            limit: frames(self.limit, READ_FRAMES)?,
            visibility: seen(self.visibility.as_deref())?,
        })
    }
}

impl TailFrames {
    pub fn question(&self, execution_id: ExecutionId, attempt_index: u32) -> Result<Tail, Failure> {
        Ok(Tail {
            execution_id,
            attempt_index,
            after: cursor("after", self.after.as_deref(), StreamCursor::Id { ms: 0, seq: 0 })?,
            limit: frames(self.limit, TAIL_FRAMES)?,
            visibility: seen(self.visibility.as_deref())?,
        })
    }
}

impl From<operation::NewFrame> for NewFrame {
    fn from(frame: operation::NewFrame) -> Self {
        let Content { bytes, content_type } = frame.content;
        Self {
            type_: frame.frame_type,
            payload_b64: Some(Base64(bytes)),
            payload_json: None,
            content_type: Some(content_type),
            mode: frame.mode.map(|mode| mode.as_str().to_owned()),
            correlation_id: frame.correlation_id,
        }
    }
}

impl From<operation::AppendFrames> for Append {
    fn from(append: operation::AppendFrames) -> Self {
        Self { frames: append.frames.into_iter().map(Into::into).collect() }
    }
}

impl TryFrom<Appended> for operation::Appended {
    type Error = Unreadable;

    fn try_from(appended: Appended) -> Result<Self, Unreadable> {
        let frame = |AppendedFrame { id, count, summary_version }| {
            let id = parsed("id", &id)?;
            Ok::<_, Unreadable>(operation::AppendedFrame { id, count, summary_version })
        };
        Ok(Self { frames: appended.frames.into_iter().map(frame).collect::<Result<_, _>>()? })
    }
}

impl TryFrom<Frame> for state::Frame {
    type Error = Unreadable;

    fn try_from(frame: Frame) -> Result<Self, Unreadable> {
        Ok(Self {
            id: parsed("id", &frame.id)?,
            mode: parsed("mode", &frame.mode)?,
            frame_type: frame.type_,
            content: Content { bytes: frame.payload_b64.0, content_type: frame.content_type },
            correlation_id: frame.correlation_id,
        })
    }
}

impl TryFrom<Stream> for StreamPage {
    type Error = Unreadable;

    fn try_from(stream: Stream) -> Result<Self, Unreadable> {
        let trimmed = stream.trimmed_before.map(|id| parsed("trimmed_before", &id));
        let closed = match (stream.closed_at, stream.closed_reason) {
            (Some(at), Some(reason)) => {
                let reason = among("closed_reason", &reason, &StreamEnd::ALL, StreamEnd::as_str)?;
                Some(StreamClosed { at: at.into(), reason })
            }
            _ => None,
        };
        Ok(Self {
            frames: each(stream.frames)?,
            count: stream.count,
            trimmed_before: trimmed.transpose()?,
            closed,
            more: stream.more,
        })
    }
}

impl From<Summary> for SummaryRead {
    fn from(summary: Summary) -> Self {
        Self { document: summary.document.text().to_owned(), version: summary.version }
    }
}

/// The word for who is shown in a tail or a read.
pub fn visibility(visibility: Visibility) -> &'static str {
    match visibility {
        Visibility::All => "all",
        Visibility::ExcludeBestEffort => "exclude_best_effort",
    }
}
