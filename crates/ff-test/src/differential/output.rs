//! The part of random sequences that appends frames and reads them.

use std::fmt::Debug;
use std::time::Duration;

use ff_core::backend::{Backend, BackendExt};
use ff_core::content::Content;
use ff_core::error::EngineError;
use ff_core::id::{ExecutionId, LeaseFence};
use ff_core::operation::{AppendFrames, Command, NewFrame, Reply};
use ff_core::read::{ReadStream, ReadSummary, StreamCursor, Tail, Visibility};
use ff_core::state::{FrameId, FrameMode};

use super::op::{FenceOf, Target};

/// One such operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputOp {
    Append { fence: FenceOf, frames: Vec<FrameOp> },
    Look(Look),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameOp {
    pub mode: Option<FrameMode>,
    /// Which of a few types, bodies and sizes; some are refused.
    pub kind: u8,
}

/// A question about the output of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    pub target: Target,
    pub attempt: u32,
    pub question: Question,
    pub from: PlaceOp,
    pub to: PlaceOp,
    pub limit: u32,
    pub durable_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    Read,
    Tail,
    Summary,
}

/// A place in a stream. Frames are named by their place among those appended so far, counted from
/// the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceOp {
    Start,
    End,
    Frame(usize),
    Behind(usize),
    Millisecond(usize),
}

/// Ids of the frames that were appended so far, of whatever execution.
#[derive(Debug, Default)]
pub(super) struct Appended(Vec<FrameId>);

const TYPES: [&str; 4] = ["stdout", "event", "é", "attempt.no"];
const BODIES: [&str; 9] = [
    "{}",
    r#"{"a":1}"#,
    r#"{"a":null,"b":{"c":[1.0]}}"#,
    r#"{"b":{"c":"__ff_null__","d":2}}"#,
    r#"["x"]"#,
    "null",
    "not json",
    "",
    r#"{"long":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}"#,
];

impl FrameOp {
    fn frame(self) -> NewFrame {
        // Few frames are of a type that is refused: one is enough to refuse them all.
        let kind = usize::from(self.kind);
        let frame_type = TYPES[if kind == 0 { 3 } else { kind % 3 }];
        let content = Content::json(BODIES[kind % BODIES.len()]);
        NewFrame {
            correlation_id: (kind % 5 == 1).then(|| format!("call-{kind}")),
            mode: self.mode,
            ..NewFrame::new(frame_type, content)
        }
    }
}

impl Appended {
    /// Notes what a reply brought.
    pub(super) fn note(&mut self, reply: &Reply) {
        if let Reply::AppendFrames(appended) = reply {
            self.0.extend(appended.frames.iter().map(|frame| frame.id));
        }
    }

    fn cursor(&self, place: PlaceOp) -> StreamCursor {
        let id = |n: usize| {
            let newest = self.0.len().checked_sub(1);
            newest.map_or(FrameId::FIRST, |newest| self.0[newest - n % self.0.len()])
        };
        match place {
            PlaceOp::Start => StreamCursor::Start,
            PlaceOp::End => StreamCursor::End,
            PlaceOp::Frame(n) => id(n).into(),
            PlaceOp::Behind(n) => id(n).successor().into(),
            PlaceOp::Millisecond(n) => StreamCursor::At(id(n).ms),
        }
    }

    /// The same question to both.
    pub(super) async fn look(
        &self,
        look: Look,
        execution_id: ExecutionId,
        backends: [&dyn Backend; 2],
    ) -> Result<(), String> {
        let [expected, found] = backends.map(|backend| self.ask(look, execution_id, backend));
        let (expected, found) = (expected.await, found.await);
        if expected == found {
            return Ok(());
        }
        let question = format!("{look:?} from {:?}", self.cursor(look.from));
        Err(format!("{question}\n  expected {expected}\n  found    {found}"))
    }

    async fn ask(&self, look: Look, execution_id: ExecutionId, backend: &dyn Backend) -> String {
        let attempt_index = look.attempt;
        let visibility = match look.durable_only {
            true => Visibility::ExcludeBestEffort,
            false => Visibility::All,
        };
        let (from, limit) = (self.cursor(look.from), look.limit);
        match look.question {
            Question::Read => {
                let to = self.cursor(look.to);
                let read = ReadStream { execution_id, attempt_index, from, to, limit, visibility };
                shown(backend.ask(read).await)
            }
            Question::Tail => {
                let tail = Tail { execution_id, attempt_index, after: from, limit, visibility };
                shown(backend.tail(tail, Duration::ZERO).await)
            }
            Question::Summary => {
                shown(backend.ask(ReadSummary { execution_id, attempt_index }).await)
            }
        }
    }
}

/// An answer as text; of a refusal the code alone.
fn shown<T: Debug>(answer: Result<T, EngineError>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(error) => error.code().to_string(),
    }
}

pub(super) fn append(frames: &[FrameOp], (id, fence): (ExecutionId, LeaseFence)) -> Command {
    let frames = frames.iter().map(|frame| frame.frame()).collect();
    AppendFrames { execution_id: id, fence, frames }.into()
}
