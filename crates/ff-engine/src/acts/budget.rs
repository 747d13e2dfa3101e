//! What a budget means for the executions under it.

use ff_core::backend::{Backend, BackendExt};
use ff_core::each::{Each, each};
use ff_core::error::EngineError;
use ff_core::id::{BudgetId, Namespace};
use ff_core::limits;
use ff_core::operation::{BudgetErrand, EndForBudget, Reply, SettleBudget, Settled};
use ff_core::read::{GetBudgetStatus, LeasesOf};
use ff_core::state::{HardAction, LimitId};
use ff_core::time::TimestampMs;
use ff_core::unblock;

/// A budget has room again: lets go what it has kept back, longest first. Should it be used up again
/// meanwhile, the rest stays where it is.
pub async fn admit(
    backend: &dyn Backend,
    budget_id: BudgetId,
    namespace: &Namespace,
    since: TimestampMs,
) -> Result<Each, EngineError> {
    let mut all = Each::default();
    loop {
        let status = backend.ask(GetBudgetStatus { budget_id }).await?;
        if status.is_some_and(|status| status.blocked_by.is_some()) {
            break;
        }
        let by = LimitId::Budget(budget_id);
        let passes = |id| all.has_broken(id);
        let let_go = unblock::let_go(backend, namespace, by, limits::PAGE_MAX, passes).await?;
        let more = let_go.done > 0;
        all.add(let_go);
        if !more {
            break;
        }
    }
    settle(backend, budget_id, BudgetErrand::Admit { since }).await?;
    Ok(all)
}

/// Ends what runs under a budget that is used up.
pub async fn enforce(
    backend: &dyn Backend,
    (budget_id, action): (BudgetId, HardAction),
    namespace: &Namespace,
    since: TimestampMs,
) -> Result<Each, EngineError> {
    let (mut ended, mut cursor) = (Each::default(), None);
    loop {
        let page = backend
            .ask(LeasesOf {
                namespace: namespace.clone(),
                worker_instance_id: None,
                cursor,
                limit: limits::PAGE_MAX,
            })
            .await?;
        // Those that were claimed later have been asked for again if they are to end.
        let running = page.items.iter().filter(|lease| lease.acquired_at <= since);
        let end = running.map(|lease| {
            let (execution_id, lease_id) = (lease.execution_id, lease.lease_id);
            EndForBudget { execution_id, lease_id, budget_id, action }.into()
        });
        let is_done = |reply: &Reply| matches!(reply, Reply::EndForBudget(Settled::Done));
        ended.add(each(backend, end.collect(), is_done).await?);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    settle(backend, budget_id, BudgetErrand::Enforce { since }).await?;
    Ok(ended)
}

async fn settle(
    backend: &dyn Backend,
    budget_id: BudgetId,
    done: BudgetErrand,
) -> Result<(), EngineError> {
    match backend.call(SettleBudget { budget_id, done }).await {
        Err(error) if error.refusal().is_none() => Err(error),
        // One that is gone owes nothing.
        _ => Ok(()),
    }
}
