//! Usage of budgets: reported by workers, by operators and as spend of one execution, and given
//! back. The forms differ in what they must name; one rule serves them.

use std::collections::BTreeMap;

use super::command::Shape;
use crate::check::check_range;
use crate::error::Refusal;
use crate::id::{BudgetId, Dimension, DocumentId, ExecutionId, IdempotencyKey};
use crate::limits;
use crate::partition::PartitionConfig;
use crate::state::{Breach, EnforcementMode};

/// A worker tells what its attempt used.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportUsage {
    pub budget_id: BudgetId,
    pub spender: Spender,
    pub dimensions: BTreeMap<Dimension, u64>,
    /// Counted once for each key.
    pub dedup_key: Option<IdempotencyKey>,
    /// None: as the budget says.
    pub mode: Option<EnforcementMode>,
}

/// The same for every budget that its execution stands under, each a step of its own with the same
/// key. See [`crate::backend::BackendExt::report_to_all`].
#[derive(Debug, Clone, PartialEq)]
pub struct ReportToAll {
    pub spender: Spender,
    pub dimensions: BTreeMap<Dimension, u64>,
    pub dedup_key: Option<IdempotencyKey>,
    pub mode: Option<EnforcementMode>,
}

/// Whose usage it is. The budget stands in another partition than the execution, so this is a label
/// and proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spender {
    pub execution_id: ExecutionId,
    pub attempt_index: u32,
}

/// An operator tells what was used, with or without an execution.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportUsageAdmin {
    pub budget_id: BudgetId,
    pub execution_id: Option<ExecutionId>,
    pub dimensions: BTreeMap<Dimension, u64>,
    pub dedup_key: Option<IdempotencyKey>,
    pub mode: Option<EnforcementMode>,
}

/// What an execution has spent, in the budget's own mode.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordSpend {
    pub budget_id: BudgetId,
    pub execution_id: ExecutionId,
    pub dimensions: BTreeMap<Dimension, u64>,
    pub idempotency_key: Option<IdempotencyKey>,
}

/// Gives back what the ledger of an execution holds in this period.
#[derive(Debug, Clone, PartialEq)]
pub struct ReleaseBudget {
    pub budget_id: BudgetId,
    pub execution_id: ExecutionId,
}

/// Compares usage with what ledgers hold, so many of them a step: [`limits::RECOUNT_PAGES`].
#[derive(Debug, Clone, PartialEq)]
pub struct RecountBudget {
    pub budget_id: BudgetId,
    /// Makes usage what it must be.
    pub repair: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetRecounted {
    pub verdict: Verdict,
    /// Whose ledgers this step has looked at.
    pub spenders: Vec<ExecutionId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Usage is what ledgers hold and what is attributed to nobody.
    Sound,
    /// Another step goes on.
    More,
    /// It was not, and is now if that was asked for.
    Wrong(Vec<Miscounted>),
}

/// A dimension whose usage is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miscounted {
    pub dimension: Dimension,
    /// As it was.
    pub used: u64,
    /// As it must be.
    pub counted: u64,
}

/// What executions used that are removed, at most [`limits::DISOWN_BATCH`] of them, is attributed to
/// nobody from now on: it stays used, and nothing names them any more.
#[derive(Debug, Clone, PartialEq)]
pub struct DisownUsage {
    pub budget_id: BudgetId,
    pub execution_ids: Vec<ExecutionId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageDisowned {
    /// How many of them had a ledger.
    pub ledgers: u32,
}

/// What became of a report. A breach tells the total, which was counted, or in mode `refuse` the
/// total as it stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsageReported {
    Ok,
    SoftBreach(Breach),
    HardBreach(Breach),
    AlreadyApplied,
}

/// What all forms of a report say.
pub(crate) struct Report<'a> {
    pub(crate) budget_id: BudgetId,
    pub(crate) execution_id: Option<ExecutionId>,
    pub(crate) attempt_index: Option<u32>,
    pub(crate) dimensions: &'a BTreeMap<Dimension, u64>,
    pub(crate) key: Option<&'a IdempotencyKey>,
    pub(crate) mode: Option<EnforcementMode>,
}

impl ReportUsage {
    pub(crate) fn report(&self) -> Report<'_> {
        Report {
            budget_id: self.budget_id,
            execution_id: Some(self.spender.execution_id),
            attempt_index: Some(self.spender.attempt_index),
            dimensions: &self.dimensions,
            key: self.dedup_key.as_ref(),
            mode: self.mode,
        }
    }
}

impl ReportUsageAdmin {
    pub(crate) fn report(&self) -> Report<'_> {
        Report {
            budget_id: self.budget_id,
            execution_id: self.execution_id,
            attempt_index: None,
            dimensions: &self.dimensions,
            key: self.dedup_key.as_ref(),
            mode: self.mode,
        }
    }
}

impl RecordSpend {
    pub(crate) fn report(&self) -> Report<'_> {
        Report {
            budget_id: self.budget_id,
            execution_id: Some(self.execution_id),
            attempt_index: None,
            dimensions: &self.dimensions,
            key: self.idempotency_key.as_ref(),
            mode: None,
        }
    }
}

impl Report<'_> {
    fn check(&self) -> Result<(), Refusal> {
        check_deltas(self.dimensions)
    }
}

impl ReportToAll {
    /// Refuses what no budget would take, whether any applies or not.
    pub fn check(&self) -> Result<(), Refusal> {
        check_deltas(&self.dimensions)
    }
}

fn check_deltas(dimensions: &BTreeMap<Dimension, u64>) -> Result<(), Refusal> {
    let most = limits::BUDGET_DIMENSIONS as u64;
    check_range("dimensions", dimensions.len() as u64, 1, most)?;
    let mut deltas = dimensions.values();
    deltas.try_for_each(|delta| check_range("dimensions", *delta, 0, limits::AMOUNT_MAX))
}

impl Shape for ReportUsage {
    fn check_shape(&self) -> Result<(), Refusal> {
        self.report().check()
    }

    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::budget(self.budget_id, partitions))
    }
}

impl Shape for ReportUsageAdmin {
    fn check_shape(&self) -> Result<(), Refusal> {
        self.report().check()
    }

    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::budget(self.budget_id, partitions))
    }
}

impl Shape for RecordSpend {
    fn check_shape(&self) -> Result<(), Refusal> {
        self.report().check()
    }

    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::budget(self.budget_id, partitions))
    }
}

impl Shape for ReleaseBudget {
    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::budget(self.budget_id, partitions))
    }
}

impl Shape for DisownUsage {
    fn check_shape(&self) -> Result<(), Refusal> {
        let most = limits::DISOWN_BATCH as u64;
        check_range("execution_ids", self.execution_ids.len() as u64, 1, most)
    }

    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::budget(self.budget_id, partitions))
    }
}

impl Shape for RecountBudget {
    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::budget(self.budget_id, partitions))
    }
}
