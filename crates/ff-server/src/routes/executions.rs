//! Executions: submitted, found.

use axum::response::Response;
use ff_api::again::Again;
use ff_api::execution::Record;
use ff_api::list::Page;
use ff_api::object::{Invalid, Object};
use ff_api::problem::Failure;
use ff_api::search::{ReadRecord, Search};
use ff_api::submit::{Batch, BatchItem, BatchReply, Submit, SubmitReply};
use ff_core::backend::BackendExt as _;
use ff_core::error::Refusal;
use ff_core::limits;
use ff_core::operation;
use ff_core::read;

use crate::call::{Body, Call};
use crate::failure::Failed;
use crate::route::Route;
use crate::route::Verb::{Get, Post};
use crate::{flows, include, lists, reply, settled};
use ff_core::state::Scope::{ExecutionsRead, ExecutionsWrite};

/// A payload of the largest size, in base64, with all that stands around it.
pub(super) const SUBMIT_BYTES: usize = 3 << 19;
const BATCH_BYTES: usize = 16 << 20;

pub(super) const ROUTES: &[Route] = &[
    Route::new(Post, "/v1/executions", ExecutionsWrite, "Submit an execution", |call| {
        Box::pin(submit(call))
    })
    .takes::<Submit>()
    .or_raw()
    .up_to(SUBMIT_BYTES)
    .waits(limits::CLAIM_WAIT_MS)
    .answers::<Again<SubmitReply>>(201),
    Route::new(Post, "/v1/executions/batch", ExecutionsWrite, "Submit many executions", |call| {
        Box::pin(submit_batch(call))
    })
    .takes::<Batch>()
    .or_lines()
    .up_to(BATCH_BYTES)
    .answers::<BatchReply>(200),
    Route::new(Get, "/v1/executions", ExecutionsRead, "List executions, newest first", |call| {
        Box::pin(list(call))
    })
    .asks::<Search>()
    .answers::<Page<Record>>(200),
    Route::new(Post, "/v1/executions/search", ExecutionsRead, "Search executions", |call| {
        Box::pin(search(call))
    })
    .takes::<Search>()
    .answers::<Page<Record>>(200),
    Route::new(Get, "/v1/executions/{execution_id}", ExecutionsRead, "Read an execution", |call| {
        Box::pin(get(call))
    })
    .asks::<ReadRecord>()
    .waits(limits::CLAIM_WAIT_MS)
    .answers::<Record>(200),
];

async fn submit(mut call: Call) -> Result<Response, Failed> {
    let (fields, raw) = call.fields();
    let mut form = signed(&call, Submit::read(fields)?).await?;
    form.idempotency_key = call.key(form.idempotency_key, "idempotency_key")?;
    let partitions = call.backend().settings().partitions;
    let lane = form.lane.clone();
    let operation = form.operation(call.namespace.clone(), raw, &partitions)?;
    let mut reply = SubmitReply::from(call.act(operation).await?);
    call.app.namespaces.note(reply.execution_id, &call.namespace, &lane);
    if !call.wait.is_zero() && reply.public_state.is_some() {
        let id = reply.execution_id;
        let record = settled::record(&call, id).await?;
        reply.public_state = Some(record.state.public_state);
    }
    let response =
        if reply.is_new() { reply::json(201, &reply)? } else { reply::repeated(&reply, true)? };
    Ok(reply::located(&call, response, &format!("/executions/{}", reply.execution_id)))
}

/// A submit that its caller may make, in the caller's name where it has none.
pub(super) async fn signed(call: &Call, mut form: Submit) -> Result<Submit, Failed> {
    call.caller.check_lane(&form.lane)?;
    if let Some(flow_id) = form.flow_id {
        flows::flow(call, flow_id).await?;
    }
    form.creator_identity.get_or_insert_with(|| call.caller.name().to_owned());
    form.trace_context = form.trace_context.or_else(|| call.trace.context.clone());
    Ok(form)
}

/// The same of a member of a new flow.
pub(super) fn sign(call: &Call, submit: &mut operation::Submit) -> Result<(), Refusal> {
    call.caller.check_lane(&submit.lane)?;
    if submit.creator_identity.is_empty() {
        call.caller.name().clone_into(&mut submit.creator_identity);
    }
    submit.trace_context = submit.trace_context.take().or_else(|| call.trace.context.clone());
    Ok(())
}

async fn submit_batch(mut call: Call) -> Result<Response, Failed> {
    if call.headers.contains_key("idempotency-key") {
        let message = "a batch has a key for each item, none for all of them";
        return Err(Invalid::at("items", message).into());
    }
    let is_listed = matches!(call.body, Body::Object(_));
    let read = items(&mut call)?;
    if !(1..=limits::BATCH_ITEMS).contains(&read.len()) {
        let most = limits::BATCH_ITEMS;
        let message = format!("a batch has 1 to {most} items, this one {}", read.len());
        return Err(Invalid::at("items", message).into());
    }
    let partitions = call.backend().settings().partitions;
    let mut items: Vec<Option<BatchItem>> = Vec::new();
    let mut submits: Vec<operation::Submit> = Vec::new();
    for item in read {
        let submit = match item {
            Ok(form) => signed(&call, form).await.map_err(|failed| call.failure(failed)),
            Err(failure) => Err(failure),
        };
        let submit =
            submit.and_then(|form| form.operation(call.namespace.clone(), None, &partitions));
        match submit {
            Ok(submit) => {
                submits.push(submit);
                items.push(None);
            }
            Err(mut failure) => {
                failure.trace_id = Some(call.trace.id.clone());
                items.push(Some(BatchItem::refused(failure)));
            }
        }
    }
    if !submits.is_empty() {
        let replies = call.backend().submit_batch(submits).await?;
        let mut replies = replies.into_iter();
        for item in items.iter_mut().filter(|item| item.is_none()) {
            *item = replies.next().map(|reply| match reply {
                Ok(submitted) => BatchItem::Submitted(submitted.into()),
                Err(error) => BatchItem::refused(Failure::new(call.problem(&error))),
            });
        }
    }
    let items = items.into_iter().flatten().enumerate();
    let items = items.map(|(number, item)| if is_listed { item.placed(number) } else { item });
    reply::ok(&BatchReply { items: items.collect() })
}

/// The items of a batch, each read on its own.
fn items(call: &mut Call) -> Result<Vec<Result<Submit, Failure>>, Failed> {
    let read = |body: &[u8], namespace: &str| -> Result<Submit, Failure> {
        let mut object = Object::from_body(body)?;
        if object.take::<String>("namespace")?.is_some_and(|other| other != namespace) {
            let message = "the item names another namespace than the request";
            return Err(Invalid::at("namespace", message).into());
        }
        Ok(Submit::read(object)?)
    };
    let namespace = call.namespace.clone();
    if let Body::Lines(bytes) = &call.body {
        let lines = bytes.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.iter().all(u8::is_ascii_whitespace));
        return Ok(lines.map(|line| read(line, &namespace)).collect());
    }
    let batch: Batch = call.body()?;
    Ok(batch.items.iter().map(|item| read(item.text().as_bytes(), &namespace)).collect())
}

async fn list(call: Call) -> Result<Response, Failed> {
    let form = call.query()?;
    find(call, form).await
}

async fn search(mut call: Call) -> Result<Response, Failed> {
    let form = call.body()?;
    find(call, form).await
}

async fn find(call: Call, form: Search) -> Result<Response, Failed> {
    let counts = form.counts()?;
    let (mut question, include) = form.question(call.namespace.clone())?;
    include::check(&call.caller, include)?;
    question.filter.lanes = call.caller.lanes_among(question.filter.lanes)?;
    let filter = question.filter.clone();
    let page = call.ask(question).await?;
    let mut items = Vec::with_capacity(page.items.len());
    for found in page.items {
        items.push(include::record(call.backend(), found, include).await?);
    }
    let all = |cursor, limit| read::Search { filter: filter.clone(), cursor, limit };
    let count = if counts { Some(lists::estimate(&call, all).await?) } else { None };
    reply::page(&call, &Page { count, ..Page::new(items, page.next_cursor) })
}

async fn get(call: Call) -> Result<Response, Failed> {
    let form: ReadRecord = call.query()?;
    let include = ff_api::search::Include::parse(form.include.as_deref())?;
    include::check(&call.caller, include)?;
    let id = call.execution_id()?;
    let found = settled::record(&call, id).await?;
    let record = include::record(call.backend(), *found, include).await?;
    Ok(reply::tagged(reply::ok(&record)?, record.revision))
}
