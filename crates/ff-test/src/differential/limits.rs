//! The part of random sequences that counts usage and admits claims.

use std::collections::BTreeMap;

use ff_core::id::{
    BudgetId, Dimension, ExecutionId, IdempotencyKey, LeaseId, Namespace, QuotaPolicyId,
};
use ff_core::operation::{
    Admission, CheckAdmission, Command, ConfirmAdmission, CreateBudget, CreateQuotaPolicy,
    DeleteBudget, DeleteQuotaPolicy, DisownUsage, HeldBy, RecordSpend, RecountBudget,
    ReleaseAdmission, ReleaseBudget, Reply, ReportUsage, ReportUsageAdmin, ResetBudget, SlotEnd,
    Spender, UpdateBudget, UpdateQuotaPolicy,
};
use ff_core::state::{BudgetScope, EnforcementMode, HardAction, QuotaSpec, SlotId, SoftAction};
use uuid::Uuid;

use super::op::Target;
use super::replay::namespace;
use crate::limits::{amounts, cap, limits_of, rate};

/// One act on budgets and quota policies; these are named by their place among those made so far,
/// counted from the newest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitOp {
    CreateBudget {
        uuid: u128,
        again: Option<usize>,
        shape: u8,
        reset_ms: u64,
        namespace: u8,
    },
    UpdateBudget {
        budget: usize,
        shape: u8,
        reset_ms: Option<u64>,
        soft: Option<SoftAction>,
        expected_revision: Option<u64>,
    },
    Report(ReportOp),
    ReleaseBudget {
        budget: usize,
        target: Target,
    },
    Disown {
        budget: usize,
        targets: Vec<Target>,
    },
    RecountBudget {
        budget: usize,
        repair: bool,
    },
    ResetBudget {
        budget: usize,
    },
    DeleteBudget {
        budget: usize,
    },
    CreateQuota {
        uuid: u128,
        again: Option<usize>,
        spec: u8,
        namespace: u8,
    },
    UpdateQuota {
        quota: usize,
        spec: u8,
        expected_revision: Option<u64>,
    },
    DeleteQuota {
        quota: usize,
    },
    Check {
        quota: usize,
        slot: SlotOf,
        claimant: u8,
        opens_attempt: bool,
        score: i64,
    },
    Confirm {
        quota: usize,
        slot: SlotOf,
    },
    ReleaseSlot {
        quota: usize,
        slot: SlotOf,
        why: u8,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportOp {
    pub budget: usize,
    pub form: ReportForm,
    pub target: Target,
    pub amounts: u8,
    pub key: Option<u8>,
    pub mode: Option<EnforcementMode>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportForm {
    Worker,
    Operator,
    OperatorFor,
    Spend,
}

/// Which slot an act names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotOf {
    /// Of an execution, with an epoch.
    Lease(Target, u64),
    /// One that was taken, with the policy that gave it.
    Taken(usize),
}

/// What sequences have made of limits so far.
#[derive(Debug, Default)]
pub(super) struct Limited {
    budgets: Vec<BudgetId>,
    quotas: Vec<QuotaPolicyId>,
    slots: Vec<(QuotaPolicyId, SlotId)>,
}

fn newest<T: Copy>(items: &[T], n: usize) -> Option<T> {
    super::replay::newest(items, n).copied()
}

fn shape(n: u8) -> BTreeMap<Dimension, ff_core::state::Limits> {
    limits_of(match n % 5 {
        0 => &[("a", 10, 5)],
        1 => &[("a", 0, 3), ("b", 4, 0)],
        2 => &[("a", 6, 20)],
        3 => &[("b", 1, 1), ("c", 100, 0)],
        _ => &[],
    })
}

fn used(n: u8) -> BTreeMap<Dimension, u64> {
    amounts(match n % 7 {
        0 | 1 => &[("a", 1)],
        2 => &[("a", 3), ("b", 1)],
        3 => &[("a", 0)],
        4 => &[("b", 5)],
        5 => &[("a", 20), ("c", 1)],
        _ => &[],
    })
}

fn spec(n: u8) -> QuotaSpec {
    match n % 8 {
        0 => QuotaSpec::default(),
        1 => cap(1),
        2 | 3 => cap(2),
        4 => rate(2, 1),
        5 => QuotaSpec { max_concurrent: 2, jitter_ms: 100, ..rate(3, 5) },
        6 => QuotaSpec { max_concurrent: 1, ..rate(1, 1) },
        _ => rate(3, 0),
    }
}

impl Limited {
    /// Takes note of what a reply made.
    pub(super) fn note(&mut self, command: &Command, reply: &Reply) {
        match (command, reply) {
            (Command::CreateBudget(op), _) => self.budgets.push(op.budget_id),
            (Command::CreateQuotaPolicy(op), _) => self.quotas.push(op.quota_policy_id),
            (Command::CheckAdmission(op), Reply::CheckAdmission(Admission::Admitted { .. })) => {
                self.slots.push((op.quota_policy_id, op.slot));
            }
            _ => {}
        }
    }

    pub(super) fn budget(&self, n: usize) -> BudgetId {
        newest(&self.budgets, n).unwrap_or_else(|| BudgetId::new(Uuid::from_u128(n as u128)))
    }

    pub(super) fn quota(&self, n: usize) -> QuotaPolicyId {
        newest(&self.quotas, n).unwrap_or_else(|| QuotaPolicyId::new(Uuid::from_u128(n as u128)))
    }

    /// The policy and the slot that an act names.
    fn slot(
        &self,
        quota: usize,
        slot: SlotOf,
        id: impl Fn(Target) -> ExecutionId,
    ) -> Option<(QuotaPolicyId, SlotId)> {
        match slot {
            SlotOf::Lease(target, lease_epoch) => {
                Some((self.quota(quota), SlotId { execution_id: id(target), lease_epoch }))
            }
            SlotOf::Taken(n) => newest(&self.slots, n),
        }
    }

    pub(super) fn command(
        &self,
        op: &LimitOp,
        id: impl Fn(Target) -> ExecutionId,
    ) -> Option<Command> {
        Some(match op {
            LimitOp::CreateBudget { uuid, again, shape: n, reset_ms, namespace: of } => {
                let fresh = BudgetId::new(Uuid::from_u128(*uuid));
                let budget_id = again.map_or(fresh, |n| self.budget(n));
                create(budget_id, namespace(*of), *n, *reset_ms).into()
            }
            LimitOp::UpdateBudget { budget, shape: n, reset_ms, soft, expected_revision } => {
                UpdateBudget {
                    budget_id: self.budget(*budget),
                    dimensions: shape(*n),
                    on_hard_limit: (*n == 3).then_some(HardAction::Cancel),
                    on_soft_limit: *soft,
                    reset_interval_ms: *reset_ms,
                    expected_revision: *expected_revision,
                }
                .into()
            }
            LimitOp::Report(report) => report.command(self.budget(report.budget), id),
            LimitOp::ReleaseBudget { budget, target } => {
                ReleaseBudget { budget_id: self.budget(*budget), execution_id: id(*target) }.into()
            }
            LimitOp::Disown { budget, targets } => {
                let execution_ids = targets.iter().map(|target| id(*target)).collect();
                DisownUsage { budget_id: self.budget(*budget), execution_ids }.into()
            }
            LimitOp::RecountBudget { budget, repair } => {
                RecountBudget { budget_id: self.budget(*budget), repair: *repair }.into()
            }
            LimitOp::ResetBudget { budget } => {
                ResetBudget { budget_id: self.budget(*budget) }.into()
            }
            LimitOp::DeleteBudget { budget } => {
                DeleteBudget { budget_id: self.budget(*budget) }.into()
            }
            other => return self.quota_command(other, id),
        })
    }

    fn quota_command(&self, op: &LimitOp, id: impl Fn(Target) -> ExecutionId) -> Option<Command> {
        Some(match op {
            LimitOp::CreateQuota { uuid, again, spec: n, namespace: of } => {
                let fresh = QuotaPolicyId::new(Uuid::from_u128(*uuid));
                let quota_policy_id = again.map_or(fresh, |n| self.quota(n));
                CreateQuotaPolicy { quota_policy_id, namespace: namespace(*of), spec: spec(*n) }
                    .into()
            }
            LimitOp::UpdateQuota { quota, spec: n, expected_revision } => UpdateQuotaPolicy {
                expected_revision: *expected_revision,
                ..UpdateQuotaPolicy::new(self.quota(*quota), spec(*n))
            }
            .into(),
            LimitOp::DeleteQuota { quota } => {
                DeleteQuotaPolicy { quota_policy_id: self.quota(*quota) }.into()
            }
            LimitOp::Check { quota, slot, claimant, opens_attempt, score } => {
                let (quota_policy_id, slot) = self.slot(*quota, *slot, id)?;
                let (opens_attempt, score) = (*opens_attempt, *score);
                let claimant = claimant_of(*claimant);
                CheckAdmission { quota_policy_id, slot, claimant, opens_attempt, score }.into()
            }
            LimitOp::Confirm { quota, slot } => {
                // One that may never have been taken is asked for as if it were lost.
                let restore = matches!(slot, SlotOf::Lease(..)).then(|| claimant_of(2));
                let by = if quota.is_multiple_of(3) { HeldBy::Grant } else { HeldBy::Lease };
                let (quota_policy_id, slot) = self.slot(*quota, *slot, id)?;
                ConfirmAdmission { quota_policy_id, slot, by, restore }.into()
            }
            LimitOp::ReleaseSlot { quota, slot, why } => {
                let (quota_policy_id, slot) = self.slot(*quota, *slot, id)?;
                let why = match *why {
                    0 => SlotEnd::LeaseOver,
                    1 => SlotEnd::NoLease,
                    4 => SlotEnd::NeverLeased,
                    claimant => SlotEnd::Unused(claimant_of(claimant)),
                };
                ReleaseAdmission { quota_policy_id, slot, why }.into()
            }
            _ => return None,
        })
    }
}

fn claimant_of(n: u8) -> LeaseId {
    LeaseId::new(Uuid::from_u128(n.into()))
}

fn create(budget_id: BudgetId, namespace: Namespace, n: u8, reset_ms: u64) -> CreateBudget {
    let scope = BudgetScope::Custom("random".to_owned());
    CreateBudget {
        enforcement_mode: EnforcementMode::ALL[usize::from(n) % 2],
        on_soft_limit: SoftAction::ALL[usize::from(n / 4) % 2],
        reset_interval_ms: reset_ms,
        dimensions: shape(n),
        ..CreateBudget::new(budget_id, namespace, scope)
    }
}

impl ReportOp {
    fn command(&self, budget_id: BudgetId, id: impl Fn(Target) -> ExecutionId) -> Command {
        let (dimensions, mode) = (used(self.amounts), self.mode);
        let key = self.key.map(|n| IdempotencyKey::new(format!("use-{n}")).expect("a key"));
        let execution_id = id(self.target);
        match self.form {
            ReportForm::Worker => ReportUsage {
                budget_id,
                spender: Spender { execution_id, attempt_index: 1 },
                dimensions,
                dedup_key: key,
                mode,
            }
            .into(),
            ReportForm::Operator | ReportForm::OperatorFor => ReportUsageAdmin {
                budget_id,
                execution_id: (self.form == ReportForm::OperatorFor).then_some(execution_id),
                dimensions,
                dedup_key: key,
                mode,
            }
            .into(),
            ReportForm::Spend => {
                RecordSpend { budget_id, execution_id, dimensions, idempotency_key: key }.into()
            }
        }
    }
}
