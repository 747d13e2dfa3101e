//! Flows as a whole: made, found, waited for, cancelled, replayed, removed.

use std::time::Duration;

use axum::response::Response;
use ff_api::again::Again;
use ff_api::flow::{Cancel, Cancelled, Flow, ListFlows, Replay, Replayed};
use ff_api::graph::{FlowOperation, FlowReply, NewFlow};
use ff_api::list::{Counted, Page};
use ff_api::manage::{SetTags, TagsSet};
use ff_core::backend::BackendExt as _;
use ff_core::error::{Code, Refusal};
use ff_core::id::FlowId;
use ff_core::limits;
use ff_core::operation::{self, CreateFlow, FlowCreated, SetFlowTags};
use ff_core::read::{self, FlowFilter};
use ff_core::tags::Tags;

use super::executions::sign;
use super::manage::Nothing;
use crate::call::Call;
use crate::failure::Failed;
use crate::route::Route;
use crate::route::Verb::{Delete, Get, Patch, Post};
use crate::{flows, lists, reply, settled};
use ff_core::state::Scope::{Admin, ExecutionsRead, FlowsWrite};

/// Longest wait for the cancel of a flow.
const CANCEL_WAIT_MS: u64 = 300_000;

pub(super) const ROUTES: &[Route] = &[
    Route::new(Post, "/v1/flows", FlowsWrite, "Submit a graph, or make an empty flow", |call| {
        Box::pin(create(call))
    })
    .takes::<NewFlow>()
    .up_to(limits::FLOW_SUBMIT_BYTES)
    .answers::<Again<FlowReply>>(201),
    Route::new(Get, "/v1/flows", ExecutionsRead, "List flows, newest first", |call| {
        Box::pin(list(call))
    })
    .asks::<ListFlows>()
    .answers::<Page<Flow>>(200),
    Route::new(Get, "/v1/flows/{flow_id}", ExecutionsRead, "Read a flow", |call| {
        Box::pin(get(call))
    })
    .waits(limits::CLAIM_WAIT_MS)
    .answers::<Flow>(200),
    Route::new(Post, "/v1/flows/{flow_id}/cancel", FlowsWrite, "Cancel a flow", |call| {
        Box::pin(cancel(call))
    })
    .takes::<Cancel>()
    .waits_in_body(limits::CLAIM_WAIT_MS)
    .waits_if_told(CANCEL_WAIT_MS)
    .answers::<Cancelled>(200),
    Route::new(
        Post,
        "/v1/flows/{flow_id}/replay",
        FlowsWrite,
        "Run what failed in a flow again",
        |call| Box::pin(replay(call)),
    )
    .takes::<Replay>()
    .answers::<Replayed>(200),
    Route::new(
        Patch,
        "/v1/flows/{flow_id}/tags",
        FlowsWrite,
        "Put tags over those of a flow",
        |call| Box::pin(set_tags(call)),
    )
    .takes::<SetTags>()
    .answers::<TagsSet>(200),
    Route::new(
        Delete,
        "/v1/flows/{flow_id}",
        Admin,
        "Remove an ended flow with its members",
        |call| Box::pin(delete(call)),
    )
    .takes::<Nothing>()
    .answers_nothing(),
];

/// The flow of the path, which is of the caller's namespace.
pub(super) async fn own(call: &Call) -> Result<Box<read::FlowSnapshot>, Failed> {
    let id = call.flow_id()?;
    Ok(flows::flow(call, id).await?)
}

async fn create(mut call: Call) -> Result<Response, Failed> {
    let form: NewFlow = call.body()?;
    let key = call.key(form.idempotency_key.clone(), "idempotency_key")?;
    let partitions = call.backend().settings().partitions;
    let operation = form.operation(&call.namespace, key.as_ref(), &partitions)?;
    let reply = match operation {
        FlowOperation::Graph(mut submit) => {
            for member in &mut submit.members {
                sign(&call, &mut member.submit)?;
            }
            let edges = submit.edges.clone();
            FlowReply::of_graph(call.backend().submit_graph(*submit).await?, &edges)
        }
        FlowOperation::Empty(create) => make_empty(&call, create).await?,
    };
    let response = match (reply.is_new(), key) {
        (true, _) => reply::json(201, &reply)?,
        (false, None) => reply::again(&reply, true)?,
        (false, Some(_)) => reply::repeated(&reply, true)?,
    };
    Ok(reply::located(&call, response, &format!("/flows/{}", reply.flow_id)))
}

async fn make_empty(call: &Call, create: CreateFlow) -> Result<FlowReply, Failed> {
    let (flow_id, kind) = (create.flow_id, create.kind.clone());
    if call.act(create).await? == FlowCreated::Created {
        return Ok(FlowReply::of_empty(true, flow_id, 0));
    }
    let found = call.ask(read::DescribeFlow { flow_id }).await?;
    match found.filter(|found| found.namespace == call.namespace && found.kind == kind) {
        Some(found) => Ok(FlowReply::of_empty(false, flow_id, found.graph_revision)),
        None => {
            let detail = "the id or the key is that of another flow";
            Err(Refusal::new(Code::IdempotencyMismatch, detail).into())
        }
    }
}

async fn list(call: Call) -> Result<Response, Failed> {
    let form: ListFlows = call.query()?;
    let (filter, paging) = form.read(call.namespace.clone())?;
    if call.caller.lanes().is_some() {
        return list_own(&call, filter, paging).await;
    }
    let question = |cursor, limit| read::ListFlows { filter: filter.clone(), cursor, limit };
    lists::page::<Flow, _, _>(&call, paging, question).await
}

/// For a key with lanes: whose members are on other ones too is left out, so a page may be short.
async fn list_own(call: &Call, filter: FlowFilter, paging: Counted) -> Result<Response, Failed> {
    if paging.counts()? {
        let detail = "a count of flows needs a key of all lanes";
        return Err(Refusal::new(Code::Forbidden, detail).into());
    }
    let limit = paging.limit();
    let page = call.ask(read::ListFlows { filter, cursor: paging.cursor, limit }).await?;
    let mut items: Vec<Flow> = Vec::new();
    for flow in page.items {
        if flows::serves_members(call, flow.flow_id).await? {
            items.push(flow.into());
        }
    }
    reply::page(call, &Page::new(items, page.next_cursor))
}

async fn get(call: Call) -> Result<Response, Failed> {
    let id = call.flow_id()?;
    let found = settled::flow(&call, id).await?;
    let flow = Flow::from(*found);
    Ok(reply::tagged(reply::ok(&flow)?, flow.revision))
}

async fn cancel(mut call: Call) -> Result<Response, Failed> {
    let form: Cancel = call.body()?;
    let cancel = form.operation(own(&call).await?.flow_id);
    let mut shutdown = call.app.shutdown.clone();
    let waiting = call.backend().cancel_flow(cancel.clone(), call.wait);
    let cancelled = match shutdown.or(waiting).await {
        Some(cancelled) => cancelled?,
        None => call.backend().cancel_flow(cancel, Duration::ZERO).await?,
    };
    reply::ok(&Cancelled::from(cancelled))
}

async fn replay(mut call: Call) -> Result<Response, Failed> {
    let form: Replay = call.body()?;
    let flow_id = own(&call).await?.flow_id;
    reply::ok(&Replayed::from(call.act(form.operation(flow_id)).await?))
}

async fn set_tags(mut call: Call) -> Result<Response, Failed> {
    let SetTags { tags } = call.body()?;
    let tags = Tags::new(tags)?;
    let flow_id = own(&call).await?.flow_id;
    let expected_revision = call.expected_revision()?;
    let set = call.act(SetFlowTags { flow_id, tags, expected_revision }).await?;
    let operation::TagsSet { count, revision } = set;
    Ok(reply::tagged(reply::ok(&TagsSet { count, revision })?, revision))
}

async fn delete(mut call: Call) -> Result<Response, Failed> {
    let Nothing {} = call.body()?;
    let flow_id: FlowId = own(&call).await?.flow_id;
    call.backend().delete_flow(flow_id).await?;
    Ok(reply::nothing())
}
