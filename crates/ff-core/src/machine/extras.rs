//! What a task is told of its suspension and of its flow.

use bytes::Bytes;

use super::draft::Halt;
use super::facts::{Facts, Needs};
use super::flow;
use super::rows::{Family, RowKey, find};
use crate::error::Refusal;
use crate::id::{ContentType, ExecutionId, LeaseFence, SignalId, SignalName};
use crate::limits;
use crate::operation::{Extras, ResumeSignal};
use crate::read::{ListSignals, ListedSignal, Signals};
use crate::state::{Execution, Signal, TimedOut};

const TIMEOUT_SIGNAL: &str = "__timeout__";

/// What goes along with the current attempt: nothing, unless it was resumed or waited for others.
/// Bodies come along as long as all of it has at most `most` bytes.
pub fn extras(
    facts: &impl Facts,
    execution: &Execution,
    most: usize,
) -> Result<Result<Extras, Refusal>, Needs> {
    settled(load(facts, execution, most))
}

/// The signals that resumed the attempt of a fence.
pub(super) fn observe_signals(
    facts: &impl Facts,
    execution: &Execution,
    fence: &LeaseFence,
) -> Result<Vec<ResumeSignal>, Halt> {
    let attempt = execution.attempt.as_ref().map(|attempt| attempt.id);
    if attempt != Some(fence.attempt_id) {
        return Ok(Vec::new());
    }
    Ok(load(facts, execution, limits::CLAIM_REPLY_BYTES)?.resume_signals)
}

/// A page of all signals that an execution has accepted.
pub(super) fn list_signals(
    facts: &impl Facts,
    execution: &Execution,
    query: &ListSignals,
) -> Result<Signals, Halt> {
    let end = execution.waits.signals.min(query.from.saturating_add(query.limit));
    let numbers: Vec<u32> = (query.from..end).collect();
    let mut items = Vec::with_capacity(numbers.len());
    for (signal, payload) in found(facts, execution.id, &numbers, limits::CLAIM_REPLY_BYTES)? {
        items.push(ListedSignal {
            number: signal.number,
            waitpoint_id: signal.waitpoint_id,
            waitpoint_key: signal.waitpoint_key.clone(),
            effect: signal.effect,
            signal: ResumeSignal::of(signal, payload),
        });
    }
    Ok(Signals { items, next: (end < execution.waits.signals).then_some(end) })
}

/// Sorts what stopped a rule: a refusal is an answer, lacking facts are not.
pub(super) fn settled<T>(result: Result<T, Halt>) -> Result<Result<T, Refusal>, Needs> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(Halt::Needs(needs)) => Err(needs),
        Err(Halt::Refused(refused)) => Ok(Err(refused.0)),
    }
}

fn load(facts: &impl Facts, execution: &Execution, most: usize) -> Result<Extras, Halt> {
    let mut extras = Extras { inputs: flow::inputs(facts, execution, most)?, ..Extras::default() };
    let Some(attempt) = &execution.attempt else { return Ok(extras) };
    if execution.waits.metadata_of(attempt.index).is_some() {
        extras.metadata = facts.row(&execution.id.into(), &RowKey::named(Family::Metadata, ""))?;
    }
    let Some(resumed) = execution.waits.resumed_of(attempt.index) else { return Ok(extras) };
    let most = most.saturating_sub(extras.bytes());
    let signals = found(facts, execution.id, &resumed.signals.numbers, most)?.into_iter();
    extras.resume_signals = signals.map(|(signal, body)| ResumeSignal::of(signal, body)).collect();
    extras.resume_signals.extend(resumed.timed_out.and_then(timeout_signal));
    Ok(extras)
}

/// Signals by their numbers, with as many bodies as one reply holds.
fn found(
    facts: &impl Facts,
    id: ExecutionId,
    numbers: &[u32],
    most: usize,
) -> Result<Vec<(Signal, Option<Bytes>)>, Halt> {
    let keys: Vec<_> = numbers.iter().map(|n| RowKey::numbered(Family::Signal, *n)).collect();
    facts.want_rows(&id.into(), &keys)?;
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        found.extend(find::<Signal>(facts, id, &key)?);
    }
    let mut left = most;
    let mut fits = |signal: &Signal| {
        let bytes = signal.bytes as usize;
        let fits = bytes <= left;
        // The first that does not fit ends it: a receiver has bodies up to a signal.
        left = left.saturating_sub(bytes);
        fits
    };
    let found: Vec<_> = found.into_iter().map(|signal| (fits(&signal), signal)).collect();
    let beside = |(fits, signal): &&(bool, Signal)| *fits && signal.body.is_none();
    let wanted: Vec<_> = found.iter().filter(beside).map(|(_, signal)| body_row(signal)).collect();
    facts.want_rows(&id.into(), &wanted)?;
    let mut signals = Vec::with_capacity(found.len());
    for (fits, signal) in found {
        let payload = match &signal.body {
            _ if !fits => None,
            Some(body) => Some(body.clone()),
            None => facts.row(&id.into(), &body_row(&signal))?,
        };
        signals.push((signal, payload));
    }
    Ok(signals)
}

fn body_row(signal: &Signal) -> RowKey {
    RowKey::numbered(Family::SignalBody, signal.number)
}

/// The signal that time sends.
fn timeout_signal(timed_out: TimedOut) -> Option<ResumeSignal> {
    Some(ResumeSignal {
        signal_id: SignalId::new(timed_out.suspension_id.uuid()),
        name: SignalName::new(TIMEOUT_SIGNAL).ok()?,
        category: "timeout".to_owned(),
        source_type: "system".to_owned(),
        source_identity: String::new(),
        correlation_id: None,
        accepted_at: timed_out.at,
        content_type: ContentType::default(),
        bytes: 0,
        payload: Some(Bytes::new()),
    })
}

impl ResumeSignal {
    pub fn of(signal: Signal, payload: Option<Bytes>) -> Self {
        Self {
            signal_id: signal.id,
            name: signal.name,
            category: signal.category,
            source_type: signal.source_type,
            source_identity: signal.source_identity,
            correlation_id: signal.correlation_id,
            accepted_at: signal.accepted_at,
            content_type: signal.content_type,
            bytes: signal.bytes,
            payload,
        }
    }
}
