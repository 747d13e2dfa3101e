//! Grants: for schedulers that are not the worker, and for operators.

use axum::response::Response;
use ff_api::again::Again;
use ff_api::grant::{ClaimByName, ClaimForWorker, Grant, Reclaim, Reclaimed};
use ff_api::task::Task;
use ff_core::backend::BackendExt as _;
use ff_core::error::Code;
use ff_core::id::LeaseId;
use ff_core::operation;

use super::leases::handed_out;
use super::reads::own;
use crate::call::Call;
use crate::failure::Failed;
use crate::reply;
use crate::route::Route;
use crate::route::Verb::Post;
use ff_core::state::Scope::{Admin, WorkersClaim};

pub(super) const ROUTES: &[Route] = &[
    Route::new(
        Post,
        "/v1/workers/{worker_id}/claim",
        WorkersClaim,
        "Set the next execution aside for a worker",
        |call| Box::pin(claim_for_worker(call)),
    )
    .takes::<ClaimForWorker>()
    .answers::<Grant>(200),
    Route::new(
        Post,
        "/v1/executions/{execution_id}/claim",
        WorkersClaim,
        "Claim an execution from a grant",
        |call| Box::pin(claim(call)),
    )
    .takes::<ClaimByName>()
    .answers::<Again<Task>>(200),
    Route::new(
        Post,
        "/v1/executions/{execution_id}/reclaim",
        WorkersClaim,
        "Set an execution whose lease was lost aside",
        |call| Box::pin(reclaim(call)),
    )
    .takes::<Reclaim>()
    .answers::<Reclaimed>(200),
    Route::new(
        Post,
        "/v1/executions/{execution_id}/grant-and-claim",
        Admin,
        "Give an execution to a worker",
        |call| Box::pin(grant_and_claim(call)),
    )
    .takes::<ClaimByName>()
    .answers::<Again<Task>>(200),
];

async fn claim_for_worker(mut call: Call) -> Result<Response, Failed> {
    let form: ClaimForWorker = call.body()?;
    let claim = form.operation(call.namespace.clone(), call.parsed("worker_id")?)?;
    call.caller.check_lane(&claim.lane)?;
    match call.backend().claim_for_worker(claim).await? {
        Some(grant) => reply::ok(&Grant::from(grant)),
        None => Ok(reply::nothing()),
    }
}

async fn claim(mut call: Call) -> Result<Response, Failed> {
    let form: ClaimByName = call.body()?;
    let id = own(&call).await?;
    let claim = form.claim(id);
    let lease_id = claim.lease_id;
    match call.backend().take_up(claim).await {
        Err(error) if error.code() == Code::UseClaimResumedExecution => {
            let resumed = form.claim_resumed(id);
            let lease_id = resumed.lease_id;
            taken_up(&call, *call.backend().take_up(resumed).await?, lease_id)
        }
        taken => taken_up(&call, *taken?, lease_id),
    }
}

async fn reclaim(mut call: Call) -> Result<Response, Failed> {
    let form: Reclaim = call.body()?;
    call.caller.check_lane(&form.lane)?;
    let operation = form.operation(own(&call).await?)?;
    reply::ok(&Reclaimed::from(call.act(operation).await?))
}

async fn grant_and_claim(mut call: Call) -> Result<Response, Failed> {
    let form: ClaimByName = call.body()?;
    let id = own(&call).await?;
    let claim = form.grant_and_claim(id);
    let lease_id = claim.lease_id;
    taken_up(&call, *call.backend().take_up(claim).await?, lease_id)
}

/// The task of a claim that asked for a lease of this id: under another one it was given before.
fn taken_up(call: &Call, task: operation::Task, asked: LeaseId) -> Result<Response, Failed> {
    let replayed = task.lease_id != asked;
    reply::again(handed_out(call, task), replayed)
}
