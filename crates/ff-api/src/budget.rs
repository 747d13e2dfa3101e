//! Budgets: counters with limits.

use std::collections::BTreeMap;

use ff_core::id::{BudgetId, Dimension, ExecutionId, IdempotencyKey, Namespace};
use ff_core::operation::{
    BudgetReset, CreateBudget, ReportUsageAdmin, UpdateBudget, UsageReported,
};
use ff_core::read::{BudgetFilter, BudgetStatus, LedgerRead, ReadLedger};
use ff_core::state::{
    self, BreachKind, BudgetScope, Counter, EnforcementMode, HardAction, Limits, SoftAction,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::list::Counted;
use crate::object::Invalid;
use crate::problem::Failure;
use crate::reading::Unreadable;
use crate::time::{Time, some};
use crate::usage::{reported, status};

/// A new budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewBudget {
    /// Minted when absent; with an idempotency key it follows from the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_id: Option<BudgetId>,
    /// `flow`, `lane` or `namespace`, to which it is attached; `custom` for whatever names its id.
    pub scope_type: String,
    pub scope_id: String,
    /// `record` (when absent) or `refuse`: what a report does that would pass a hard limit.
    #[serde(default)]
    #[schema(value_type = String)]
    pub enforcement_mode: EnforcementMode,
    /// `block` (when absent), `cancel` or `fail`.
    #[serde(default)]
    #[schema(value_type = String)]
    pub on_hard_limit: HardAction,
    /// `warn` (when absent) or `ignore`.
    #[serde(default)]
    #[schema(value_type = String)]
    pub on_soft_limit: SoftAction,
    /// 0: never.
    #[serde(default)]
    pub reset_interval_ms: u64,
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, DimensionLimits>)]
    pub dimensions: BTreeMap<Dimension, DimensionLimits>,
}

/// 0: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DimensionLimits {
    pub hard: u64,
    pub soft: u64,
}

/// Replaces the limits of the named dimensions, and what else is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChangeBudget {
    #[schema(value_type = BTreeMap<String, DimensionLimits>)]
    pub dimensions: BTreeMap<Dimension, DimensionLimits>,
    #[schema(value_type = Option<String>)]
    pub on_hard_limit: Option<HardAction>,
    #[schema(value_type = Option<String>)]
    pub on_soft_limit: Option<SoftAction>,
    /// Counted from now.
    pub reset_interval_ms: Option<u64>,
}

/// A budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Budget {
    pub budget_id: BudgetId,
    pub revision: u64,
    pub namespace: Namespace,
    pub scope_type: String,
    pub scope_id: String,
    #[schema(value_type = String)]
    pub enforcement_mode: EnforcementMode,
    #[schema(value_type = String)]
    pub on_hard_limit: HardAction,
    #[schema(value_type = String)]
    pub on_soft_limit: SoftAction,
    pub reset_interval_ms: u64,
    /// Of this period.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub usage: BTreeMap<Dimension, u64>,
    #[schema(value_type = BTreeMap<String, DimensionLimits>)]
    pub dimensions: BTreeMap<Dimension, DimensionLimits>,
    pub breach_count: u64,
    pub soft_breach_count: u64,
    pub last_breach: Option<LastBreach>,
    /// What keeps new claims away now.
    pub blocked_by: Option<Breach>,
    /// Executions that it keeps back, counted up to 10,000; only where one budget is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_count: Option<u64>,
    pub reset_count: u64,
    pub next_reset_at: Option<Time>,
    pub created_at: Time,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LastBreach {
    pub at: Time,
    /// `hard` or `soft`.
    #[schema(value_type = String)]
    pub kind: BreachKind,
    pub dimension: Dimension,
}

/// A total, and the limit that it has reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Breach {
    pub dimension: Dimension,
    pub current: u64,
    pub limit: u64,
}

/// What became of a new budget, and how it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BudgetReply {
    /// `created`, or `duplicate` when the id or the key was there already.
    pub status: String,
    #[serde(flatten)]
    pub budget: Budget,
}

/// What an execution used of a budget in this period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ledger {
    pub budget_id: BudgetId,
    pub execution_id: ExecutionId,
    /// Which period it is of.
    pub reset_count: u64,
    /// All of it.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub usage: BTreeMap<Dimension, u64>,
    /// The part of each attempt that reported anything, of the newest 32.
    pub attempts: Vec<AttemptUsage>,
    /// The rest: of earlier attempts, or reported without one.
    #[schema(value_type = BTreeMap<String, u64>)]
    pub other: BTreeMap<Dimension, u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttemptUsage {
    pub attempt_index: u32,
    #[schema(value_type = BTreeMap<String, u64>)]
    pub usage: BTreeMap<Dimension, u64>,
}

impl Ledger {
    pub fn of(asked: &ReadLedger, read: LedgerRead) -> Self {
        let attempts = read.attempts.into_iter();
        let attempts = attempts.map(|(attempt_index, usage)| AttemptUsage { attempt_index, usage });
        Self {
            budget_id: asked.budget_id,
            execution_id: asked.execution_id,
            reset_count: read.reset_count,
            usage: read.usage,
            attempts: attempts.collect(),
            other: read.other,
        }
    }
}

impl From<Ledger> for LedgerRead {
    fn from(ledger: Ledger) -> Self {
        let attempts = ledger.attempts.into_iter();
        Self {
            reset_count: ledger.reset_count,
            usage: ledger.usage,
            attempts: attempts.map(|it| (it.attempt_index, it.usage)).collect(),
            other: ledger.other,
        }
    }
}

/// Which budgets, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ListBudgets {
    /// Together with `scope_id`.
    pub scope_type: Option<String>,
    pub scope_id: Option<String>,
    pub cursor: Option<String>,
    /// 1 to 500; 50 when absent.
    pub limit: Option<u32>,
    /// `estimate`: how many there are in all, counted up to a bound.
    pub count: Option<String>,
}

/// What was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportUsage {
    #[schema(value_type = BTreeMap<String, u64>)]
    pub dimensions: BTreeMap<Dimension, u64>,
    /// Counted once for each key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedup_key: Option<IdempotencyKey>,
    /// In whose ledger it is kept; in none when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// `record` or `refuse`; as the budget says when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub mode: Option<EnforcementMode>,
}

/// `ok`, `soft_breach`, `hard_breach` or `already_applied`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageStatus {
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimension: Option<Dimension>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reset {
    /// `ok`.
    pub status: String,
    pub reset_count: u64,
    pub next_reset_at: Option<Time>,
}

/// Gives back what the ledger of an execution holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Release {
    pub execution_id: ExecutionId,
}

fn limits(dimensions: BTreeMap<Dimension, DimensionLimits>) -> BTreeMap<Dimension, Limits> {
    let limits = |DimensionLimits { hard, soft }| Limits { hard, soft };
    dimensions.into_iter().map(|(name, form)| (name, limits(form))).collect()
}

impl NewBudget {
    /// The operation. `key` is the one of the header.
    pub fn operation(
        self,
        namespace: Namespace,
        key: Option<&IdempotencyKey>,
    ) -> Result<CreateBudget, Failure> {
        let named = key.map(|key| BudgetId::for_key(&namespace, key));
        let budget_id = crate::list::named("budget_id", self.budget_id, named)?;
        let scope = BudgetScope::parse(&self.scope_type, &self.scope_id)?;
        Ok(CreateBudget {
            enforcement_mode: self.enforcement_mode,
            on_hard_limit: self.on_hard_limit,
            on_soft_limit: self.on_soft_limit,
            reset_interval_ms: self.reset_interval_ms,
            dimensions: limits(self.dimensions),
            ..CreateBudget::new(budget_id.unwrap_or_else(BudgetId::mint), namespace, scope)
        })
    }
}

impl ChangeBudget {
    pub fn operation(self, budget_id: BudgetId, expected_revision: Option<u64>) -> UpdateBudget {
        UpdateBudget {
            budget_id,
            dimensions: limits(self.dimensions),
            on_hard_limit: self.on_hard_limit,
            on_soft_limit: self.on_soft_limit,
            reset_interval_ms: self.reset_interval_ms,
            expected_revision,
        }
    }
}

impl From<BudgetStatus> for Budget {
    fn from(found: BudgetStatus) -> Self {
        let counters = found.dimensions.iter();
        let usage = counters.clone().map(|(name, counter)| (name.clone(), counter.used));
        let dimensions = counters.map(|(name, counter)| {
            let Limits { hard, soft } = counter.limits;
            (name.clone(), DimensionLimits { hard, soft })
        });
        Self {
            usage: usage.collect(),
            dimensions: dimensions.collect(),
            budget_id: found.budget_id,
            revision: found.revision,
            namespace: found.namespace,
            scope_type: found.scope.scope_type().to_owned(),
            scope_id: found.scope.scope_id(),
            enforcement_mode: found.enforcement_mode,
            on_hard_limit: found.on_hard_limit,
            on_soft_limit: found.on_soft_limit,
            reset_interval_ms: found.reset_interval_ms,
            breach_count: found.breach_count,
            soft_breach_count: found.soft_breach_count,
            last_breach: found.last_breach.map(|breach| LastBreach {
                at: breach.at.into(),
                kind: breach.kind,
                dimension: breach.dimension,
            }),
            blocked_by: found.blocked_by.map(|breach| Breach {
                dimension: breach.dimension,
                current: breach.current,
                limit: breach.limit,
            }),
            blocked_count: None,
            reset_count: found.reset_count,
            next_reset_at: some(found.next_reset_at),
            created_at: found.created_at.into(),
        }
    }
}

impl ListBudgets {
    /// Which budgets, and which page of them.
    pub fn read(self, namespace: Namespace) -> Result<(BudgetFilter, Counted), Failure> {
        let scope = match (self.scope_type, self.scope_id) {
            (Some(scope_type), Some(scope_id)) => Some(BudgetScope::parse(&scope_type, &scope_id)?),
            (None, None) => None,
            _ => {
                let message = "scope_type and scope_id go together";
                return Err(Invalid::at("scope_id", message).into());
            }
        };
        let filter = BudgetFilter { namespace, scope };
        Ok((filter, Counted { cursor: self.cursor, limit: self.limit, count: self.count }))
    }
}

impl ReportUsage {
    pub fn operation(self, budget_id: BudgetId) -> ReportUsageAdmin {
        ReportUsageAdmin {
            budget_id,
            execution_id: self.execution_id,
            dimensions: self.dimensions,
            dedup_key: self.dedup_key,
            mode: self.mode,
        }
    }
}

impl From<UsageReported> for UsageStatus {
    fn from(reported: UsageReported) -> Self {
        let (word, breach) = status(reported);
        Self {
            status: word.to_owned(),
            current: breach.as_ref().map(|breach| breach.current),
            limit: breach.as_ref().map(|breach| breach.limit),
            dimension: breach.map(|breach| breach.dimension),
        }
    }
}

impl UsageStatus {
    pub fn ok() -> Self {
        UsageReported::Ok.into()
    }
}

impl From<BudgetReset> for Reset {
    fn from(reset: BudgetReset) -> Self {
        let BudgetReset { reset_count, next_reset_at } = reset;
        Self { status: "ok".to_owned(), reset_count, next_reset_at: some(next_reset_at) }
    }
}

fn shown(dimensions: BTreeMap<Dimension, Limits>) -> BTreeMap<Dimension, DimensionLimits> {
    let form = |Limits { hard, soft }| DimensionLimits { hard, soft };
    dimensions.into_iter().map(|(name, limits)| (name, form(limits))).collect()
}

impl From<CreateBudget> for NewBudget {
    /// Everything but the namespace, which stands beside the body.
    fn from(create: CreateBudget) -> Self {
        Self {
            budget_id: Some(create.budget_id),
            scope_type: create.scope.scope_type().to_owned(),
            scope_id: create.scope.scope_id(),
            enforcement_mode: create.enforcement_mode,
            on_hard_limit: create.on_hard_limit,
            on_soft_limit: create.on_soft_limit,
            reset_interval_ms: create.reset_interval_ms,
            dimensions: shown(create.dimensions),
        }
    }
}

impl From<UpdateBudget> for ChangeBudget {
    /// The expected revision stands beside the body.
    fn from(update: UpdateBudget) -> Self {
        Self {
            dimensions: shown(update.dimensions),
            on_hard_limit: update.on_hard_limit,
            on_soft_limit: update.on_soft_limit,
            reset_interval_ms: update.reset_interval_ms,
        }
    }
}

impl TryFrom<Budget> for BudgetStatus {
    type Error = Unreadable;

    /// How much of the usage ledgers of executions hold is not told: both parts are 0 here.
    fn try_from(budget: Budget) -> Result<Self, Unreadable> {
        let scope = BudgetScope::parse(&budget.scope_type, &budget.scope_id)
            .map_err(|refusal| Unreadable::new("scope_id", refusal))?;
        let counter = |(name, DimensionLimits { hard, soft })| {
            let used = budget.usage.get(&name).copied().unwrap_or(0);
            let limits = Limits { hard, soft };
            (name, Counter { limits, used, attributed: 0, unattributed: 0 })
        };
        Ok(Self {
            budget_id: budget.budget_id,
            namespace: budget.namespace,
            revision: budget.revision,
            scope,
            enforcement_mode: budget.enforcement_mode,
            on_hard_limit: budget.on_hard_limit,
            on_soft_limit: budget.on_soft_limit,
            reset_interval_ms: budget.reset_interval_ms,
            created_at: budget.created_at.into(),
            dimensions: budget.dimensions.into_iter().map(counter).collect(),
            breach_count: budget.breach_count,
            soft_breach_count: budget.soft_breach_count,
            last_breach: budget.last_breach.map(|breach| state::LastBreach {
                at: breach.at.into(),
                kind: breach.kind,
                dimension: breach.dimension,
            }),
            blocked_by: budget.blocked_by.map(|breach| state::Breach {
                dimension: breach.dimension,
                current: breach.current,
                limit: breach.limit,
            }),
            reset_count: budget.reset_count,
            next_reset_at: budget.next_reset_at.map(Into::into),
        })
    }
}

impl From<ReportUsageAdmin> for ReportUsage {
    fn from(report: ReportUsageAdmin) -> Self {
        let ReportUsageAdmin { execution_id, dimensions, dedup_key, mode, .. } = report;
        Self { dimensions, dedup_key, execution_id, mode }
    }
}

impl TryFrom<UsageStatus> for UsageReported {
    type Error = Unreadable;

    fn try_from(status: UsageStatus) -> Result<Self, Unreadable> {
        let UsageStatus { status, dimension, current, limit } = status;
        reported(&status, dimension, current, limit)
    }
}

impl From<Reset> for BudgetReset {
    fn from(reset: Reset) -> Self {
        let next_reset_at = reset.next_reset_at.map(Into::into);
        Self { reset_count: reset.reset_count, next_reset_at }
    }
}
