//! What a claim asks of the store in one call of `ff_claim`, and what that brings.

use std::collections::BTreeSet;
use std::sync::Arc;

use ff_core::error::EngineError;
use ff_core::id::{ExecutionId, Home, LaneId, LeaseId, Namespace};
use ff_core::limits;
use ff_core::machine::Changed;
use ff_core::time::TimestampMs;
use redis::{Cmd, Value};
use uuid::Uuid;

use crate::crowd::{self, Joint};
use crate::due::Expired;
use crate::keys::{Keys, REQUIRED, requires_some};
use crate::record::Entry;
use crate::store::Shared;
use crate::view::{Candidate, Front, Taking};
use crate::{near, reply};

/// Tasks of several claims that go with one call: a reply holds the payloads of as many.
pub(crate) const JOINT_TASKS: usize = limits::CLAIM_REPLY_BYTES / limits::PAYLOAD_BYTES;

/// What the function says of a queue of which it took less than it was asked for: no more bytes fit, or
/// too many entries of no use stood before what there may be.
const STOPPED: i64 = 1;
const PASSED: i64 = 2;

/// Entries of one lane for one worker.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) ttl_ms: u64,
    pub(crate) who: Vec<u8>,
    pub(crate) event_tail: Vec<u8>,
    pub(crate) namespace: Namespace,
    pub(crate) lane: LaneId,
    /// Bytes that its tasks may have; the first may have more, unless there is `any` already.
    pub(crate) bytes_left: usize,
    pub(crate) any: bool,
    pub(crate) limits: Limits,
    /// From this instant on the worker counts as silent.
    pub(crate) until: TimestampMs,
    /// Ids of leases count up from here.
    pub(crate) seed: Uuid,
    pub(crate) takings: Vec<Taking>,
}

/// Which executions stand under limits, and what becomes of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limits {
    /// Those that say so are set aside.
    Own,
    /// All are.
    All,
    /// Those that say so are left.
    Pass,
}

/// What was taken.
pub(crate) struct Leased {
    pub(crate) at: Place,
    pub(crate) entry: Entry,
    pub(crate) payload: bytes::Bytes,
}

/// Where an entry that was taken stands in the claim, and where it stood in its lane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) number: u32,
    /// Place of its lane among those of the claim.
    pub(crate) lane: usize,
    pub(crate) score: i64,
}

/// What was set aside.
pub(crate) type SetAside = (Place, Entry);

/// What one call brought.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) tasks: Vec<Leased>,
    pub(crate) aside: Vec<SetAside>,
    pub(crate) expired: Vec<Expired>,
    pub(crate) left_behind: bool,
    pub(crate) late: bool,
    /// It met entries of no use that are out of their queues now, or so many that it went no further.
    pub(crate) passed: bool,
    /// It stopped before an entry that it might have taken.
    pub(crate) stopped: bool,
    /// It left entries that it was asked for, since others were known to be better.
    pub(crate) bounded: bool,
    /// Why what it brought could not be read to its end.
    pub(crate) broken: Option<EngineError>,
}

impl Ask {
    fn wanted(&self) -> usize {
        self.takings.iter().map(|taking| taking.places.len()).sum()
    }

    fn write(&self, call: &mut Cmd) {
        call.arg(self.namespace.as_str()).arg(self.lane.as_str());
        call.arg(self.ttl_ms).arg(&self.who).arg(&self.event_tail);
        call.arg(self.bytes_left).arg(u8::from(self.any));
        call.arg(match self.limits {
            Limits::Own => "own",
            Limits::All => "all",
            Limits::Pass => "pass",
        });
        call.arg(self.until.0).arg(self.takings.len());
        for taking in &self.takings {
            let score = taking.bound.map_or(i64::MAX >> 10, |(score, _)| score);
            let id = taking.bound.map_or(Uuid::max(), |(_, id)| id.uuid());
            let places = taking.places.iter();
            let lease_ids: Vec<u8> = places
                .flat_map(|place| *LeaseId::from_seed(self.seed, *place).uuid().as_bytes())
                .collect();
            let home = Home::partition(taking.partition).to_string();
            call.arg(home).arg(&*taking.queue).arg(score);
            call.arg(&id.as_bytes()[..]).arg(lease_ids);
        }
    }

    /// In a cluster all keys of the partition that it writes, but for those that are read first.
    fn keys(&self, shared: &Shared, named: &mut BTreeSet<String>) {
        let keys = &shared.keys;
        for Taking { partition, queue, .. } in &self.takings {
            named.insert(keys.queue(*partition, queue));
            let indexes = [&*Keys::ready_index(queue), "leases"];
            named.extend(indexes.map(|name| keys.index(*partition, name)));
            named.extend(requires_some(queue).then(|| keys.index(*partition, REQUIRED)));
            named.insert(keys.lanes(&Home::partition(*partition), &self.namespace));
        }
    }
}

/// What joins a call: how many tasks may come of it, and whether something goes alone.
#[derive(Debug, Default)]
pub(crate) struct Load {
    tasks: usize,
    closed: bool,
}

impl Joint for Ask {
    type Answer = Taken;
    type Load = Load;

    fn home(&self) -> Home {
        Home::partition(self.takings.first().map_or(0, |taking| taking.partition))
    }

    fn joins(&self, load: &mut Load) -> bool {
        let tasks = load.tasks + self.wanted();
        let alone = self.limits == Limits::Pass;
        let fits = !load.closed && !alone && tasks <= JOINT_TASKS;
        if !fits && load.tasks > 0 {
            return false;
        }
        *load = Load { tasks, closed: alone };
        true
    }

    async fn send(shared: &Shared, all: &[Self]) -> Result<Vec<Taken>, EngineError> {
        let first = all.first().and_then(|ask| ask.takings.first());
        let Some(&Taking { partition, .. }) = first else {
            return Ok(all.iter().map(|_| Taken::default()).collect());
        };
        let mut call = shared.function("ff_claim");
        let mut keys = BTreeSet::from([shared.keys.events(partition)]);
        if shared.client.is_cluster() {
            all.iter().for_each(|ask| ask.keys(shared, &mut keys));
        }
        call.arg(keys.len()).arg(keys);
        let slacks = all.iter().map(|ask| near::slack_ms(shared, &ask.namespace, &ask.lane));
        shared.begin(&mut call).arg(slacks.min().unwrap_or_default()).arg(all.len());
        all.iter().for_each(|ask| ask.write(&mut call));
        let mut items = reply::array(shared.send(partition, &call).await?)?.into_iter();
        let now = reply::instant(&reply::next(&mut items)?)?;
        shared.clock.note(&Home::partition(partition), now);
        all.iter().map(|ask| read(shared, ask, reply::next(&mut items)?)).collect()
    }
}

/// Sends what fits into one call.
pub(crate) async fn send(shared: &Arc<Shared>, ask: Ask) -> Result<Taken, EngineError> {
    crowd::send(shared, |crowds| &crowds.claims, ask).await
}

fn read(shared: &Shared, ask: &Ask, reply: Value) -> Result<Taken, EngineError> {
    let mut items = reply::array(reply)?.into_iter();
    let mut taken = Taken { late: items.len() == 0, ..Taken::default() };
    if !taken.late {
        for taking in &ask.takings {
            let read = read_queue(shared, taking, reply::next(&mut items)?, &mut taken);
            taken.broken = taken.broken.take().or(read.err());
        }
    }
    Ok(taken)
}

/// What was met in one queue.
fn read_queue(
    shared: &Shared,
    taking: &Taking,
    reply: Value,
    taken: &mut Taken,
) -> Result<(), EngineError> {
    let mut items = reply::array(reply)?.into_iter();
    let short = reply::number(&reply::next(&mut items)?)?;
    taken.stopped |= short == STOPPED;
    taken.passed |= short == PASSED;
    let front = read_front(taking.partition, &mut items)?;
    shared.views.note_front(taking, front.as_ref());
    let mut places = taking.places.iter();
    while let Some(raw) = items.next() {
        let id = reply::entry(taking.partition, &raw);
        match &reply::some_bytes(reply::next(&mut items)?)?[..] {
            b"expired" => taken.expired.push(Expired { id, queue: Arc::clone(&taking.queue) }),
            b"stopped" => taken.passed = true,
            b"passed" => taken.left_behind = true,
            b"missing" => taken.passed |= note_aside(shared, &taking.queue, &id, "no execution"),
            b"broken" => {
                let what = format!("{raw:?}, which is no id or has a damaged record");
                taken.passed |= note_aside(shared, &taking.queue, &id, &what);
            }
            record => {
                let besides = reply::next(&mut items)?;
                let number = places.next().copied().unwrap_or(u32::MAX);
                let at = Place { number, lane: taking.lane, score: i64::MAX };
                match Entry::decode_claimed(id, record) {
                    Ok(claimed) => take_up(shared, claimed, at, besides, taken)?,
                    // It is out of its queue, and others were leased with it.
                    Err(error) => {
                        let what = format!("what cannot be read: {error}");
                        taken.passed |= note_aside(shared, &taking.queue, &id, &what);
                    }
                }
            }
        }
    }
    taken.bounded |= front.is_some() && places.len() > 0 && short != PASSED;
    Ok(())
}

/// Tells of an entry that was moved aside; always true.
pub(crate) fn note_aside(shared: &Shared, queue: &str, id: &ExecutionId, what: &str) -> bool {
    tracing::error!(%id, queue, "I10: a queue named {what}; it was moved aside");
    shared.tally.add_violation("I10");
    true
}

/// An execution that was leased or set aside, with what came beside its record.
fn take_up(
    shared: &Shared,
    (entry, changed): (Entry, Option<Changed>),
    at: Place,
    besides: Value,
    taken: &mut Taken,
) -> Result<(), EngineError> {
    shared.tally.add_changed(changed.as_ref());
    if entry.execution.phase.grant().is_some() {
        taken.aside.push((Place { score: reply::number(&besides)?, ..at }, entry));
        return Ok(());
    }
    let before = changed.as_ref().and_then(|changed| changed.before.as_ref());
    let score = before.and_then(|before| before.queue_place()).map(|it| it.score);
    let payload = reply::some_bytes(besides)?;
    let payload = entry.payload.clone().unwrap_or(payload);
    taken.tasks.push(Leased {
        at: Place { score: score.unwrap_or(i64::MAX), ..at },
        entry,
        payload,
    });
    Ok(())
}

/// What stands in a queue now; none when it is empty.
fn read_front(
    partition: u16,
    items: &mut impl Iterator<Item = Value>,
) -> Result<Option<Front>, EngineError> {
    let standing = reply::number(&reply::next(items)?)?;
    let (score, id) = (reply::next(items)?, reply::next(items)?);
    let expired = reply::number(&reply::next(items)?)? == 1;
    let (ahead, ahead_score) = (reply::number(&reply::next(items)?)?, reply::next(items)?);
    if standing == 0 {
        return Ok(None);
    }
    let id = reply::entry(partition, &id);
    let count = |number: i64| u32::try_from(number - 1).unwrap_or_default();
    Ok(Some(Front {
        first: Candidate { score: reply::number(&score)?, id, expired },
        behind: count(standing),
        ahead: (count(ahead), reply::number(&ahead_score)?),
    }))
}
