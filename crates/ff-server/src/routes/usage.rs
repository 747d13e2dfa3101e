//! Usage that workers report.

use axum::response::Response;
use ff_api::again::Again;
use ff_api::fence::Shown;
use ff_api::usage::{Usage, UsageReply, UsageResult};
use ff_core::backend::BackendExt as _;
use ff_core::error::EngineError;
use ff_core::limits;
use ff_core::operation::{Spender, UsageReported};
use ff_core::read::{ListAttempts, Record};

use crate::call::Call;
use crate::failure::Failed;
use crate::route::Route;
use crate::route::Verb::Post;
use crate::{namespaces, reply};
use ff_core::state::Scope::WorkersClaim;

pub(super) const ROUTES: &[Route] = &[Route::new(
    Post,
    "/v1/executions/{execution_id}/usage",
    WorkersClaim,
    "Report what a task used",
    |call| Box::pin(usage(call)),
)
.takes::<Usage>()
.fenced()
.answers::<Again<UsageReply>>(200)];

async fn usage(mut call: Call) -> Result<Response, Failed> {
    let (fence, mut form): (_, Usage) = call.fenced()?;
    form.dedup_key = call.key(form.dedup_key, "dedup_key")?;
    let id = call.execution_id()?;
    let shown = fence.read(id, call.app.store())?;
    let record = call.record(id).await?;
    let attempt_index = match form.attempt_index {
        Some(index) => index,
        None => attempt(&call, &record, shown).await?,
    };
    let spender = Spender { execution_id: id, attempt_index };
    let reported = match form.budget_id {
        Some(budget_id) => {
            namespaces::budget(call.backend(), &call.namespace, budget_id).await?;
            vec![(budget_id, call.act(form.to_one(budget_id, spender)).await?)]
        }
        None => call.backend().report_to_all(form.to_all(spender)).await?,
    };
    let known = |(_, reported): &(_, UsageReported)| *reported == UsageReported::AlreadyApplied;
    let replayed = !reported.is_empty() && reported.iter().all(known);
    let results = reported.into_iter().map(|(id, reported)| UsageResult::new(id, reported));
    reply::repeated(UsageReply { results: results.collect() }, replayed)
}

/// Usage is a fact and not a right: it is labelled with the attempt of the fence, lost or not, and
/// without one with the current attempt.
async fn attempt(call: &Call, record: &Record, shown: Option<Shown>) -> Result<u32, EngineError> {
    let current = record.current_attempt_index.unwrap_or(0);
    let Some(shown) = shown else { return Ok(current) };
    if let Some(index) = shown.attempt_index {
        return Ok(index);
    }
    if record.current_attempt_id == Some(shown.fence.attempt_id) {
        return Ok(current);
    }
    let (execution_id, limit) = (record.execution_id, limits::PAGE_MAX);
    let attempts = call.ask(ListAttempts { execution_id, after: None, limit }).await?;
    let found = attempts.items.iter().find(|attempt| attempt.id == shown.fence.attempt_id);
    Ok(found.map_or(current, |attempt| attempt.index))
}
