//! Usage of executions that were removed: it stays used, and is nobody's.

use crate::backend::{Backend, BackendExt};
use crate::error::{Code, EngineError};
use crate::id::{BudgetId, ExecutionId, LaneId, Namespace};
use crate::limits;
use crate::operation::{DisownUsage, Operation};
use crate::read::{ReadLaneStanding, ReadState};

/// What executions used that were removed from a lane, of some budgets and of those of their lane and
/// namespace as these are now.
pub(crate) async fn disown<B: Backend + ?Sized>(
    backend: &B,
    (namespace, lane): (&Namespace, &LaneId),
    budget_ids: &[BudgetId],
    execution_ids: &[ExecutionId],
) -> Result<(), EngineError> {
    let of_lane = ReadLaneStanding { namespace: namespace.clone(), lane: lane.clone() };
    let mut all = backend.ask(of_lane).await?.budget_ids;
    all.extend(budget_ids.iter().filter(|id| !all.contains(id)).copied().collect::<Vec<_>>());
    let mut steps = Vec::new();
    for budget_id in all {
        steps.extend(steps_of(budget_id, execution_ids));
    }
    apply(backend, steps).await.map(|_| ())
}

/// Of the executions that a budget has ledgers of, those that are gone: how many those were.
pub async fn disown_gone<B: Backend + ?Sized>(
    backend: &B,
    budget_id: BudgetId,
    spenders: Vec<ExecutionId>,
) -> Result<u32, EngineError> {
    let questions = spenders.iter().map(|&execution_id| ReadState { execution_id }).collect();
    let answers = backend.ask_all(questions).await;
    let mut gone = Vec::new();
    for (id, answer) in spenders.into_iter().zip(answers) {
        // What cannot be read may be there.
        if matches!(answer, Ok(None)) {
            gone.push(id);
        }
    }
    apply(backend, steps_of(budget_id, &gone).collect()).await
}

fn steps_of(
    budget_id: BudgetId,
    execution_ids: &[ExecutionId],
) -> impl Iterator<Item = DisownUsage> {
    let some = execution_ids.chunks(limits::DISOWN_BATCH);
    some.map(move |some| DisownUsage { budget_id, execution_ids: some.to_vec() })
}

/// How many ledgers there were. A budget that is gone has none.
async fn apply<B: Backend + ?Sized>(
    backend: &B,
    steps: Vec<DisownUsage>,
) -> Result<u32, EngineError> {
    if steps.is_empty() {
        return Ok(0);
    }
    let mut ledgers = 0;
    for reply in backend.apply(steps.into_iter().map(Into::into).collect()).await {
        match reply.and_then(DisownUsage::reply) {
            Ok(disowned) => ledgers += disowned.ledgers,
            Err(error) if error.code() == Code::BudgetNotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(ledgers)
}
