//! Waitpoints and signals.

use axum::response::Response;
use ff_api::again::Again;
use ff_api::list::{Counted, Page, Paging};
use ff_api::signal::{
    Approval, Closed, Inbox, OpenWaitpoint, Remint, Signal, Signalled, waitpoint,
};
use ff_api::suspend::Waitpoint;
use ff_api::worker::Reason;
use ff_core::content::Content;
use ff_core::error::{Code, EngineError, Refusal};
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::operation::{self, CloseWaitpoint, Decision, IssueToken, Settled, WaitpointRef};
use ff_core::read::{ListPendingWaitpoints, ListWaitpoints, WaitingFilter};

use super::reads::own;
use crate::call::Call;
use crate::caller::Who;
use crate::failure::Failed;
use crate::route::Route;
use crate::route::Verb::{Get, Post};
use crate::{lists, reply};
use ff_core::state::Scope::{Admin, ExecutionsRead, ExecutionsWrite, SignalsApprove, SignalsSend};

/// A payload of the largest size, in base64, with all that stands around it.
const SIGNAL_BYTES: usize = 384 << 10;

pub(super) const ROUTES: &[Route] = &[
    Route::new(
        Post,
        "/v1/executions/{execution_id}/signal",
        SignalsSend,
        "Send a signal to a waitpoint",
        |call| Box::pin(signal(call)),
    )
    .by_token()
    .takes::<Signal>()
    .or_raw()
    .up_to(SIGNAL_BYTES)
    .answers::<Again<Signalled>>(200),
    Route::new(
        Get,
        "/v1/executions/{execution_id}/pending-waitpoints",
        ExecutionsRead,
        "List the waitpoints of an execution that are not closed",
        |call| Box::pin(pending(call)),
    )
    .asks::<Paging>()
    .answers::<Page<OpenWaitpoint>>(200),
    Route::new(
        Get,
        "/v1/waitpoints",
        ExecutionsRead,
        "List the waitpoints of a namespace that are not closed",
        |call| Box::pin(inbox(call)),
    )
    .asks::<Inbox>()
    .answers::<Page<OpenWaitpoint>>(200),
    Route::new(
        Get,
        "/v1/executions/{execution_id}/waitpoints/{waitpoint}/token",
        Admin,
        "Sign the token of a waitpoint again",
        |call| Box::pin(token(call)),
    )
    .audited()
    .answers::<Waitpoint>(200),
    Route::new(
        Post,
        "/v1/executions/{execution_id}/waitpoints/{waitpoint}/token",
        Admin,
        "Replace the token of a waitpoint",
        |call| Box::pin(remint(call)),
    )
    .audited()
    .takes::<Remint>()
    .answers::<Waitpoint>(201),
    Route::new(
        Post,
        "/v1/executions/{execution_id}/waitpoints/{waitpoint}/approve",
        SignalsApprove,
        "Approve",
        |call| Box::pin(decide(call, Decision::Approve)),
    )
    .takes::<Approval>()
    .answers::<Again<Signalled>>(200),
    Route::new(
        Post,
        "/v1/executions/{execution_id}/waitpoints/{waitpoint}/deny",
        SignalsApprove,
        "Deny",
        |call| Box::pin(decide(call, Decision::Deny)),
    )
    .takes::<Approval>()
    .answers::<Again<Signalled>>(200),
    Route::new(
        Post,
        "/v1/executions/{execution_id}/waitpoints/{waitpoint}/close",
        ExecutionsWrite,
        "Close a waitpoint",
        |call| Box::pin(close(call)),
    )
    .takes::<Reason>()
    .answers::<Again<Closed>>(200),
];

/// Execution and waitpoint of the path.
async fn addressed(call: &Call) -> Result<(ExecutionId, WaitpointRef), Failed> {
    let at = waitpoint(call.part("waitpoint"))?;
    Ok((own(call).await?, at))
}

fn signalled(signalled: operation::Signalled) -> Result<Response, Failed> {
    let reply = Signalled::from(signalled);
    let replayed = reply.status == "duplicate";
    reply::repeated(reply, replayed)
}

async fn signal(mut call: Call) -> Result<Response, Failed> {
    let (fields, raw) = call.fields();
    let mut form: Signal = fields.read()?;
    form.idempotency_key = call.key(form.idempotency_key, "idempotency_key")?;
    form.check()?;
    let id = call.execution_id()?;
    let sent = deliver(&call, id, form, raw).await;
    signalled(sent.map_err(|failed| hidden(&call, failed))?)
}

async fn deliver(
    call: &Call,
    id: ExecutionId,
    form: Signal,
    raw: Option<Content>,
) -> Result<operation::Signalled, Failed> {
    let header = call.headers.get("ff-waitpoint-token").and_then(|value| value.to_str().ok());
    addressee(call, id).await?;
    Ok(call.act(form.operation(id, header, raw)?).await?)
}

/// Passes a signal to an execution that is there for the caller. Who shows only a token, where that is
/// enough, may leave the namespace out: the token is of one execution.
async fn addressee(call: &Call, id: ExecutionId) -> Result<(), EngineError> {
    let without_key = matches!(call.caller.who, Who::TokenBearer | Who::Everybody);
    if call.app.options.public_signals && without_key && !call.names_namespace {
        return Ok(());
    }
    call.record(id).await.map(|_| ())
}

/// Where a token is enough, guessing must not tell which executions and waitpoints there are: whoever
/// shows no token that opens the waitpoint is told the same.
fn hidden(call: &Call, failed: Failed) -> Failed {
    let tells = matches!(
        failed.code(),
        Code::ExecutionNotFound | Code::WaitpointNotFound | Code::MissingToken | Code::InvalidToken
    );
    if call.app.options.public_signals && tells {
        return Refusal::new(Code::InvalidToken, "the token is not valid here").into();
    }
    failed
}

async fn decide(mut call: Call, decision: Decision) -> Result<Response, Failed> {
    let form: Approval = call.body()?;
    form.check()?;
    let (id, at) = addressed(&call).await?;
    signalled(call.act(form.operation(id, at, decision, call.caller.name().to_owned())).await?)
}

async fn pending(call: Call) -> Result<Response, Failed> {
    let paging: Paging = call.query()?;
    let execution_id = own(&call).await?;
    let scope = ff_api::list::scope("waitpoints", &call.namespace, execution_id);
    let found = call.ask(ListWaitpoints { execution_id }).await?;
    let from = match paging.cursor.as_deref() {
        Some(text) => ff_core::cursor::decode::<u32>(&scope, text)?,
        None => 0,
    };
    let limit = checked(paging.limit())?;
    let all = found.len();
    let items = found.into_iter().skip(from as usize).take(limit as usize).map(Into::into);
    let end = from.saturating_add(limit);
    let next_cursor = (all > end as usize).then(|| ff_core::cursor::encode(&scope, &end));
    reply::page(&call, &Page::<OpenWaitpoint>::new(items.collect(), next_cursor))
}

fn checked(limit: u32) -> Result<u32, Failed> {
    if (1..=limits::PAGE_MAX).contains(&limit) {
        return Ok(limit);
    }
    let message = format!("limit is {limit}, allowed is 1 to {}", limits::PAGE_MAX);
    Err(ff_api::object::Invalid::at("limit", message).into())
}

async fn inbox(call: Call) -> Result<Response, Failed> {
    let Inbox { lane, reason, age, cursor, limit, count } = call.query()?;
    let namespace = call.namespace.clone();
    let lanes = call.caller.lanes_among(lane.into())?;
    let filter = WaitingFilter { namespace, lanes, reason, older_than_ms: age };
    let paging = Counted { cursor, limit, count };
    let question = |cursor, limit| ListPendingWaitpoints { filter: filter.clone(), cursor, limit };
    lists::page::<OpenWaitpoint, _, _>(&call, paging, question).await
}

async fn token(call: Call) -> Result<Response, Failed> {
    let (execution_id, waitpoint) = addressed(&call).await?;
    let issued = call.act(IssueToken { execution_id, waitpoint, remint: None }).await;
    let issued = issued.map_err(|error| match error.code() {
        // Nobody showed this token: its time is over, whoever asks.
        Code::TokenExpired => Failed::Problem(Box::new(call.problem(&error).with_status(409))),
        _ => error.into(),
    })?;
    Ok(reply::not_stored(reply::ok(&Waitpoint::from(issued))?))
}

async fn remint(mut call: Call) -> Result<Response, Failed> {
    let Remint { token_ttl_ms } = call.body()?;
    let (execution_id, waitpoint) = addressed(&call).await?;
    let remint = Some(operation::Remint { token_ttl_ms });
    let issued = call.act(IssueToken { execution_id, waitpoint, remint }).await?;
    Ok(reply::not_stored(reply::json(201, &Waitpoint::from(issued))?))
}

async fn close(mut call: Call) -> Result<Response, Failed> {
    let Reason { reason } = call.body()?;
    let (execution_id, waitpoint) = addressed(&call).await?;
    let settled = call.act(CloseWaitpoint { execution_id, waitpoint, reason }).await?;
    let status = match settled {
        Settled::Done => "closed",
        Settled::AlreadySatisfied => "already_closed",
    };
    reply::settled(Closed { status: status.to_owned() }, settled)
}
