//! Following the log, the timers and the output of attempts.

use std::time::{Duration, Instant};

use ff_core::cursor;
use ff_core::error::EngineError;
use ff_core::event::{Envelope, Event, EventAbout};
use ff_core::id::Subject;
use ff_core::limits;
use ff_core::read::{EventFilter, Follow, Followed, From, StreamRange};
use ff_core::time::TimestampMs;
use ff_relational::decode_event;
use rusqlite::{Connection, params};
use tokio::sync::watch;

use crate::error::fault;
use crate::query::blob_at;
use crate::readers::closed;
use crate::store::SqliteStore;
use crate::{frames, load, statements};

/// Events that one look reads: it should not hold others up.
const LOOK_MOST: u32 = 1000;

/// No call waits longer, whatever it asks for: it answers with nothing and may be repeated.
const LONGEST_WAIT: Duration = Duration::from_secs(86_400);

/// What one look at the log found.
struct Stretch {
    items: Vec<Envelope>,
    /// Everything up to here has been looked at.
    seen: u64,
    gap: bool,
}

pub(crate) async fn events(
    store: &SqliteStore,
    follow: Follow,
    wait: Duration,
) -> Result<Followed, EngineError> {
    let deadline = Instant::now() + wait.min(LONGEST_WAIT);
    let mut newest = store.shared().events.subscribe();
    let scope = follow.filter.scope();
    let mut seen = match &follow.from {
        // Not what was published last: a write is answered before its events are published.
        From::Now => store.read(newest_number).await?,
        From::Start => 0,
        From::Cursor(text) => cursor::decode(&scope, text)?,
    };
    let from_start = follow.from == From::Start;
    let (begin, mut gap, mut items) = (seen, false, Vec::new());
    loop {
        let committed = *newest.borrow_and_update();
        let filter = follow.filter.clone();
        let room = follow.limit as usize - items.len();
        let stretch = store.read(move |connection| look(connection, &filter, seen, room)).await?;
        gap |= stretch.gap && !(from_start && seen == 0);
        seen = stretch.seen;
        items.extend(stretch.items);
        // Who finds little among very much gets that little soon.
        let is_full = items.len() == follow.limit as usize
            || seen - begin >= u64::from(limits::SEARCH_LOOK_AHEAD);
        let is_done = match items.is_empty() {
            true => seen >= committed && !changed(&mut newest, deadline).await?,
            false => is_full || seen >= committed,
        };
        if is_done {
            let numbers = items.iter().map(|item: &Envelope| item.event.number);
            let numbers = numbers.filter(|_| follow.each);
            let cursors = numbers.map(|number| cursor::encode(&scope, &number)).collect();
            let cursor = cursor::encode(&scope, &seen);
            return Ok(Followed::Events { items, cursors, cursor, gap });
        }
    }
}

fn look(
    connection: &Connection,
    filter: &EventFilter,
    after: u64,
    limit: usize,
) -> Result<Stretch, EngineError> {
    let mut statement =
        connection.prepare_cached(statements::events_after).map_err(|error| fault(&error))?;
    let mut rows =
        statement.query(params![after as i64, LOOK_MOST]).map_err(|error| fault(&error))?;
    let mut stretch = Stretch { items: Vec::new(), seen: after, gap: false };
    while let Some(row) = rows.next().map_err(|error| fault(&error))? {
        let event = decode_event(blob_at(row, 0).map_err(|error| fault(&error))?)?;
        stretch.gap |= stretch.seen == after && event.number > after + 1;
        stretch.seen = event.number;
        if !filter.may_match(&event) {
            continue;
        }
        let envelope = envelope(connection, event)?;
        if filter.matches(&envelope) {
            stretch.items.push(envelope);
            if stretch.items.len() == limit {
                break;
            }
        }
    }
    Ok(stretch)
}

fn newest_number(connection: &Connection) -> Result<u64, EngineError> {
    connection
        .prepare_cached(statements::event_bounds)
        .and_then(|mut statement| statement.query_row([], |row| row.get::<_, Option<i64>>(1)))
        .map(|number| number.unwrap_or(0).unsigned_abs())
        .map_err(|error| fault(&error))
}

/// The event with what its record says now; one that cannot be read says nothing, as one that is gone.
fn envelope(connection: &Connection, event: Event) -> Result<Envelope, EngineError> {
    let about = match &event.subject {
        Subject::Execution(id) => {
            load::execution(connection, *id).map(|found| found.as_ref().map(EventAbout::from))
        }
        Subject::Document(id) => {
            load::document(connection, id).map(|found| found.as_ref().map(EventAbout::from))
        }
    };
    match about {
        Ok(about) => Ok(Envelope::new(event, about)),
        Err(error) if error.is_bug() => Ok(Envelope::new(event, None)),
        Err(error) => Err(error),
    }
}

pub(crate) async fn timers(
    store: &SqliteStore,
    known: Option<TimestampMs>,
    wait: Duration,
) -> Result<Followed, EngineError> {
    let deadline = Instant::now() + wait.min(LONGEST_WAIT);
    let mut timers = store.shared().timers.subscribe();
    loop {
        let soonest = *timers.borrow_and_update();
        if let Some(at) = soonest
            && known.is_none_or(|known| at < known)
        {
            return Ok(Followed::Timers { sooner: Some(at) });
        }
        if !changed(&mut timers, deadline).await? {
            return Ok(Followed::Timers { sooner: None });
        }
    }
}

/// Waits for a change; false when the time is over first.
async fn changed<T>(
    receiver: &mut watch::Receiver<T>,
    deadline: Instant,
) -> Result<bool, EngineError> {
    match tokio::time::timeout_at(deadline.into(), receiver.changed()).await {
        Ok(Ok(())) => Ok(true),
        Ok(Err(_)) => Err(closed()),
        Err(_) => Ok(false),
    }
}

/// Output of an attempt: frames behind a place, or its end.
pub(crate) async fn frames(
    store: &SqliteStore,
    range: StreamRange,
    wait: Duration,
) -> Result<Followed, EngineError> {
    let deadline = Instant::now() + wait;
    let mut watching = store.shared().tails.watch(range.execution_id);
    loop {
        let now = store.shared().clock.now();
        let page = store.read(move |connection| frames::page(connection, &range, now)).await?;
        if !page.frames.is_empty() || page.closed.is_some() {
            return Ok(Followed::Frames(page));
        }
        if tokio::time::timeout_at(deadline.into(), watching.news()).await.is_err() {
            return Ok(Followed::Frames(page));
        }
    }
}
