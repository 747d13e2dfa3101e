//! The rule of tags.

use super::Facts;
use super::draft::{Draft, Halt, existing};
use super::revision::check_revision;
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
    let revision = execution.revision;
    check_revision(op.expected_revision, revision)?;
    let tags = execution.tags.merged(&op.tags)?;
    let count = tags.len();
    if tags == execution.tags {
        return Ok(Step::unchanged(TagsSet { count, revision }));
    }
    let mut draft = Draft::of(execution, now);
    draft.execution.tags = tags;
    draft.event(EventKind::Tagged);
    let reply = TagsSet { count, revision: revision + 1 };
    Ok(Step::done(reply, draft.finish().into()))
}
