//! The rule of tags.

use super::Facts;
use super::draft::{Draft, Halt, existing};
use super::step::Step;
use crate::event::EventKind;
use crate::operation::{SetTags, TagsSet};
use crate::time::TimestampMs;

pub(super) fn set(
    facts: &impl Facts,
    op: &SetTags,
    now: TimestampMs,
) -> Result<Step<TagsSet>, Halt> {
    let execution = existing(facts, op.execution_id)?;
    let tags = execution.tags.merged(&op.tags)?;
    let count = tags.len();
    if tags == execution.tags {
        return Ok(Step::unchanged(TagsSet { count }));
    }
    let mut draft = Draft::of(execution, now);
    draft.execution.tags = tags;
    draft.event(EventKind::Tagged);
    Ok(Step::done(TagsSet { count }, draft.finish().into()))
}
