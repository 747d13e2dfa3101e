//! The stored form of events. Fixed places first, so that functions can follow the chain and build
//! the event of a claim: kind 1, uuid 16, time 6, seq 4, number of the event before 6, attempt
//! index 4, epoch 4, outcome 1; then namespace, lane and instance with their lengths, then data.

use bytes::Bytes;
use ff_core::error::EngineError;
use ff_core::event::{Event, EventData, EventKind};
use ff_core::id::{ExecutionId, LaneId, Namespace, WorkerInstanceId};
use ff_core::state::{AttemptType, Outcome};
use ff_core::time::TimestampMs;
use uuid::Uuid;

use crate::record::{push_uint, uint};

const FIXED_BYTES: usize = 42;
const NO_ATTEMPT: u32 = u32::MAX;

/// Stands for the number before an event's own, which is not known when it is sent.
pub(crate) const THE_ONE_BEFORE: u64 = (1 << 48) - 1;

const OUTCOMES: [Outcome; 5] =
    [Outcome::Success, Outcome::Failed, Outcome::Cancelled, Outcome::Expired, Outcome::Skipped];

/// The events of one step, each preceded by its length.
pub(crate) fn encode_all(events: &[Event]) -> Result<Vec<u8>, EngineError> {
    let mut framed = Vec::with_capacity(112 * events.len());
    for (at, event) in events.iter().enumerate() {
        let previous = if at == 0 { event.previous } else { THE_ONE_BEFORE };
        let bytes = encode(event, previous)?;
        push_uint(&mut framed, bytes.len() as u64, 3);
        framed.extend_from_slice(&bytes);
    }
    Ok(framed)
}

fn encode(event: &Event, previous: u64) -> Result<Vec<u8>, EngineError> {
    let mut bytes = Vec::with_capacity(96);
    bytes.push(event.kind.code());
    bytes.extend_from_slice(event.subject.uuid().as_bytes());
    push_uint(&mut bytes, event.time.0.unsigned_abs(), 6);
    push_uint(&mut bytes, event.seq, 4);
    push_uint(&mut bytes, previous, 6);
    push_uint(&mut bytes, event.attempt_index.unwrap_or(NO_ATTEMPT).into(), 4);
    push_uint(&mut bytes, event.lease_epoch.unwrap_or(0), 4);
    let outcome = event.outcome.and_then(|o| OUTCOMES.iter().position(|known| *known == o));
    push_uint(&mut bytes, outcome.map_or(0, |place| place as u64 + 1), 1);
    push_names(&mut bytes, &event.namespace, &event.lane, event.worker_instance_id.as_ref());
    if event.kind == EventKind::Claimed {
        // As the function writes it.
        let kind = event.data.get("attempt_type").and_then(attempt_type);
        bytes.push(kind.unwrap_or(AttemptType::Initial).code());
        return Ok(bytes);
    }
    if event.data.is_empty() {
        return Ok(bytes);
    }
    postcard::to_extend(&event.data, bytes)
        .map_err(|error| EngineError::bug(format!("event does not encode: {error}")))
}

fn attempt_type(detail: &ff_core::event::Detail) -> Option<AttemptType> {
    let ff_core::event::Detail::Text(text) = detail else { return None };
    AttemptType::ALL.into_iter().find(|kind| kind.as_str() == text)
}

/// Outcome, names and instance of an event of a claim: what stands between its numbers and its
/// data.
pub(crate) fn claimed_tail(
    namespace: &Namespace,
    lane: &LaneId,
    instance: &WorkerInstanceId,
) -> Vec<u8> {
    let mut bytes = vec![0];
    push_names(&mut bytes, namespace, lane, Some(instance));
    bytes
}

fn push_names(
    bytes: &mut Vec<u8>,
    namespace: &Namespace,
    lane: &LaneId,
    instance: Option<&WorkerInstanceId>,
) {
    let namespace = if *namespace == Namespace::default() { "" } else { namespace.as_str() };
    let instance = instance.map_or("", |instance| instance.as_str());
    for (text, width) in [(namespace, 1), (lane.as_str(), 1), (instance, 2)] {
        push_uint(bytes, text.len() as u64, width);
        bytes.extend_from_slice(text.as_bytes());
    }
}

/// Reads an event of `partition` whose number is known from its place in the stream.
pub(crate) fn decode(partition: u16, number: u64, bytes: &[u8]) -> Result<Event, EngineError> {
    parse(partition, number, bytes)
        .ok_or_else(|| EngineError::corruption(format!("event {partition}-{number} is broken")))
}

fn parse(partition: u16, number: u64, bytes: &[u8]) -> Option<Event> {
    let (fixed, mut rest) = bytes.split_at_checked(FIXED_BYTES)?;
    let kind = EventKind::from_code(fixed[0])?;
    let attempt_index = u32::try_from(uint(&fixed[33..37])).ok()?;
    let epoch = uint(&fixed[37..41]);
    let namespace = take_text(&mut rest, 1)?;
    let lane = take_text(&mut rest, 1)?;
    let instance = take_text(&mut rest, 2)?;
    let namespace =
        if namespace.is_empty() { Namespace::default() } else { Namespace::new(namespace).ok()? };
    let data = match (kind, rest) {
        (EventKind::Claimed, [code]) => {
            let attempt = AttemptType::from_code(*code)?;
            EventData::from([("attempt_type".to_owned(), attempt.as_str().into())])
        }
        (_, []) => EventData::new(),
        (_, data) => postcard::from_bytes(data).ok()?,
    };
    Some(Event {
        number,
        previous: match uint(&fixed[27..33]) {
            THE_ONE_BEFORE => number.saturating_sub(1),
            previous => previous,
        },
        subject: ExecutionId::new(partition, Uuid::from_slice(&fixed[1..17]).ok()?),
        namespace,
        lane: LaneId::new(lane).ok()?,
        seq: uint(&fixed[23..27]),
        kind,
        time: TimestampMs(uint(&fixed[17..23]).cast_signed()),
        attempt_index: (attempt_index != NO_ATTEMPT).then_some(attempt_index),
        lease_epoch: (epoch > 0).then_some(epoch),
        worker_instance_id: if instance.is_empty() {
            None
        } else {
            Some(WorkerInstanceId::new(instance).ok()?)
        },
        outcome: match fixed[41] {
            0 => None,
            place => Some(*OUTCOMES.get(usize::from(place) - 1)?),
        },
        data,
    })
}

fn take_text<'a>(rest: &mut &'a [u8], width: usize) -> Option<&'a str> {
    let (length, behind) = rest.split_at_checked(width)?;
    let (text, behind) = behind.split_at_checked(usize::try_from(uint(length)).ok()?)?;
    *rest = behind;
    std::str::from_utf8(text).ok()
}

/// How many numbers an entry of a stream has; its last event has the highest of them. A call writes
/// no more events than this into a partition's log.
pub(crate) const NUMBERS: u64 = 256;

/// The entry that holds the event with a number.
pub(crate) fn entry_of(number: u64) -> u64 {
    number.div_ceil(NUMBERS)
}

/// The events of one entry of a stream, whose last has this number.
pub(crate) fn decode_entry(
    partition: u16,
    last: u64,
    entry: &Bytes,
) -> Result<Vec<Event>, EngineError> {
    let mut events = Vec::new();
    let mut rest = &entry[..];
    while !rest.is_empty() {
        let broken = || EngineError::corruption(format!("log of {partition} is broken at {last}"));
        let (length, behind) = rest.split_at_checked(3).ok_or_else(broken)?;
        let length = usize::try_from(uint(length)).map_err(|_| broken())?;
        let (event, behind) = behind.split_at_checked(length).ok_or_else(broken)?;
        events.push(event);
        rest = behind;
    }
    let first = (last + 1).saturating_sub(events.len() as u64);
    let numbered = events.into_iter().zip(first..);
    numbered.map(|(event, number)| decode(partition, number, event)).collect()
}
