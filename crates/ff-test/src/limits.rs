//! Short words for budgets and quota policies: namespace `default`, scope `custom`, and defaults for
//! the rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::event::{Detail, Event};
use ff_core::id::{
    BudgetId, Dimension, ExecutionId, IdempotencyKey, LeaseId, Namespace, QuotaPolicyId, Subject,
};
use ff_core::limits;
use ff_core::operation::{
    Admission, AdmissionReleased, CheckAdmission, Command, ConfirmAdmission, CreateBudget,
    CreateQuotaPolicy, HeldBy, RecordSpend, ReleaseAdmission, ReportUsage, ReportUsageAdmin,
    Spender, Submit, Tick,
};
use ff_core::policy::Policy;
use ff_core::read::{BudgetStatus, DescribeQuotaPolicy, GetBudgetStatus, QuotaPolicyDescribed};
use ff_core::state::{Attached, Breach, BudgetScope, Limits, QuotaSpec, SlotId};
use uuid::Uuid;

use crate::world::World;

pub fn dimension(name: &str) -> Dimension {
    Dimension::new(name).expect("a dimension")
}

pub fn amounts(pairs: &[(&str, u64)]) -> BTreeMap<Dimension, u64> {
    pairs.iter().map(|(name, amount)| (dimension(name), *amount)).collect()
}

/// Dimensions with their hard and soft limits.
pub fn limits_of(limits: &[(&str, u64, u64)]) -> BTreeMap<Dimension, Limits> {
    let limits = limits.iter();
    limits
        .map(|(name, hard, soft)| (dimension(name), Limits { hard: *hard, soft: *soft }))
        .collect()
}

pub fn key(text: &str) -> Option<IdempotencyKey> {
    Some(IdempotencyKey::new(text).expect("a key"))
}

/// A budget with these hard and soft limits.
pub fn budget(limits: &[(&str, u64, u64)]) -> CreateBudget {
    let scope = BudgetScope::Custom("tests".to_owned());
    let create = CreateBudget::new(BudgetId::mint(), Namespace::default(), scope);
    CreateBudget { dimensions: limits_of(limits), ..create }
}

/// What an operator reports, without an execution.
pub fn usage(budget_id: BudgetId, pairs: &[(&str, u64)]) -> ReportUsageAdmin {
    let (execution_id, dedup_key, mode) = (None, None, None);
    ReportUsageAdmin { budget_id, execution_id, dimensions: amounts(pairs), dedup_key, mode }
}

/// What a worker reports of attempt 0.
pub fn worked(budget_id: BudgetId, id: ExecutionId, pairs: &[(&str, u64)]) -> ReportUsage {
    let spender = Spender { execution_id: id, attempt_index: 0 };
    let (dedup_key, mode) = (None, None);
    ReportUsage { budget_id, spender, dimensions: amounts(pairs), dedup_key, mode }
}

pub fn spend(budget_id: BudgetId, execution_id: ExecutionId, pairs: &[(&str, u64)]) -> RecordSpend {
    RecordSpend { budget_id, execution_id, dimensions: amounts(pairs), idempotency_key: None }
}

pub fn breach(name: &str, current: u64, limit: u64) -> Breach {
    Breach { dimension: dimension(name), current, limit }
}

/// So many claims in so many seconds.
pub fn rate(max_requests_per_window: u32, window_seconds: u64) -> QuotaSpec {
    QuotaSpec { window_seconds, max_requests_per_window, ..QuotaSpec::default() }
}

/// So many at a time.
pub fn cap(max_concurrent: u32) -> QuotaSpec {
    QuotaSpec { max_concurrent, ..QuotaSpec::default() }
}

pub fn quota(spec: QuotaSpec) -> CreateQuotaPolicy {
    let quota_policy_id = QuotaPolicyId::mint();
    CreateQuotaPolicy { quota_policy_id, namespace: Namespace::default(), spec }
}

/// The slot of an execution's first lease.
pub fn first_lease(execution_id: ExecutionId) -> SlotId {
    SlotId { execution_id, lease_epoch: 1 }
}

pub fn check(quota_policy_id: QuotaPolicyId, slot: SlotId) -> CheckAdmission {
    let claimant = LeaseId::new(Uuid::nil());
    CheckAdmission { quota_policy_id, slot, claimant, opens_attempt: true, score: 0 }
}

/// A submit that stands under these.
pub fn under(world: &World, budgets: &[BudgetId], quota: Option<QuotaPolicyId>) -> Submit {
    let attached = Attached::new(budgets.iter().copied(), quota);
    Submit { policy: Arc::new(Policy { attached, ..Policy::default() }), ..world.work() }
}

impl World {
    /// An id of an execution that need not exist: budgets and quota policies only note it.
    pub fn somebody(&self) -> ExecutionId {
        ExecutionId::solo(Uuid::now_v7(), &self.backend.settings().partitions)
    }

    pub async fn budget(&self, create: CreateBudget) -> BudgetId {
        let id = create.budget_id;
        self.act(create).await;
        id
    }

    pub async fn status(&self, budget_id: BudgetId) -> Option<Box<BudgetStatus>> {
        self.backend.ask(GetBudgetStatus { budget_id }).await.expect("an answer")
    }

    /// How much is used, by dimension.
    pub async fn used(&self, id: BudgetId) -> BTreeMap<Dimension, u64> {
        let status = self.status(id).await.expect("a budget");
        status.dimensions.into_iter().map(|(name, counter)| (name, counter.used)).collect()
    }

    /// The operation is refused with this code, and the budget stays as it was.
    pub async fn refuses_on(&self, id: BudgetId, operation: impl Into<Command>, expected: Code) {
        let before = self.status(id).await;
        let error = self.command(operation.into()).await.expect_err("a refusal");
        assert_eq!(error.code(), expected, "{error}");
        assert_eq!(self.status(id).await, before, "{error}: it changed something");
    }

    /// All events about a budget, oldest first.
    pub async fn budget_events(&self, id: BudgetId) -> Vec<Event> {
        let is_of = |event: &Event| match &event.subject {
            Subject::Document(of) => *of.name == id.to_string(),
            Subject::Execution(_) => false,
        };
        let log = self.log().await.into_iter().map(|envelope| envelope.event);
        log.filter(is_of).collect()
    }

    pub async fn quota(&self, spec: QuotaSpec) -> QuotaPolicyId {
        let create = quota(spec);
        let id = create.quota_policy_id;
        self.act(create).await;
        id
    }

    pub async fn describe_quota(&self, quota_policy_id: QuotaPolicyId) -> QuotaPolicyDescribed {
        let limit = limits::PAGE_MAX;
        let query = DescribeQuotaPolicy { quota_policy_id, holders_from: 0, limit };
        *self.backend.ask(query).await.expect("an answer").expect("a policy")
    }

    /// Asks for a slot of an execution that is not there yet: its slot, and the answer.
    pub async fn admit(&self, id: QuotaPolicyId) -> (SlotId, Admission) {
        let slot = first_lease(self.somebody());
        (slot, self.act(check(id, slot)).await)
    }

    /// The same, and the lease begins at once if there is a slot.
    pub async fn begin(&self, id: QuotaPolicyId) -> (SlotId, Admission) {
        let (slot, admission) = self.admit(id).await;
        if let Admission::Admitted { .. } = admission {
            self.act(confirm(id, slot)).await;
        }
        (slot, admission)
    }

    pub async fn give_back(
        &self,
        quota_policy_id: QuotaPolicyId,
        slot: SlotId,
    ) -> AdmissionReleased {
        self.act(ReleaseAdmission::of_lease(quota_policy_id, slot)).await
    }
}

/// The lease of a slot is there.
pub fn confirm(quota_policy_id: QuotaPolicyId, slot: SlotId) -> ConfirmAdmission {
    ConfirmAdmission { quota_policy_id, slot, by: HeldBy::Lease, restore: None }
}

/// A slot, and no place in a window.
pub const ADMITTED: Admission = Admission::Admitted { keeps_place: false };

/// All that is due, in one step.
pub fn tick() -> Tick {
    Tick { home: None, most: limits::TICK_ENTRIES }
}

/// A number in the data of an event.
pub fn number(event: &Event, name: &str) -> i64 {
    match event.data.get(name) {
        Some(Detail::Number(number)) => *number,
        other => panic!("{name} is {other:?} in {event:?}"),
    }
}
