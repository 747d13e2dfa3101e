//! The rule of frames, and how a stream ends.

use super::Facts;
use super::draft::{Draft, Halt, existing};
use super::fence;
use super::rows::{Family, RowChange, RowKey};
use super::step::{FrameChange, ShelfChange, Step};
use crate::error::{Code, Refusal};
use crate::id::ExecutionId;
use crate::operation::{AppendFrames, Appended, AppendedFrame, NewFrame};
use crate::policy::StreamPolicy;
use crate::state::{Frame, FrameMode, Stream, StreamEnd};
use crate::summary::Summary;
use crate::time::TimestampMs;

pub(super) fn append(
    facts: &impl Facts,
    op: &AppendFrames,
    now: TimestampMs,
) -> Result<Step<Appended>, Halt> {
    let execution = existing(facts, op.execution_id)?;
    fence::check(&execution, &op.fence, now).map_err(as_owner)?;
    let policy = execution.policy().stream;
    let mut draft = Draft::of(execution, now);
    let Some(attempt) = &mut draft.execution.attempt else {
        return Err(Refusal::new(Code::InvariantViolation, "a lease without an attempt").into());
    };
    let row = RowKey::numbered(Family::Summary, attempt.index);
    let mode = |frame: &NewFrame| frame.mode.unwrap_or(policy.durability_mode);
    let mut summary = if op.frames.iter().any(|frame| mode(frame) == FrameMode::DurableSummary) {
        Some(stored_summary(facts, op.execution_id, &row)?)
    } else {
        None
    };
    let first = attempt.stream.is_none();
    let mut stream = attempt.stream.take().unwrap_or_default();
    let (mut frames, mut replies) = (Vec::new(), Vec::new());
    for (number, new) in op.frames.iter().enumerate() {
        let mode = mode(new);
        let version = match &mut summary {
            Some(summary) if mode == FrameMode::DurableSummary => {
                let patched = summary.apply(&new.content.bytes);
                *summary = patched.map_err(|refusal| refusal.under(number).under("frames"))?;
                stream.summary_version += 1;
                Some(stream.summary_version)
            }
            _ => None,
        };
        let id = stream.take_on(mode, now);
        frames.push(Frame {
            id,
            mode,
            frame_type: new.frame_type.clone(),
            content: new.content.clone(),
            correlation_id: new.correlation_id.clone(),
        });
        replies.push(AppendedFrame { id, count: stream.count, summary_version: version });
    }
    let shelves = shelve(&mut stream, &mut frames, &policy, now);
    draft.frames = Some(FrameChange { attempt_index: attempt.index, first, shelves, frames });
    attempt.stream = Some(stream);
    if let Some(summary) = summary {
        draft.row(RowChange { key: row, bytes: Some(summary.as_str().to_owned().into()) });
    }
    Ok(Step::done(Appended { frames: replies }, draft.finish().into()))
}

/// Makes room for new frames, mode by mode, and leaves out those that do not fit.
fn shelve(
    stream: &mut Stream,
    frames: &mut Vec<Frame>,
    policy: &StreamPolicy,
    now: TimestampMs,
) -> Vec<ShelfChange> {
    let mut shelves = Vec::new();
    for mode in FrameMode::ALL {
        let new = frames.iter().filter(|frame| frame.mode == mode).count();
        if new == 0 {
            continue;
        }
        let new = u32::try_from(new).unwrap_or(u32::MAX);
        let displaced = stream.make_room(mode, new, policy, now);
        let mut left_out = displaced.new;
        frames.retain(|frame| {
            let out = frame.mode == mode && left_out > 0;
            left_out -= u32::from(out);
            !out
        });
        shelves.push(ShelfChange {
            mode,
            drops: displaced.old,
            kept: stream.shelf(mode).kept,
            until: (mode == FrameMode::BestEffort).then_some(stream.best_effort_until),
        });
    }
    shelves
}

/// A worker whose lease is not the live one learns that from the codes of streams.
fn as_owner(refusal: Refusal) -> Refusal {
    let code = match refusal.code {
        Code::ExecutionNotActive => Code::StreamClosed,
        Code::LeaseExpired | Code::LeaseRevoked | Code::StaleLease => Code::StaleOwnerCannotAppend,
        other => other,
    };
    Refusal { code, ..refusal }
}

fn stored_summary(facts: &impl Facts, id: ExecutionId, row: &RowKey) -> Result<Summary, Halt> {
    match facts.row(&id.into(), row)? {
        Some(bytes) => Ok(Summary::from_stored(&bytes)?),
        None => Ok(Summary::default()),
    }
}

impl Draft {
    /// Closes the stream of the current attempt. The first reason stands.
    pub(super) fn close_stream(&mut self, end: StreamEnd) {
        let kept_ms = self.execution.policy().stream.retention_ttl_ms;
        let Some(attempt) = &mut self.execution.attempt else { return };
        if attempt.stream_end.is_some() || !attempt.is_open() {
            return;
        }
        attempt.stream_end = Some(end);
        let (Some(stream), Some(kept_ms)) = (&attempt.stream, kept_ms) else { return };
        let until = self.now.after(kept_ms);
        let shelves = FrameMode::ALL.into_iter().filter(|mode| stream.shelf(*mode).kept > 0);
        self.frames = Some(FrameChange {
            attempt_index: attempt.index,
            shelves: shelves.map(|mode| closed_shelf(stream, mode, until)).collect(),
            ..FrameChange::default()
        });
    }
}

fn closed_shelf(stream: &Stream, mode: FrameMode, until: TimestampMs) -> ShelfChange {
    let until = match mode {
        FrameMode::BestEffort => until.min(stream.best_effort_until),
        _ => until,
    };
    ShelfChange { mode, drops: 0, kept: stream.shelf(mode).kept, until: Some(until) }
}
