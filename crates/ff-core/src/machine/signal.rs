//! The rules of signals: checked, kept, weighed; the one that meets the condition resumes.

use super::Facts;
use super::draft::{Draft, Halt, existing};
use super::rows::{Family, RowChange, RowKey, find};
use super::step::Step;
use super::waits::{Found, GoingOn, waitpoint_closed, waitpoint_not_found};
use crate::error::{Code, Refusal};
use crate::event::{EventData, EventKind};
use crate::id::{ExecutionId, IdempotencyKey, WaitpointId, WaitpointKey};
use crate::limits;
use crate::operation::{DeliverApproval, DeliverSignal, Message, Signalled};
use crate::state::{
    Execution, Heard, Phase, Signal, SignalEffect, Waitpoint, WaitpointState, Weight,
};
use crate::time::TimestampMs;
use crate::token::{self, Stamp};

/// Bodies up to this size stand in the row of their signal.
const INLINE_BYTES: usize = 256;

pub(super) fn deliver(
    facts: &impl Facts,
    op: &DeliverSignal,
    now: TimestampMs,
) -> Result<Step<Signalled>, Halt> {
    let draft = Draft::of(existing(facts, op.execution_id)?, now);
    let found = draft.find_waitpoint(facts, &op.waitpoint)?;
    let token = op.token.as_ref().ok_or_else(|| {
        Refusal::at(Code::MissingToken, "token", "a signal needs the waitpoint's token")
    })?;
    let keyring = facts.keyring()?;
    let check = |id: WaitpointId, stamp: &Stamp| {
        token::check(&keyring, token, stamp, op.execution_id, id, now)
    };
    match &found {
        None => token::check_unknown(&keyring, token, op.execution_id, now)?,
        Some(Found::Open(waitpoint)) => check(waitpoint.id, &waitpoint.token)?,
        Some(Found::Closed(closed)) => check(closed.id, &closed.token)?,
    }
    let found = found.ok_or_else(waitpoint_not_found)?;
    accept(facts, draft, found, &op.signal)
}

pub(super) fn approve(
    facts: &impl Facts,
    op: &DeliverApproval,
    now: TimestampMs,
) -> Result<Step<Signalled>, Halt> {
    let execution = existing(facts, op.execution_id)?;
    if let Some(lane) = op.lane.as_ref().filter(|lane| **lane != execution.about.lane) {
        let detail = format!("the execution is of lane {:?}, not {lane:?}", execution.about.lane);
        return Err(Refusal::at(Code::LaneMismatch, "lane", detail).into());
    }
    let draft = Draft::of(execution, now);
    let found = draft.find_waitpoint(facts, &op.waitpoint)?.ok_or_else(waitpoint_not_found)?;
    let message = op.message(found.id())?;
    accept(facts, draft, found, &message)
}

/// Takes a signal whose sender may send it.
fn accept(
    facts: &impl Facts,
    mut draft: Draft,
    found: Found,
    message: &Message,
) -> Result<Step<Signalled>, Halt> {
    let id = draft.execution.id;
    if let Some(key) = &message.idempotency_key
        && let Some(first) = known_signal(facts, id, key, draft.now)?
    {
        let (signal_id, effect) = (first.id, first.effect);
        return Ok(Step::unchanged(Signalled::Duplicate { signal_id, effect }));
    }
    let waitpoint = signalable(&draft.execution, found)?;
    let most = draft.execution.policy().max_signals_per_execution;
    if draft.execution.waits.signals >= most {
        let detail = format!("the execution has accepted {most} signals, its policy's limit");
        return Err(Refusal::new(Code::SignalLimitExceeded, detail).into());
    }
    let effect = draft.hear(&waitpoint, message);
    let signal_id = message.signal_id;
    Ok(Step::done(Signalled::Accepted { signal_id, effect }, draft.finish().into()))
}

/// The waitpoint, if it takes signals.
fn signalable(execution: &Execution, found: Found) -> Result<Waitpoint, Refusal> {
    if execution.waits.open.is_empty() {
        let detail = format!(
            "the execution is {} and has no open waitpoint",
            execution.public_state().as_str()
        );
        return Err(Refusal::new(Code::TargetNotSignalable, detail));
    }
    match found {
        Found::Closed(closed) => Err(waitpoint_closed(&closed)),
        Found::Open(waitpoint) => Ok(waitpoint),
    }
}

/// The signal that bore a key, while the key is remembered.
fn known_signal(
    facts: &impl Facts,
    id: ExecutionId,
    key: &IdempotencyKey,
    now: TimestampMs,
) -> Result<Option<Signal>, Halt> {
    let number: Option<u32> = find(facts, id, &RowKey::named(Family::SignalKey, key.as_str()))?;
    let Some(number) = number else { return Ok(None) };
    let signal: Option<Signal> = find(facts, id, &RowKey::numbered(Family::Signal, number))?;
    Ok(signal.filter(|signal| now.since(signal.accepted_at) < limits::SIGNAL_DEDUP_MS))
}

impl Draft {
    /// Keeps a signal and lets the condition hear it.
    fn hear(&mut self, waitpoint: &Waitpoint, message: &Message) -> SignalEffect {
        let number = self.execution.waits.signals;
        self.execution.waits.signals += 1;
        let (effect, is_met) = self.weigh(waitpoint, message, number);
        let body = &message.content.bytes;
        let is_inline = body.len() <= INLINE_BYTES;
        let signal = Signal {
            number,
            id: message.signal_id,
            waitpoint_id: waitpoint.id,
            waitpoint_key: waitpoint.key.clone(),
            name: message.name.clone(),
            category: message.category.clone(),
            source_type: message.source_type.clone(),
            source_identity: message.source_identity.clone(),
            correlation_id: message.correlation_id.clone(),
            idempotency_key: message.idempotency_key.clone(),
            accepted_at: self.now,
            effect,
            content_type: message.content.content_type.clone(),
            bytes: u32::try_from(body.len()).unwrap_or(u32::MAX),
            body: is_inline.then(|| body.clone()),
        };
        self.row(RowChange::put(RowKey::numbered(Family::Signal, number), &signal));
        if !is_inline {
            let key = RowKey::numbered(Family::SignalBody, number);
            self.row(RowChange { key, bytes: Some(body.clone()) });
        }
        if let Some(key) = &message.idempotency_key {
            self.row(RowChange::put(RowKey::named(Family::SignalKey, key.as_str()), &number));
        }
        self.event_with(EventKind::SignalAccepted, told(&signal, &waitpoint.key));
        if is_met {
            self.go_on(&GoingOn::because("signal"));
        }
        effect
    }

    /// What a signal is to the suspension, and whether its condition is met now.
    fn weigh(
        &mut self,
        waitpoint: &Waitpoint,
        message: &Message,
        number: u32,
    ) -> (SignalEffect, bool) {
        let open = self.execution.waits.open.iter_mut();
        for kept in open.filter(|other| other.id == waitpoint.id) {
            kept.has_buffered = true;
        }
        let Phase::Suspended(suspension) = &mut self.execution.phase else {
            return (SignalEffect::BufferedForPendingWaitpoint, false);
        };
        if waitpoint.state == WaitpointState::Pending {
            return (SignalEffect::BufferedForPendingWaitpoint, false);
        }
        suspension.note_heard(&message.name);
        let heard = Heard {
            id: message.signal_id,
            waitpoint: &waitpoint.key,
            name: &message.name,
            source_type: &message.source_type,
            source_identity: &message.source_identity,
        };
        let effect = match suspension.condition.weigh(&mut suspension.tally, &heard) {
            Weight::NotNamed => SignalEffect::IgnoredNotInCondition,
            Weight::NotMatched => SignalEffect::IgnoredMatcherFailed,
            Weight::NothingNew => SignalEffect::AppendedToWaitpointDuplicate,
            Weight::Counted => SignalEffect::AppendedToWaitpoint,
        };
        if effect != SignalEffect::AppendedToWaitpoint {
            return (effect, false);
        }
        suspension.matched.add(number, message.content.bytes.len());
        if suspension.condition.is_met(&suspension.tally) {
            (SignalEffect::ResumeConditionSatisfied, true)
        } else {
            (effect, false)
        }
    }
}

fn told(signal: &Signal, key: &WaitpointKey) -> EventData {
    EventData::from([
        ("signal_id".to_owned(), signal.id.to_string().as_str().into()),
        ("name".to_owned(), signal.name.as_str().into()),
        ("waitpoint_key".to_owned(), key.as_str().into()),
        ("effect".to_owned(), signal.effect.as_str().into()),
    ])
}
