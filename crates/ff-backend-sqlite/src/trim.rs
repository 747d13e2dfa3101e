//! Retention of what no timer removes: records of repetition, and the log.

use ff_core::operation::{Trim, Trimmed};
use ff_core::time::TimestampMs;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::statements;

/// One bounded step.
pub(crate) fn trim(
    connection: &mut Connection,
    trim: &Trim,
    now: TimestampMs,
) -> rusqlite::Result<Trimmed> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let dedup_records =
        transaction.prepare_cached(statements::trim_dedup)?.execute(params![now.0, trim.most])?;
    let events = trim_events(&transaction, trim)?;
    let (frames, more_frames) = trim_frames(&transaction, trim, now)?;
    transaction.commit()?;
    Ok(Trimmed {
        dedup_records: u32::try_from(dedup_records).unwrap_or(u32::MAX),
        events,
        frames,
        more: dedup_records >= trim.most as usize || events >= trim.most || more_frames,
    })
}

/// Frames that have outlived their time, of one attempt and mode: how many, and whether there may
/// be more.
fn trim_frames(
    transaction: &Transaction<'_>,
    trim: &Trim,
    now: TimestampMs,
) -> rusqlite::Result<(u32, bool)> {
    let found = transaction
        .prepare_cached(statements::expired_frames)?
        .query_row(params![now.0], |row| {
            Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, u32>(1)?, row.get::<_, u8>(2)?))
        })
        .optional()?;
    let Some((id, attempt, mode)) = found else { return Ok((0, false)) };
    let frames = transaction
        .prepare_cached(statements::drop_frames)?
        .execute(params![id, attempt, mode, trim.most])?;
    if frames < trim.most as usize {
        transaction
            .prepare_cached(statements::delete_frame_expiry)?
            .execute(params![id, attempt, mode])?;
    }
    Ok((u32::try_from(frames).unwrap_or(u32::MAX), true))
}

fn trim_events(transaction: &Transaction<'_>, trim: &Trim) -> rusqlite::Result<u32> {
    let bounds = transaction
        .prepare_cached(statements::event_bounds)?
        .query_row([], |row| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?)))?;
    let (Some(oldest), Some(newest)) = bounds else { return Ok(0) };
    let size: f64 =
        transaction.prepare_cached(statements::event_size)?.query_row([], |row| row.get(0))?;
    #[expect(clippy::cast_possible_truncation, reason = "a float beyond i64 saturates")]
    let kept = (trim.event_bytes as f64 / size.max(1.0)) as i64;
    // Up to here by bytes; by time as far as the oldest stretch reaches. The newest one stays.
    let by_bytes = newest.saturating_sub(kept.max(1));
    let last = stretch(transaction, trim)?
        .into_iter()
        .take_while(|(number, time)| {
            *number < newest && (*number <= by_bytes || *time < trim.events_before.0)
        })
        .last();
    let Some((last, _)) = last else { return Ok(0) };
    transaction.prepare_cached(statements::trim_events)?.execute(params![last])?;
    Ok(u32::try_from(last - oldest + 1).unwrap_or(u32::MAX))
}

fn stretch(transaction: &Transaction<'_>, trim: &Trim) -> rusqlite::Result<Vec<(i64, i64)>> {
    let mut statement = transaction.prepare_cached(statements::oldest_events)?;
    let rows = statement.query_map(params![trim.most], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}
