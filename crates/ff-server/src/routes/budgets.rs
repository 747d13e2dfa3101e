//! Budgets: made, changed, used, begun anew, removed.

use axum::response::Response;
use ff_api::again::Again;
use ff_api::budget::{
    Budget, BudgetReply, ChangeBudget, Ledger, ListBudgets, NewBudget, Release, ReportUsage, Reset,
    UsageStatus,
};
use ff_api::list::Page;
use ff_core::error::{Code, EngineError};
use ff_core::id::{BudgetId, ExecutionId};
use ff_core::operation::{BudgetCreated, DeleteBudget, ReleaseBudget, ResetBudget, UsageReported};
use ff_core::read;
use ff_core::state::{BudgetScope, LimitId};

use super::manage::Nothing;
use crate::call::Call;
use crate::failure::Failed;
use crate::reply::Made;
use crate::route::Route;
use crate::route::Verb::{Delete, Get, Patch, Post};
use crate::{failure, lists, namespaces, reply};
use ff_core::state::Scope::{BudgetsWrite, ExecutionsRead};

pub(super) const ROUTES: &[Route] = &[
    Route::new(Post, "/v1/budgets", BudgetsWrite, "Make a budget", |call| Box::pin(create(call)))
        .takes::<NewBudget>()
        .answers::<Again<BudgetReply>>(201),
    Route::new(Get, "/v1/budgets", ExecutionsRead, "List budgets, newest first", |call| {
        Box::pin(list(call))
    })
    .asks::<ListBudgets>()
    .answers::<Page<Budget>>(200),
    Route::new(Get, "/v1/budgets/{budget_id}", ExecutionsRead, "Read a budget", |call| {
        Box::pin(get(call))
    })
    .answers::<Budget>(200),
    Route::new(Patch, "/v1/budgets/{budget_id}", BudgetsWrite, "Change a budget", |call| {
        Box::pin(change(call))
    })
    .takes::<ChangeBudget>()
    .answers::<Again<Budget>>(200),
    Route::new(Delete, "/v1/budgets/{budget_id}", BudgetsWrite, "Remove a budget", |call| {
        Box::pin(delete(call))
    })
    .takes::<Nothing>()
    .answers_nothing(),
    Route::new(
        Post,
        "/v1/budgets/{budget_id}/usage",
        BudgetsWrite,
        "Report what was used of a budget",
        |call| Box::pin(usage(call)),
    )
    .takes::<ReportUsage>()
    .answers::<Again<UsageStatus>>(200),
    Route::new(
        Get,
        "/v1/budgets/{budget_id}/ledgers/{execution_id}",
        ExecutionsRead,
        "Read what an execution used of a budget, by attempt",
        |call| Box::pin(ledger(call)),
    )
    .answers::<Ledger>(200),
    Route::new(
        Post,
        "/v1/budgets/{budget_id}/reset",
        BudgetsWrite,
        "Begin the next period of a budget now",
        |call| Box::pin(reset(call)),
    )
    .takes::<Nothing>()
    .answers::<Reset>(200),
    Route::new(
        Post,
        "/v1/budgets/{budget_id}/release",
        BudgetsWrite,
        "Give back what an execution used of a budget",
        |call| Box::pin(release(call)),
    )
    .takes::<Release>()
    .answers::<Again<UsageStatus>>(200),
];

async fn row(call: &Call, id: BudgetId) -> Result<Budget, EngineError> {
    Ok(Budget::from(*namespaces::budget(call.backend(), &call.namespace, id).await?))
}

/// The budget of the path, which is of the caller's namespace.
async fn own(call: &Call) -> Result<BudgetId, Failed> {
    let id = call.parsed("budget_id")?;
    namespaces::budget(call.backend(), &call.namespace, id).await?;
    Ok(id)
}

const fn made(created: BudgetCreated) -> Made {
    match created {
        BudgetCreated::Created => Made::Created,
        BudgetCreated::AlreadySatisfied => Made::Duplicate,
    }
}

async fn create(mut call: Call) -> Result<Response, Failed> {
    let form: NewBudget = call.body()?;
    let key = call.key(None, "budget_id")?;
    let operation = form.operation(call.namespace.clone(), key.as_ref())?;
    if let BudgetScope::Lane(lane) = &operation.scope {
        call.caller.check_lane(lane)?;
    }
    let id = operation.budget_id;
    let created = call.act(operation).await;
    let created = created
        .map_err(|error| failure::of_key(error, key.as_ref(), Code::BudgetAttachConflict))?;
    let budget = row(&call, id).await?;
    let (status, revision) = (made(created), budget.revision);
    let made = BudgetReply { status: status.word(), budget };
    let response = reply::made(&call, status, key.is_some(), &made, &format!("/budgets/{id}"))?;
    Ok(reply::tagged(response, revision))
}

async fn list(call: Call) -> Result<Response, Failed> {
    let form: ListBudgets = call.query()?;
    let (filter, paging) = form.read(call.namespace.clone())?;
    let question = |cursor, limit| read::ListBudgets { filter: filter.clone(), cursor, limit };
    lists::page::<Budget, _, _>(&call, paging, question).await
}

async fn get(call: Call) -> Result<Response, Failed> {
    let id = call.parsed("budget_id")?;
    let mut budget = row(&call, id).await?;
    let (namespace, by) = (call.namespace.clone(), Some(LimitId::Budget(id)));
    let kept_back = |cursor, limit| {
        let namespace = namespace.clone();
        read::ListLimited { namespace, by, behind: None, cursor, limit }
    };
    budget.blocked_count = Some(lists::estimate(&call, kept_back).await?);
    Ok(reply::tagged(reply::ok(&budget)?, budget.revision))
}

async fn change(mut call: Call) -> Result<Response, Failed> {
    let form: ChangeBudget = call.body()?;
    let id = own(&call).await?;
    let settled = call.act(form.operation(id, call.expected_revision()?)).await?;
    let budget = row(&call, id).await?;
    let revision = budget.revision;
    Ok(reply::tagged(reply::settled(budget, settled)?, revision))
}

async fn delete(mut call: Call) -> Result<Response, Failed> {
    let Nothing {} = call.body()?;
    let budget_id = own(&call).await?;
    let settled = call.act(DeleteBudget { budget_id }).await?;
    Ok(reply::gone(settled))
}

/// A key with lanes names executions of these. Others may name one that was removed.
async fn check_spender(call: &Call, id: Option<ExecutionId>) -> Result<(), EngineError> {
    match id {
        Some(id) if call.caller.lanes().is_some() => call.record(id).await.map(|_| ()),
        _ => Ok(()),
    }
}

async fn usage(mut call: Call) -> Result<Response, Failed> {
    let mut form: ReportUsage = call.body()?;
    form.dedup_key = call.key(form.dedup_key, "dedup_key")?;
    check_spender(&call, form.execution_id).await?;
    let reported = call.act(form.operation(own(&call).await?)).await?;
    let known = reported == UsageReported::AlreadyApplied;
    reply::repeated(UsageStatus::from(reported), known)
}

async fn ledger(call: Call) -> Result<Response, Failed> {
    let execution_id = call.execution_id()?;
    check_spender(&call, Some(execution_id)).await?;
    let question = read::ReadLedger { budget_id: own(&call).await?, execution_id };
    // It was there a moment ago: one that is gone by now holds nothing.
    let found = call.ask(question.clone()).await?.unwrap_or_default();
    reply::ok(&Ledger::of(&question, *found))
}

async fn reset(mut call: Call) -> Result<Response, Failed> {
    let Nothing {} = call.body()?;
    let budget_id = own(&call).await?;
    reply::ok(&Reset::from(call.act(ResetBudget { budget_id }).await?))
}

async fn release(mut call: Call) -> Result<Response, Failed> {
    let Release { execution_id } = call.body()?;
    check_spender(&call, Some(execution_id)).await?;
    let budget_id = own(&call).await?;
    let settled = call.act(ReleaseBudget { budget_id, execution_id }).await?;
    reply::settled(UsageStatus::ok(), settled)
}
