//! Output of attempts, read from maps.

use ff_core::error::EngineError;
use ff_core::limits;
use ff_core::machine::{Facts as _, Family, RowKey};
use ff_core::read::{
    ReadSummary, ShelfFound, StreamFound, StreamPage, StreamRange, SummaryRead, attempt_not_found,
};
use ff_core::state::FrameMode;
use ff_core::time::TimestampMs;

use super::State;
use super::backend::existing;

pub(super) fn page(
    state: &State,
    range: &StreamRange,
    now: TimestampMs,
) -> Result<StreamPage, EngineError> {
    let execution = existing(state, range.execution_id)?;
    let (id, index) = (range.execution_id, range.attempt_index);
    let attempt = state.attempt(execution, index).ok_or_else(|| attempt_not_found(id, index))?;
    let found = StreamFound {
        attempt,
        next: state.attempt(execution, index.saturating_add(1)),
        policy: execution.policy().stream,
        shelves: range.modes().map(|mode| shelf(state, range, mode, now)).collect(),
    };
    Ok(found.page(range, now))
}

fn shelf(state: &State, range: &StreamRange, mode: FrameMode, now: TimestampMs) -> ShelfFound {
    let stored = state.frames.get(&(range.execution_id, range.attempt_index, mode));
    let (first, last) = range.of(mode, now);
    let within = || stored.into_iter().flatten().filter(|f| first <= f.id && f.id <= last);
    let mut bytes = 0;
    let frames: Vec<_> = within()
        .take_while(|frame| {
            let fits = bytes < limits::STREAM_READ_BYTES;
            bytes += frame.content.bytes.len();
            fits
        })
        .cloned()
        .collect();
    let mut ids = stored.into_iter().flatten().map(|frame| frame.id);
    let shown_from = StreamRange::shown_from(mode, now);
    let oldest = ids.next();
    let faded = oldest.is_some_and(|oldest| oldest < shown_from);
    ShelfFound {
        mode,
        oldest: oldest.into_iter().chain(ids).find(|id| *id >= shown_from),
        faded,
        complete: frames.len() == within().count(),
        frames,
    }
}

pub(super) fn summary(
    state: &State,
    query: &ReadSummary,
    now: TimestampMs,
) -> Result<SummaryRead, EngineError> {
    let (id, index) = (query.execution_id, query.attempt_index);
    let execution = existing(state, id)?;
    let attempt = state.attempt(execution, index).ok_or_else(|| attempt_not_found(id, index))?;
    let row = state.row(&id.into(), &RowKey::numbered(Family::Summary, index)).unwrap_or_default();
    Ok(SummaryRead::of(&attempt, &execution.policy().stream, row.as_deref(), now))
}
