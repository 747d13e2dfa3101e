//! How an attempt ends, or stops for a while, by its worker's word.

use axum::response::Response;
use ff_api::execution::{PutAside, State};
use ff_api::fence::Fence;
use ff_api::lease::Offered;
use ff_api::outcome::{Complete, Completed, Delay, Fail, Failed as AttemptFailed, WaitChildren};
use ff_core::error::Code;
use ff_core::id::{Authority, ExecutionId};
use ff_core::operation;
use ff_core::state::{PublicState, StateVector};
use ff_core::time::TimestampMs;

use super::leases::{offered, restrict};
use crate::call::Call;
use crate::failure::Failed;
use crate::reply;
use crate::route::Route;
use crate::route::Verb::Post;
use ff_core::state::Scope::{Admin, WorkersClaim};

/// A result of the largest size, in base64, with all that stands around it.
const COMPLETE_BYTES: usize = 3 << 19;

pub(super) const ROUTES: &[Route] = &[
    Route::new(
        Post,
        "/v1/executions/{execution_id}/complete",
        WorkersClaim,
        "Complete a task",
        |call| Box::pin(complete(call)),
    )
    .takes::<Complete>()
    .or(Admin)
    .fenced()
    .or_raw()
    .up_to(COMPLETE_BYTES)
    .answers::<Completed>(200),
    Route::new(Post, "/v1/executions/{execution_id}/fail", WorkersClaim, "Fail a task", |call| {
        Box::pin(fail(call))
    })
    .takes::<Fail>()
    .or(Admin)
    .fenced()
    .answers::<AttemptFailed>(200),
    Route::new(
        Post,
        "/v1/executions/{execution_id}/delay",
        WorkersClaim,
        "Put a task aside for a while",
        |call| Box::pin(delay(call)),
    )
    .takes::<Delay>()
    .or(Admin)
    .fenced()
    .answers::<PutAside>(200),
    Route::new(
        Post,
        "/v1/executions/{execution_id}/wait-children",
        WorkersClaim,
        "Let a task wait for other members of its flow",
        |call| Box::pin(wait_children(call)),
    )
    .takes::<WaitChildren>()
    .or(Admin)
    .fenced()
    .answers::<PutAside>(200),
];

/// The execution of the path and on whose authority the call acts on it. An operator shows no fence,
/// so for one the record is read anew, and a scope of its own is needed.
async fn authorized(
    call: &Call,
    fence: &Fence,
    source: Option<&str>,
) -> Result<(ExecutionId, Authority), Failed> {
    let id = call.execution_id()?;
    let authority = fence.authority(id, call.app.store(), source)?;
    match authority {
        Authority::Fence(_) => {
            call.caller.need(WorkersClaim)?;
            call.check(id).await?;
        }
        Authority::Override => {
            call.caller.need(Admin)?;
            call.record(id).await?;
        }
    }
    Ok((id, authority))
}

async fn complete(mut call: Call) -> Result<Response, Failed> {
    let (mut fields, raw) = call.fields();
    let fence = Fence::take(&mut fields)?;
    let mut form: Complete = fields.read()?;
    for lane in form.next.iter().flat_map(|next| next.lanes.iter().flatten()) {
        call.caller.check_lane(lane.name())?;
    }
    let (id, authority) = authorized(&call, &fence, form.source.as_deref()).await?;
    let mut offered = None;
    if form.next.as_ref().is_some_and(|next| !next.is_complete()) {
        offered = offered_by_holder(&call, id).await?;
        // Nothing is claimed for a worker that is gone; its completion counts all the same.
        form.next.take_if(|_| offered.is_none());
    }
    let mut complete = form.operation(id, authority, raw, offered)?;
    if let Some(next) = &mut complete.next {
        restrict(&call, &mut next.lanes)?;
    }
    let completed = call.act(complete).await?;
    for task in &completed.tasks {
        call.app.namespaces.note(task.execution_id, &task.namespace, &task.lane);
    }
    reply::ok(&Completed::from(completed))
}

/// What is registered of the worker that runs an execution; none if it is gone, or nobody does.
async fn offered_by_holder(call: &Call, id: ExecutionId) -> Result<Option<Offered>, Failed> {
    let Some(instance) = call.record(id).await?.worker_instance_id else { return Ok(None) };
    match offered(call, instance).await {
        Ok(offered) => Ok(Some(offered)),
        Err(error) if error.code() == Code::WorkerNotRegistered => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn fail(mut call: Call) -> Result<Response, Failed> {
    let (fence, form): (_, Fail) = call.fenced()?;
    let (id, authority) = authorized(&call, &fence, form.source.as_deref()).await?;
    reply::ok(&AttemptFailed::from(call.act(form.operation(id, authority)).await?))
}

async fn delay(mut call: Call) -> Result<Response, Failed> {
    let (fence, form): (_, Delay) = call.fenced()?;
    let (id, authority) = authorized(&call, &fence, form.source.as_deref()).await?;
    let delayed = call.act(form.operation(id, authority)?).await?;
    let operation::Delayed { delay_until, public_state, replayed } = delayed;
    put_aside(public_state, (Some(delay_until), None), replayed)
}

async fn wait_children(mut call: Call) -> Result<Response, Failed> {
    let (fence, form): (_, WaitChildren) = call.fenced()?;
    let (id, authority) = authorized(&call, &fence, form.source.as_deref()).await?;
    let wait = operation::WaitChildren { execution_id: id, authority, children: form.children };
    let operation::WaitingChildren { unresolved, public_state, replayed } = call.act(wait).await?;
    put_aside(public_state, (None, Some(unresolved)), replayed)
}

/// The state as the step left it, also when that is told again.
fn put_aside(
    public_state: PublicState,
    (delay_until, unresolved): (Option<TimestampMs>, Option<u32>),
    replayed: bool,
) -> Result<Response, Failed> {
    let State { state_vector, .. } = StateVector::put_aside(public_state).into();
    let delay_until = delay_until.map(Into::into);
    reply::ok(&PutAside { public_state, state_vector, delay_until, unresolved, replayed })
}
