//! The rule of submit.

use std::sync::Arc;

use super::draft::{Draft, Halt};
use super::facts::{DedupKey, DedupRecord, DedupScope, Facts, Settings};
use super::flow;
use super::lane;
use super::revision::before_first;
use super::standing::check_attached;
use super::step::{Changes, Step};
use crate::error::{Code, Refusal};
use crate::event::{EventId, EventKind};
use crate::id::{DocumentId, Home};
use crate::limits::PRIORITY_MAX;
use crate::operation::{Submit, Submitted, fingerprint};
use crate::partition::SoloPartitioner as _;
use crate::policy::Retention;
use crate::state::{
    About, Attached, Causes, Counts, Delay, DelayReason, Document, Execution, Next, Phase,
    Runnable, Waits,
};
use crate::time::TimestampMs;

pub(super) fn submit(
    facts: &impl Facts,
    op: &Submit,
    now: TimestampMs,
) -> Result<Step<Submitted>, Halt> {
    check_partition(op, facts.settings())?;
    let key = op.idempotency_key.as_ref().map(|key| DedupKey {
        partition: op.execution_id.partition(),
        scope: match &op.within {
            Some(within) => DedupScope::Flow(within.flow_id),
            None => DedupScope::Namespace(op.namespace.clone()),
        },
        key: key.clone(),
    });
    if let Some(duplicate) = known_key(facts, op, key.as_ref(), now)? {
        return Ok(Step::unchanged(duplicate));
    }
    if let Some(duplicate) = known_id(facts, op)? {
        return Ok(Step::unchanged(duplicate));
    }
    let retention = ground(facts, op)?;
    let flow = match &op.within {
        Some(within) => Some(flow::check_submit(facts, within, &op.namespace)?),
        None => None,
    };
    create(facts, op, key, (retention, flow), now)
}

/// Refuses what its lane does not take or what stands under nothing that is there; answers with what
/// its namespace says of retention.
pub(super) fn ground(facts: &impl Facts, op: &Submit) -> Result<Retention, Halt> {
    let document = facts.document(&DocumentId::namespace(&op.namespace))?;
    lane::check_accepts(facts, &op.namespace, &op.lane)?;
    check_attached(facts, &op.namespace, &op.policy.attached, &Attached::default())?;
    let record = document.as_ref().and_then(|document| document.about_namespace());
    Ok(record.map_or_else(Retention::default, |record| record.retention))
}

/// The id must stand where its key's record stands.
fn check_partition(op: &Submit, settings: &Settings) -> Result<(), Refusal> {
    if let (Some(key), None) = (&op.idempotency_key, &op.within) {
        let expected = (&op.namespace, key).solo_partition(&settings.partitions);
        if op.execution_id.partition() != expected {
            return Err(Refusal::invalid(
                "execution_id",
                format!("with this idempotency key the id must be in partition {expected}"),
            ));
        }
    }
    Ok(())
}

fn known_key(
    facts: &impl Facts,
    op: &Submit,
    key: Option<&DedupKey>,
    now: TimestampMs,
) -> Result<Option<Submitted>, Halt> {
    let Some(key) = key else { return Ok(None) };
    match facts.dedup(key)? {
        Some(record) if record.expires_at > now => {
            if record.fingerprint != op.fingerprint() {
                return Err(mismatch("the idempotency key").into());
            }
            let execution = facts.execution(record.execution_id)?;
            Ok(Some(Submitted::Duplicate {
                execution_id: record.execution_id,
                public_state: execution.map(|execution| execution.public_state()),
            }))
        }
        _ => Ok(None),
    }
}

fn known_id(facts: &impl Facts, op: &Submit) -> Result<Option<Submitted>, Halt> {
    let Some(execution) = facts.execution(op.execution_id)? else { return Ok(None) };
    let payload = facts.payload(op.execution_id)?.unwrap_or_default();
    let about = &execution.about;
    let flow = execution.member.as_ref().map(|member| member.flow_id);
    let (lane, kind, content_type) = (&about.lane, &about.kind, &about.content_type);
    let first = fingerprint(lane, kind, content_type, &payload, flow, &about.policy);
    if about.namespace != op.namespace || first != op.fingerprint() {
        return Err(mismatch("the execution id").into());
    }
    Ok(Some(Submitted::Duplicate {
        execution_id: op.execution_id,
        public_state: Some(execution.public_state()),
    }))
}

fn mismatch(what: &str) -> Refusal {
    Refusal::new(
        Code::IdempotencyMismatch,
        format!("{what} was used before with other content; use a new one for new work"),
    )
}

fn create(
    facts: &impl Facts,
    op: &Submit,
    key: Option<DedupKey>,
    (retention, flow): (Retention, Option<Arc<Document>>),
    now: TimestampMs,
) -> Result<Step<Submitted>, Halt> {
    let mut draft = Draft::new(execution(op, retention, now), op.payload.bytes.clone(), now);
    let mut documents = Vec::new();
    if let Some(document) = flow {
        let name = op.within.as_ref().and_then(|within| within.name.clone());
        let (member, changes) = flow::submit_into(facts, document, name, draft)?;
        draft = member;
        documents = changes.documents;
    }
    draft.event(EventKind::Submitted);
    let reply = Submitted::Created {
        execution_id: op.execution_id,
        public_state: draft.execution.public_state(),
        priority: draft.execution.priority,
        event_id: EventId { home: Home::partition(op.execution_id.partition()), number: 0 },
    };
    let dedup = key.map(|key| {
        let record = DedupRecord {
            execution_id: op.execution_id,
            fingerprint: op.fingerprint(),
            expires_at: now.after(op.policy.dedup_window_ms),
        };
        (key, record)
    });
    Ok(Step::done(reply, Changes { dedup, documents, settled: true, ..draft.finish().into() }))
}

pub(super) fn execution(op: &Submit, retention: Retention, now: TimestampMs) -> Execution {
    let about = About {
        namespace: op.namespace.clone(),
        lane: op.lane.clone(),
        kind: op.kind.clone(),
        content_type: op.payload.content_type.clone(),
        creator_identity: op.creator_identity.clone(),
        created_at: now,
        execution_deadline_at: op.execution_deadline_at,
        trace_context: op.trace_context.clone(),
        policy: op.policy.clone(),
        retention,
    };
    let delay = op.delay_until.filter(|until| *until > now);
    let causes = Causes {
        hold: op.held.then(String::new),
        edges: false,
        children: None,
        admission: None,
        delay: delay.map(|until| Delay { until, reason: DelayReason::Requested }),
    };
    Execution {
        id: op.execution_id,
        revision: before_first(now),
        event_seq: 0,
        last_event: 0,
        priority: clamp_priority(op.priority),
        tags: op.tags.clone(),
        deadline_at: Execution::deadline_from(&about, now),
        about: Arc::new(about),
        lease_epoch: 0,
        counts: Counts::default(),
        started_at: None,
        attempt: None,
        failure: None,
        progress: None,
        last_end: None,
        last_loss: None,
        last_capability_mismatch_at: None,
        last_transition_at: now,
        waits: Waits::default(),
        owed: None,
        member: None,
        phase: Phase::Runnable(Runnable::new(causes, Next::First, now)),
    }
}

pub(super) fn clamp_priority(priority: i64) -> u16 {
    u16::try_from(priority.clamp(0, PRIORITY_MAX.into())).unwrap_or(PRIORITY_MAX)
}
