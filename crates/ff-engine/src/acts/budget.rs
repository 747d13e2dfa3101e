//! What a budget means for the executions under it.

use ff_core::backend::{Backend, BackendExt};
use ff_core::error::EngineError;
use ff_core::id::{BudgetId, Namespace};
use ff_core::limits;
use ff_core::operation::{BudgetErrand, Command, EndForBudget, Reply, SettleBudget, Settled};
use ff_core::read::{GetBudgetStatus, LeasesOf};
use ff_core::state::{HardAction, LimitId};
use ff_core::time::TimestampMs;
use ff_core::unblock;

/// A budget has room again: lets go what it has kept back, longest first. Says how many there were.
/// Should it be used up again meanwhile, the rest stays where it is.
pub async fn admit(
    backend: &dyn Backend,
    budget_id: BudgetId,
    namespace: &Namespace,
    since: TimestampMs,
) -> Result<u32, EngineError> {
    let mut admitted = 0;
    loop {
        let status = backend.ask(GetBudgetStatus { budget_id }).await?;
        if status.is_some_and(|status| status.blocked_by.is_some()) {
            break;
        }
        let by = LimitId::Budget(budget_id);
        match unblock::let_go(backend, namespace, by, limits::PAGE_MAX).await? {
            0 => break,
            more => admitted += more,
        }
    }
    settle(backend, budget_id, BudgetErrand::Admit { since }).await?;
    Ok(admitted)
}

/// Ends what runs under a budget that is used up. Says how many there were.
pub async fn enforce(
    backend: &dyn Backend,
    (budget_id, action): (BudgetId, HardAction),
    namespace: &Namespace,
    since: TimestampMs,
) -> Result<u32, EngineError> {
    let (mut ended, mut cursor) = (0, None);
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
        ended += carried_out(backend, end.collect()).await?;
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    settle(backend, budget_id, BudgetErrand::Enforce { since }).await?;
    Ok(ended)
}

/// Carries out steps of which some may have become needless: how many were not.
async fn carried_out(backend: &dyn Backend, commands: Vec<Command>) -> Result<u32, EngineError> {
    if commands.is_empty() {
        return Ok(0);
    }
    let mut done = 0;
    for reply in backend.apply(commands).await {
        match reply {
            Ok(Reply::EndForBudget(Settled::Done)) => done += 1,
            Ok(_) => {}
            Err(error) if error.refusal().is_some() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
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
