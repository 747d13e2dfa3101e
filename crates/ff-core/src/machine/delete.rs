//! The rule of delete, which retention uses too.

use super::draft::{Draft, Halt, existing};
use super::flow;
use super::replay::not_terminal;
use super::step::Step;
use super::{Changed, Facts};
use crate::event::{Detail, EventData, EventKind};
use crate::operation::{Delete, Deleted};
use crate::time::TimestampMs;

pub(super) fn delete(
    facts: &impl Facts,
    op: &Delete,
    now: TimestampMs,
) -> Result<Step<Deleted>, Halt> {
    let execution = existing(facts, op.execution_id)?;
    if !execution.is_terminal() {
        return Err(not_terminal(&execution).into());
    }
    match execution.member.clone() {
        Some(member) => flow::remove_member(facts, execution, &member, now),
        None => Ok(Step::done(Deleted, Draft::of(execution, now).delete().into())),
    }
}

impl Draft {
    /// Removes the execution. Its last event carries what can no longer be looked up.
    pub(super) fn delete(mut self) -> Changed {
        let tags = self.execution.tags.iter();
        let data = EventData::from([
            ("kind".to_owned(), self.execution.about.kind.as_str().into()),
            (
                "tags".to_owned(),
                Detail::Map(tags.map(|(k, v)| (k.to_owned(), v.to_owned())).collect()),
            ),
        ]);
        self.event_with(EventKind::Deleted, data);
        self.remove()
    }
}
