//! Reads the output of attempts.

use bytes::Bytes;
use ff_core::content::Content;
use ff_core::error::EngineError;
use ff_core::id::ContentType;
use ff_core::limits;
use ff_core::machine::{Family, RowKey};
use ff_core::read::{
    ReadSummary, ShelfFound, StreamFound, StreamPage, StreamRange, SummaryRead, attempt_not_found,
};
use ff_core::state::{Attempt, Execution, Frame, FrameId, FrameMode};
use ff_core::time::TimestampMs;
use ff_relational::decode_attempt;
use rusqlite::{Connection, Row, params};

use crate::error::fault;
use crate::query::{blob_at, existing};
use crate::{load, statements};

pub(crate) fn page(
    connection: &Connection,
    range: &StreamRange,
    now: TimestampMs,
) -> Result<StreamPage, EngineError> {
    let execution = existing(connection, range.execution_id)?;
    let missing = || attempt_not_found(execution.id, range.attempt_index);
    let attempt = attempt(connection, &execution, range.attempt_index)?.ok_or_else(missing)?;
    let found = StreamFound {
        next: self::attempt(connection, &execution, range.attempt_index.saturating_add(1))?,
        attempt,
        policy: execution.policy().stream,
        shelves: range
            .modes()
            .map(|mode| shelf(connection, range, mode, now))
            .collect::<Result<_, _>>()?,
    };
    Ok(found.page(range, now))
}

pub(crate) fn summary(
    connection: &Connection,
    query: &ReadSummary,
    now: TimestampMs,
) -> Result<SummaryRead, EngineError> {
    let execution = existing(connection, query.execution_id)?;
    let missing = || attempt_not_found(execution.id, query.attempt_index);
    let attempt = attempt(connection, &execution, query.attempt_index)?.ok_or_else(missing)?;
    let key = RowKey::numbered(Family::Summary, query.attempt_index);
    let row = load::row(connection, &execution.id.into(), &key)?;
    Ok(SummaryRead::of(&attempt, &execution.policy().stream, row.as_deref(), now))
}

/// The attempt of an index: the current one from the record, an earlier one from its table.
fn attempt(
    connection: &Connection,
    execution: &Execution,
    index: u32,
) -> Result<Option<Attempt>, EngineError> {
    if let Some(current) = execution.attempt.as_ref().filter(|current| current.index <= index) {
        return Ok((current.index == index).then(|| current.clone()));
    }
    let mut statement =
        connection.prepare_cached(statements::load_attempts).map_err(|error| fault(&error))?;
    let mut rows = statement
        .query(params![execution.id.to_bytes(), i64::from(index) - 1, 1])
        .map_err(|error| fault(&error))?;
    match rows.next().map_err(|error| fault(&error))? {
        Some(row) => {
            let attempt = decode_attempt(blob_at(row, 0).map_err(|error| fault(&error))?)?;
            Ok(Some(attempt).filter(|attempt| attempt.index == index))
        }
        None => Ok(None),
    }
}

fn shelf(
    connection: &Connection,
    range: &StreamRange,
    mode: FrameMode,
    now: TimestampMs,
) -> Result<ShelfFound, EngineError> {
    let (id, attempt) = (range.execution_id.to_bytes(), range.attempt_index);
    let oldest_from = |place: FrameId| {
        let place = params![id, attempt, mode.code(), place.packed()];
        let found = connection
            .prepare_cached(statements::oldest_frame)
            .and_then(|mut statement| statement.query_row(place, |row| row.get(0)));
        let found: Option<i64> = found.map_err(|error| fault(&error))?;
        Ok::<_, EngineError>(found.map(FrameId::from_packed))
    };
    let shown_from = StreamRange::shown_from(mode, now);
    let stored = oldest_from(FrameId::FIRST)?;
    let faded = stored.is_some_and(|stored| stored < shown_from);
    let oldest = if faded { oldest_from(shown_from)? } else { stored };
    let mut shelf = ShelfFound { mode, oldest, faded, frames: Vec::new(), complete: true };
    if oldest.is_none() {
        return Ok(shelf);
    }
    let (first, last) = range.of(mode, now);
    let mut statement =
        connection.prepare_cached(statements::load_frames).map_err(|error| fault(&error))?;
    let bounds = (first.packed(), last.packed(), i64::from(range.limit) + 1);
    let mut rows = statement
        .query(params![id, attempt, mode.code(), bounds.0, bounds.1, bounds.2])
        .map_err(|error| fault(&error))?;
    let mut bytes = 0;
    while let Some(row) = rows.next().map_err(|error| fault(&error))? {
        if shelf.frames.len() == range.limit as usize || bytes >= limits::STREAM_READ_BYTES {
            shelf.complete = false;
            break;
        }
        let frame = frame(row, mode)?;
        bytes += frame.content.bytes.len();
        shelf.frames.push(frame);
    }
    Ok(shelf)
}

fn frame(row: &Row<'_>, mode: FrameMode) -> Result<Frame, EngineError> {
    let columns = || {
        let place: i64 = row.get(0)?;
        let body = Bytes::copy_from_slice(blob_at(row, 4)?);
        Ok((place, row.get(1)?, row.get::<_, String>(2)?, row.get(3)?, body))
    };
    let (place, frame_type, content_type, correlation_id, bytes) =
        columns().map_err(|error: rusqlite::Error| fault(&error))?;
    let content_type = ContentType::new(content_type)
        .map_err(|error| EngineError::corruption(format!("frame: {error}")))?;
    Ok(Frame {
        id: FrameId::from_packed(place),
        mode,
        frame_type,
        content: Content { content_type, bytes },
        correlation_id,
    })
}
