//! Following the log.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ff_core::cursor;
use ff_core::error::EngineError;
use ff_core::event::{Envelope, Event, EventAbout};
use ff_core::id::{Home, Subject};
use ff_core::machine::Need;
use ff_core::read::{Audited, EventFilter, Follow, Followed, From, LogCheck};
use ff_core::time::TimestampMs;
use redis::Value;
use tokio::sync::watch;

use crate::attendance::{Attendance, Present};
use crate::everywhere::Missing;
use crate::read::Known;
use crate::store::{Shared, join_all};
use crate::{log, read, reply};

/// Stream entries of one partition that one look reads.
const ENTRIES_MOST: usize = 100;

/// No call waits longer, whatever it asks for: it answers with nothing and may be repeated.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(86_400);

/// How long one turn of the wait for events lasts; each ends with a look.
pub(crate) const TURN: Duration = Duration::from_secs(1);

/// Pause after the connection failed.
pub(crate) const REST: Duration = Duration::from_millis(200);

/// Numbers up to which each partition's log has been seen.
type Seen = Vec<u64>;

/// Tells followers that the log has grown. Runs only while somebody follows.
pub(crate) struct Tail {
    grown: watch::Sender<u64>,
    followers: Attendance,
}

impl Tail {
    pub(crate) fn new() -> Self {
        Self { grown: watch::Sender::new(0), followers: Attendance::default() }
    }

    fn join(shared: &Arc<Shared>) -> Present<'_> {
        let (present, start) = shared.tail.followers.join();
        if let Some(shift) = start {
            for part in parts(shared) {
                tokio::spawn(tail(Arc::clone(shared), part, shift));
            }
        }
        present
    }
}

/// The partitions whose streams one connection can wait for.
pub(crate) fn parts(shared: &Shared) -> Vec<Vec<u16>> {
    let partitions = 0..shared.settings.partitions.flow;
    // In a cluster one command cannot wait for streams of several slots.
    if shared.client.is_cluster() {
        partitions.map(|partition| vec![partition]).collect()
    } else {
        vec![partitions.collect()]
    }
}

/// Waits for new entries of some partitions' streams and tells of them.
async fn tail(shared: Arc<Shared>, partitions: Vec<u16>, shift: u64) {
    let Some(&first) = partitions.first() else { return };
    let slot = shared.keys.slot(first);
    let (mut connection, mut places) = (None, None);
    while shared.tail.followers.goes_on(shift) && !shared.is_closing() {
        let turn = async {
            // Where the logs end is read before followers are told to look: what comes later than
            // that ends the wait.
            let after = match places.take() {
                Some(after) => after,
                None => ends(&shared, &partitions).await?,
            };
            shared.tail.grown.send_modify(|turn| *turn += 1);
            if connection.is_none() {
                connection = Some(shared.client.dedicated(slot).await?);
            }
            let Some(dedicated) = &mut connection else { return Ok(()) };
            let call = wait_for_entries(&shared, &partitions, &after);
            let grown = dedicated.query(&call, TURN + shared.options.call_timeout).await?;
            if matches!(grown, Value::Nil) {
                places = Some(after);
            }
            Ok::<_, EngineError>(())
        };
        if let Err(error) = turn.await {
            tracing::debug!(%error, "the wait for events broke off");
            (connection, places) = (None, None);
            tokio::time::sleep(REST).await;
        }
    }
}

/// The number of the newest event of each partition.
async fn ends(shared: &Arc<Shared>, partitions: &[u16]) -> Result<Vec<u64>, EngineError> {
    let [partition] = partitions else { return newest(shared).await };
    let mut call = shared.read_function("ff_events");
    call.arg(1).arg(shared.keys.events(*partition));
    shared.begin(&mut call).arg(0).arg(*partition).arg(0);
    let logs = read_logs(vec![shared.send(*partition, &call).await?])?;
    Ok(logs.into_iter().map(|(_, newest, _)| newest).collect())
}

fn wait_for_entries(shared: &Shared, partitions: &[u16], after: &[u64]) -> redis::Cmd {
    let mut call = redis::cmd("XREAD");
    call.arg("COUNT").arg(1).arg("BLOCK").arg(TURN.as_millis() as u64).arg("STREAMS");
    for partition in partitions {
        call.arg(shared.keys.events(*partition));
    }
    for number in after {
        call.arg(format!("0-{}", log::entry_of(*number)));
    }
    call
}

pub(crate) async fn events(
    shared: &Arc<Shared>,
    follow: &Follow,
    wait: Duration,
) -> Result<Followed, EngineError> {
    let deadline = Instant::now() + wait.min(LONGEST_WAIT);
    let scope = follow.filter.scope();
    let partitions = usize::from(shared.settings.partitions.flow);
    let from_start = follow.from == From::Start;
    let mut seen: Seen = match &follow.from {
        From::Now => newest(shared).await?,
        From::Start => vec![0; partitions],
        From::Cursor(text) => cursor::decode::<Seen>(&scope, text)?,
    };
    seen.resize(partitions, 0);
    let _follower = (!wait.is_zero()).then(|| Tail::join(shared));
    let mut grown = shared.tail.grown.subscribe();
    let mut gap = false;
    loop {
        grown.borrow_and_update();
        let look = look(shared, &follow.filter, &mut seen, follow.limit as usize).await?;
        gap |= look.gap && !from_start;
        if !look.items.is_empty() {
            let cursor = cursor::encode(&scope, &seen);
            return Ok(Followed::Events { items: look.items, cursor, gap });
        }
        if look.more {
            continue;
        }
        let changed = tokio::time::timeout_at(deadline.into(), grown.changed()).await;
        if changed.is_err() || shared.is_closing() {
            let cursor = cursor::encode(&scope, &seen);
            return Ok(Followed::Events { items: Vec::new(), cursor, gap });
        }
    }
}

/// What one look at the log found.
struct Look {
    items: Vec<Envelope>,
    gap: bool,
    /// The log goes on behind what was looked at.
    more: bool,
}

/// Events after `seen`, which moves behind what was looked at. Partitions are merged by time, so
/// that a reader sees about the order in which things happened.
async fn look(
    shared: &Arc<Shared>,
    filter: &EventFilter,
    seen: &mut Seen,
    limit: usize,
) -> Result<Look, EngineError> {
    let mut look = Look { items: Vec::new(), gap: false, more: false };
    let mut events = Vec::new();
    for log in logs(shared, seen).await? {
        let after = seen[usize::from(log.partition)];
        let first = log.events.first().map(|event| event.number);
        look.gap |= first.is_some_and(|first| log::entry_of(first) > log::entry_of(after + 1));
        look.more |= log.more;
        events.extend(log.in_order());
    }
    events.sort_by_cached_key(|(time, event)| (*time, event.subject.home(), event.number));
    let events = events.into_iter().map(|(_, event)| event).collect();
    for envelope in envelopes(shared, events).await? {
        if look.items.len() == limit {
            look.more = true;
            break;
        }
        let event = &envelope.event;
        let partition = event.subject.home().flow_partition().map(usize::from);
        if let Some(place) = partition.and_then(|partition| seen.get_mut(partition)) {
            *place = (*place).max(event.number);
        }
        if filter.matches(&envelope) {
            look.items.push(envelope);
        }
    }
    Ok(look)
}

/// A stretch of one partition's log.
struct Log {
    partition: u16,
    /// It goes on behind them.
    more: bool,
    events: Vec<Event>,
}

impl Log {
    /// Each event with a time that does not fall behind the one before: the order of a partition's
    /// log is that of its numbers, and times may differ from it by a moment.
    fn in_order(self) -> impl Iterator<Item = (TimestampMs, Event)> {
        self.events.into_iter().scan(TimestampMs(0), |latest, event| {
            *latest = event.time.max(*latest);
            Some((*latest, event))
        })
    }
}

async fn logs(shared: &Arc<Shared>, seen: &Seen) -> Result<Vec<Log>, EngineError> {
    let replies = shared
        .everywhere("ff_events", Missing::LeaveOut, |call, partitions| {
            call.arg(ENTRIES_MOST);
            for partition in partitions {
                call.arg(partition).arg(seen[usize::from(*partition)]);
            }
        })
        .await?;
    let log = |(partition, more, entries): Read| {
        let after = seen.get(usize::from(partition)).copied().unwrap_or(0);
        let mut events = Vec::new();
        for (last, entry) in entries {
            events.extend(log::decode_entry(&Home::partition(partition), last, &entry)?);
        }
        events.retain(|event| event.number > after);
        Ok(Log { partition, more: more == 1, events })
    };
    read_logs(replies)?.into_iter().map(log).collect()
}

/// Follows all logs from their beginning.
pub(crate) async fn check_logs(
    shared: &Arc<Shared>,
    audited: &mut Audited,
) -> Result<LogCheck, EngineError> {
    let mut check = LogCheck::default();
    let mut seen: Seen = vec![0; usize::from(shared.settings.partitions.flow)];
    loop {
        let mut more = false;
        for log in logs(shared, &seen).await? {
            more |= log.more;
            for event in &log.events {
                seen[usize::from(log.partition)] = event.number;
                check.note(audited, event);
            }
        }
        if !more {
            return Ok(check);
        }
    }
}

/// A partition, a number about its log, and entries with the number of their last event.
type Read = (u16, u64, Vec<(u64, Bytes)>);

fn read_logs(replies: Vec<Value>) -> Result<Vec<Read>, EngineError> {
    let mut logs = Vec::new();
    for reply in replies {
        for log in reply::array(reply)? {
            let mut items = reply::array(log)?.into_iter();
            let partition = reply::partition(&reply::next(&mut items)?)?;
            let number = reply::number(&reply::next(&mut items)?)?.unsigned_abs();
            let mut entries = Vec::new();
            while let Some(last) = items.next() {
                let entry = reply::some_bytes(reply::next(&mut items)?)?;
                entries.push((reply::number(&last)?.unsigned_abs(), entry));
            }
            logs.push((partition, number, entries));
        }
    }
    Ok(logs)
}

async fn newest(shared: &Arc<Shared>) -> Result<Seen, EngineError> {
    let replies = shared
        .everywhere("ff_events", Missing::Wait, |call, partitions| {
            call.arg(0);
            for partition in partitions {
                call.arg(partition).arg(0);
            }
        })
        .await?;
    let mut seen = vec![0; usize::from(shared.settings.partitions.flow)];
    for (partition, newest, _) in read_logs(replies)? {
        seen[usize::from(partition)] = newest;
    }
    Ok(seen)
}

/// Events with what their records say now.
async fn envelopes(shared: &Arc<Shared>, events: Vec<Event>) -> Result<Vec<Envelope>, EngineError> {
    let mut by_home: BTreeMap<Home, Vec<Need>> = BTreeMap::new();
    for event in &events {
        let need = match &event.subject {
            Subject::Execution(id) => Need::Execution(*id),
            Subject::Document(id) => Need::Document(id.clone()),
        };
        by_home.entry(event.subject.home()).or_default().push(need);
    }
    let nothing = Known::default();
    let nothing = &nothing;
    let reads = by_home.iter().map(|(home, needs)| async move {
        Ok::<_, EngineError>((home.clone(), read::read(shared, home, nothing, needs).await?))
    });
    let records: BTreeMap<Home, Known> =
        join_all(reads).await.into_iter().collect::<Result<_, _>>()?;
    let about = |subject: &Subject| -> Option<EventAbout> {
        let known = records.get(&subject.home())?;
        match subject {
            Subject::Execution(id) => known.entry(*id).map(|entry| (&*entry.execution).into()),
            Subject::Document(id) => known.document(id).map(|document| (&**document).into()),
        }
    };
    let envelope = |event: Event| {
        let about = about(&event.subject);
        Envelope::new(event, about)
    };
    Ok(events.into_iter().map(envelope).collect())
}
