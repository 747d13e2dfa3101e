//! The stored form of an execution: a head that functions read, then a body only for us.
//!
//! A claim is made by a function, which knows nothing of the body: it notes in short who took the
//! execution and when. Whoever reads the record works the lease out with the machine's own rule.
//! `lua/lib/record.lua` describes the head.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use ff_core::content::Content;
use ff_core::error::EngineError;
use ff_core::id::{
    ContentType, ExecutionId, Kind, LaneId, LeaseId, Namespace, WorkerId, WorkerInstanceId,
};
use ff_core::machine::{Changed, LeaseTerms, lease, set_aside};
use ff_core::policy::{Policy, Retention};
use ff_core::state::{
    About, Attempt, AttemptType, Counts, Execution, Failure, LastEnd, LeaseLoss, Member, Next,
    Owed, Phase, Progress, Waits,
};
use ff_core::tags::Tags;
use ff_core::time::TimestampMs;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Raised whenever the form of the record changes.
const VERSION: u8 = 10;

/// Payloads and results up to this size stand in the record: one key less, and one read less.
pub(crate) const INLINE_BYTES: usize = 256;

/// Bytes of the number of the newest event, with which a record begins.
pub(crate) const NUMBER_BYTES: usize = 6;

const HEAD_BYTES: usize = 28;
const LIMITS_BYTES: usize = 24;
const LIMITED: u8 = 1;
const PAYLOAD_BESIDE: u8 = 2;
const MEMBER: u8 = 4;
const MEMBER_BYTES: usize = 16;
const RESUMES: u8 = 8;
const UNDER_LIMITS: u8 = 16;

/// An execution with what its record carries along.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) execution: Arc<Execution>,
    /// None: it stands in a key of its own.
    pub(crate) payload: Option<Bytes>,
    /// The newest result that is small enough, with the index of its attempt.
    pub(crate) result: Option<(u32, Content)>,
    /// An attempt that a noted claim has replaced and that is not in the list of attempts yet.
    pub(crate) unlisted: Option<Attempt>,
}

/// Where a payload or result of this size belongs.
pub(crate) fn is_inline(bytes: &[u8]) -> bool {
    bytes.len() <= INLINE_BYTES
}

/// Everything but what the head and the key say. Defaults are left out.
#[derive(Serialize, Deserialize)]
struct Body<'a> {
    namespace: Option<Cow<'a, Namespace>>,
    lane: Cow<'a, LaneId>,
    kind: Cow<'a, Kind>,
    content_type: Option<Cow<'a, ContentType>>,
    creator_identity: Cow<'a, str>,
    created_at: TimestampMs,
    execution_deadline_at: Option<TimestampMs>,
    trace_context: Option<Cow<'a, str>>,
    policy: Option<Cow<'a, Policy>>,
    retention: Option<Cow<'a, Retention>>,
    priority: u16,
    tags: Cow<'a, Tags>,
    deadline_at: Option<TimestampMs>,
    lease_epoch: u64,
    counts: Counts,
    started_at: Option<TimestampMs>,
    attempt: Option<Cow<'a, Attempt>>,
    failure: Option<Cow<'a, Failure>>,
    progress: Option<Cow<'a, Progress>>,
    last_end: Option<LastEnd>,
    last_loss: Option<LeaseLoss>,
    last_capability_mismatch_at: Option<TimestampMs>,
    last_transition_at: TimestampMs,
    waits: Option<Cow<'a, Waits>>,
    owed: Option<Cow<'a, Owed>>,
    member: Option<Cow<'a, Member>>,
    phase: Cow<'a, Phase>,
    payload: Option<Cow<'a, [u8]>>,
    result: Option<(u32, Cow<'a, Content>)>,
}

fn unless_default<T: Default + PartialEq + Clone>(value: &T) -> Option<Cow<'_, T>> {
    (*value != T::default()).then_some(Cow::Borrowed(value))
}

fn or_default<T: Default + Clone>(value: Option<Cow<'_, T>>) -> T {
    value.map(Cow::into_owned).unwrap_or_default()
}

impl Entry {
    /// The whole record. With an event the store fills in the first bytes (see [`NUMBER_BYTES`]).
    pub(crate) fn encode(&self) -> Result<Vec<u8>, EngineError> {
        let mut record = Vec::with_capacity(256);
        self.encode_head(&mut record);
        record.push(VERSION);
        postcard::to_extend(&self.body(), record)
            .map_err(|error| EngineError::bug(format!("record does not encode: {error}")))
    }

    fn encode_head(&self, record: &mut Vec<u8>) {
        let execution = &*self.execution;
        let (index, kind) = next_attempt(execution);
        let limits = limits_of_claim(execution);
        let mut flags = 0;
        let is_limited = limits != [0; 4];
        if is_limited {
            flags |= LIMITED;
        }
        if self.payload.is_none() {
            flags |= PAYLOAD_BESIDE;
        }
        if execution.member.is_some() {
            flags |= MEMBER;
            flags |= if resumes(execution) { RESUMES } else { 0 };
        }
        if !execution.policy().attached.is_empty() {
            flags |= UNDER_LIMITS;
        }
        push_uint(record, execution.last_event, 6);
        push_uint(record, execution.revision, 6);
        push_uint(record, execution.event_seq, 4);
        push_uint(record, execution.lease_epoch, 4);
        push_uint(record, index.into(), 4);
        record.extend([kind.code(), flags, 0, 0]);
        if is_limited {
            limits.iter().for_each(|limit| push_uint(record, *limit, 6));
        }
        if let Some(member) = &execution.member {
            record.extend_from_slice(member.flow_id.uuid().as_bytes());
        }
    }

    fn body(&self) -> Body<'_> {
        // Named one by one: a field that is added must be stored.
        let Execution {
            id: _,
            revision: _,
            event_seq: _,
            last_event: _,
            about,
            priority,
            tags,
            deadline_at,
            lease_epoch,
            counts,
            started_at,
            attempt,
            failure,
            progress,
            last_end,
            last_loss,
            last_capability_mismatch_at,
            last_transition_at,
            waits,
            owed,
            member,
            phase,
        } = &*self.execution;
        Body {
            namespace: unless_default(&about.namespace),
            lane: Cow::Borrowed(&about.lane),
            kind: Cow::Borrowed(&about.kind),
            content_type: unless_default(&about.content_type),
            creator_identity: Cow::Borrowed(&about.creator_identity),
            created_at: about.created_at,
            execution_deadline_at: about.execution_deadline_at,
            trace_context: about.trace_context.as_deref().map(Cow::Borrowed),
            policy: unless_default(&*about.policy),
            retention: unless_default(&about.retention),
            priority: *priority,
            tags: Cow::Borrowed(tags),
            deadline_at: *deadline_at,
            lease_epoch: *lease_epoch,
            counts: *counts,
            started_at: *started_at,
            attempt: attempt.as_ref().map(Cow::Borrowed),
            failure: failure.as_ref().map(Cow::Borrowed),
            progress: progress.as_ref().map(Cow::Borrowed),
            last_end: last_end.clone(),
            last_loss: *last_loss,
            last_capability_mismatch_at: *last_capability_mismatch_at,
            last_transition_at: *last_transition_at,
            waits: unless_default(waits),
            owed: owed.as_deref().map(Cow::Borrowed),
            member: member.as_deref().map(Cow::Borrowed),
            phase: Cow::Borrowed(phase),
            payload: self.payload.as_deref().map(Cow::Borrowed),
            result: self.result.as_ref().map(|(index, content)| (*index, Cow::Borrowed(content))),
        }
    }

    /// Reads a record, and works out a claim that is noted in it.
    pub(crate) fn decode(id: ExecutionId, record: &[u8]) -> Result<Self, EngineError> {
        Self::decode_claimed(id, record).map(|(entry, _)| entry)
    }

    /// The same, and what the noted claim has changed; what came of it is the entry.
    pub(crate) fn decode_claimed(
        id: ExecutionId,
        record: &[u8],
    ) -> Result<(Self, Option<Changed>), EngineError> {
        let broken = |detail: &str| EngineError::corruption(format!("record of {id}: {detail}"));
        let Some((head, mut rest)) = record.split_at_checked(HEAD_BYTES) else {
            return Err(broken("it is too short"));
        };
        for (flag, bytes) in [(LIMITED, LIMITS_BYTES), (MEMBER, MEMBER_BYTES)] {
            if head[25] & flag != 0 {
                rest = rest.get(bytes..).ok_or_else(|| broken("it is too short"))?;
            }
        }
        let noted_bytes = usize::from(u16::from_be_bytes([head[26], head[27]]));
        let Some((noted, body)) = rest.split_at_checked(noted_bytes) else {
            return Err(broken("its claim is too short"));
        };
        let body = match body.split_first() {
            Some((&VERSION, body)) => body,
            other => {
                let found = other.map(|(version, _)| *version);
                return Err(broken(&format!("version {found:?}, this build reads {VERSION}")));
            }
        };
        let body: Body<'_> = postcard::from_bytes(body)
            .map_err(|error| broken(&format!("it does not decode: {error}")))?;
        let noted = match noted {
            [] => None,
            noted => Some(Noted::decode(noted).ok_or_else(|| broken("its claim is broken"))?),
        };
        let mut entry = Self {
            payload: body.payload.as_deref().map(Bytes::copy_from_slice),
            result: body.result.as_ref().map(|(n, content)| (*n, Content::clone(content))),
            unlisted: None,
            execution: Arc::new(body.into_execution(id)),
        };
        let execution = Arc::make_mut(&mut entry.execution);
        let (revisions, events) = noted.as_ref().map_or((0, 0), Noted::counts);
        execution.revision = uint(&head[6..12]) - revisions;
        execution.event_seq = uint(&head[12..16]) - events;
        let mut changed = noted.map(|noted| noted.work_out(Arc::clone(&entry.execution)));
        if let Some(changed) = &mut changed {
            entry.unlisted = changed.archived.take();
            entry.execution = changed.after.take().ok_or_else(|| broken("a claim removed it"))?;
        }
        Arc::make_mut(&mut entry.execution).last_event = uint(&head[..6]);
        Ok((entry, changed))
    }

    /// The result of the newest attempt, if it stands in the record.
    pub(crate) fn newest_result(&self) -> Option<&Content> {
        let newest = self.execution.attempt.as_ref()?.index;
        self.result.as_ref().filter(|(index, _)| *index == newest).map(|(_, content)| content)
    }

    /// The bytes by which a commit finds that nothing has changed.
    pub(crate) fn stand(&self) -> Vec<u8> {
        stand(self.execution.last_event, self.execution.revision)
    }
}

/// How a record begins: its newest event, and its revision. No two states of one id begin alike, not even
/// if one was removed and another made in its place.
pub(crate) fn stand(last_event: u64, revision: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(12);
    push_uint(&mut bytes, last_event, 6);
    push_uint(&mut bytes, revision, 6);
    bytes
}

impl Body<'_> {
    fn into_execution(self, id: ExecutionId) -> Execution {
        let policy = match self.policy {
            Some(policy) => Arc::new(policy.into_owned()),
            None => Policy::shared_default(),
        };
        Execution {
            id,
            revision: 0,
            event_seq: 0,
            last_event: 0,
            about: Arc::new(About {
                namespace: or_default(self.namespace),
                lane: self.lane.into_owned(),
                kind: self.kind.into_owned(),
                content_type: or_default(self.content_type),
                creator_identity: self.creator_identity.into_owned(),
                created_at: self.created_at,
                execution_deadline_at: self.execution_deadline_at,
                trace_context: self.trace_context.map(Cow::into_owned),
                policy,
                retention: or_default(self.retention),
            }),
            priority: self.priority,
            tags: self.tags.into_owned(),
            deadline_at: self.deadline_at,
            lease_epoch: self.lease_epoch,
            counts: self.counts,
            started_at: self.started_at,
            attempt: self.attempt.map(Cow::into_owned),
            failure: self.failure.map(Cow::into_owned),
            progress: self.progress.map(Cow::into_owned),
            last_end: self.last_end,
            last_loss: self.last_loss,
            last_capability_mismatch_at: self.last_capability_mismatch_at,
            last_transition_at: self.last_transition_at,
            waits: or_default(self.waits),
            owed: self.owed.map(|owed| Box::new(owed.into_owned())),
            member: self.member.map(|member| Box::new(member.into_owned())),
            phase: self.phase.into_owned(),
        }
    }
}

/// Whether the next claim goes on with an open attempt.
fn resumes(execution: &Execution) -> bool {
    matches!(&execution.phase, Phase::Runnable(runnable) if runnable.next == Next::Resume)
}

/// Index and type of the attempt that the next claim opens or continues.
fn next_attempt(execution: &Execution) -> (u32, AttemptType) {
    match (&execution.phase, &execution.attempt) {
        (Phase::Runnable(runnable), Some(attempt)) if runnable.next == Next::Resume => {
            (attempt.index, attempt.kind)
        }
        (Phase::Runnable(runnable), _) => (execution.counts.attempts, runnable.next.opens()),
        _ => (0, AttemptType::Initial),
    }
}

/// Deadline, one more than what the next lease has left of its attempt's time, when a pending
/// waitpoint closes or a debt is told again, and bytes that the next task carries besides its
/// payload; 0 for none.
fn limits_of_claim(execution: &Execution) -> [u64; 4] {
    let Phase::Runnable(runnable) = &execution.phase else { return [0; 4] };
    let instant = |at: Option<TimestampMs>| at.map_or(0, |at| at.0.max(1).unsigned_abs());
    let (used, extras) = match (runnable.next, &execution.attempt) {
        (Next::Resume, Some(attempt)) => (attempt.active_ms, execution.extras_bytes()),
        _ => (0, 0),
    };
    let timeout = execution.policy().timeout.attempt_timeout_ms;
    let left = timeout.map_or(0, |timeout| timeout.saturating_sub(used) + 1);
    let told = execution.owed.as_ref().map(|owed| owed.due_at);
    let closing = [execution.waits.next_expiry(), told].into_iter().flatten().min();
    [instant(execution.deadline_at), left, instant(closing), extras]
}

/// The end of a noted claim, the same for every task of a claim.
pub(crate) fn encode_who(terms: &LeaseTerms) -> Result<Vec<u8>, EngineError> {
    postcard::to_stdvec(&(terms.ttl_ms, &terms.worker_id, &terms.worker_instance_id))
        .map_err(|error| EngineError::bug(format!("claim does not encode: {error}")))
}

/// What a function noted of a claim, and when.
struct Noted {
    terms: LeaseTerms,
    at: TimestampMs,
}

impl Noted {
    fn decode(noted: &[u8]) -> Option<Self> {
        let (lease_id, rest) = noted.split_at_checked(16)?;
        let (at, who) = rest.split_at_checked(6)?;
        let (ttl_ms, worker_id, worker_instance_id): (u64, WorkerId, WorkerInstanceId) =
            postcard::from_bytes(who).ok()?;
        let lease_id = LeaseId::new(Uuid::from_slice(lease_id).ok()?);
        let at = TimestampMs(uint(at).cast_signed());
        // What is granted or was admitted stands in no queue, so that no function claims it.
        let (granted, slots, places) = (false, Vec::new(), Vec::new());
        let terms =
            LeaseTerms { lease_id, worker_id, worker_instance_id, ttl_ms, granted, slots, places };
        Some(Self { terms, at })
    }

    /// It was set aside until its limits have been asked.
    fn is_aside(&self) -> bool {
        self.terms.lease_id.uuid().is_nil()
    }

    /// By how much the function has raised revision and number of events.
    fn counts(&self) -> (u64, u64) {
        (1, u64::from(!self.is_aside()))
    }

    fn work_out(&self, execution: Arc<Execution>) -> Changed {
        let rule = if self.is_aside() { set_aside } else { lease };
        rule(execution, &self.terms, self.at)
    }
}

/// The low bytes of a number, the highest first.
pub(crate) fn push_uint(bytes: &mut Vec<u8>, number: u64, width: usize) {
    bytes.extend_from_slice(&number.to_be_bytes()[8 - width..]);
}

/// A number of six bytes that may be negative.
pub(crate) fn int(bytes: [u8; 6]) -> i64 {
    (uint(&bytes) << 16).cast_signed() >> 16
}

pub(crate) fn uint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_bytes_keep_the_sign() {
        for number in [0, 1, -1, 1_700_000_000_000, -1_700_000_000_000] {
            let bytes = i64::to_be_bytes(number);
            let low: [u8; 6] = std::array::from_fn(|at| bytes[at + 2]);
            assert_eq!(int(low), number);
        }
    }
}
