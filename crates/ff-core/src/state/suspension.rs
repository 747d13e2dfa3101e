//! A stop that keeps the attempt.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{BlockingReason, ClosedRef, Condition, Tally, Waitpoint, WaitpointState};
use crate::id::{Handle, IdempotencyKey, SignalName, SuspensionId, WaitpointId, WaitpointKey};
use crate::time::TimestampMs;
use crate::token::Stamp;

/// Names that are kept for an explanation.
const HEARD_MOST: usize = 16;

/// What a suspended execution waits for. Its waitpoints stand in [`Waits::open`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspension {
    pub id: SuspensionId,
    pub condition: Condition,
    pub tally: Tally,
    /// The signals that counted.
    pub matched: Matched,
    /// The last different names that were heard.
    pub heard: Vec<SignalName>,
    pub resume: ResumePolicy,
    pub reason: SuspensionReason,
    pub requester: Option<String>,
    pub timeout: Option<SuspensionTimeout>,
    /// Its time was up and it was handed to an operator.
    pub escalated: bool,
    pub since: TimestampMs,
}

/// Signals that did something together.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Matched {
    pub numbers: Vec<u32>,
    /// Of all their bodies.
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspensionTimeout {
    pub at: TimestampMs,
    pub behavior: TimeoutBehavior,
}

/// What happens to a suspension whose time is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
pub enum TimeoutBehavior {
    #[default]
    Fail,
    Cancel,
    Expire,
    AutoResume,
    Escalate,
}

/// What becomes of signals and waitpoints when an execution goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumePolicy {
    /// Signals that satisfied the condition are not evaluated again.
    pub consume_matched_signals: bool,
    /// Else the waitpoints become pending again.
    pub close_waitpoint_on_resume: bool,
    /// Whether a waitpoint that becomes pending again keeps the signals that were not consumed.
    pub retain_signal_buffer_until_closed: bool,
    pub resume_delay_ms: u64,
}

/// Why an execution was suspended, in a word. Some words show as a blocking reason of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspensionReason(pub String);

/// All that an execution has to do with waitpoints and signals.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Waits {
    /// Waitpoints that are not closed, in the order of their making.
    pub open: Vec<Waitpoint>,
    /// The last ones that were closed.
    pub closed: Vec<ClosedRef>,
    /// Signals accepted so far.
    pub signals: u32,
    /// Suspends so far.
    pub suspends: u32,
    /// The last suspends, whose repetition gets the first reply.
    pub remembered: Vec<SuspendNote>,
    /// How the current attempt was resumed last.
    pub resumed: Option<Resumed>,
    /// What the last suspend left; it stands beside the record.
    pub metadata: Option<MetadataNote>,
}

/// A suspend that is remembered; its reply stands beside the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspendNote {
    pub number: u32,
    pub suspension_id: SuspensionId,
    pub key: Option<IdempotencyKey>,
    /// Until when the key is known.
    pub expires_at: TimestampMs,
}

/// What a suspend answered. Tokens are not kept: they are signed again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspendMemory {
    pub number: u32,
    pub suspension_id: SuspensionId,
    pub already_satisfied: bool,
    pub waitpoints: Vec<(WaitpointId, WaitpointKey, Stamp)>,
    pub handle: Handle,
}

/// Something that a suspend left for whoever goes on with its attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetadataNote {
    pub attempt_index: u32,
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    pub attempt_index: u32,
    /// The signals that did it.
    pub signals: Matched,
    /// Time did it.
    pub timed_out: Option<TimedOut>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedOut {
    pub at: TimestampMs,
    pub suspension_id: SuspensionId,
}

impl Default for ResumePolicy {
    fn default() -> Self {
        Self {
            consume_matched_signals: true,
            close_waitpoint_on_resume: true,
            retain_signal_buffer_until_closed: false,
            resume_delay_ms: 0,
        }
    }
}

impl Default for SuspensionReason {
    fn default() -> Self {
        Self("waiting_for_signal".to_owned())
    }
}

impl SuspensionReason {
    pub fn blocking_reason(&self) -> BlockingReason {
        match self.0.as_str() {
            "waiting_for_approval" => BlockingReason::WaitingForApproval,
            "waiting_for_callback" => BlockingReason::WaitingForCallback,
            "waiting_for_tool_result" => BlockingReason::WaitingForToolResult,
            "paused_by_policy" => BlockingReason::PausedByPolicy,
            "waiting_for_operator_review" | "manual_pause" => BlockingReason::PausedByOperator,
            "paused_by_budget" => BlockingReason::WaitingForBudget,
            _ => BlockingReason::WaitingForSignal,
        }
    }
}

impl Matched {
    pub(crate) fn add(&mut self, number: u32, bytes: usize) {
        self.numbers.push(number);
        self.bytes += bytes as u64;
    }
}

impl Suspension {
    /// Notes the name of a signal for whoever asks why it still waits.
    pub(crate) fn note_heard(&mut self, name: &SignalName) {
        self.heard.retain(|other| other != name);
        self.heard.push(name.clone());
        if self.heard.len() > HEARD_MOST {
            self.heard.remove(0);
        }
    }

    pub fn blocking_reason(&self) -> BlockingReason {
        if self.escalated {
            BlockingReason::PausedByOperator
        } else {
            self.reason.blocking_reason()
        }
    }
}

impl Waits {
    /// How an attempt was resumed last, if it is the one that was.
    pub fn resumed_of(&self, attempt_index: u32) -> Option<&Resumed> {
        self.resumed.as_ref().filter(|resumed| resumed.attempt_index == attempt_index)
    }

    /// What the last suspend left, if it left it for this attempt.
    pub fn metadata_of(&self, attempt_index: u32) -> Option<MetadataNote> {
        self.metadata.filter(|metadata| metadata.attempt_index == attempt_index)
    }

    /// Waitpoints that are not closed at `now`. One that no suspend used in time is, though nobody
    /// may have seen to it yet.
    pub fn open_at(&self, now: TimestampMs) -> impl Iterator<Item = &Waitpoint> {
        self.open.iter().filter(move |waitpoint| !waitpoint.is_unused(now))
    }

    /// When the next pending waitpoint closes unused.
    pub fn next_expiry(&self) -> Option<TimestampMs> {
        let pending = self.open.iter().filter(|w| w.state == WaitpointState::Pending);
        pending.filter_map(|waitpoint| waitpoint.expires_at).min()
    }
}

impl TimeoutBehavior {
    pub const ALL: [Self; 5] =
        [Self::Fail, Self::Cancel, Self::Expire, Self::AutoResume, Self::Escalate];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Cancel => "cancel",
            Self::Expire => "expire",
            Self::AutoResume => "auto_resume_with_timeout_signal",
            Self::Escalate => "escalate",
        }
    }
}

impl TimeoutBehavior {
    /// Whether the execution ends by it.
    pub const fn ends(self) -> bool {
        matches!(self, Self::Fail | Self::Cancel | Self::Expire)
    }
}

impl fmt::Display for TimeoutBehavior {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text names no behaviour.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a timeout behavior")]
pub struct UnknownTimeoutBehavior(pub String);

impl FromStr for TimeoutBehavior {
    type Err = UnknownTimeoutBehavior;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.into_iter().find(|behavior| behavior.as_str() == text);
        named
            .or((text == "auto_resume").then_some(Self::AutoResume))
            .ok_or_else(|| UnknownTimeoutBehavior(text.to_owned()))
    }
}
