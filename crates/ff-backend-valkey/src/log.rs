//! The stored form of events. Fixed places first, so that functions can follow the chain and build
//! the event of a claim: kind 1, uuid 16, time 6, seq 4, number of the event before 6, attempt
//! index 4, epoch 4, outcome 1; then namespace, lane and instance with their lengths, then data.
//! The highest bit of the kind marks an event about a document, whose kind stands behind the fixed
//! places, and its name with its length unless it is the uuid.

use bytes::Bytes;
use ff_core::error::EngineError;
use ff_core::event::{Event, EventData, EventKind};
use ff_core::id::{DocumentId, ExecutionId, Home, LaneId, Namespace, Subject, WorkerInstanceId};
use ff_core::state::{AttemptType, Outcome};
use ff_core::time::TimestampMs;
use sha1::{Digest as _, Sha1};
use uuid::Uuid;

use crate::record::{push_uint, uint};
use crate::subject::{code, kind_of, uuid_of};

const FIXED_BYTES: usize = 42;
const DOCUMENT: u8 = 0x80;
const NO_ATTEMPT: u32 = u32::MAX;

/// Stands for the number before an event's own, which is not known when it is sent.
pub(crate) const THE_ONE_BEFORE: u64 = (1 << 48) - 1;

const OUTCOMES: [Outcome; 5] =
    [Outcome::Success, Outcome::Failed, Outcome::Cancelled, Outcome::Expired, Outcome::Skipped];

/// The events of one item, each preceded by its length.
pub(crate) fn encode_all(events: &[&Event]) -> Result<Vec<u8>, EngineError> {
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
    let (mark, uuid) = match &event.subject {
        Subject::Execution(id) => (0, id.uuid()),
        Subject::Document(id) => (DOCUMENT, uuid_of(id).unwrap_or_default()),
    };
    bytes.push(event.kind.code() | mark);
    bytes.extend_from_slice(uuid.as_bytes());
    push_uint(&mut bytes, event.time.0.unsigned_abs(), 6);
    push_uint(&mut bytes, event.seq, 4);
    push_uint(&mut bytes, previous, 6);
    push_uint(&mut bytes, event.attempt_index.unwrap_or(NO_ATTEMPT).into(), 4);
    push_uint(&mut bytes, event.lease_epoch.unwrap_or(0), 4);
    let outcome = event.outcome.and_then(|o| OUTCOMES.iter().position(|known| *known == o));
    push_uint(&mut bytes, outcome.map_or(0, |place| place as u64 + 1), 1);
    if let Subject::Document(id) = &event.subject {
        bytes.push(code(id.kind));
        push_text(&mut bytes, if uuid_of(id).is_some() { "" } else { &id.name }, 2);
    }
    push_names(
        &mut bytes,
        &event.namespace,
        event.lane.as_ref(),
        event.worker_instance_id.as_ref(),
    );
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
    push_names(&mut bytes, namespace, Some(lane), Some(instance));
    bytes
}

fn push_names(
    bytes: &mut Vec<u8>,
    namespace: &Namespace,
    lane: Option<&LaneId>,
    instance: Option<&WorkerInstanceId>,
) {
    let namespace = if *namespace == Namespace::default() { "" } else { namespace.as_str() };
    let instance = instance.map_or("", |instance| instance.as_str());
    push_text(bytes, namespace, 1);
    push_text(bytes, lane.map_or("", |lane| lane.as_str()), 1);
    push_text(bytes, instance, 2);
}

fn push_text(bytes: &mut Vec<u8>, text: &str, width: usize) {
    push_uint(bytes, text.len() as u64, width);
    bytes.extend_from_slice(text.as_bytes());
}

/// Reads an event of a home's log whose number is known from its place in the stream.
pub(crate) fn decode(home: &Home, number: u64, bytes: &[u8]) -> Result<Event, EngineError> {
    parse(home, number, bytes)
        .ok_or_else(|| EngineError::corruption(format!("event {}-{number} is broken", home.log())))
}

/// What an event is about. `rest` is what follows the fixed places.
fn parse_subject(home: &Home, fixed: &[u8], rest: &mut &[u8]) -> Option<Subject> {
    let uuid = Uuid::from_slice(&fixed[1..17]).ok()?;
    if fixed[0] & DOCUMENT == 0 {
        return Some(ExecutionId::new(home.flow_partition()?, uuid).into());
    }
    let (code, behind) = rest.split_first()?;
    *rest = behind;
    let name = match take_text(rest, 2)? {
        "" => uuid.to_string(),
        name => name.to_owned(),
    };
    let id = DocumentId { kind: kind_of(*code)?, home: home.clone(), name: name.into() };
    Some(id.into())
}

fn parse(home: &Home, number: u64, bytes: &[u8]) -> Option<Event> {
    let (fixed, mut rest) = bytes.split_at_checked(FIXED_BYTES)?;
    let kind = EventKind::from_code(fixed[0] & !DOCUMENT)?;
    let subject = parse_subject(home, fixed, &mut rest)?;
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
        subject,
        namespace,
        lane: LaneId::new(lane).ok(),
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

/// How much of an entry its mark is made of: how long its first event is, what it is about, when it was
/// and its place among the events of its subject.
pub(crate) const MARKED_BYTES: usize = 30;

/// Tells entries of one number apart, in few bytes: a log that lost its last entries gives their numbers to
/// others.
pub(crate) type Mark = [u8; 2];

/// The mark of an entry, as the functions make it.
pub(crate) fn mark_of(entry: &[u8]) -> Mark {
    let mut digest = Sha1::new();
    digest.update(format!("{}:", entry.len()));
    digest.update(&entry[..entry.len().min(MARKED_BYTES)]);
    let digest: [u8; 20] = digest.finalize().into();
    [digest[0], digest[1]]
}

/// The events of one entry of a stream, whose last has this number.
pub(crate) fn decode_entry(
    home: &Home,
    last: u64,
    entry: &Bytes,
) -> Result<Vec<Event>, EngineError> {
    let mut events = Vec::new();
    let mut rest = &entry[..];
    while !rest.is_empty() {
        let broken = || EngineError::corruption(format!("log of {home} is broken at {last}"));
        let (length, behind) = rest.split_at_checked(3).ok_or_else(broken)?;
        let length = usize::try_from(uint(length)).map_err(|_| broken())?;
        let (event, behind) = behind.split_at_checked(length).ok_or_else(broken)?;
        events.push(event);
        rest = behind;
    }
    let first = (last + 1).saturating_sub(events.len() as u64);
    let numbered = events.into_iter().zip(first..);
    numbered.map(|(event, number)| decode(home, number, event)).collect()
}

#[cfg(test)]
mod tests {
    use ff_core::id::FlowId;
    use ff_core::partition::PartitionConfig;

    use super::*;

    fn event(subject: Subject) -> Event {
        Event {
            number: 512,
            previous: 7,
            subject,
            namespace: Namespace::default(),
            lane: None,
            seq: 3,
            kind: EventKind::FlowChanged,
            time: TimestampMs(1_700_000_000_000),
            attempt_index: None,
            lease_epoch: None,
            worker_instance_id: None,
            outcome: None,
            data: EventData::from([("reason".to_owned(), "why".into())]),
        }
    }

    #[test]
    fn events_of_executions_and_documents_come_back() {
        let flow = DocumentId::flow(FlowId::new(Uuid::from_u128(5)), &PartitionConfig::default());
        let named = DocumentId { name: "by another name".into(), ..flow.clone() };
        let partition = flow.home.flow_partition().unwrap_or_default();
        let execution = ExecutionId::new(partition, Uuid::from_u128(6));
        for subject in [execution.into(), Subject::from(&flow), Subject::from(&named)] {
            let event = event(subject);
            let bytes = encode(&event, event.previous);
            assert_eq!(bytes.and_then(|bytes| decode(&flow.home, 512, &bytes)), Ok(event));
        }
    }
}
