//! Following the log.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ff_core::error::EngineError;
use ff_core::event::{Envelope, Event, EventAbout};
use ff_core::id::{Home, Subject};
use ff_core::limits;
use ff_core::machine::Need;
use ff_core::read::{Audited, EventFilter, Follow, Followed, From, LogCheck};
use ff_core::time::TimestampMs;
use redis::Cmd;
use tokio::sync::watch;

use crate::everywhere::{Answered, Missing, Tour};
use crate::growth::{GATHERING, Growth, TURN};
use crate::log::Mark;
use crate::read::Known;
use crate::recent::{Behind, End};
use crate::seen::Seen;
use crate::store::{Shared, join_all};
use crate::{log, read, reply};

/// Stream entries of all its homes that one call reads: it should not hold others up.
const ENTRIES_MOST: usize = 32;

/// What functions say of a log: it goes on behind what was read, or is not the one that was seen.
const MORE: u64 = 1;
pub(crate) const LOST: u64 = 2;

/// No call waits longer, whatever it asks for: it answers with nothing and may be repeated.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(86_400);

/// Where the logs of these homes end.
pub(crate) async fn ends(shared: &Shared, homes: Vec<Home>) -> Result<Vec<End>, EngineError> {
    let found = shared.everywhere(tour(Missing::Wait), homes, ask_for_ends).await?;
    read_ends(found.answered)
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

fn read_ends(answered: Vec<Answered>) -> Result<Vec<End>, EngineError> {
    let mut ends = Vec::new();
    for answer in answered {
        let asked = answer.homes.clone();
        let logs = read_logs(vec![answer])?;
        let told: HashMap<_, _> =
            logs.into_iter().map(|(home, newest, entry)| (home, (newest, entry))).collect();
        ends.extend(asked.into_iter().map(|home| {
            let (newest, mark) = told.get(&home).map_or((0, None), |(newest, entry)| {
                (*newest, entry.first().and_then(|(_, mark)| parse_mark(mark)))
            });
            End { home, entry: log::entry_of(newest), mark }
        }));
    }
    Ok(ends)
}

/// A mark as functions write it.
fn parse_mark(text: &[u8]) -> Option<Mark> {
    let number = u16::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()?;
    Some(number.to_be_bytes())
}

fn write_mark(mark: Mark) -> String {
    format!("{:04x}", u16::from_be_bytes(mark))
}

/// Where a follower begins.
async fn begin(shared: &Shared, follow: &Follow, scope: &str) -> Result<Seen, EngineError> {
    match &follow.from {
        From::Now => {
            let tour = tour(Missing::Wait);
            let answered = shared.in_homes_of(&follow.filter, tour, ask_for_ends).await?;
            let mut seen = Seen::default();
            for End { home, entry, mark } in read_ends(answered)? {
                seen.note(&home, entry * log::NUMBERS, mark);
            }
            Ok(seen)
        }
        From::Start => Ok(Seen::default()),
        From::Cursor(text) => Ok(Seen::parse(scope, text, &shared.settings.partitions)?),
    }
}

pub(crate) async fn events(
    shared: &Arc<Shared>,
    follow: &Follow,
    wait: Duration,
) -> Result<Followed, EngineError> {
    let scope = follow.filter.scope();
    let mut seen = begin(shared, follow, &scope).await?;
    let _follower = (!wait.is_zero()).then(|| Growth::join(shared));
    let mut pace = Pace::new(shared, &follow.filter, wait);
    let mut reach = first_reach(shared, follow, wait);
    let mut page = Page::new(follow.limit as usize);
    loop {
        pace.note_look(reach);
        let more = look(shared, follow, &scope, &mut seen, reach, &mut page).await?;
        let is_over = pace.is_over() || shared.is_closing();
        let is_done = match page.items.is_empty() {
            true => is_over && !more && pace.has_asked(),
            false => page.is_full() || !more,
        };
        if is_done {
            let cursor = seen.cursor(&scope, &shared.settings.partitions)?;
            let Page { items, cursors, gap, .. } = page;
            let gap = gap && follow.from != From::Start;
            return Ok(Followed::Events { items, cursors, cursor, gap });
        }
        if !more {
            reach = pace.next_look().await;
        }
    }
}

/// Whoever goes on and may wait takes what this process has read already, if that is something and lacks
/// nothing of before. Who does not wait wants to see what was written until now.
fn first_reach(shared: &Shared, follow: &Follow, wait: Duration) -> Reach {
    let homes = shared.homes.of_events(&follow.filter, &shared.settings.partitions);
    let goes_on = matches!(follow.from, From::Cursor(_)) && !wait.is_zero();
    match goes_on && shared.growth.recent.is_fresh(&homes) {
        true => Reach::Recent,
        false => Reach::All,
    }
}

/// How much a look covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// All homes are asked.
    All,
    /// What was read for all followers, and those homes alone that it does not say enough of.
    Recent,
}

/// When a follower looks, and how far.
struct Pace<'a> {
    shared: &'a Shared,
    filter: &'a EventFilter,
    news: watch::Receiver<u64>,
    deadline: Instant,
    looked_at: Instant,
    /// When all homes were last asked, by it or on its behalf, since it first has.
    asked_at: Option<Instant>,
}

impl<'a> Pace<'a> {
    fn new(shared: &'a Shared, filter: &'a EventFilter, wait: Duration) -> Self {
        let now = Instant::now();
        let deadline = now + wait.min(LONGEST_WAIT);
        let news = shared.growth.news();
        Self { shared, filter, news, deadline, looked_at: now, asked_at: None }
    }

    /// A look begins: what comes from now on is news to it.
    fn note_look(&mut self, reach: Reach) {
        self.news.borrow_and_update();
        self.looked_at = Instant::now();
        if reach == Reach::All {
            self.asked_at = Some(self.looked_at);
        }
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Whether what was there when the follower came has been seen.
    const fn has_asked(&self) -> bool {
        self.asked_at.is_some()
    }

    /// Waits for news, or until all homes are to be asked again: what was told may have been lost. Where that
    /// was done for all followers, this one need not. News that follow each other closely are gathered.
    async fn next_look(&mut self) -> Reach {
        let Some(asked_at) = self.asked_at else { return Reach::All };
        let turn = asked_at + TURN;
        let until = turn.min(self.deadline);
        if tokio::time::timeout_at(until.into(), self.news.changed()).await.is_ok() {
            let gathered = (self.looked_at + GATHERING).min(until);
            tokio::time::sleep_until(gathered.into()).await;
        }
        let now = Instant::now();
        if now < turn {
            return Reach::Recent;
        }
        let homes = self.shared.homes.of_events(self.filter, &self.shared.settings.partitions);
        if !self.shared.growth.recent.is_fresh(&homes) {
            return Reach::All;
        }
        self.asked_at = Some(now);
        Reach::Recent
    }
}

/// What a follower is answered: all there is of what it asked for, up to its limit.
struct Page {
    limit: usize,
    items: Vec<Envelope>,
    /// Where to go on behind each of them, if that was asked for.
    cursors: Vec<String>,
    gap: bool,
    /// Events that were looked at.
    looked_at: usize,
}

impl Page {
    const fn new(limit: usize) -> Self {
        Self { limit, items: Vec::new(), cursors: Vec::new(), gap: false, looked_at: 0 }
    }

    /// Whether it is answered although the log goes on: who finds little among very much gets that little
    /// soon.
    const fn is_full(&self) -> bool {
        self.items.len() == self.limit || self.looked_at >= limits::SEARCH_LOOK_AHEAD as usize
    }
}

/// Adds events after `seen`, which moves behind what was looked at. Logs are merged by time, so that a
/// reader sees about the order in which things happened. True: they go on behind that.
async fn look(
    shared: &Arc<Shared>,
    follow: &Follow,
    scope: &str,
    seen: &mut Seen,
    reach: Reach,
    page: &mut Page,
) -> Result<bool, EngineError> {
    let (mut events, mut marks, mut more) = (Vec::new(), HashMap::new(), false);
    for mut log in logs_behind(shared, &follow.filter, seen, reach).await? {
        let after = seen.of(&log.home);
        if log.is_lost {
            tracing::warn!(home = %log.home, "a log has lost what was seen of it, and is read anew");
            shared.emptied.note();
            shared.growth.recent.forget(std::iter::once(&log.home));
            seen.forget(&log.home);
            (page.gap, more) = (true, true);
            continue;
        }
        let first = log.events.first().map(|event| event.number);
        page.gap |= first.is_some_and(|first| log::entry_of(first) > log::entry_of(after + 1));
        more |= log.more;
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
        if page.items.len() == page.limit {
            more = true;
            break;
        }
        page.looked_at += 1;
        let place = (event.subject.home(), log::entry_of(event.number));
        let mark = marks.get(&place).copied();
        seen.note(&place.0, event.number, mark);
        let own = envelopes.next_if(|envelope| envelope.event == event);
        if let Some(own) = own.filter(|envelope| follow.filter.matches(envelope)) {
            page.items.push(own);
            let cursor = || seen.cursor(scope, &shared.settings.partitions);
            page.cursors.extend(follow.each.then(cursor).transpose()?);
        }
    }
    Ok(more)
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

/// Asks for what stands behind the places that have been seen. A call may end before its last homes, so
/// each look begins with another one.
fn ask_behind(shared: &Shared, seen: &Seen) -> impl Fn(&mut Cmd, &[Home]) {
    let look = shared.growth.next_look();
    move |call, homes| {
        call.arg(ENTRIES_MOST);
        let (later, sooner) = homes.split_at(look % homes.len().max(1));
        sooner.iter().chain(later).for_each(|home| {
            let mark = seen.mark_of(home).map(write_mark).unwrap_or_default();
            call.arg(home.to_string()).arg(seen.of(home)).arg(mark);
        });
    }
}

/// What the logs of a filter's homes have behind the places that have been seen.
async fn logs_behind(
    shared: &Shared,
    filter: &EventFilter,
    seen: &Seen,
    reach: Reach,
) -> Result<Vec<Log>, EngineError> {
    // Where some homes cannot be asked, a look at all of them goes on with the others.
    if reach == Reach::Recent
        && let Ok(read) = read_recent(shared, filter, seen).await
    {
        return logs(seen, read);
    }
    let tour = tour(Missing::LeaveOut);
    let answered = shared.in_homes_of(filter, tour, ask_behind(shared, seen)).await?;
    logs(seen, read_logs(answered)?)
}

async fn read_recent(
    shared: &Shared,
    filter: &EventFilter,
    seen: &Seen,
) -> Result<Vec<Read>, EngineError> {
    let homes = shared.homes.of_events(filter, &shared.settings.partitions);
    let Behind { found, ask } = shared.growth.recent.behind(homes, seen);
    let mut read: Vec<Read> = found.into_iter().map(|(home, found)| (home, 0, found)).collect();
    if !ask.is_empty() {
        let asked =
            shared.everywhere(tour(Missing::LeaveOut), ask, ask_behind(shared, seen)).await?;
        read.extend(read_logs(asked.answered)?);
    }
    Ok(read)
}

/// What these homes have behind the places that have been seen.
pub(crate) async fn read_behind(
    shared: &Shared,
    homes: Vec<Home>,
    seen: &Seen,
) -> Result<Vec<Read>, EngineError> {
    let found = shared.everywhere(tour(Missing::Wait), homes, ask_behind(shared, seen)).await?;
    read_logs(found.answered)
}

fn logs(seen: &Seen, read: Vec<Read>) -> Result<Vec<Log>, EngineError> {
    let log = |(home, sign, entries): Read| {
        let after = seen.of(&home);
        let (mut events, mut marks) = (Vec::new(), Vec::new());
        for (last, entry) in entries {
            events.extend(log::decode_entry(&home, last, &entry)?);
            marks.push((log::entry_of(last), log::mark_of(&entry)));
        }
        events.retain(|event| event.number > after);
        Ok(Log { home, more: sign == MORE, is_lost: sign == LOST, events, marks })
    };
    read.into_iter().map(log).collect()
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
        let tour = tour(Missing::LeaveOut);
        let answered = shared.in_all_homes(tour, ask_behind(shared, &seen)).await?;
        for log in logs(&seen, read_logs(answered)?)? {
            more |= log.more;
            for event in &log.events {
                seen.note(&log.home, event.number, None);
                check.note(audited, event);
            }
        }
        if !more {
            return Ok(check);
        }
    }
}

/// A home, a number about its log, and entries with the number of their last event.
pub(crate) type Read = (Home, u64, Vec<(u64, Bytes)>);

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
