//! Reading the output of an attempt: ranges and tails.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::check::{check_partition, check_range};
use crate::content::Content;
use crate::error::{Code, Refusal};
use crate::id::ExecutionId;
use crate::limits;
use crate::partition::PartitionConfig;
use crate::policy::StreamPolicy;
use crate::state::{Attempt, Frame, FrameId, FrameMode, StreamEnd};
use crate::time::TimestampMs;

/// The type of the frame that tells that another attempt has begun.
pub const SUPERSEDED: &str = "attempt.superseded";

/// A place in a stream, as callers write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamCursor {
    Start,
    End,
    /// All of a millisecond.
    At(i64),
    Id {
        ms: i64,
        seq: u64,
    },
}

/// Whether best-effort frames are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Visibility {
    #[default]
    All,
    ExcludeBestEffort,
}

/// Frames from one place to another, both included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadStream {
    pub execution_id: ExecutionId,
    pub attempt_index: u32,
    pub from: StreamCursor,
    pub to: StreamCursor,
    pub limit: u32,
    pub visibility: Visibility,
}

/// Frames behind a place, now or as soon as there are some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    pub execution_id: ExecutionId,
    pub attempt_index: u32,
    pub after: StreamCursor,
    pub limit: u32,
    pub visibility: Visibility,
}

/// The summary of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadSummary {
    pub execution_id: ExecutionId,
    pub attempt_index: u32,
}

/// A stretch of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamPage {
    pub frames: Vec<Frame>,
    /// Frames ever appended.
    pub count: u64,
    /// Frames before this one were asked for and are no longer kept.
    pub trimmed_before: Option<FrameId>,
    pub closed: Option<StreamClosed>,
    /// More of what was asked for follows behind these.
    pub more: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamClosed {
    pub at: TimestampMs,
    pub reason: StreamEnd,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryRead {
    /// JSON text.
    pub document: String,
    /// How many patches made it.
    pub version: u64,
}

/// What a store has to look up for a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamRange {
    pub execution_id: ExecutionId,
    pub attempt_index: u32,
    pub first: FrameId,
    pub last: FrameId,
    pub limit: u32,
    pub visibility: Visibility,
}

/// What a store found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamFound {
    pub attempt: Attempt,
    /// The attempt after it, if there is one.
    pub next: Option<Attempt>,
    pub policy: StreamPolicy,
    pub shelves: Vec<ShelfFound>,
}

/// What a store found of one mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShelfFound {
    pub mode: FrameMode,
    /// The oldest that may be shown.
    pub oldest: Option<FrameId>,
    /// Older ones are stored that may not: see [`StreamRange::shown_from`].
    pub faded: bool,
    /// In order, within [`StreamRange::of`].
    pub frames: Vec<Frame>,
    /// Nothing in range is behind these.
    pub complete: bool,
}

impl FromStr for StreamCursor {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let number = |text: &str| {
            let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| text.parse::<u64>().ok()).flatten()
        };
        let ms = |text: &str| {
            let ms = number(text).and_then(|ms| i64::try_from(ms).ok());
            ms.filter(|ms| *ms <= limits::TIME_MAX_MS)
        };
        let parsed = match text {
            "start" => Some(Self::Start),
            "end" => Some(Self::End),
            _ => match text.split_once('-') {
                None => ms(text).map(Self::At),
                Some((before, seq)) => {
                    ms(before).zip(number(seq)).map(|(ms, seq)| Self::Id { ms, seq })
                }
            },
        };
        parsed.ok_or_else(|| bad_cursor("cursor", "a cursor is start, end, ms or ms-seq"))
    }
}

impl fmt::Display for StreamCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("start"),
            Self::End => f.write_str("end"),
            Self::At(ms) => write!(f, "{ms}"),
            Self::Id { ms, seq } => write!(f, "{ms}-{seq}"),
        }
    }
}

impl From<FrameId> for StreamCursor {
    fn from(id: FrameId) -> Self {
        Self::Id { ms: id.ms, seq: id.seq.into() }
    }
}

impl StreamCursor {
    /// Before everything: what a tail begins with that wants all of it.
    pub const fn from_beginning() -> Self {
        Self::Id { ms: 0, seq: 0 }
    }

    /// Refuses a place that no clock shows.
    fn check(self, field: &'static str) -> Result<(), Refusal> {
        match self {
            Self::At(ms) | Self::Id { ms, .. } if !(0..=limits::TIME_MAX_MS).contains(&ms) => {
                Err(bad_cursor(field, "a cursor lies in the years 1970 to 9999"))
            }
            _ => Ok(()),
        }
    }

    /// The first id that is not before this place.
    fn first(self) -> FrameId {
        match self {
            Self::Start => FrameId::FIRST,
            Self::End => FrameId::LAST,
            Self::At(ms) => FrameId { ms, seq: 0 },
            Self::Id { ms, seq } => match u16::try_from(seq) {
                Ok(seq) if seq <= FrameId::SEQ_MAX => FrameId { ms, seq },
                _ => FrameId { ms: ms + 1, seq: 0 },
            },
        }
    }

    /// The last id that is not behind this place.
    fn last(self) -> FrameId {
        match self {
            Self::Start => FrameId::FIRST,
            Self::End => FrameId::LAST,
            Self::At(ms) => FrameId { ms, seq: FrameId::SEQ_MAX },
            Self::Id { ms, seq } => {
                let seq = u16::try_from(seq).unwrap_or(FrameId::SEQ_MAX);
                FrameId { ms, seq: seq.min(FrameId::SEQ_MAX) }
            }
        }
    }
}

fn bad_cursor(field: &'static str, detail: &'static str) -> Refusal {
    Refusal::at(Code::InvalidCursor, field, detail)
}

fn check_count(limit: u32) -> Result<(), Refusal> {
    let most = limits::STREAM_READ_FRAMES;
    if limit > most {
        let detail = format!("{limit} frames are asked for, the limit is {most}");
        return Err(Refusal::at(Code::CountLimitExceedsHardCap, "limit", detail));
    }
    check_range("limit", limit.into(), 1, most.into())
}

impl ReadStream {
    /// All that is kept of an attempt's output.
    pub fn all(execution_id: ExecutionId, attempt_index: u32) -> Self {
        Self {
            execution_id,
            attempt_index,
            from: StreamCursor::Start,
            to: StreamCursor::End,
            limit: limits::STREAM_READ_FRAMES,
            visibility: Visibility::All,
        }
    }

    pub(super) fn check(&self) -> Result<(), Refusal> {
        self.from.check("from")?;
        self.to.check("to")?;
        check_count(self.limit)
    }

    pub fn range(&self) -> StreamRange {
        StreamRange {
            execution_id: self.execution_id,
            attempt_index: self.attempt_index,
            first: self.from.first(),
            last: self.to.last(),
            limit: self.limit,
            visibility: self.visibility,
        }
    }
}

impl Tail {
    /// What comes behind a place.
    pub fn after(execution_id: ExecutionId, attempt_index: u32, after: FrameId) -> Self {
        Self {
            execution_id,
            attempt_index,
            after: after.into(),
            limit: limits::PAGE,
            visibility: Visibility::All,
        }
    }

    /// Checks a tail that waits so long.
    pub fn check(&self, wait: Duration, partitions: &PartitionConfig) -> Result<(), Refusal> {
        check_partition(self.execution_id, partitions)?;
        let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        check_range("block_ms", ms, 0, limits::TAIL_BLOCK_MS)?;
        if matches!(self.after, StreamCursor::Start | StreamCursor::End) {
            return Err(bad_cursor("after", "a tail goes on behind an id: ms-seq, 0-0 for all"));
        }
        self.after.check("after")?;
        check_count(self.limit)
    }

    pub fn range(&self) -> StreamRange {
        let after = match self.after {
            StreamCursor::At(ms) => FrameId { ms, seq: 0 },
            other => other.last(),
        };
        StreamRange {
            execution_id: self.execution_id,
            attempt_index: self.attempt_index,
            first: after.successor(),
            last: FrameId::LAST,
            limit: self.limit,
            visibility: self.visibility,
        }
    }
}

impl StreamRange {
    /// The modes that are asked for.
    pub fn modes(&self) -> impl Iterator<Item = FrameMode> + use<> {
        let visibility = self.visibility;
        FrameMode::ALL
            .into_iter()
            .filter(move |mode| visibility == Visibility::All || *mode != FrameMode::BestEffort)
    }

    /// The first and the last frame of a mode that may be shown at `now`.
    pub fn of(&self, mode: FrameMode, now: TimestampMs) -> (FrameId, FrameId) {
        (self.first.max(Self::shown_from(mode, now)), self.last)
    }

    /// Frames of a mode before this one are gone by `now`, whether or not they are still stored.
    pub fn shown_from(mode: FrameMode, now: TimestampMs) -> FrameId {
        if mode != FrameMode::BestEffort {
            return FrameId::FIRST;
        }
        let ms = now.0.saturating_sub_unsigned(limits::BEST_EFFORT_MS) + 1;
        FrameId { ms: ms.max(0), seq: 0 }
    }

    fn holds(&self, id: FrameId) -> bool {
        self.first <= id && id <= self.last
    }
}

impl StreamFound {
    /// The page that is asked for.
    pub fn page(self, range: &StreamRange, now: TimestampMs) -> StreamPage {
        let closed = closed(&self.attempt);
        let superseded = self.superseded();
        let mut page = StreamPage { closed, ..StreamPage::default() };
        page.count = self.attempt.stream.as_ref().map_or(0, |stream| stream.count);
        page.count += u64::from(superseded.is_some());
        if is_gone(&self.attempt, &self.policy, now) {
            let last = superseded.map(|frame| frame.id);
            let last = last.or_else(|| self.attempt.stream.as_ref().map(|stream| stream.last));
            let end = last.map(FrameId::successor).filter(|_| page.count > 0);
            page.trimmed_before = end.filter(|end| range.first < *end);
            return page;
        }
        let trimmed = self.shelves.iter().filter_map(|shelf| self.trimmed(shelf, range));
        page.trimmed_before = trimmed.min();
        let cuts = self.shelves.iter().filter(|shelf| !shelf.complete);
        // Behind the last frame that a shelf gave there may be others of its own.
        let cut = cuts.map(|shelf| shelf.frames.last().map_or(range.first, |frame| frame.id)).min();
        page.frames = self.shelves.into_iter().flat_map(|shelf| shelf.frames).collect();
        page.frames.extend(superseded.filter(|frame| range.holds(frame.id)));
        page.frames.sort_unstable_by_key(|frame| frame.id);
        if let Some(cut) = cut {
            page.more = true;
            page.frames.retain(|frame| frame.id <= cut);
        }
        let fitting = fitting(&page.frames, range.limit as usize);
        page.more |= page.frames.len() > fitting;
        page.frames.truncate(fitting);
        page
    }

    /// The oldest frame of a mode that is kept, if the range begins before it and others did too.
    fn trimmed(&self, shelf: &ShelfFound, range: &StreamRange) -> Option<FrameId> {
        let stream = self.attempt.stream.as_ref()?;
        let known = stream.shelf(shelf.mode);
        let oldest = match shelf.oldest {
            Some(oldest) => (known.dropped > 0 || shelf.faded).then_some(oldest),
            // All are gone, and what comes next comes behind them.
            None => (known.kept > 0).then(|| known.newest.successor()),
        };
        oldest.filter(|oldest| range.first < *oldest)
    }

    /// The last frame of an attempt that another one followed. It is not stored: record and
    /// attempts say all that it says.
    fn superseded(&self) -> Option<Frame> {
        let next = self.next.as_ref()?;
        let last = self.attempt.stream.as_ref().map(|stream| stream.last).unwrap_or_default();
        let said = serde_json::json!({
            "next_attempt_index": next.index,
            "reason": next.kind.as_str(),
        });
        Some(Frame {
            id: last.next(next.started_at),
            mode: FrameMode::Durable,
            frame_type: SUPERSEDED.to_owned(),
            content: Content::json(said.to_string()),
            correlation_id: None,
        })
    }
}

/// How many of the frames one reply carries: one at least.
fn fitting(frames: &[Frame], limit: usize) -> usize {
    let mut bytes = 0;
    let fits = |frame: &&Frame| {
        let before = bytes;
        bytes += frame.content.bytes.len();
        before < limits::STREAM_READ_BYTES
    };
    frames.iter().take(limit).take_while(fits).count()
}

fn closed(attempt: &Attempt) -> Option<StreamClosed> {
    let (reason, at) = attempt.stream_end.zip(attempt.ended_at)?;
    Some(StreamClosed { at, reason })
}

/// Whether all output of an attempt has outlived its time.
pub(super) fn is_gone(attempt: &Attempt, policy: &StreamPolicy, now: TimestampMs) -> bool {
    let closed = closed(attempt).zip(policy.retention_ttl_ms);
    closed.is_some_and(|(closed, kept_ms)| closed.at.after(kept_ms) <= now)
}

impl SummaryRead {
    /// The summary of an attempt, from its row.
    pub fn of(
        attempt: &Attempt,
        policy: &StreamPolicy,
        row: Option<&[u8]>,
        now: TimestampMs,
    ) -> Self {
        let version = attempt.stream.as_ref().map_or(0, |stream| stream.summary_version);
        match row {
            Some(row) if version > 0 && !is_gone(attempt, policy, now) => {
                Self { document: String::from_utf8_lossy(row).into_owned(), version }
            }
            _ => Self { document: "{}".to_owned(), version: 0 },
        }
    }
}

/// There is no such attempt.
pub fn attempt_not_found(execution_id: ExecutionId, attempt_index: u32) -> Refusal {
    let detail = format!("{execution_id} has no attempt {attempt_index}");
    Refusal::at(Code::AttemptNotFound, "attempt_index", detail)
}

#[cfg(test)]
mod tests;
