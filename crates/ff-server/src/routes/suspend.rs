//! Suspends, and the waitpoints made before them.

use axum::response::Response;
use ff_api::fence::Fence;
use ff_api::suspend::{CreateWaitpoint, Suspend, Suspended, Waitpoint};
use ff_api::task::Signals;
use ff_core::id::{LeaseFence, LeaseId};
use ff_core::read::ObserveSignals;

use crate::call::Call;
use crate::failure::Failed;
use crate::reply;
use crate::route::Route;
use crate::route::Verb::{Get, Post};
use ff_core::state::Scope::{ExecutionsRead, PayloadsRead, WorkersClaim};

pub(super) const ROUTES: &[Route] = &[
    Route::new(
        Post,
        "/v1/executions/{execution_id}/waitpoints",
        WorkersClaim,
        "Make a waitpoint that keeps signals for a suspend to come",
        |call| Box::pin(create_waitpoint(call)),
    )
    .takes::<CreateWaitpoint>()
    .fenced()
    .answers::<Waitpoint>(201),
    Route::new(
        Post,
        "/v1/executions/{execution_id}/suspend",
        WorkersClaim,
        "Suspend a task until a condition is met",
        |call| Box::pin(suspend(call)),
    )
    .takes::<Suspend>()
    .fenced()
    .answers::<Suspended>(200),
    Route::new(
        Get,
        "/v1/executions/{execution_id}/resume-signals",
        ExecutionsRead,
        "List the signals that resumed the current attempt, or that of a fence",
        |call| Box::pin(resume_signals(call)),
    )
    .also(PayloadsRead)
    .asks::<Fence>()
    .answers::<Signals>(200),
];

async fn create_waitpoint(mut call: Call) -> Result<Response, Failed> {
    let (id, fence, form): (_, _, CreateWaitpoint) = call.leased().await?;
    let issued = call.act(form.operation(id, fence)).await?;
    let status = if issued.replayed { 200 } else { 201 };
    Ok(reply::not_stored(reply::json(status, &Waitpoint::from(issued))?))
}

async fn suspend(mut call: Call) -> Result<Response, Failed> {
    let (id, fence, mut form): (_, _, Suspend) = call.leased().await?;
    form.idempotency_key = call.key(form.idempotency_key, "idempotency_key")?;
    let by_key = form.idempotency_key.is_some();
    let suspended = call.act(form.operation(id, fence)?).await?;
    let known = suspended.replayed && by_key;
    let response = reply::not_stored(reply::ok(&Suspended::from(suspended))?);
    Ok(if known { reply::marked(response) } else { response })
}

async fn resume_signals(call: Call) -> Result<Response, Failed> {
    let id = call.execution_id()?;
    let fence: Fence = call.query()?;
    let shown = fence.read(id, call.app.store())?;
    let record = call.record(id).await?;
    if let Some(shown) = shown {
        let signals = call.ask(ObserveSignals { execution_id: id, fence: shown.fence }).await?;
        return reply::ok(&Signals { signals: signals.into_iter().map(Into::into).collect() });
    }
    let Some(attempt_id) = record.current_attempt_id else {
        return reply::ok(&Signals { signals: Vec::new() });
    };
    // Signals belong to the attempt; whose lease it is does not matter to who reads them.
    let lease_id = record.lease_id.unwrap_or_else(|| LeaseId::new(attempt_id.uuid()));
    let fence = LeaseFence { lease_id, lease_epoch: record.lease_epoch, attempt_id };
    let signals = call.ask(ObserveSignals { execution_id: id, fence }).await?;
    reply::ok(&Signals { signals: signals.into_iter().map(Into::into).collect() })
}
