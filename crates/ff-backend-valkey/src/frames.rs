//! Output of attempts: its stored form, and how it is read.

use std::sync::Arc;

use bytes::Bytes;
use ff_core::content::Content;
use ff_core::error::EngineError;
use ff_core::id::{ContentType, ExecutionId};
use ff_core::limits;
use ff_core::machine::{Family, RowKey};
use ff_core::read::{
    ReadSummary, ShelfFound, StreamFound, StreamPage, StreamRange, SummaryRead, attempt_not_found,
};
use ff_core::state::{Attempt, Execution, Frame, FrameId, FrameMode};
use ff_core::time::TimestampMs;
use redis::Value;

use crate::query::{self, not_found};
use crate::record::Entry;
use crate::store::Shared;
use crate::{read, reply};

/// What an entry holds of a frame besides its id; the mode is that of the stream.
pub(crate) fn encode(frame: &Frame) -> Result<Vec<u8>, EngineError> {
    let Frame { frame_type, content, correlation_id, .. } = frame;
    query::encode(&(frame_type, &content.content_type, correlation_id, &content.bytes))
}

fn decode(id: FrameId, mode: FrameMode, bytes: &[u8]) -> Result<Frame, EngineError> {
    type Stored = (String, ContentType, Option<String>, Bytes);
    let (frame_type, content_type, correlation_id, bytes): Stored = query::decode("frame", bytes)?;
    let content = Content { content_type, bytes };
    Ok(Frame { id, mode, frame_type, content, correlation_id })
}

fn frame_id(value: Value) -> Result<FrameId, EngineError> {
    let text = reply::text(value)?;
    let parts = text.split_once('-');
    let id =
        parts.and_then(|(ms, seq)| Some(FrameId { ms: ms.parse().ok()?, seq: seq.parse().ok()? }));
    id.ok_or_else(|| EngineError::corruption(format!("a frame has the id {text:?}")))
}

/// How many frames of a mode are stored, and the newest.
pub(crate) async fn stored(
    shared: &Shared,
    id: ExecutionId,
    index: u32,
    mode: FrameMode,
) -> Result<Option<(FrameMode, u64, FrameId)>, EngineError> {
    let key = shared.keys.frames(id, index, mode);
    let mut length = redis::cmd("XLEN");
    length.arg(&key);
    let length = reply::number(&shared.send(id.partition(), &length).await?)?.unsigned_abs();
    let mut newest = redis::cmd("XREVRANGE");
    newest.arg(&key).arg("+").arg("-").arg("COUNT").arg(1);
    let newest = reply::array(shared.send(id.partition(), &newest).await?)?.pop();
    let Some(newest) = newest else { return Ok(None) };
    let mut entry = reply::array(newest)?.into_iter();
    Ok(Some((mode, length, frame_id(reply::next(&mut entry)?)?)))
}

/// What one call finds of an attempt.
struct Found {
    now: TimestampMs,
    execution: Arc<Execution>,
    attempt: Attempt,
    next: Option<Attempt>,
    shelves: Vec<ShelfFound>,
}

pub(crate) async fn page(shared: &Shared, range: &StreamRange) -> Result<StreamPage, EngineError> {
    let modes: Vec<FrameMode> = range.modes().collect();
    let found =
        find(shared, range.execution_id, range.attempt_index, Some((range, &modes))).await?;
    let Found { now, execution, attempt, next, shelves } = found;
    let policy = execution.policy().stream;
    Ok(StreamFound { attempt, next, policy, shelves }.page(range, now))
}

pub(crate) async fn summary(
    shared: &Shared,
    query: &ReadSummary,
) -> Result<SummaryRead, EngineError> {
    let (id, index) = (query.execution_id, query.attempt_index);
    // Version and document are of one moment. An attempt that only the list knows has ended, and
    // neither changes any more.
    let rows = [(id.into(), RowKey::numbered(Family::Summary, index))];
    let names = vec![shared.keys.core(id)];
    let (now, mut values) = read::read_all(shared, id.partition(), names, &rows).await?;
    let core = values.bytes()?.ok_or_else(|| not_found(id))?;
    let row = values.bytes()?;
    let entry = Entry::decode(id, &core)?;
    let attempt = match in_record(&entry, index) {
        Some(attempt) => attempt.clone(),
        None => find(shared, id, index, None).await?.attempt,
    };
    let policy = &entry.execution.policy().stream;
    Ok(SummaryRead::of(&attempt, policy, row.as_deref(), now))
}

/// The attempt of an index, if the record itself has it.
fn in_record(entry: &Entry, index: u32) -> Option<&Attempt> {
    let mut attempts = entry.unlisted.iter().chain(&entry.execution.attempt);
    attempts.find(|attempt| attempt.index == index)
}

async fn find(
    shared: &Shared,
    id: ExecutionId,
    index: u32,
    wanted: Option<(&StreamRange, &[FrameMode])>,
) -> Result<Found, EngineError> {
    let modes = wanted.map(|(_, modes)| modes).unwrap_or_default();
    let mut call = shared.read_function("ff_frames");
    call.arg(2 + modes.len()).arg(shared.keys.core(id)).arg(shared.keys.attempts(id));
    for mode in modes {
        call.arg(shared.keys.frames(id, index, *mode));
    }
    shared.begin(&mut call).arg(index);
    let limit = wanted.map_or(0, |(range, _)| range.limit);
    call.arg(limit).arg(limits::STREAM_READ_BYTES);
    if let Some((range, modes)) = wanted {
        for mode in modes {
            let lasts = if *mode == FrameMode::BestEffort { limits::BEST_EFFORT_MS } else { 0 };
            call.arg(range.first.ms).arg(range.first.seq);
            call.arg(range.last.to_string()).arg(lasts);
        }
    }
    let mut items = reply::array(shared.send(id.partition(), &call).await?)?.into_iter();
    let now = reply::instant(&reply::next(&mut items)?)?;
    let core = reply::bytes(reply::next(&mut items)?)?;
    let entry = Entry::decode(id, &core.ok_or_else(|| not_found(id))?)?;
    let listed = [reply::next(&mut items)?, reply::next(&mut items)?];
    let [attempt, next] = listed.map(|value| {
        let bytes = reply::bytes(value)?;
        bytes.map(|bytes| query::decode::<Attempt>("attempt", &bytes)).transpose()
    });
    let at =
        |index: u32, listed: Option<Attempt>| listed.or_else(|| in_record(&entry, index).cloned());
    let shelves = modes.iter().zip(items).map(|(mode, found)| shelf(*mode, found));
    Ok(Found {
        now,
        attempt: at(index, attempt?).ok_or_else(|| attempt_not_found(id, index))?,
        next: at(index.saturating_add(1), next?),
        shelves: shelves.collect::<Result<_, _>>()?,
        execution: Arc::clone(&entry.execution),
    })
}

fn shelf(mode: FrameMode, found: Value) -> Result<ShelfFound, EngineError> {
    let mut items = reply::array(found)?.into_iter();
    let oldest = match reply::next(&mut items)? {
        Value::Nil | Value::Boolean(false) => None,
        id => Some(frame_id(id)?),
    };
    let faded = reply::number(&reply::next(&mut items)?)? == 1;
    let complete = reply::number(&reply::next(&mut items)?)? == 1;
    let mut frames = Vec::new();
    while let Some(id) = items.next() {
        let body = reply::some_bytes(reply::next(&mut items)?)?;
        frames.push(decode(frame_id(id)?, mode, &body)?);
    }
    Ok(ShelfFound { mode, oldest, faded, frames, complete })
}
