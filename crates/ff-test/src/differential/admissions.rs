//! The part of random sequences in which claims ask limits, and limits act on what stands under them.

use ff_core::id::{
    BudgetId, ExecutionId, LeaseFence, LeaseId, QuotaPolicyId, WorkerId, WorkerInstanceId,
};
use ff_core::operation::{
    Applicant, Attach, AttachBudget, BlockForAdmission, BudgetErrand, Claim, ClaimAdmitted,
    Claimed, Command, EndForBudget, GrantAdmitted, SettleBudget, SettleSlots, SettleWaking,
    VoidAdmission,
};
use ff_core::state::{AdmissionReason, Attached, BudgetScope, HardAction, LimitId, OwedSlot};
use ff_core::time::TimestampMs;
use uuid::Uuid;

use super::limits::Limited;
use super::op::{FenceOf, Target};
use super::replay::{lane, namespace, newest};

/// One act of an admission; applicants are named by their place, counted from the newest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdmitOp {
    /// Lease what was set aside.
    Lease {
        of: Admitted,
        quota: Option<usize>,
        instance: u8,
    },
    /// Or grant it.
    Grant {
        of: Admitted,
        quota: Option<usize>,
        ttl_ms: u64,
    },
    Void(Admitted),
    Block {
        of: Admitted,
        budget: Option<usize>,
    },
    SettleSlots {
        target: Target,
        quota: usize,
        epoch: u64,
    },
    End {
        of: FenceOf,
        budget: usize,
        action: u8,
    },
    SettleWaking {
        quota: usize,
        targets: Vec<Target>,
    },
    Attach {
        budget: usize,
        scope: u8,
        namespace: u8,
    },
    /// `since` is so long ago.
    SettleBudget {
        budget: usize,
        done: u8,
        since_ms: i64,
    },
}

/// What was set aside for a claim, or any execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admitted {
    Applicant(usize),
    Target(Target),
}

/// Those that claims have set aside so far, and for whom.
#[derive(Debug, Default)]
pub(super) struct Applicants(Vec<(Applicant, WorkerInstanceId)>);

/// What sequences know when an act is made a command.
pub(super) struct Around<'a> {
    pub(super) limited: &'a Limited,
    pub(super) applicants: &'a Applicants,
    pub(super) now: TimestampMs,
}

impl Applicants {
    pub(super) fn note(&mut self, claim: &Claim, claimed: &Claimed) {
        let instance = &claim.worker_instance_id;
        self.0.extend(claimed.applicants.iter().cloned().map(|it| (it, instance.clone())));
    }

    /// Execution, epoch, lease and worker of what an act names.
    fn find(
        &self,
        of: Admitted,
        id: impl Fn(Target) -> ExecutionId,
    ) -> Option<(ExecutionId, u64, LeaseId, WorkerInstanceId)> {
        match of {
            Admitted::Applicant(n) => {
                let (it, instance) = newest(&self.0, n)?;
                Some((it.execution_id, it.lease_epoch, it.lease_id, instance.clone()))
            }
            Admitted::Target(target) => {
                let lease_id = LeaseId::new(Uuid::from_u128(9));
                let instance = WorkerInstanceId::new("pool-0").expect("an instance");
                Some((id(target), 1, lease_id, instance))
            }
        }
    }
}

impl Limited {
    fn attached(&self, n: u8) -> (Vec<BudgetId>, Option<QuotaPolicyId>) {
        let budgets = if n & 1 == 1 { vec![self.budget(0)] } else { Vec::new() };
        (budgets, (n & 2 == 2).then(|| self.quota(0)))
    }

    /// The newest budget, the newest policy, both, or nothing.
    pub(super) fn own(&self, n: u8) -> Attached {
        let (budgets, quota) = self.attached(n);
        Attached::new(budgets, quota)
    }

    /// The same in place of what was; none: all stays as it is.
    pub(super) fn instead(&self, n: Option<u8>) -> Attach {
        let Some((budgets, quota)) = n.map(|n| self.attached(n)) else { return Attach::default() };
        Attach { budget_ids: Some(budgets), quota_policy_id: Some(quota) }
    }
}

impl AdmitOp {
    pub(super) fn command(
        &self,
        around: &Around<'_>,
        fence: impl Fn(FenceOf) -> Option<(ExecutionId, LeaseFence)>,
        id: impl Fn(Target) -> ExecutionId,
    ) -> Option<Command> {
        let (limited, applicants) = (around.limited, around.applicants);
        Some(match self {
            Self::Lease { of, quota, instance } => {
                let (execution_id, lease_epoch, lease_id, of) = applicants.find(*of, id)?;
                let other = WorkerInstanceId::new(format!("pool-{instance}")).expect("an instance");
                let worker_instance_id = if *instance > 1 { of } else { other };
                lease(execution_id, lease_epoch, lease_id, worker_instance_id, {
                    quota.map(|n| limited.quota(n)).into_iter().collect()
                })
                .into()
            }
            Self::Grant { of, quota, ttl_ms } => {
                let (execution_id, lease_epoch, claimant, worker_instance_id) =
                    applicants.find(*of, id)?;
                let slots: Vec<_> = quota.map(|n| limited.quota(n)).into_iter().collect();
                GrantAdmitted {
                    execution_id,
                    lease_epoch,
                    worker_id: WorkerId::new("pool-0").expect("a worker"),
                    worker_instance_id,
                    grant_ttl_ms: *ttl_ms,
                    places: slots.clone(),
                    slots,
                    claimant,
                }
                .into()
            }
            Self::Void(of) => {
                let (execution_id, lease_epoch, ..) = applicants.find(*of, id)?;
                let quota_policy_id = Some(limited.quota(0));
                VoidAdmission { execution_id, lease_epoch, quota_policy_id }.into()
            }
            Self::Block { of, budget } => {
                let (execution_id, ..) = applicants.find(*of, id)?;
                let (reason, by) = match budget {
                    Some(n) => (AdmissionReason::Budget, LimitId::Budget(limited.budget(*n))),
                    None => (AdmissionReason::Quota, LimitId::Quota(limited.quota(0))),
                };
                let (reason, detail) = (reason.blocking_reason(), "no room".to_owned());
                BlockForAdmission { execution_id, reason, detail, by: Some(by) }.into()
            }
            Self::SettleSlots { target, quota, epoch } => {
                let (quota_policy_id, lease_epoch) = (limited.quota(*quota), *epoch);
                let slot = OwedSlot { quota_policy_id, lease_epoch, claimant: None };
                SettleSlots { execution_id: id(*target), slots: vec![slot] }.into()
            }
            Self::End { of, budget, action } => {
                let ((execution_id, fence), budget_id) = (fence(*of)?, limited.budget(*budget));
                let action =
                    [HardAction::Block, HardAction::Cancel, HardAction::Fail][usize::from(*action)];
                EndForBudget { execution_id, lease_id: fence.lease_id, budget_id, action }.into()
            }
            other => other.about_limits(around, id)?,
        })
    }

    fn about_limits(
        &self,
        around: &Around<'_>,
        id: impl Fn(Target) -> ExecutionId,
    ) -> Option<Command> {
        let limited = around.limited;
        Some(match self {
            Self::SettleWaking { quota, targets } => SettleWaking {
                quota_policy_id: limited.quota(*quota),
                execution_ids: targets.iter().take(1).map(|target| id(*target)).collect(),
                let_go: targets.iter().skip(1).map(|target| id(*target)).collect(),
            }
            .into(),
            Self::Attach { budget, scope, namespace: of } => {
                let namespace = namespace(*of);
                let scope = match scope {
                    0 => BudgetScope::Lane(lane(2)),
                    _ => BudgetScope::Namespace(namespace.clone()),
                };
                AttachBudget { budget_id: limited.budget(*budget), namespace, scope }.into()
            }
            Self::SettleBudget { budget, done, since_ms } => {
                let since = TimestampMs(around.now.0 - since_ms);
                let done = match done {
                    0 => BudgetErrand::Attach,
                    1 => BudgetErrand::Admit { since },
                    _ => BudgetErrand::Enforce { since },
                };
                SettleBudget { budget_id: limited.budget(*budget), done }.into()
            }
            _ => return None,
        })
    }
}

fn lease(
    execution_id: ExecutionId,
    lease_epoch: u64,
    lease_id: LeaseId,
    worker_instance_id: WorkerInstanceId,
    slots: Vec<QuotaPolicyId>,
) -> ClaimAdmitted {
    ClaimAdmitted {
        execution_id,
        lease_epoch,
        lease_id,
        worker_id: WorkerId::new("pool").expect("a worker"),
        worker_instance_id,
        lease_ttl_ms: 5_000,
        places: slots.clone(),
        slots,
    }
}
