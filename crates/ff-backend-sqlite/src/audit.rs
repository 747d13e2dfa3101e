//! Compares every record with the rows that must, and must not, stand beside it.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use ff_core::error::EngineError;
use ff_core::id::{DocumentId, ExecutionId};
use ff_core::read::{Audited, LogCheck};
use ff_core::state::{Execution, FrameId, FrameMode, MemberCounts, Recounted};
use ff_core::time::TimestampMs;
use ff_relational::{decode_attempt, decode_document, decode_event, decode_execution};
use rusqlite::{Connection, Row, params};

use crate::error::fault;
use crate::load::{document_at, id_at, tally, uuid_at};
use crate::query::blob_at;
use crate::statements;

/// As SQLite says it.
const NO_LIMIT: i64 = -1;

/// A queue entry: score, namespace, lane, class.
pub(crate) type Entry = (i64, String, String, String);

pub(crate) fn audit(connection: &Connection, now: TimestampMs) -> Result<Audited, EngineError> {
    let mut audited = Audited::default();
    let mut ready = by_id(connection, statements::all_ready, |row| {
        Ok((id_at(row, 0)?, (row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))
    })?;
    let mut timers = by_id(connection, statements::all_timers, |row| {
        Ok((id_at(row, 1)?, row.get::<_, i64>(0)?))
    })?;
    let attempts = by_id(connection, statements::attempt_counts, |row| {
        Ok((id_at(row, 0)?, (row.get::<_, u32>(1)?, row.get::<_, u32>(2)?)))
    })?;
    let mut streams = Streams::read(connection)?;
    let log = read_log(connection, &mut audited)?;
    let mut listings = by_id(connection, statements::all_listings, |row| {
        Ok((id_at(row, 0)?, (row.get(1)?, row.get(2)?, row.get(3)?, uuid_at(row, 4)?)))
    })?;
    let mut members = HashMap::new();
    let mut statement =
        connection.prepare(statements::all_executions).map_err(|error| fault(&error))?;
    let mut rows = statement.query([]).map_err(|error| fault(&error))?;
    while let Some(row) = rows.next().map_err(|error| fault(&error))? {
        audited.checked += 1;
        let execution = decode_execution(blob_at(row, 6).map_err(|error| fault(&error))?)?;
        check_columns(&mut audited, &execution, row).map_err(|error| fault(&error))?;
        check_ready(&mut audited, &execution, &ready.remove(&execution.id).unwrap_or_default());
        check_timers(&mut audited, &execution, &timers.remove(&execution.id).unwrap_or_default());
        audited.check_listings(&execution, listings.remove(&execution.id).unwrap_or_default());
        audited.check_waits(&execution);
        let (earlier, highest) = match attempts.get(&execution.id).map(Vec::as_slice) {
            Some([(count, highest)]) => (*count, Some(*highest)),
            _ => (0, None),
        };
        audited.check_attempts(&execution, earlier, highest);
        audited.check_counts(&execution);
        streams.check(&mut audited, &execution, now)?;
        log.check(&mut audited, &execution);
        if let Some(counted) = Recounted::between(None, Some(&execution)) {
            let counts: &mut MemberCounts = members.entry(counted.flow.clone()).or_default();
            counted.deltas().into_iter().for_each(|(field, delta)| counts.add(field, delta));
        }
    }
    for id in ready.keys().chain(timers.keys()).chain(listings.keys()) {
        audited.report("I10", Some(*id), "a queue, timer or list entry without its execution");
    }
    check_orphans(connection, &mut audited)?;
    check_documents(connection, &mut audited, &log, members)?;
    Ok(audited)
}

/// `members`: what the executions say of the documents that they belong to.
fn check_documents(
    connection: &Connection,
    audited: &mut Audited,
    log: &LogCheck,
    mut members: HashMap<DocumentId, MemberCounts>,
) -> Result<(), EngineError> {
    let mut timers = by_id(connection, statements::all_document_timers, |row| {
        Ok((document_at(row, 1)?, row.get::<_, i64>(0)?))
    })?;
    let mut listings = by_id(connection, statements::all_document_listings, |row| {
        Ok((document_at(row, 0)?, (row.get(1)?, row.get(2)?, row.get(3)?, uuid_at(row, 4)?)))
    })?;
    let mut statement =
        connection.prepare(statements::all_documents).map_err(|error| fault(&error))?;
    let mut rows = statement.query([]).map_err(|error| fault(&error))?;
    while let Some(row) = rows.next().map_err(|error| fault(&error))? {
        audited.checked += 1;
        let document = decode_document(blob_at(row, 1).map_err(|error| fault(&error))?)?;
        let id = &document.id;
        let timers = timers.remove(id).unwrap_or_default();
        let listings = listings.remove(id).unwrap_or_default();
        let (kept, scanned) = (tally(connection, id)?, members.remove(id).unwrap_or_default());
        audited.check_document(&document, (&timers, &listings), (&kept, &scanned));
        log.check_document(audited, &document);
    }
    for id in timers.keys().chain(listings.keys()) {
        audited.report("I10", Some(id), "a timer or list entry without its document");
    }
    for id in members.keys() {
        audited.report("I10", Some(id), "executions belong to a document that is not there");
    }
    let orphans = by_id(connection, statements::document_orphans, |row| {
        Ok((document_at(row, 1)?, row.get::<_, String>(0)?))
    })?;
    for (id, tables) in orphans {
        audited.report("I33", Some(id), format!("left behind in {tables:?}"));
    }
    Ok(())
}

/// Follows the log from its beginning.
fn read_log(connection: &Connection, audited: &mut Audited) -> Result<LogCheck, EngineError> {
    let mut log = LogCheck::default();
    let mut statement =
        connection.prepare(statements::events_after).map_err(|error| fault(&error))?;
    let mut rows = statement.query(params![0, NO_LIMIT]).map_err(|error| fault(&error))?;
    while let Some(row) = rows.next().map_err(|error| fault(&error))? {
        let event = decode_event(blob_at(row, 0).map_err(|error| fault(&error))?)?;
        log.note(audited, &event);
    }
    Ok(log)
}

/// Frames that are stored, and the attempts that they are of.
struct Streams {
    frames: HashMap<ExecutionId, Vec<Stored>>,
    earlier: HashMap<ExecutionId, Vec<Vec<u8>>>,
}

/// Attempt, mode, how many frames and the place of the newest.
type Stored = (u32, u8, u64, i64);

impl Streams {
    fn read(connection: &Connection) -> Result<Self, EngineError> {
        let frames = by_id(connection, statements::frame_counts, |row| {
            let count: i64 = row.get(3)?;
            Ok((id_at(row, 0)?, (row.get(1)?, row.get(2)?, count.unsigned_abs(), row.get(5)?)))
        })?;
        let earlier =
            by_id(connection, statements::all_attempts, |row| Ok((id_at(row, 0)?, row.get(1)?)))?;
        Ok(Self { frames, earlier })
    }

    fn check(
        &mut self,
        audited: &mut Audited,
        execution: &Execution,
        now: TimestampMs,
    ) -> Result<(), EngineError> {
        let stored = self.frames.remove(&execution.id).unwrap_or_default();
        let earlier = self.earlier.remove(&execution.id).unwrap_or_default();
        let mut attempts =
            earlier.iter().map(|record| decode_attempt(record)).collect::<Result<Vec<_>, _>>()?;
        attempts.extend(execution.attempt.clone());
        for attempt in attempts {
            let of_it = stored.iter().filter(|(index, ..)| *index == attempt.index);
            let of_it = of_it.filter_map(|(_, mode, count, newest)| {
                Some((FrameMode::from_code(*mode)?, *count, FrameId::from_packed(*newest)))
            });
            audited.check_stream(execution, &attempt, &of_it.collect::<Vec<_>>(), now);
        }
        Ok(())
    }
}

fn by_id<K: Eq + Hash, T>(
    connection: &Connection,
    sql: &str,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<(K, T)>,
) -> Result<HashMap<K, Vec<T>>, EngineError> {
    let rows = || {
        let mut statement = connection.prepare(sql)?;
        let mut found: HashMap<_, Vec<T>> = HashMap::new();
        for row in statement.query_map([], |row| read(row))? {
            let (id, value) = row?;
            found.entry(id).or_default().push(value);
        }
        Ok(found)
    };
    rows().map_err(|error: rusqlite::Error| fault(&error))
}

pub(crate) fn check_columns(
    audited: &mut Audited,
    execution: &Execution,
    row: &Row<'_>,
) -> rusqlite::Result<()> {
    let about = &execution.about;
    let stored: (ExecutionId, i64, String, String, String, String) =
        (id_at(row, 0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?);
    let derived = (
        execution.id,
        about.created_at.0,
        about.namespace.to_string(),
        about.lane.to_string(),
        about.kind.to_string(),
        execution.public_state().as_str().to_owned(),
    );
    if stored != derived {
        let detail = format!("columns say {stored:?}, the record {derived:?}");
        audited.report("I8", Some(execution.id), detail);
    }
    Ok(())
}

pub(crate) fn check_ready(audited: &mut Audited, execution: &Execution, found: &[Entry]) {
    let place = entry_of(execution);
    if found != place.iter().cloned().collect::<Vec<_>>() {
        let detail = format!("in queues {found:?}, its state says {place:?}");
        audited.report("I9", Some(execution.id), detail);
    }
}

/// The queue entry that it must have.
pub(crate) fn entry_of(execution: &Execution) -> Option<Entry> {
    let place = execution.queue_place()?;
    let class = place.class.as_csv().to_owned();
    Some((place.score, place.namespace.to_string(), place.lane.to_string(), class))
}

pub(crate) fn check_timers(audited: &mut Audited, execution: &Execution, found: &[i64]) {
    let due = execution.due().map(|due| due.at.0);
    if found != due.into_iter().collect::<Vec<_>>() {
        audited.report("I9", Some(execution.id), format!("timers {found:?}, due is {due:?}"));
    }
}

fn check_orphans(connection: &Connection, audited: &mut Audited) -> Result<(), EngineError> {
    let found = by_id(connection, statements::orphans, |row| {
        Ok((id_at(row, 1)?, row.get::<_, String>(0)?))
    })?;
    for (id, tables) in found {
        let tables: HashSet<_> = tables.into_iter().collect();
        audited.report("I33", Some(id), format!("left behind in {tables:?}"));
    }
    Ok(())
}
