//! Following the log.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ff_core::error::EngineError;
use ff_core::event::{Envelope, Event, EventAbout};
use ff_core::id::{Home, Subject};
use ff_core::machine::Need;
use ff_core::read::{Audited, Follow, Followed, From, LogCheck};
use ff_core::time::TimestampMs;
use redis::{Cmd, Value};
use tokio::sync::watch;

use crate::attendance::{Attendance, Present};
use crate::everywhere::{Answered, Missing, Tour};
use crate::log::Mark;
use crate::read::Known;
use crate::seen::Seen;
use crate::store::{Shared, join_all};
use crate::{homes, log, read, reply};

/// Stream entries of all its homes that one call reads: it should not hold others up.
const ENTRIES_MOST: usize = 64;

/// No call waits longer, whatever it asks for: it answers with nothing and may be repeated.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(86_400);

/// How long one turn of the wait for events lasts; each ends with a look.
pub(crate) const TURN: Duration = Duration::from_secs(1);

/// Pause after the connection failed.
pub(crate) const REST: Duration = Duration::from_millis(200);

/// Pause between looks at logs that nobody waits for on a connection.
const GLANCE: Duration = Duration::from_millis(250);

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
        let Some(shift) = start else { return present };
        if shared.client.is_cluster() {
            // One command cannot wait for streams of several slots, and a connection for each home
            // would be too many: those that are not partitions of executions are looked at.
            for home in shared.partitions() {
                tokio::spawn(tail(Arc::clone(shared), Some(home), shift));
            }
            tokio::spawn(glance(Arc::clone(shared), shift));
        } else {
            tokio::spawn(tail(Arc::clone(shared), None, shift));
        }
        present
    }

    /// Followers look.
    fn tell(&self) {
        self.grown.send_modify(|turn| *turn += 1);
    }
}

/// The partitions of executions whose streams one connection can wait for.
pub(crate) fn parts(shared: &Shared) -> Vec<Vec<u16>> {
    let partitions = 0..shared.settings.partitions.flow;
    if shared.client.is_cluster() {
        partitions.map(|partition| vec![partition]).collect()
    } else {
        vec![partitions.collect()]
    }
}

/// Waits for new entries of a home's stream, or of all, and tells of them.
async fn tail(shared: Arc<Shared>, home: Option<Home>, shift: u64) {
    let slot = shared.keys.slot_of(home.as_ref().unwrap_or(&Home::Global));
    let (mut connection, mut places) = (None, None);
    while shared.tail.followers.goes_on(shift) && !shared.is_closing() {
        let turn = async {
            let emptied = shared.emptied.times();
            let homes = match &home {
                Some(home) => vec![home.clone()],
                None => homes::all(&shared).await?,
            };
            // Where the logs end is read before followers are told to look: what comes later than
            // that ends the wait.
            let (after, grew) = match places.take() {
                Some((known, after, times)) if known == homes && times == emptied => (after, false),
                _ => (ends(&shared, homes.clone()).await?, true),
            };
            // Where each home has a turn of its own, `glance` is the net under all of them.
            if grew || home.is_none() {
                shared.tail.tell();
            }
            if connection.is_none() {
                connection = Some(shared.client.dedicated(slot).await?);
            }
            let Some(dedicated) = &mut connection else { return Ok(()) };
            let call = wait_for_entries(&shared, &homes, &after);
            let grown = dedicated.query(&call, TURN + shared.options.call_timeout).await?;
            if matches!(grown, Value::Nil) {
                places = Some((homes, after, emptied));
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

/// Looks a few times a second where the logs end that no connection waits for, and tells when one
/// has grown, and once in a turn whether or not.
async fn glance(shared: Arc<Shared>, shift: u64) {
    let (mut known, mut told) = (None, Instant::now());
    while shared.tail.followers.goes_on(shift) && !shared.is_closing() {
        let look = async {
            let mut homes = homes::all(&shared).await?;
            homes.retain(|home| home.flow_partition().is_none());
            ends(&shared, homes).await
        };
        match look.await {
            Ok(found) => {
                let found = Some(found);
                if found != known || told.elapsed() >= TURN {
                    (known, told) = (found, Instant::now());
                    shared.tail.tell();
                }
            }
            // Where one node does not answer, the logs of the others go on.
            Err(error) => {
                tracing::debug!(%error, "the ends of logs could not be read");
                shared.tail.tell();
            }
        }
        tokio::time::sleep(GLANCE).await;
    }
}

/// The number of the newest event of each of these homes.
async fn ends(shared: &Shared, homes: Vec<Home>) -> Result<Seen, EngineError> {
    read_ends(shared.everywhere(tour(Missing::Wait), homes, ask_for_ends).await?.answered)
}

/// The function bounds its entries itself.
fn tour(missing: Missing) -> Tour {
    Tour::by("ff_events", missing).entries(1)
}

fn ask_for_ends(call: &mut Cmd, homes: &[Home]) {
    call.arg(0);
    homes.iter().for_each(|home| {
        call.arg(home.to_string()).arg(0).arg("");
    });
}

fn read_ends(answered: Vec<Answered>) -> Result<Seen, EngineError> {
    let mut seen = Seen::default();
    for (home, newest, entry) in read_logs(answered)? {
        let mark = entry.first().and_then(|(_, mark)| parse_mark(mark));
        seen.note(home, newest, mark);
    }
    Ok(seen)
}

/// A mark as functions write it.
fn parse_mark(text: &[u8]) -> Option<Mark> {
    let number = u16::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()?;
    Some(number.to_be_bytes())
}

fn write_mark(mark: Mark) -> String {
    format!("{:04x}", u16::from_be_bytes(mark))
}

fn wait_for_entries(shared: &Shared, homes: &[Home], after: &Seen) -> Cmd {
    let mut call = redis::cmd("XREAD");
    call.arg("COUNT").arg(1).arg("BLOCK").arg(TURN.as_millis() as u64).arg("STREAMS");
    for home in homes {
        call.arg(shared.keys.log(home));
    }
    for home in homes {
        call.arg(format!("0-{}", log::entry_of(after.of(home))));
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
    let from_start = follow.from == From::Start;
    let mut seen = match &follow.from {
        From::Now => read_ends(shared.in_all_homes(tour(Missing::Wait), ask_for_ends).await?)?,
        From::Start => Seen::default(),
        From::Cursor(text) => Seen::parse(&scope, text, &shared.settings.partitions)?,
    };
    let _follower = (!wait.is_zero()).then(|| Tail::join(shared));
    let mut grown = shared.tail.grown.subscribe();
    let mut gap = false;
    loop {
        grown.borrow_and_update();
        let look = look(shared, follow, &scope, &mut seen).await?;
        gap |= look.gap && !from_start;
        if !look.items.is_empty() {
            let cursor = seen.cursor(&scope);
            let Look { items, cursors, .. } = look;
            return Ok(Followed::Events { items, cursors, cursor, gap });
        }
        if look.more {
            continue;
        }
        let changed = tokio::time::timeout_at(deadline.into(), grown.changed()).await;
        if changed.is_err() || shared.is_closing() {
            let cursor = seen.cursor(&scope);
            let (items, cursors) = (Vec::new(), Vec::new());
            return Ok(Followed::Events { items, cursors, cursor, gap });
        }
    }
}

/// What one look at the log found.
struct Look {
    items: Vec<Envelope>,
    /// Where to go on behind each of them, if that was asked for.
    cursors: Vec<String>,
    gap: bool,
    /// The log goes on behind what was looked at.
    more: bool,
}

/// Events after `seen`, which moves behind what was looked at. Logs are merged by time, so
/// that a reader sees about the order in which things happened.
async fn look(
    shared: &Arc<Shared>,
    follow: &Follow,
    scope: &str,
    seen: &mut Seen,
) -> Result<Look, EngineError> {
    let limit = follow.limit as usize;
    let mut look = Look { items: Vec::new(), cursors: Vec::new(), gap: false, more: false };
    let (mut events, mut marks) = (Vec::new(), HashMap::new());
    for mut log in logs(shared, seen).await? {
        let after = seen.of(&log.home);
        if log.is_lost {
            tracing::warn!(home = %log.home, "a log has lost what was seen of it, and is read anew");
            shared.emptied.note();
            seen.forget(&log.home);
            (look.gap, look.more) = (true, true);
            continue;
        }
        let first = log.events.first().map(|event| event.number);
        look.gap |= first.is_some_and(|first| log::entry_of(first) > log::entry_of(after + 1));
        look.more |= log.more;
        for (entry, mark) in std::mem::take(&mut log.marks) {
            marks.insert((log.home.clone(), entry), mark);
        }
        events.extend(log.in_order());
    }
    events.sort_by_cached_key(|(time, event)| (*time, event.subject.home(), event.number));
    // Records are read of those alone that may match.
    let may_match = events.iter().filter(|(_, event)| follow.filter.may_match(event));
    let may_match = may_match.map(|(_, event)| event.clone()).collect();
    let mut envelopes = envelopes(shared, may_match).await?.into_iter().peekable();
    for (_, event) in events {
        if look.items.len() == limit {
            look.more = true;
            break;
        }
        let place = (event.subject.home(), log::entry_of(event.number));
        let mark = marks.get(&place).copied();
        seen.note(place.0, event.number, mark);
        let own = envelopes.next_if(|envelope| envelope.event == event);
        if let Some(own) = own.filter(|envelope| follow.filter.matches(envelope)) {
            look.items.push(own);
            look.cursors.extend(follow.each.then(|| seen.cursor(scope)));
        }
    }
    Ok(look)
}

/// A stretch of one home's log.
struct Log {
    home: Home,
    /// It goes on behind them.
    more: bool,
    /// It is not the one that has been seen: it ends before that, or has something else there.
    is_lost: bool,
    events: Vec<Event>,
    /// Of the entries that hold them.
    marks: Vec<(u64, Mark)>,
}

impl Log {
    /// Each event with a time that does not fall behind the one before: the order of a home's
    /// log is that of its numbers, and times may differ from it by a moment.
    fn in_order(self) -> impl Iterator<Item = (TimestampMs, Event)> {
        self.events.into_iter().scan(TimestampMs(0), |latest, event| {
            *latest = event.time.max(*latest);
            Some((*latest, event))
        })
    }
}

async fn logs(shared: &Arc<Shared>, seen: &Seen) -> Result<Vec<Log>, EngineError> {
    let answered = shared
        .in_all_homes(tour(Missing::LeaveOut), |call, homes| {
            call.arg(ENTRIES_MOST);
            homes.iter().for_each(|home| {
                let mark = seen.mark_of(home).map(write_mark).unwrap_or_default();
                call.arg(home.to_string()).arg(seen.of(home)).arg(mark);
            });
        })
        .await?;
    let log = |(home, sign, entries): Read| {
        let after = seen.of(&home);
        let (mut events, mut marks) = (Vec::new(), Vec::new());
        for (last, entry) in entries {
            events.extend(log::decode_entry(&home, last, &entry)?);
            marks.push((log::entry_of(last), log::mark_of(&entry)));
        }
        events.retain(|event| event.number > after);
        Ok(Log { home, more: sign == 1, is_lost: sign == 2, events, marks })
    };
    read_logs(answered)?.into_iter().map(log).collect()
}

/// Follows all logs from their beginning.
pub(crate) async fn check_logs(
    shared: &Arc<Shared>,
    audited: &mut Audited,
) -> Result<LogCheck, EngineError> {
    let mut check = LogCheck::default();
    let mut seen = Seen::default();
    loop {
        let mut more = false;
        for log in logs(shared, &seen).await? {
            more |= log.more;
            for event in &log.events {
                seen.note(log.home.clone(), event.number, None);
                check.note(audited, event);
            }
        }
        if !more {
            return Ok(check);
        }
    }
}

/// A home, a number about its log, and entries with the number of their last event.
type Read = (Home, u64, Vec<(u64, Bytes)>);

fn read_logs(answered: Vec<Answered>) -> Result<Vec<Read>, EngineError> {
    let mut logs = Vec::new();
    for answered in answered {
        for log in reply::array(answered.reply)? {
            let mut items = reply::array(log)?.into_iter();
            let home = reply::home(reply::next(&mut items)?)?;
            let number = reply::number(&reply::next(&mut items)?)?.unsigned_abs();
            let mut entries = Vec::new();
            while let Some(last) = items.next() {
                let entry = reply::some_bytes(reply::next(&mut items)?)?;
                entries.push((reply::number(&last)?.unsigned_abs(), entry));
            }
            logs.push((home, number, entries));
        }
    }
    Ok(logs)
}

/// Events with what their records say now.
async fn envelopes(shared: &Arc<Shared>, events: Vec<Event>) -> Result<Vec<Envelope>, EngineError> {
    let mut by_home: BTreeMap<Home, BTreeSet<&Subject>> = BTreeMap::new();
    for event in &events {
        by_home.entry(event.subject.home()).or_default().insert(&event.subject);
    }
    let reads = by_home.into_iter().map(|(home, subjects)| async move {
        let needs: Vec<_> = subjects.into_iter().map(need_of).collect();
        let mut all = Known::default();
        for known in read::read_in_portions(shared, &home, &needs).await {
            all.extend(known?);
        }
        Ok::<_, EngineError>((home, all))
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

/// The record of what an event is about.
fn need_of(subject: &Subject) -> Need {
    match subject {
        Subject::Execution(id) => Need::Execution(*id),
        Subject::Document(id) => Need::Document(id.clone()),
    }
}
