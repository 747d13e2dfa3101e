//! What the rules of suspension share: making, closing and finding waitpoints, and going on.

use std::sync::Arc;

use super::Facts;
use super::draft::{Draft, Halt};
use super::facts::Settings;
use super::rows::{Family, RowChange, RowKey};
use crate::error::{Code, Refusal};
use crate::event::{EventData, EventKind};
use crate::id::{ExecutionId, WaitpointId, WaitpointKey};
use crate::limits;
use crate::operation::{IssuedWaitpoint, WaitpointRef};
use crate::state::{
    CancelSource, Cancellation, CloseReason, ClosedRef, ClosedWaitpoint, DelayReason, Failure,
    FailureClass, KeyDigest, Matched, Next, Phase, PublicState, Resumed, StreamEnd, Suspension,
    TimedOut, TimeoutBehavior, Waitpoint, WaitpointState,
};
use crate::time::TimestampMs;
use crate::token::{self, Keyring, Stamp};

const TIMED_OUT: &str = "suspension_timeout";

/// A waitpoint that an execution has, or had.
pub(super) enum Found {
    Open(Waitpoint),
    Closed(ClosedWaitpoint),
}

impl Found {
    pub(super) const fn id(&self) -> WaitpointId {
        match self {
            Self::Open(waitpoint) => waitpoint.id,
            Self::Closed(closed) => closed.id,
        }
    }
}

pub(super) fn waitpoint_not_found() -> Refusal {
    Refusal::at(Code::WaitpointNotFound, "waitpoint", "the execution has no such waitpoint")
}

pub(super) fn waitpoint_closed(closed: &ClosedWaitpoint) -> Refusal {
    Refusal::at(Code::WaitpointClosed, "waitpoint", format!("it is closed: {}", closed.reason))
}

fn closed_row(id: WaitpointId) -> RowKey {
    RowKey::named(Family::Waitpoint, id.uuid().as_bytes())
}

/// Makes the token of a waitpoint: what is kept of it, and the text for its caller.
pub(super) fn issue(
    keyring: &Keyring,
    execution_id: ExecutionId,
    waitpoint_id: WaitpointId,
    issue: u32,
    expires_at: Option<TimestampMs>,
) -> (Stamp, token::WaitpointToken) {
    let binding = token::Binding { execution_id, waitpoint_id, issue, expires_at };
    let signed = token::sign(keyring, &binding);
    let kid = signed.token.kid().clone();
    (Stamp { kid, issue, expires_at, hash: signed.hash }, signed.token)
}

/// The token of a stamp, signed again.
pub(super) fn reissue(
    keyring: &Keyring,
    execution_id: ExecutionId,
    (id, key, stamp): (WaitpointId, &WaitpointKey, &Stamp),
    now: TimestampMs,
) -> Result<IssuedWaitpoint, Refusal> {
    let Stamp { issue, expires_at, .. } = *stamp;
    let binding = token::Binding { execution_id, waitpoint_id: id, issue, expires_at };
    let token = token::sign_again(keyring, &stamp.kid, &binding, now)?.token;
    Ok(IssuedWaitpoint { waitpoint_id: id, key: key.clone(), token, replayed: false })
}

/// A token's last instant, from its ttl.
pub(super) fn token_expiry(ttl_ms: Option<u64>, now: TimestampMs) -> Option<TimestampMs> {
    ttl_ms.map(|ttl| now.after(ttl))
}

impl Draft {
    /// Looks a waitpoint up among those that are not closed, then among those that are remembered.
    pub(super) fn find_waitpoint(
        &self,
        facts: &impl Facts,
        wanted: &WaitpointRef,
    ) -> Result<Option<Found>, Halt> {
        if let WaitpointRef::Text(text) = wanted {
            let found = match text.parse() {
                Ok(id) => self.find_waitpoint(facts, &WaitpointRef::Id(id))?,
                Err(_) => None,
            };
            return match found {
                None => self.find_waitpoint(facts, &WaitpointRef::Key(text.clone())),
                found => Ok(found),
            };
        }
        let waits = &self.execution.waits;
        let is_it = |waitpoint: &&Waitpoint| match wanted {
            WaitpointRef::Id(id) => waitpoint.id == *id,
            WaitpointRef::Key(key) | WaitpointRef::Text(key) => waitpoint.key == *key,
        };
        if let Some(open) = waits.open.iter().find(is_it) {
            return Ok(Some(Found::Open(open.clone())));
        }
        let was_it = |closed: &&ClosedRef| match wanted {
            WaitpointRef::Id(id) => closed.id == *id,
            WaitpointRef::Key(key) | WaitpointRef::Text(key) => closed.key == KeyDigest::of(key),
        };
        let Some(closed) = waits.closed.iter().rev().find(was_it) else { return Ok(None) };
        Ok(self.find_row(facts, &closed_row(closed.id))?.map(Found::Closed))
    }

    /// Adds a waitpoint; refuses an id or an open key that exists, and one too many.
    pub(super) fn open_waitpoint(
        &mut self,
        keyring: &Arc<Keyring>,
        (id, key): (WaitpointId, &WaitpointKey),
        token_ttl_ms: Option<u64>,
        expires_at: Option<TimestampMs>,
    ) -> Result<IssuedWaitpoint, Refusal> {
        let waits = &self.execution.waits;
        let exists = waits.open.iter().any(|other| other.id == id || other.key == *key)
            || waits.closed.iter().any(|closed| closed.id == id);
        if exists {
            return Err(Refusal::at(
                Code::WaitpointAlreadyExists,
                "waitpoint",
                format!("a waitpoint {id}, or an open one named {key:?}, exists"),
            ));
        }
        if waits.open.len() >= limits::WAITPOINTS {
            let detail = format!("an execution has at most {} open waitpoints", limits::WAITPOINTS);
            return Err(Refusal::at(Code::ResourceExhausted, "waitpoint", detail));
        }
        let until = token_expiry(token_ttl_ms, self.now);
        let (stamp, token) = issue(keyring, self.execution.id, id, 1, until);
        let evaluate_from = self.execution.waits.signals;
        self.execution.waits.open.push(Waitpoint {
            id,
            key: key.clone(),
            state: WaitpointState::Pending,
            created_at: self.now,
            expires_at,
            token: stamp,
            evaluate_from,
            consumed: Vec::new(),
            has_buffered: false,
        });
        self.event_with(EventKind::WaitpointCreated, named(id, key, None));
        Ok(IssuedWaitpoint { waitpoint_id: id, key: key.clone(), token, replayed: false })
    }

    /// Closes waitpoints; an event for each.
    pub(super) fn close_waitpoints(&mut self, which: impl Fn(&Waitpoint) -> bool, reason: &str) {
        let open = std::mem::take(&mut self.execution.waits.open);
        let (closing, left): (Vec<_>, Vec<_>) = open.into_iter().partition(which);
        self.execution.waits.open = left;
        for Waitpoint { id, key, token, .. } in closing {
            let data = named(id, &key, Some(reason));
            let digest = KeyDigest::of(&key);
            let (closed_at, reason) = (self.now, reason.to_owned());
            let closed = ClosedWaitpoint { id, key, token, closed_at, reason };
            self.row(RowChange::put(closed_row(id), &closed));
            self.execution.waits.closed.push(ClosedRef { id, key: digest });
            self.event_with(EventKind::WaitpointClosed, data);
        }
        while self.execution.waits.closed.len() > limits::WAITPOINTS_CLOSED {
            let oldest = self.execution.waits.closed.remove(0);
            self.row(RowChange::remove(closed_row(oldest.id)));
        }
    }

    /// Closes pending waitpoints whose time is over.
    pub(super) fn close_unused(&mut self) {
        let now = self.now;
        let unused = |waitpoint: &Waitpoint| waitpoint.is_unused(now);
        if self.execution.waits.open.iter().any(unused) {
            self.close_waitpoints(unused, CloseReason::NeverCommitted.as_str());
        }
    }

    /// What a resume policy makes of the waitpoints of a suspension that is over.
    pub(super) fn settle_waitpoints(&mut self, suspension: &Suspension) {
        let policy = suspension.resume;
        let is_open = |waitpoint: &Waitpoint| waitpoint.state == WaitpointState::Open;
        if policy.close_waitpoint_on_resume {
            return self.close_waitpoints(is_open, CloseReason::Resumed.as_str());
        }
        let signals = self.execution.waits.signals;
        for waitpoint in self.execution.waits.open.iter_mut().filter(|w| is_open(w)) {
            waitpoint.state = WaitpointState::Pending;
            if !policy.retain_signal_buffer_until_closed {
                waitpoint.evaluate_from = signals;
                waitpoint.consumed.clear();
                waitpoint.has_buffered = false;
            } else if policy.consume_matched_signals {
                waitpoint.consumed.extend(&suspension.matched.numbers);
                waitpoint.consumed.sort_unstable();
                waitpoint.consumed.dedup();
            }
        }
    }

    /// The suspension is over: claimable again, at once or after its delay.
    pub(super) fn go_on(&mut self, how: &GoingOn<'_>) -> PublicState {
        let Phase::Suspended(suspension) = self.execution.phase.clone() else {
            return self.execution.public_state();
        };
        if how.closes_all {
            self.close_waitpoints(
                |w| w.state == WaitpointState::Open,
                CloseReason::Resumed.as_str(),
            );
        }
        self.settle_waitpoints(&suspension);
        let suspension_id = suspension.id;
        let timed_out = how.timed_out_at.map(|at| TimedOut { at, suspension_id });
        self.note_resumed(suspension.matched.clone(), timed_out);
        let until = self.now.after(how.delay_ms.unwrap_or(suspension.resume.resume_delay_ms));
        self.wait_until(until, DelayReason::Resume, Next::Resume);
        let data = EventData::from([
            ("suspension_id".to_owned(), suspension.id.to_string().as_str().into()),
            ("trigger".to_owned(), how.trigger.into()),
        ]);
        self.event_with(EventKind::Resumed, data);
        self.execution.public_state()
    }

    pub(super) fn note_resumed(&mut self, signals: Matched, timed_out: Option<TimedOut>) {
        let attempt_index = self.execution.attempt.as_ref().map_or(0, |attempt| attempt.index);
        self.execution.waits.resumed = Some(Resumed { attempt_index, signals, timed_out });
    }

    /// The time of a suspension is up.
    pub(super) fn time_out_suspension(&mut self, settings: &Settings) {
        let Phase::Suspended(suspension) = &mut self.execution.phase else { return };
        let Some(timeout) = suspension.timeout.take() else { return };
        if timeout.behavior.ends() {
            self.close_stream(StreamEnd::SuspensionTimeout);
        }
        let Phase::Suspended(suspension) = &mut self.execution.phase else { return };
        match timeout.behavior {
            TimeoutBehavior::Fail => {
                let failure = Failure {
                    reason: TIMED_OUT.to_owned(),
                    category: "timeout".to_owned(),
                    class: FailureClass::Timeout,
                };
                self.fail_for_good(failure, settings);
            }
            TimeoutBehavior::Cancel => {
                let cancellation = Cancellation {
                    reason: TIMED_OUT.to_owned(),
                    source: CancelSource::SystemTimeout,
                    from: PublicState::Suspended,
                    by_group: false,
                };
                self.cancel(cancellation, settings);
            }
            TimeoutBehavior::Expire => self.expire_because(TIMED_OUT, settings),
            TimeoutBehavior::AutoResume => {
                suspension.matched = Matched::default();
                let at = Some(self.now);
                self.go_on(&GoingOn { timed_out_at: at, ..GoingOn::because("timeout") });
            }
            TimeoutBehavior::Escalate => {
                suspension.escalated = true;
                self.event(EventKind::Escalated);
            }
        }
    }
}

/// How a suspension ends well.
pub(super) struct GoingOn<'a> {
    pub(super) trigger: &'a str,
    pub(super) timed_out_at: Option<TimestampMs>,
    /// None: as the resume policy says.
    pub(super) delay_ms: Option<u64>,
    /// Closes the waitpoints whatever the resume policy says.
    pub(super) closes_all: bool,
}

impl<'a> GoingOn<'a> {
    pub(super) fn because(trigger: &'a str) -> Self {
        Self { trigger, timed_out_at: None, delay_ms: None, closes_all: false }
    }
}

fn named(id: WaitpointId, key: &WaitpointKey, reason: Option<&str>) -> EventData {
    let texts = [
        Some(("waitpoint_id", id.to_string())),
        Some(("waitpoint_key", key.to_string())),
        reason.map(|reason| ("reason", reason.to_owned())),
    ];
    texts
        .into_iter()
        .flatten()
        .map(|(name, text)| (name.to_owned(), text.as_str().into()))
        .collect()
}
