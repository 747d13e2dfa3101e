//! Usage that a worker reports.

use std::collections::BTreeMap;

use ff_core::id::{BudgetId, Dimension, IdempotencyKey};
use ff_core::operation::{ReportToAll, ReportUsage, Spender, UsageReported};
use ff_core::state::{Breach, EnforcementMode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::reading::{Unreadable, present};

/// What an attempt used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Every budget that the execution stands under when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_id: Option<BudgetId>,
    #[schema(value_type = BTreeMap<String, u64>)]
    pub dimensions: BTreeMap<Dimension, u64>,
    /// Counted once for each key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedup_key: Option<IdempotencyKey>,
    /// `record` or `refuse`; as the budget says when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub mode: Option<EnforcementMode>,
    /// Which attempt used it; the one of the fence, or else the current one, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_index: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageReply {
    pub results: Vec<UsageResult>,
}

/// `ok`, `soft_breach`, `hard_breach` or `already_applied`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsageResult {
    pub budget_id: BudgetId,
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimension: Option<Dimension>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

impl Usage {
    /// A report to one budget.
    pub fn to_one(self, budget_id: BudgetId, spender: Spender) -> ReportUsage {
        ReportUsage {
            budget_id,
            spender,
            dimensions: self.dimensions,
            dedup_key: self.dedup_key,
            mode: self.mode,
        }
    }

    /// A report to every budget of the execution.
    pub fn to_all(self, spender: Spender) -> ReportToAll {
        ReportToAll {
            spender,
            dimensions: self.dimensions,
            dedup_key: self.dedup_key,
            mode: self.mode,
        }
    }
}

/// What became of a report, in a word, with the breach that it told of.
pub(crate) fn status(reported: UsageReported) -> (&'static str, Option<Breach>) {
    match reported {
        UsageReported::Ok => ("ok", None),
        UsageReported::AlreadyApplied => ("already_applied", None),
        UsageReported::SoftBreach(breach) => ("soft_breach", Some(breach)),
        UsageReported::HardBreach(breach) => ("hard_breach", Some(breach)),
    }
}

impl UsageResult {
    pub fn new(budget_id: BudgetId, reported: UsageReported) -> Self {
        let (status, breach) = status(reported);
        Self {
            budget_id,
            status: status.to_owned(),
            current: breach.as_ref().map(|breach| breach.current),
            limit: breach.as_ref().map(|breach| breach.limit),
            dimension: breach.map(|breach| breach.dimension),
        }
    }
}

impl From<ReportUsage> for Usage {
    /// Whose usage it is stands beside it.
    fn from(report: ReportUsage) -> Self {
        let ReportUsage { budget_id, spender, dimensions, dedup_key, mode } = report;
        let attempt_index = Some(spender.attempt_index);
        Self { budget_id: Some(budget_id), dimensions, dedup_key, mode, attempt_index }
    }
}

impl From<ReportToAll> for Usage {
    /// Whose usage it is stands beside it.
    fn from(report: ReportToAll) -> Self {
        let ReportToAll { spender, dimensions, dedup_key, mode } = report;
        let attempt_index = Some(spender.attempt_index);
        Self { budget_id: None, dimensions, dedup_key, mode, attempt_index }
    }
}

/// What became of a report.
pub(crate) fn reported(
    status: &str,
    dimension: Option<Dimension>,
    current: Option<u64>,
    limit: Option<u64>,
) -> Result<UsageReported, Unreadable> {
    let breach = || {
        Ok::<_, Unreadable>(Breach {
            dimension: present("dimension", dimension)?,
            current: present("current", current)?,
            limit: present("limit", limit)?,
        })
    };
    match status {
        "ok" => Ok(UsageReported::Ok),
        "already_applied" => Ok(UsageReported::AlreadyApplied),
        "soft_breach" => Ok(UsageReported::SoftBreach(breach()?)),
        "hard_breach" => Ok(UsageReported::HardBreach(breach()?)),
        other => Err(Unreadable::new("status", other)),
    }
}

impl UsageResult {
    /// What became of it.
    pub fn read(self) -> Result<(BudgetId, UsageReported), Unreadable> {
        let Self { budget_id, status, dimension, current, limit } = self;
        Ok((budget_id, reported(&status, dimension, current, limit)?))
    }
}
