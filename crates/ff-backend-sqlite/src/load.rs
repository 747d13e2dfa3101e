//! Loads what a batch needs.

use std::sync::Arc;

use bytes::Bytes;
use ff_core::error::EngineError;
use ff_core::id::ExecutionId;
use ff_core::machine::{DedupKey, DedupRecord, Need, Needs, Overlay, QueueView, RowKey};
use ff_core::state::Execution;
use ff_core::time::TimestampMs;
use ff_relational::decode_execution;
use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

use crate::error::fault;
use crate::queues::Queues;
use crate::records::Records;
use crate::statements;

/// Loads all needs into the overlay. Candidates of a claim come with their records and payloads,
/// since the claim will ask for them next.
pub(crate) fn load(
    connection: &Connection,
    queues: &mut Queues,
    records: &mut Records,
    needs: &Needs,
    overlay: &mut Overlay,
) -> Result<(), EngineError> {
    for need in &needs.0 {
        match need {
            Need::Execution(id) => supply_execution(connection, records, *id, overlay)?,
            Need::Payload(id) => supply_payload(connection, *id, overlay)?,
            Need::Dedup(key) => {
                let record = dedup(connection, key)?;
                overlay.supply_dedup(key.clone(), record);
            }
            Need::Due(partition, now, most) => {
                let ids = due(connection, *partition, *now, *most)?;
                let complete = ids.len() <= *most;
                overlay.supply_due(*partition, ids, complete);
            }
            Need::Row(id, key) => {
                let bytes = row(connection, *id, key)?;
                overlay.supply_row(*id, key.clone(), bytes);
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
        None => execution(connection, id)?.map(Arc::new),
    };
    overlay.supply_execution(id, found);
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

pub(crate) fn execution(
    connection: &Connection,
    id: ExecutionId,
) -> Result<Option<Execution>, EngineError> {
    let bytes: Option<Result<Execution, EngineError>> = connection
        .prepare_cached(statements::load_execution)
        .and_then(|mut statement| {
            statement
                .query_row(params![id.to_bytes()], |row| {
                    Ok(decode_execution(row.get_ref(0)?.as_blob()?))
                })
                .optional()
        })
        .map_err(|error| fault(&error))?;
    bytes.transpose()
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
    id: ExecutionId,
    key: &RowKey,
) -> Result<Option<Bytes>, EngineError> {
    let values = params![id.to_bytes(), key.family.code(), &key.name[..]];
    connection
        .prepare_cached(statements::load_beside)
        .and_then(|mut statement| {
            statement.query_row(values, |row| row.get::<_, Vec<u8>>(0)).optional()
        })
        .map(|body| body.map(Bytes::from))
        .map_err(|error| fault(&error))
}

fn dedup(connection: &Connection, key: &DedupKey) -> Result<Option<DedupRecord>, EngineError> {
    let row = connection
        .prepare_cached(statements::load_dedup)
        .and_then(|mut statement| {
            let values = params![key.namespace.as_str(), key.key.as_str()];
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

/// One more than asked for, so that the caller sees whether there is more.
fn due(
    connection: &Connection,
    partition: Option<u16>,
    now: TimestampMs,
    most: usize,
) -> Result<Vec<ExecutionId>, EngineError> {
    // The last two bytes of an id are its partition.
    let tail = partition.map(u16::to_be_bytes);
    let mut statement =
        connection.prepare_cached(statements::load_due).map_err(|error| fault(&error))?;
    statement
        .query_map(params![now.0, most as i64 + 1, tail], |row| id_at(row, 0))
        .and_then(Iterator::collect)
        .map_err(|error| fault(&error))
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

/// A uuid in a column.
pub(crate) fn uuid_at(row: &Row<'_>, column: usize) -> rusqlite::Result<Uuid> {
    let bytes = row.get_ref(column)?.as_blob()?;
    Uuid::from_slice(bytes).map_err(|_| no_id(column, bytes))
}

fn no_id(column: usize, bytes: &[u8]) -> rusqlite::Error {
    let problem = format!("{} bytes are no id", bytes.len());
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Blob, problem.into())
}
