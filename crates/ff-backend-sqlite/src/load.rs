//! Loads what a batch needs.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use ff_core::content::Content;
use ff_core::error::EngineError;
use ff_core::id::{ContentType, DocumentId, ExecutionId, Home, Subject};
use ff_core::machine::{DedupKey, DedupRecord, Need, Needs, Overlay, QueueView, RowKey};
use ff_core::state::{Document, Execution, MemberCounts};
use ff_core::time::TimestampMs;
use ff_relational::{decode_document, decode_execution};
use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

use crate::error::fault;
use crate::queues::Queues;
use crate::records::Records;
use crate::statements;

/// Loads all needs into the overlay. Candidates of a claim come with their records and payloads,
/// since the claim will ask for them next. What is due and rests is left out.
pub(crate) fn load(
    connection: &Connection,
    (queues, records): (&mut Queues, &mut Records),
    resting: &HashSet<Subject>,
    needs: &Needs,
    overlay: &mut Overlay,
) -> Result<(), EngineError> {
    for need in &needs.0 {
        match need {
            Need::Execution(id) => supply_execution(connection, records, *id, overlay)?,
            Need::Document(id) => supply_document(connection, records, id, overlay)?,
            Need::Payload(id) => supply_payload(connection, *id, overlay)?,
            Need::Result(id) => supply_result(connection, *id, overlay)?,
            Need::Dedup(key) => {
                let record = dedup(connection, key)?;
                overlay.supply_dedup(key.clone(), record);
            }
            Need::Due(home, now, most) => {
                let due = due(connection, home.as_ref(), (*now, *most), resting);
                let due = due.map_err(|error| fault(&error))?;
                let complete = due.len() <= *most;
                let ids = due.into_iter().map(|(_, of)| of).collect();
                overlay.supply_due(home.clone(), ids, complete);
            }
            Need::Row(id, key) => {
                let bytes = row(connection, id, key)?;
                overlay.supply_row(id.clone(), key.clone(), bytes);
            }
            // Supplied with the batch.
            Need::Queue(..) | Need::Keyring => {}
        }
    }
    for (view, at_least) in needs.queue_totals() {
        let (entries, complete) = front(connection, queues, view, at_least)?;
        for (_, id) in &entries {
            supply_execution(connection, records, *id, overlay)?;
            supply_payload(connection, *id, overlay)?;
        }
        overlay.supply_queue(view.clone(), entries, complete);
    }
    Ok(())
}

fn supply_execution(
    connection: &Connection,
    records: &mut Records,
    id: ExecutionId,
    overlay: &mut Overlay,
) -> Result<(), EngineError> {
    if overlay.knows_execution(id) {
        return Ok(());
    }
    let found = match records.get(id) {
        Some(kept) => Some(kept),
        None => match read_execution(connection, id)?.transpose() {
            Ok(found) => found.map(Arc::new),
            Err(why) => {
                overlay.supply_broken(id.into(), why);
                return Ok(());
            }
        },
    };
    overlay.supply_execution(id, found);
    Ok(())
}

fn supply_document(
    connection: &Connection,
    records: &mut Records,
    id: &DocumentId,
    overlay: &mut Overlay,
) -> Result<(), EngineError> {
    if overlay.knows_document(id) {
        return Ok(());
    }
    let found = match records.document(id) {
        Some(kept) => kept,
        None => match read_document(connection, id)?.transpose() {
            Ok(found) => {
                let found = found.map(Arc::new);
                records.keep_document(id.clone(), found.clone());
                found
            }
            Err(why) => {
                overlay.supply_broken(id.into(), why);
                return Ok(());
            }
        },
    };
    overlay.supply_document(id.clone(), found);
    Ok(())
}

fn supply_payload(
    connection: &Connection,
    id: ExecutionId,
    overlay: &mut Overlay,
) -> Result<(), EngineError> {
    if !overlay.knows_payload(id) {
        overlay.supply_payload(id, payload(connection, id)?);
    }
    Ok(())
}

/// The result of the newest attempt.
fn supply_result(
    connection: &Connection,
    id: ExecutionId,
    overlay: &mut Overlay,
) -> Result<(), EngineError> {
    let attempt = match read_execution(connection, id)?.transpose() {
        Ok(execution) => execution.and_then(|execution| execution.attempt),
        Err(why) => {
            overlay.supply_broken(id.into(), why);
            return Ok(());
        }
    };
    let newest = match attempt {
        Some(attempt) => result(connection, id, Some(attempt.index))?,
        None => None,
    };
    overlay.supply_result(id, newest);
    Ok(())
}

pub(crate) fn execution(
    connection: &Connection,
    id: ExecutionId,
) -> Result<Option<Execution>, EngineError> {
    read_execution(connection, id)?.transpose()
}

pub(crate) fn document(
    connection: &Connection,
    id: &DocumentId,
) -> Result<Option<Document>, EngineError> {
    read_document(connection, id)?.transpose()
}

/// A record, or why this one cannot be read; the error around both is of the whole store.
type Found<T> = Result<Option<Result<T, EngineError>>, EngineError>;

fn read_execution(connection: &Connection, id: ExecutionId) -> Found<Execution> {
    let record = |row: &Row<'_>| Ok(blob(row)?.and_then(decode_execution));
    connection
        .prepare_cached(statements::load_execution)
        .and_then(|mut statement| statement.query_row(params![id.to_bytes()], record).optional())
        .map_err(|error| fault(&error))
}

fn read_document(connection: &Connection, id: &DocumentId) -> Found<Document> {
    let record = |row: &Row<'_>| Ok(blob(row)?.and_then(decode_document));
    connection
        .prepare_cached(statements::load_document)
        .and_then(|mut statement| statement.query_row(params![id.to_string()], record).optional())
        .map_err(|error| fault(&error))
}

/// The bytes of a record, unless something else stands in their place.
fn blob<'a>(row: &'a Row<'_>) -> rusqlite::Result<Result<&'a [u8], EngineError>> {
    let found = row.get_ref(0)?.as_blob();
    Ok(found.map_err(|error| EngineError::corruption(format!("the record is no blob: {error}"))))
}

/// How many executions that belong to a document are in which state.
pub(crate) fn tally(connection: &Connection, id: &DocumentId) -> Result<MemberCounts, EngineError> {
    let read = || {
        let mut counts = MemberCounts::default();
        let mut statement = connection.prepare_cached(statements::load_tally)?;
        let mut rows = statement.query(params![id.to_string()])?;
        while let Some(row) = rows.next()? {
            counts.add(row.get(0)?, row.get(1)?);
        }
        Ok(counts)
    };
    read().map_err(|error: rusqlite::Error| fault(&error))
}

/// The result of an attempt, or of the newest that has one.
pub(crate) fn result(
    connection: &Connection,
    id: ExecutionId,
    attempt: Option<u32>,
) -> Result<Option<Content>, EngineError> {
    let found = connection
        .prepare_cached(statements::load_results)
        .and_then(|mut statement| {
            let values = params![id.to_bytes(), attempt];
            statement
                .query_row(values, |row| Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?)))
                .optional()
        })
        .map_err(|error| fault(&error))?;
    let Some((content_type, body)) = found else { return Ok(None) };
    let content_type = ContentType::new(content_type)
        .map_err(|error| EngineError::corruption(format!("result: {error}")))?;
    Ok(Some(Content { content_type, bytes: Bytes::from(body) }))
}

pub(crate) fn payload(
    connection: &Connection,
    id: ExecutionId,
) -> Result<Option<Bytes>, EngineError> {
    connection
        .prepare_cached(statements::load_payload)
        .and_then(|mut statement| {
            statement.query_row(params![id.to_bytes()], |row| row.get::<_, Vec<u8>>(0)).optional()
        })
        .map(|body| body.map(Bytes::from))
        .map_err(|error| fault(&error))
}

pub(crate) fn row(
    connection: &Connection,
    of: &Subject,
    key: &RowKey,
) -> Result<Option<Bytes>, EngineError> {
    let (family, name) = (key.family.code(), &key.name[..]);
    let body = |row: &Row<'_>| row.get::<_, Vec<u8>>(0);
    let find = || match of {
        Subject::Execution(id) => connection
            .prepare_cached(statements::load_beside)?
            .query_row(params![id.to_bytes(), family, name], body)
            .optional(),
        Subject::Document(id) => connection
            .prepare_cached(statements::load_document_row)?
            .query_row(params![id.to_string(), family, name], body)
            .optional(),
    };
    find().map(|body| body.map(Bytes::from)).map_err(|error| fault(&error))
}

fn dedup(connection: &Connection, key: &DedupKey) -> Result<Option<DedupRecord>, EngineError> {
    let row = connection
        .prepare_cached(statements::load_dedup)
        .and_then(|mut statement| {
            let values = params![key.scope.to_string(), key.key.as_str()];
            statement
                .query_row(values, |row| {
                    Ok((id_at(row, 0)?, row.get::<_, [u8; 32]>(1)?, row.get::<_, i64>(2)?))
                })
                .optional()
        })
        .map_err(|error| fault(&error))?;
    Ok(row.map(|(execution_id, fingerprint, expires)| DedupRecord {
        execution_id,
        fingerprint,
        expires_at: TimestampMs(expires),
    }))
}

/// What is due and does not rest, oldest first. One more than asked for, so that the caller sees whether
/// there is more.
pub(crate) fn due(
    connection: &Connection,
    home: Option<&Home>,
    (now, most): (TimestampMs, usize),
    resting: &HashSet<Subject>,
) -> rusqlite::Result<Vec<(i64, Subject)>> {
    let limit = (most + 1 + resting.len()) as i64;
    // The last two bytes of an id are its partition.
    let partition = home.and_then(Home::flow_partition);
    let tail = partition.map(u16::to_be_bytes);
    let mut found = Vec::new();
    if home.is_none() || partition.is_some() {
        let mut executions = connection.prepare_cached(statements::load_due)?;
        let executions = executions.query_map(params![now.0, limit, tail], |row| {
            Ok((row.get::<_, i64>(0)?, Subject::Execution(id_at(row, 1)?)))
        })?;
        found = executions.collect::<Result<Vec<_>, _>>()?;
    }
    let mut documents = connection.prepare_cached(statements::load_due_documents)?;
    let home = home.map(Home::to_string);
    let documents = documents.query_map(params![now.0, limit, home], |row| {
        Ok((row.get::<_, i64>(0)?, Subject::Document(document_at(row, 1)?)))
    })?;
    for document in documents {
        found.push(document?);
    }
    found.retain(|(_, of)| !resting.contains(of));
    found.sort_unstable();
    found.truncate(most + 1);
    Ok(found)
}

/// The merged front of the queues that a view covers.
fn front(
    connection: &Connection,
    queues: &mut Queues,
    view: &QueueView,
    at_least: usize,
) -> Result<(Vec<(i64, ExecutionId)>, bool), EngineError> {
    let covered = queues.covered(view);
    let mut entries = Vec::new();
    let mut complete = true;
    for queue in covered.iter().copied() {
        let found = ready(connection, queue, at_least).map_err(|error| fault(&error))?;
        if found.is_empty() {
            queues.found_empty(view, queue);
        }
        complete &= found.len() < at_least;
        entries.extend(found);
    }
    if covered.len() > 1 {
        entries.sort_unstable();
        complete &= entries.len() <= at_least;
        entries.truncate(at_least);
    }
    Ok((entries, complete))
}

fn ready(
    connection: &Connection,
    queue: i64,
    limit: usize,
) -> rusqlite::Result<Vec<(i64, ExecutionId)>> {
    let mut statement = connection.prepare_cached(statements::load_ready)?;
    let rows = statement
        .query_map(params![queue, limit as i64], |row| Ok((row.get(0)?, id_at(row, 1)?)))?;
    rows.collect()
}

/// An execution id in a column.
pub(crate) fn id_at(row: &Row<'_>, column: usize) -> rusqlite::Result<ExecutionId> {
    let bytes = row.get_ref(column)?.as_blob()?;
    ExecutionId::from_bytes(bytes).ok_or_else(|| no_id(column, bytes))
}

/// The name of a document in a column.
pub(crate) fn document_at(row: &Row<'_>, column: usize) -> rusqlite::Result<DocumentId> {
    let text = row.get_ref(column)?.as_str()?;
    text.parse().map_err(|_| no_id(column, text.as_bytes()))
}

/// A uuid in a column.
pub(crate) fn uuid_at(row: &Row<'_>, column: usize) -> rusqlite::Result<Uuid> {
    let bytes = row.get_ref(column)?.as_blob()?;
    Uuid::from_slice(bytes).map_err(|_| no_id(column, bytes))
}

fn no_id(column: usize, bytes: &[u8]) -> rusqlite::Error {
    let problem = format!("{} bytes are no id", bytes.len());
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Blob, problem.into())
}
