//! What users see of a budget.

use std::collections::BTreeMap;

use super::Seen;
use super::walk::{Listed, Walk};
use crate::id::{BudgetId, Dimension, ExecutionId, Namespace};
use crate::state::{
    Breach, Budget, BudgetScope, Counter, Document, EnforcementMode, HardAction, LastBreach, List,
    ListingPosition, SoftAction, used_up,
};
use crate::time::TimestampMs;

/// Usage, limits and breaches of a budget; none if there is no such.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GetBudgetStatus {
    pub budget_id: BudgetId,
}

/// What an execution used of a budget in this period, by attempt; none if there is no such budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadLedger {
    pub budget_id: BudgetId,
    pub execution_id: ExecutionId,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LedgerRead {
    /// Which period it is of.
    pub reset_count: u64,
    /// All that the execution used.
    pub usage: BTreeMap<Dimension, u64>,
    /// The part of it that each attempt used, of the newest [`crate::limits::LEDGER_ATTEMPTS`] that
    /// reported anything.
    pub attempts: BTreeMap<u32, BTreeMap<Dimension, u64>>,
    /// The rest: of earlier attempts, or reported without one.
    pub other: BTreeMap<Dimension, u64>,
}

/// Budgets of a namespace, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListBudgets {
    pub filter: BudgetFilter,
    pub cursor: Option<String>,
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BudgetFilter {
    pub namespace: Namespace,
    pub scope: Option<BudgetScope>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetStatus {
    pub budget_id: BudgetId,
    pub namespace: Namespace,
    /// Counts changes of the definition.
    pub revision: u64,
    pub scope: BudgetScope,
    pub enforcement_mode: EnforcementMode,
    pub on_hard_limit: HardAction,
    pub on_soft_limit: SoftAction,
    pub reset_interval_ms: u64,
    pub created_at: TimestampMs,
    /// Limits and usage of this period.
    pub dimensions: BTreeMap<Dimension, Counter>,
    pub breach_count: u64,
    pub soft_breach_count: u64,
    pub last_breach: Option<LastBreach>,
    /// What keeps new claims away now.
    pub blocked_by: Option<Breach>,
    pub reset_count: u64,
    pub next_reset_at: Option<TimestampMs>,
}

impl BudgetStatus {
    /// All that keeps new claims away now.
    pub fn used_up(&self) -> Vec<Breach> {
        used_up(&self.dimensions).collect()
    }

    /// As it is now: a period that is over has ended, whether the timer has come by or not.
    pub fn of(document: &Document, now: TimestampMs) -> Option<Self> {
        let mut budget: Budget = document.budget()?.clone();
        if budget.is_over(now) {
            budget.reset(now);
        }
        Some(Self {
            blocked_by: budget.breached(now),
            budget_id: budget.id,
            namespace: budget.namespace,
            revision: budget.definition,
            scope: budget.scope,
            enforcement_mode: budget.mode,
            on_hard_limit: budget.on_hard_limit,
            on_soft_limit: budget.on_soft_limit,
            reset_interval_ms: budget.reset_interval_ms,
            created_at: budget.created_at,
            dimensions: budget.dimensions,
            breach_count: budget.hard_breaches,
            soft_breach_count: budget.soft_breaches,
            last_breach: budget.last_breach,
            reset_count: budget.resets,
            next_reset_at: budget.next_reset_at,
        })
    }
}

impl Walk for ListBudgets {
    const LIST: List = List::Budget;

    type Item = BudgetStatus;

    fn namespace(&self) -> &Namespace {
        &self.filter.namespace
    }

    fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    fn limit(&self) -> u32 {
        self.limit
    }

    fn see(&self, _: &ListingPosition, found: Listed<'_>, now: TimestampMs) -> Seen<BudgetStatus> {
        let Listed::Document(document, _) = found else { return Seen::Passed };
        let asked = |found: &BudgetStatus| {
            self.filter.scope.as_ref().is_none_or(|scope| *scope == found.scope)
        };
        BudgetStatus::of(document, now).filter(asked).map_or(Seen::Passed, Seen::Item)
    }

    fn scope(&self) -> String {
        format!("budgets {:?}", self.filter)
    }
}
