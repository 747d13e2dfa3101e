//! The rule of progress.

use super::Facts;
use super::draft::Halt;
use super::fence::live_or_leave;
use super::step::Step;
use crate::event::{EventData, EventKind};
use crate::limits::PROGRESS_EVENT_MS;
use crate::operation::{Progressed, UpdateProgress};
use crate::state::Progress;
use crate::time::TimestampMs;

pub(super) fn update(
    facts: &impl Facts,
    op: &UpdateProgress,
    now: TimestampMs,
) -> Result<Step<Progressed>, Halt> {
    let mut draft = live_or_leave(facts, op.execution_id, &op.fence, now)?;
    let last = draft.execution.progress.as_ref().map(|progress| progress.event_at);
    let tell = last.is_none_or(|last| now.since(last) >= PROGRESS_EVENT_MS);
    draft.execution.progress = Some(Progress {
        pct: op.pct,
        message: op.message.clone(),
        event_at: if tell { now } else { last.unwrap_or(now) },
    });
    if tell {
        let data = EventData::from([
            ("pct".to_owned(), u32::from(op.pct).into()),
            ("message".to_owned(), op.message.as_str().into()),
        ]);
        draft.event_with(EventKind::Progressed, data);
    }
    Ok(Step::done(Progressed, draft.finish().into()))
}
