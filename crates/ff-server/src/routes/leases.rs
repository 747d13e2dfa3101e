//! Leases: claimed, renewed, and how far their work is.

use axum::response::Response;
use ff_api::lease::{
    Claim, Offered, Progress, RenewLease, RenewMany, Renewed, RenewedItem, RenewedMany, Tasks,
};
use ff_api::object::Invalid;
use ff_core::backend::BackendExt as _;
use ff_core::error::{Code, EngineError, Refusal};
use ff_core::id::WorkerInstanceId;
use ff_core::limits;
use ff_core::operation::{self, Command, LaneShare, Operation as _, Renew, Task, UpdateProgress};

use super::workers::{LEASES_BYTES, known, outcome, renewals};
use crate::call::Call;
use crate::failure::Failed;
use crate::reply;
use crate::route::Route;
use crate::route::Verb::Post;
use ff_core::state::Scope::WorkersClaim;

pub(super) const ROUTES: &[Route] = &[
    Route::new(Post, "/v1/leases", WorkersClaim, "Claim tasks for a worker", |call| {
        Box::pin(claim(call))
    })
    .takes::<Claim>()
    .waits_in_body(limits::CLAIM_WAIT_MS)
    .answers::<Tasks>(200),
    Route::new(Post, "/v1/leases/renew", WorkersClaim, "Renew many leases", |call| {
        Box::pin(renew_many(call))
    })
    .takes::<RenewMany>()
    .up_to(LEASES_BYTES)
    .answers::<RenewedMany>(200),
    Route::new(
        Post,
        "/v1/executions/{execution_id}/renew",
        WorkersClaim,
        "Renew a lease",
        |call| Box::pin(renew(call)),
    )
    .takes::<RenewLease>()
    .fenced()
    .answers::<Renewed>(200),
    Route::new(
        Post,
        "/v1/executions/{execution_id}/progress",
        WorkersClaim,
        "Tell how far a task is",
        |call| Box::pin(progress(call)),
    )
    .takes::<Progress>()
    .fenced()
    .answers_nothing(),
];

async fn claim(mut call: Call) -> Result<Response, Failed> {
    let form: Claim = call.body()?;
    for lane in form.lanes.iter().flatten() {
        call.caller.check_lane(lane.name())?;
    }
    let offered = match form.is_complete() {
        true => None,
        false => Some(offered(&call, form.worker_instance_id.clone()).await?),
    };
    let mut claim = form.operation(call.namespace.clone(), offered)?;
    restrict(&call, &mut claim.lanes)?;
    call.app.rotas.lend(&mut claim);
    let mut shutdown = call.app.shutdown.clone();
    let waiting = call.backend().claim(claim.clone(), call.wait);
    let Some(tasks) = shutdown.or(waiting).await else {
        return reply::ok(&Tasks { tasks: Vec::new() }).map(reply::telling_nothing);
    };
    let tasks = tasks?;
    call.app.rotas.charge(&claim, &tasks);
    reply::ok(&Tasks { tasks: tasks.into_iter().map(|task| handed_out(&call, task)).collect() })
}

/// Of the lanes that a worker is registered for, those of the key.
pub(super) fn restrict(call: &Call, lanes: &mut Vec<LaneShare>) -> Result<(), Refusal> {
    let named = lanes.len();
    lanes.retain(|share| call.caller.serves(&share.lane));
    if lanes.is_empty() && named > 0 {
        return Err(Refusal::new(Code::Forbidden, "the key is for none of the worker's lanes"));
    }
    Ok(())
}

/// What the registration says, for what the claim does not.
pub(super) async fn offered(
    call: &Call,
    instance: WorkerInstanceId,
) -> Result<Offered, EngineError> {
    let found = known(call, instance).await?.ok_or_else(|| {
        let detail = "the worker instance is not registered; register it first";
        Refusal::new(Code::WorkerNotRegistered, detail)
    })?;
    Ok(Offered { lanes: found.lanes, capabilities: found.capabilities })
}

/// The task on its way to its worker, whose next calls are about it.
pub(super) fn handed_out(call: &Call, task: Task) -> ff_api::task::Task {
    call.app.namespaces.note(task.execution_id, &task.namespace, &task.lane);
    task.into()
}

async fn renew_many(mut call: Call) -> Result<Response, Failed> {
    let form: RenewMany = call.body()?;
    if !(1..=limits::BATCH_ITEMS).contains(&form.items.len()) {
        let message = format!("1 to {} items are renewed at a time", limits::BATCH_ITEMS);
        return Err(Invalid::at("items", message).into());
    }
    let (passed, told) = renewals(&call, &form.items).await;
    let commands = passed.iter().cloned().map(Command::from).collect();
    let replies = call.backend().apply(commands).await.into_iter();
    let mut renewed = passed.iter().zip(replies.map(|reply| Renew::reply(reply?)));
    let items: Vec<RenewedItem> = told
        .into_iter()
        .filter_map(|told| match told {
            Some(told) => Some(told),
            None => renewed.next().map(|(lease, result)| outcome(&call, lease, &result)),
        })
        .enumerate()
        .map(|(number, item)| item.placed("items", number))
        .collect();
    reply::ok(&RenewedMany { items })
}

async fn renew(mut call: Call) -> Result<Response, Failed> {
    let (execution_id, fence, RenewLease { ttl_ms }) = call.leased().await?;
    let renewed = call.act(Renew { execution_id, fence, ttl_ms }).await?;
    reply::ok(&Renewed { expires_at: renewed.expires_at.into() })
}

async fn progress(mut call: Call) -> Result<Response, Failed> {
    let (execution_id, fence, form): (_, _, Progress) = call.leased().await?;
    let pct = u8::try_from(form.pct)
        .map_err(|_| Invalid::at("pct", format!("pct is {}, allowed is 0 to 100", form.pct)))?;
    let operation::Progressed =
        call.act(UpdateProgress { execution_id, fence, pct, message: form.message }).await?;
    Ok(reply::nothing())
}
