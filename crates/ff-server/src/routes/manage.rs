//! What operators do to executions.

use axum::response::Response;
use ff_api::again::Again;
use ff_api::execution::Record;
use ff_api::manage::{
    Cancel, Cancelled, ChangePriority, Hold, PriorityChanged, Replay, Replayed, Resume,
    RevokeLease, Revoked, SetTags, TagsSet,
};
use ff_core::id::ExecutionId;
use ff_core::operation::{self, Settled};
use ff_core::tags::Tags;
use serde::Deserialize;
use utoipa::ToSchema;

use super::reads::own;
use crate::call::Call;
use crate::failure::Failed;
use crate::route::Route;
use crate::route::Verb::{Delete, Patch, Post, Put};
use crate::{flows, reply};
use ff_core::state::Scope::{Admin, ExecutionsWrite};

pub(super) const ROUTES: &[Route] = &[
    Route::new(
        Post,
        "/v1/executions/{execution_id}/cancel",
        ExecutionsWrite,
        "Cancel an execution",
        |call| Box::pin(cancel(call)),
    )
    .takes::<Cancel>()
    .fenced()
    .answers::<Cancelled>(200),
    Route::new(
        Put,
        "/v1/executions/{execution_id}/priority",
        ExecutionsWrite,
        "Change the priority of an execution",
        |call| Box::pin(change_priority(call)),
    )
    .takes::<ChangePriority>()
    .answers::<PriorityChanged>(200),
    Route::new(
        Post,
        "/v1/executions/{execution_id}/replay",
        ExecutionsWrite,
        "Give an ended execution another generation",
        |call| Box::pin(replay(call)),
    )
    .takes::<Replay>()
    .answers::<Replayed>(200),
    Route::new(
        Post,
        "/v1/executions/{execution_id}/revoke-lease",
        ExecutionsWrite,
        "Take a lease away",
        |call| Box::pin(revoke_lease(call)),
    )
    .takes::<RevokeLease>()
    .answers::<Revoked>(200),
    Route::new(
        Post,
        "/v1/executions/{execution_id}/hold",
        ExecutionsWrite,
        "Keep an execution from being claimed",
        |call| Box::pin(hold(call)),
    )
    .takes::<Hold>()
    .answers::<Again<Record>>(200),
    Route::new(
        Post,
        "/v1/executions/{execution_id}/release",
        ExecutionsWrite,
        "Release an execution that is held",
        |call| Box::pin(release(call)),
    )
    .takes::<Hold>()
    .answers::<Again<Record>>(200),
    Route::new(
        Post,
        "/v1/executions/{execution_id}/resume",
        ExecutionsWrite,
        "Resume a suspended execution by hand",
        |call| Box::pin(resume(call)),
    )
    .takes::<Resume>()
    .answers::<Record>(200),
    Route::new(
        Patch,
        "/v1/executions/{execution_id}/tags",
        ExecutionsWrite,
        "Put tags over those of an execution",
        |call| Box::pin(set_tags(call)),
    )
    .takes::<SetTags>()
    .answers::<TagsSet>(200),
    Route::new(
        Delete,
        "/v1/executions/{execution_id}",
        Admin,
        "Remove an ended execution",
        |call| Box::pin(delete(call)),
    )
    .takes::<Nothing>()
    .answers_nothing(),
];

/// No fields.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

async fn cancel(mut call: Call) -> Result<Response, Failed> {
    let (fence, form): (_, Cancel) = call.fenced()?;
    let id = call.execution_id()?;
    let shown = fence.read(id, call.app.store())?;
    let operation = form.operation(id, shown.map(|shown| shown.fence))?;
    own(&call).await?;
    reply::ok(&Cancelled::from(call.act(operation).await?))
}

async fn change_priority(mut call: Call) -> Result<Response, Failed> {
    let ChangePriority { new_priority: priority } = call.body()?;
    let execution_id = own(&call).await?;
    let changed = call.act(operation::ChangePriority { execution_id, priority }).await?;
    reply::ok(&PriorityChanged::from(changed))
}

async fn replay(mut call: Call) -> Result<Response, Failed> {
    let Replay { descendants } = call.body()?;
    let execution_id = call.execution_id()?;
    let record = call.record(execution_id).await?;
    // Its descendants may be on any lane of its flow.
    if let Some(flow_id) = record.flow_id.filter(|_| descendants) {
        flows::flow(&call, flow_id).await?;
    }
    let replayed = call.act(operation::Replay { execution_id, descendants }).await?;
    reply::ok(&Replayed::from(replayed))
}

async fn revoke_lease(mut call: Call) -> Result<Response, Failed> {
    let RevokeLease { reason, expected_lease_id } = call.body()?;
    let execution_id = own(&call).await?;
    let revoke = operation::Revoke { execution_id, reason, expected_lease_id };
    reply::ok(&Revoked::from(call.act(revoke).await?))
}

async fn hold(mut call: Call) -> Result<Response, Failed> {
    let Hold { detail } = call.body()?;
    let execution_id = own(&call).await?;
    let settled = call.act(operation::Hold { execution_id, detail }).await?;
    as_it_is_now(&call, execution_id, settled).await
}

async fn release(mut call: Call) -> Result<Response, Failed> {
    let Hold { .. } = call.body()?;
    let execution_id = own(&call).await?;
    let settled = call.act(operation::Release { execution_id }).await?;
    as_it_is_now(&call, execution_id, settled).await
}

async fn resume(mut call: Call) -> Result<Response, Failed> {
    let Resume { detail: trigger, delay_ms } = call.body()?;
    let execution_id = own(&call).await?;
    call.act(operation::Resume { execution_id, trigger, delay_ms }).await?;
    as_it_is_now(&call, execution_id, Settled::Done).await
}

async fn as_it_is_now(call: &Call, id: ExecutionId, settled: Settled) -> Result<Response, Failed> {
    let record = Record::from(*call.record(id).await?);
    let revision = record.revision;
    Ok(reply::tagged(reply::settled(record, settled)?, revision))
}

async fn set_tags(mut call: Call) -> Result<Response, Failed> {
    let SetTags { tags } = call.body()?;
    let tags = Tags::new(tags)?;
    let execution_id = call.execution_id()?;
    call.record(execution_id).await?;
    let expected_revision = call.expected_revision()?;
    let set = call.act(operation::SetTags { execution_id, tags, expected_revision }).await?;
    let operation::TagsSet { count, revision } = set;
    Ok(reply::tagged(reply::ok(&TagsSet { count, revision })?, revision))
}

async fn delete(mut call: Call) -> Result<Response, Failed> {
    let Nothing {} = call.body()?;
    let execution_id = own(&call).await?;
    call.act(operation::Delete { execution_id }).await?;
    Ok(reply::nothing())
}
