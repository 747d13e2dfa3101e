//! Parts of one execution.

use axum::response::Response;
use ff_api::attempt::Attempt;
use ff_api::bytes::Base64;
use ff_api::execution::{Explanation, Outcome, Payload, State};
use ff_api::list::{Page, Paging, scope};
use ff_api::signal::AcceptedSignal;
use ff_core::backend::BackendExt as _;
use ff_core::content::Content;
use ff_core::cursor;
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::read::{ListAttempts, ListSignals, ReadContext, ReadResult, attempt_not_found};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::call::Call;
use crate::failure::Failed;
use crate::namespaces::not_found;
use crate::route::Route;
use crate::route::Verb::Get;
use crate::{reply, settled};
use ff_core::state::Scope::{ExecutionsRead, PayloadsRead};

const OCTETS: &str = "application/octet-stream";

pub(super) const ROUTES: &[Route] = &[
    Route::new(
        Get,
        "/v1/executions/{execution_id}/state",
        ExecutionsRead,
        "Read the state of an execution",
        |call| Box::pin(state(call)),
    )
    .waits(limits::CLAIM_WAIT_MS)
    .answers::<State>(200),
    Route::new(
        Get,
        "/v1/executions/{execution_id}/result",
        ExecutionsRead,
        "Read the result of an execution",
        |call| Box::pin(result(call)),
    )
    .also(PayloadsRead)
    .asks::<OfAttempt>()
    .answers::<Outcome>(200),
    Route::new(
        Get,
        "/v1/executions/{execution_id}/payload",
        ExecutionsRead,
        "Read the payload of an execution",
        |call| Box::pin(payload(call)),
    )
    .also(PayloadsRead)
    .answers::<Payload>(200),
    Route::new(
        Get,
        "/v1/executions/{execution_id}/attempts",
        ExecutionsRead,
        "List the attempts at an execution",
        |call| Box::pin(attempts(call)),
    )
    .asks::<Paging>()
    .answers::<Page<Attempt>>(200),
    Route::new(
        Get,
        "/v1/executions/{execution_id}/attempts/{attempt_index}",
        ExecutionsRead,
        "Read an attempt",
        |call| Box::pin(attempt(call)),
    )
    .answers::<Attempt>(200),
    Route::new(
        Get,
        "/v1/executions/{execution_id}/signals",
        ExecutionsRead,
        "List the signals that an execution has accepted",
        |call| Box::pin(signals(call)),
    )
    .also(PayloadsRead)
    .asks::<Paging>()
    .answers::<Page<AcceptedSignal>>(200),
    Route::new(
        Get,
        "/v1/executions/{execution_id}/explain",
        ExecutionsRead,
        "Say why an execution is where it is",
        |call| Box::pin(explain(call)),
    )
    .answers::<Explanation>(200),
];

/// Of which attempt; the last success when absent.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct OfAttempt {
    attempt: Option<u32>,
}

/// The execution of the path, which is there for the caller.
pub(super) async fn own(call: &Call) -> Result<ExecutionId, Failed> {
    let id = call.execution_id()?;
    call.record(id).await?;
    Ok(id)
}

async fn state(call: Call) -> Result<Response, Failed> {
    let id = call.execution_id()?;
    let record = settled::record(&call, id).await?;
    reply::ok(&State::from(record.state))
}

async fn result(call: Call) -> Result<Response, Failed> {
    let OfAttempt { attempt: attempt_index } = call.query()?;
    let execution_id = own(&call).await?;
    let result = call.ask(ReadResult { execution_id, attempt_index }).await?;
    if call.accepts(OCTETS) {
        return Ok(reply::raw(result));
    }
    reply::ok(&Outcome { result_b64: Base64(result.bytes), content_type: result.content_type })
}

async fn payload(call: Call) -> Result<Response, Failed> {
    let execution_id = own(&call).await?;
    let context = call.ask(ReadContext { execution_id }).await?.ok_or_else(not_found)?;
    let (bytes, content_type) = (context.payload, context.content_type);
    if call.accepts(OCTETS) {
        return Ok(reply::raw(Content { content_type, bytes }));
    }
    reply::ok(&Payload { payload_b64: Base64(bytes), content_type })
}

async fn attempts(call: Call) -> Result<Response, Failed> {
    let paging: Paging = call.query()?;
    let execution_id = own(&call).await?;
    let scope = scope("attempts", &call.namespace, execution_id);
    let after = paging.cursor.as_deref().map(|text| cursor::decode(&scope, text)).transpose()?;
    let page = call.ask(ListAttempts { execution_id, after, limit: paging.limit() }).await?;
    let items: Vec<Attempt> = page.items.into_iter().map(Into::into).collect();
    let next_cursor = page.next.map(|index| cursor::encode(&scope, &index));
    reply::page(&call, &Page::new(items, next_cursor))
}

async fn attempt(call: Call) -> Result<Response, Failed> {
    let index: u32 = call.parsed("attempt_index")?;
    let execution_id = own(&call).await?;
    let after = index.checked_sub(1);
    let page = call.ask(ListAttempts { execution_id, after, limit: 1 }).await?;
    let found = page.items.into_iter().find(|attempt| attempt.index == index);
    reply::ok(&Attempt::from(found.ok_or_else(|| attempt_not_found(execution_id, index))?))
}

async fn signals(call: Call) -> Result<Response, Failed> {
    let paging: Paging = call.query()?;
    let execution_id = own(&call).await?;
    let scope = scope("signals", &call.namespace, execution_id);
    let from = paging.cursor.as_deref().map(|text| cursor::decode(&scope, text)).transpose()?;
    let (from, limit) = (from.unwrap_or(0), paging.limit());
    let page = call.ask(ListSignals { execution_id, from, limit }).await?;
    let items: Vec<AcceptedSignal> = page.items.into_iter().map(Into::into).collect();
    let next_cursor = page.next.map(|number| cursor::encode(&scope, &number));
    reply::page(&call, &Page::new(items, next_cursor))
}

async fn explain(call: Call) -> Result<Response, Failed> {
    let execution_id = own(&call).await?;
    let mut explanation = call.backend().explain(execution_id).await?.ok_or_else(not_found)?;
    // Who holds the slots of a quota may run on any lane.
    if call.caller.lanes().is_some()
        && let Some(evidence) = explanation.evidence.as_object_mut()
    {
        evidence.remove("holders");
    }
    reply::ok(&Explanation::from(explanation))
}
