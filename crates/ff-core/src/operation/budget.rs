//! Budgets: made, changed, begun anew, removed.

use std::collections::BTreeMap;

use serde::Serialize;

use super::command::Shape;
use crate::check::check_range;
use crate::error::Refusal;
use crate::id::{BudgetId, Dimension, DocumentId, ExecutionId, Namespace};
use crate::limits;
use crate::partition::PartitionConfig;
use crate::state::{BudgetScope, EnforcementMode, HardAction, Limits, SoftAction};
use crate::time::TimestampMs;

/// Makes a budget.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CreateBudget {
    pub budget_id: BudgetId,
    pub namespace: Namespace,
    pub scope: BudgetScope,
    pub enforcement_mode: EnforcementMode,
    pub on_hard_limit: HardAction,
    pub on_soft_limit: SoftAction,
    /// 0: never.
    pub reset_interval_ms: u64,
    /// Those without a limit are counted as soon as they are reported.
    pub dimensions: BTreeMap<Dimension, Limits>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetCreated {
    Created,
    AlreadySatisfied,
}

/// Replaces the limits of the named dimensions, and what else is given.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateBudget {
    pub budget_id: BudgetId,
    pub dimensions: BTreeMap<Dimension, Limits>,
    pub on_hard_limit: Option<HardAction>,
    pub on_soft_limit: Option<SoftAction>,
    /// Another interval is counted from now.
    pub reset_interval_ms: Option<u64>,
    /// Refuses if it has changed since.
    pub expected_revision: Option<u64>,
}

/// Begins the next period now.
#[derive(Debug, Clone, PartialEq)]
pub struct ResetBudget {
    pub budget_id: BudgetId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetReset {
    pub reset_count: u64,
    pub next_reset_at: Option<TimestampMs>,
}

/// Removes a budget with its ledgers.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteBudget {
    pub budget_id: BudgetId,
}

/// Attaches a budget to what its scope names.
#[derive(Debug, Clone, PartialEq)]
pub struct AttachBudget {
    pub budget_id: BudgetId,
    pub namespace: Namespace,
    pub scope: BudgetScope,
}

impl Shape for AttachBudget {
    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        self.scope.document(&self.namespace, partitions)
    }
}

/// Something that a budget meant for others has been done.
#[derive(Debug, Clone, PartialEq)]
pub struct SettleBudget {
    pub budget_id: BudgetId,
    pub done: BudgetErrand,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetErrand {
    Attach,
    /// Those that it kept back were let go.
    Admit {
        since: TimestampMs,
    },
    /// What ran under it was ended.
    Enforce {
        since: TimestampMs,
    },
}

impl Shape for SettleBudget {
    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::budget(self.budget_id, partitions))
    }
}

impl CreateBudget {
    /// A budget that counts, and limits nothing.
    pub fn new(budget_id: BudgetId, namespace: Namespace, scope: BudgetScope) -> Self {
        Self {
            budget_id,
            namespace,
            scope,
            enforcement_mode: EnforcementMode::default(),
            on_hard_limit: HardAction::default(),
            on_soft_limit: SoftAction::default(),
            reset_interval_ms: 0,
            dimensions: BTreeMap::new(),
        }
    }
}

impl UpdateBudget {
    /// Changes nothing.
    pub fn new(budget_id: BudgetId) -> Self {
        Self {
            budget_id,
            dimensions: BTreeMap::new(),
            on_hard_limit: None,
            on_soft_limit: None,
            reset_interval_ms: None,
            expected_revision: None,
        }
    }
}

fn check_limits(dimensions: &BTreeMap<Dimension, Limits>) -> Result<(), Refusal> {
    let most = limits::BUDGET_DIMENSIONS as u64;
    check_range("dimensions", dimensions.len() as u64, 0, most)?;
    for (name, limits) in dimensions {
        check_range("hard", limits.hard, 0, limits::AMOUNT_MAX)
            .and_then(|()| check_range("soft", limits.soft, 0, limits::AMOUNT_MAX))
            .map_err(|refusal| refusal.under(name).under("dimensions"))?;
    }
    Ok(())
}

fn check_interval(reset_interval_ms: u64) -> Result<(), Refusal> {
    check_range("reset_interval_ms", reset_interval_ms, 0, limits::DURATION_MAX_MS)
}

impl Shape for CreateBudget {
    fn check_shape(&self) -> Result<(), Refusal> {
        self.scope.check(&self.namespace)?;
        check_interval(self.reset_interval_ms)?;
        check_limits(&self.dimensions)
    }

    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::budget(self.budget_id, partitions))
    }
}

impl Shape for UpdateBudget {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_interval(self.reset_interval_ms.unwrap_or_default())?;
        check_limits(&self.dimensions)
    }

    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::budget(self.budget_id, partitions))
    }
}

impl Shape for ResetBudget {
    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::budget(self.budget_id, partitions))
    }
}

impl Shape for DeleteBudget {
    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, partitions: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::budget(self.budget_id, partitions))
    }
}
