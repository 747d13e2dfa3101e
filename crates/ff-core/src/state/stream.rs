//! The output of an attempt: what the record knows of it. Frames themselves are kept beside it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::limits;
use crate::policy::StreamPolicy;
use crate::time::TimestampMs;

/// Place of a frame in its stream: a millisecond and a number within it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct FrameId {
    pub ms: i64,
    pub seq: u16,
}

/// A piece of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub id: FrameId,
    pub mode: FrameMode,
    pub frame_type: String,
    pub content: Content,
    pub correlation_id: Option<String>,
}

/// How long a frame lasts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub enum FrameMode {
    /// The newest ones are kept, as many as the policy says.
    #[default]
    Durable,
    /// A patch of the attempt's summary.
    DurableSummary,
    /// For those who watch now.
    BestEffort,
}

/// Why a stream takes no more frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StreamEnd {
    AttemptSuccess,
    AttemptFailure,
    AttemptCancelled,
    /// The lease was taken away.
    Reclaimed,
    Expired,
    LeaseExpired,
    SuspensionTimeout,
}

/// What is known of an attempt's frames.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stream {
    /// The newest frame.
    pub last: FrameId,
    /// Frames ever appended.
    pub count: u64,
    /// Patches ever applied.
    pub summary_version: u64,
    /// One for each mode, in the order of [`FrameMode::ALL`].
    shelves: [Shelf; 3],
    rate: Rate,
    /// When the newest best-effort frame is gone.
    pub best_effort_until: TimestampMs,
}

/// The frames of one mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Shelf {
    pub kept: u32,
    pub dropped: u64,
    /// The newest that was ever put there.
    pub newest: FrameId,
}

/// Frames of each of the last ten seconds, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Rate {
    second: i64,
    frames: [u32; 10],
}

/// What new frames of one mode push out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Displaced {
    /// The oldest kept ones that go.
    pub old: u32,
    /// The first of the new ones that do not come in at all.
    pub new: u32,
}

impl FrameId {
    /// The highest number within a millisecond.
    pub const SEQ_MAX: u16 = 0x7fff;
    pub const FIRST: Self = Self { ms: 0, seq: 0 };
    pub const LAST: Self = Self { ms: limits::TIME_MAX_MS, seq: Self::SEQ_MAX };

    /// The id of a frame appended at `now` behind this one.
    #[must_use]
    pub fn next(self, now: TimestampMs) -> Self {
        if now.0 > self.ms { Self { ms: now.0, seq: 0 } } else { self.successor() }
    }

    /// The id right behind this one.
    #[must_use]
    pub fn successor(self) -> Self {
        if self.seq < Self::SEQ_MAX {
            Self { seq: self.seq + 1, ..self }
        } else {
            Self { ms: self.ms + 1, seq: 0 }
        }
    }

    /// One number in the same order, for stores.
    pub const fn packed(self) -> i64 {
        self.ms << 15 | self.seq as i64
    }

    pub const fn from_packed(packed: i64) -> Self {
        Self { ms: packed >> 15, seq: (packed & Self::SEQ_MAX as i64) as u16 }
    }
}

impl fmt::Display for FrameId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

/// The text is not the id of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id of a frame is ms-seq")]
pub struct FrameIdParseError;

impl FromStr for FrameId {
    type Err = FrameIdParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (ms, seq) = text.split_once('-').ok_or(FrameIdParseError)?;
        let id = ms.parse().ok().zip(seq.parse().ok()).map(|(ms, seq)| Self { ms, seq });
        id.filter(|id| id.to_string() == text).ok_or(FrameIdParseError)
    }
}

impl FrameMode {
    pub const ALL: [Self; 3] = [Self::Durable, Self::DurableSummary, Self::BestEffort];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Durable => "durable",
            Self::DurableSummary => "durable_summary",
            Self::BestEffort => "best_effort",
        }
    }

    /// The number under which stores keep it.
    pub const fn code(self) -> u8 {
        self as u8
    }

    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.code() == code)
    }
}

/// The text names no mode of frames.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a frame mode: durable, durable_summary or best_effort")]
pub struct UnknownFrameMode(pub String);

impl FromStr for FrameMode {
    type Err = UnknownFrameMode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        named.ok_or_else(|| UnknownFrameMode(text.to_owned()))
    }
}

impl StreamEnd {
    pub const ALL: [Self; 7] = [
        Self::AttemptSuccess,
        Self::AttemptFailure,
        Self::AttemptCancelled,
        Self::Reclaimed,
        Self::Expired,
        Self::LeaseExpired,
        Self::SuspensionTimeout,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AttemptSuccess => "attempt_success",
            Self::AttemptFailure => "attempt_failure",
            Self::AttemptCancelled => "attempt_cancelled",
            Self::Reclaimed => "reclaimed",
            Self::Expired => "expired",
            Self::LeaseExpired => "lease_expired",
            Self::SuspensionTimeout => "suspension_timeout",
        }
    }
}

impl Stream {
    pub fn shelf(&self, mode: FrameMode) -> Shelf {
        self.shelves[usize::from(mode.code())]
    }

    /// Takes on the next frame: its id.
    pub(crate) fn take_on(&mut self, mode: FrameMode, now: TimestampMs) -> FrameId {
        self.last = self.last.next(now);
        self.count += 1;
        self.rate.note(now);
        self.shelves[usize::from(mode.code())].newest = self.last;
        self.last
    }

    /// Makes room for `new` frames of a mode that were taken on at `now`.
    pub(crate) fn make_room(
        &mut self,
        mode: FrameMode,
        new: u32,
        policy: &StreamPolicy,
        now: TimestampMs,
    ) -> Displaced {
        let most = match mode {
            FrameMode::Durable => policy.retention_maxlen,
            FrameMode::DurableSummary => limits::SUMMARY_PATCHES,
            FrameMode::BestEffort => self.rate.best_effort_most(now),
        };
        let outlived = mode == FrameMode::BestEffort && self.best_effort_until <= now;
        if mode == FrameMode::BestEffort {
            // A frame lasts by its id, which is ahead of a clock that went back.
            self.best_effort_until =
                now.max(TimestampMs(self.last.ms)).after(limits::BEST_EFFORT_MS);
        }
        let shelf = &mut self.shelves[usize::from(mode.code())];
        let over = (shelf.kept + new).saturating_sub(most);
        let old = if outlived { shelf.kept } else { over.min(shelf.kept) };
        let displaced = Displaced { old, new: new.saturating_sub(most) };
        let gone = displaced.old + displaced.new;
        shelf.kept = shelf.kept + new - gone;
        shelf.dropped += u64::from(gone);
        displaced
    }
}

impl Rate {
    fn note(&mut self, now: TimestampMs) {
        self.advance(now);
        self.frames[0] = self.frames[0].saturating_add(1);
    }

    fn advance(&mut self, now: TimestampMs) {
        let second = now.0.div_euclid(1000);
        let passed = usize::try_from(second - self.second).unwrap_or(0).min(self.frames.len());
        self.frames.rotate_right(passed);
        self.frames[..passed].fill(0);
        self.second = self.second.max(second);
    }

    /// Frames that at this rate come while one lasts, within limits.
    fn best_effort_most(&mut self, now: TimestampMs) -> u32 {
        self.advance(now);
        let window_ms = 1000 * self.frames.len() as u64;
        let frames: u64 = self.frames.iter().copied().map(u64::from).sum();
        let most = frames.saturating_mul(limits::BEST_EFFORT_MS) / window_ms;
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        most.clamp(limits::BEST_EFFORT_FRAMES_MIN, limits::BEST_EFFORT_FRAMES_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: TimestampMs = TimestampMs(1_700_000_000_000);

    fn room(stream: &mut Stream, mode: FrameMode, new: u32, now: TimestampMs) -> Displaced {
        for _ in 0..new {
            stream.take_on(FrameMode::Durable, now);
        }
        stream.make_room(
            mode,
            new,
            &StreamPolicy { retention_maxlen: 5, ..Default::default() },
            now,
        )
    }

    #[test]
    fn ids_rise_whatever_the_clock_does() {
        let mut stream = Stream::default();
        let ids = [NOW, NOW, NOW.after(5), NOW, NOW.after(5)]
            .map(|now| stream.take_on(FrameMode::Durable, now));
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
        assert_eq!(ids[4].to_string(), "1700000000005-2");
        let full = FrameId { ms: 7, seq: FrameId::SEQ_MAX };
        assert_eq!(full.next(TimestampMs(7)), FrameId { ms: 8, seq: 0 });
        for id in [full, FrameId::FIRST, FrameId::LAST] {
            assert_eq!(FrameId::from_packed(id.packed()), id);
        }
    }

    #[test]
    fn each_mode_makes_room_on_its_own_shelf() {
        let mut stream = Stream::default();
        assert_eq!(room(&mut stream, FrameMode::Durable, 3, NOW), Displaced { old: 0, new: 0 });
        assert_eq!(room(&mut stream, FrameMode::DurableSummary, 60, NOW).old, 0);
        assert_eq!(room(&mut stream, FrameMode::Durable, 4, NOW), Displaced { old: 2, new: 0 });
        assert_eq!(room(&mut stream, FrameMode::Durable, 9, NOW), Displaced { old: 5, new: 4 });
        let shelf = stream.shelf(FrameMode::Durable);
        assert_eq!((shelf.kept, shelf.dropped), (5, 11));
        assert_eq!(room(&mut stream, FrameMode::DurableSummary, 6, NOW).old, 2);
        assert_eq!((stream.count, stream.shelf(FrameMode::BestEffort).kept), (82, 0));
    }

    #[test]
    fn best_effort_frames_are_kept_by_rate_and_go_after_their_time() {
        let mut stream = Stream::default();
        let mode = FrameMode::BestEffort;
        // 100 in ten seconds: 600 in a minute.
        for n in 0..10 {
            assert_eq!(room(&mut stream, mode, 100, NOW.after(1000 * n)).old, 0);
        }
        assert_eq!(stream.shelf(mode).kept, 1000);
        // The rate has fallen to what one second brought.
        assert_eq!(room(&mut stream, mode, 1, NOW.after(18_000)).old, 1001 - 101 * 6);
        let kept = stream.shelf(mode).kept;
        let later = NOW.after(18_000 + limits::BEST_EFFORT_MS);
        assert_eq!(room(&mut stream, mode, 1, later), Displaced { old: kept, new: 0 });
        assert_eq!(stream.shelf(mode).kept, 1);
    }

    #[test]
    fn best_effort_frames_last_by_their_ids_when_the_clock_goes_back() {
        let mut stream = Stream::default();
        room(&mut stream, FrameMode::Durable, 1, NOW.after(5_000));
        room(&mut stream, FrameMode::BestEffort, 1, NOW);
        assert_eq!(stream.last.ms, NOW.after(5_000).0);
        assert_eq!(stream.best_effort_until, NOW.after(5_000 + limits::BEST_EFFORT_MS));
    }
}
