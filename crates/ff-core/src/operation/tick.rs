//! What time does: the tick over everything due, and its parts callable for one execution.

use super::Errand;
use super::command::Shape;
use crate::check::check_range;
use crate::error::Refusal;
use crate::id::{ExecutionId, Home};
use crate::limits;
use crate::state::DueKind;

/// Carries out what is due, oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// None: wherever something is due.
    pub home: Option<Home>,
    /// Most entries of this step.
    pub most: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ticked {
    /// How many were carried out, by kind.
    pub fired: Vec<(DueKind, u32)>,
    /// More is due: tick again at once.
    pub more: bool,
    /// How many could not be carried out, because what is known of them is not sound.
    pub broken: u32,
    /// What the caller must do elsewhere; told again until that has been settled.
    pub errands: Vec<Errand>,
}

/// Expires the execution if its deadline has passed.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpireExecution {
    pub execution_id: ExecutionId,
}

/// Makes it eligible if its delay is over.
#[derive(Debug, Clone, PartialEq)]
pub struct PromoteDelayed {
    pub execution_id: ExecutionId,
}

/// Takes the lease away if it has run out.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkLeaseExpired {
    pub execution_id: ExecutionId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fired {
    Done,
    AlreadySatisfied(NotDue),
}

/// Why there was nothing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotDue {
    NotYetDue,
    AlreadyTerminal,
    ExecutionNotFound,
}

impl Ticked {
    pub fn total(&self) -> u32 {
        self.fired.iter().map(|(_, count)| count).sum()
    }

    pub(crate) fn count(&mut self, kind: DueKind) {
        self.add(kind, 1);
    }

    /// Takes over what another part of the same tick did.
    pub fn merge(&mut self, other: &Self) {
        for (kind, count) in &other.fired {
            self.add(*kind, *count);
        }
        self.more |= other.more;
        self.broken += other.broken;
        self.errands.extend(other.errands.iter().cloned());
    }

    fn add(&mut self, kind: DueKind, more: u32) {
        match self.fired.iter_mut().find(|(fired, _)| *fired == kind) {
            Some((_, count)) => *count += more,
            None => self.fired.push((kind, more)),
        }
    }
}

impl Shape for Tick {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_range("most", self.most.into(), 1, limits::TICK_ENTRIES.into())
    }

    fn target(&self) -> Option<ExecutionId> {
        None
    }
}

impl Shape for ExpireExecution {
    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}

impl Shape for PromoteDelayed {
    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}

impl Shape for MarkLeaseExpired {
    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}
