//! Bulk operations: looked at before, made, paused, ended.

use axum::response::Response;
use ff_api::again::Again;
use ff_api::bulk::{Bulk, BulkPreview, BulkReply, NewBulk};
use ff_api::list::{Counted, Page};
use ff_core::error::{Code, EngineError, Refusal};
use ff_core::id::{BulkId, Namespace};
use ff_core::operation::{BulkCreated, BulkWish, Operation as _, SetBulk};
use ff_core::read::{Describe, GetBulk, ListBulks};
use ff_core::state::{self, BulkAction, BulkTargets, Scope};
use ff_engine::acts;

use super::manage::Nothing;
use crate::call::Call;
use crate::failure::Failed;
use crate::route::Route;
use crate::route::Verb::{Get, Post};
use crate::{lists, namespaces, reply};
use ff_core::state::Scope::{Admin, ExecutionsRead, ExecutionsWrite};

/// A bulk operation looks at all that it may act on before it is made.
const LOOKS_MS: u64 = 60_000;

pub(super) const ROUTES: &[Route] = &[
    Route::new(Post, "/v1/bulk", ExecutionsWrite, "Act on many executions", |call| {
        Box::pin(create(call))
    })
    .takes::<NewBulk>()
    .lasts(LOOKS_MS)
    .or(Admin)
    .audited()
    .answers::<Again<BulkReply>>(202),
    Route::new(Get, "/v1/bulk", ExecutionsRead, "List bulk operations, newest first", |call| {
        Box::pin(list(call))
    })
    .asks::<Counted>()
    .answers::<Page<Bulk>>(200),
    Route::new(Get, "/v1/bulk/{bulk_id}", ExecutionsRead, "Read a bulk operation", |call| {
        Box::pin(get(call))
    })
    .answers::<Bulk>(200),
    Route::new(
        Post,
        "/v1/bulk/{bulk_id}/pause",
        ExecutionsWrite,
        "Pause a bulk operation",
        |call| Box::pin(set(call, BulkWish::Pause)),
    )
    .takes::<Nothing>()
    .or(Admin)
    .audited()
    .answers::<Again<Bulk>>(200),
    Route::new(
        Post,
        "/v1/bulk/{bulk_id}/resume",
        ExecutionsWrite,
        "Let a bulk operation go on",
        |call| Box::pin(set(call, BulkWish::Resume)),
    )
    .takes::<Nothing>()
    .or(Admin)
    .audited()
    .answers::<Again<Bulk>>(200),
    Route::new(
        Post,
        "/v1/bulk/{bulk_id}/abort",
        ExecutionsWrite,
        "End a bulk operation where it stands",
        |call| Box::pin(set(call, BulkWish::Abort)),
    )
    .takes::<Nothing>()
    .or(Admin)
    .audited()
    .answers::<Again<Bulk>>(200),
];

/// What a key must be allowed to do for an action: as for the same act on one execution.
const fn scope_of(action: BulkAction) -> Scope {
    match action {
        BulkAction::Delete => Admin,
        BulkAction::Cancel | BulkAction::Replay | BulkAction::Hold | BulkAction::Release => {
            ExecutionsWrite
        }
    }
}

/// A bulk operation that is there for the caller.
async fn found(call: &Call, bulk_id: BulkId) -> Result<Box<state::Bulk>, EngineError> {
    let mut found = call.ask(GetBulk { bulk_id }).await?;
    if let Some(bulk) = &found
        && !serves(call, bulk).await?
    {
        found = None;
    }
    let missing = (Code::BulkNotFound, "bulk operation");
    namespaces::own(found, &call.namespace, |bulk| &bulk.namespace, missing)
}

/// Whether all that it acts on is on lanes of the caller's key: of listed executions, those that are
/// still there.
async fn serves(call: &Call, bulk: &state::Bulk) -> Result<bool, EngineError> {
    if call.caller.lanes().is_none() {
        return Ok(true);
    }
    let ids = match &bulk.targets {
        BulkTargets::Filter(filter) => {
            let lanes = &filter.lanes;
            return Ok(!lanes.is_empty() && lanes.iter().all(|lane| call.caller.serves(lane)));
        }
        BulkTargets::Ids(ids) => ids,
    };
    for &execution_id in ids {
        let record = call.ask(Describe { execution_id }).await?;
        if record.is_some_and(|record| !call.caller.serves(&record.lane)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Keeps a new one to what the caller's key is for: an execution of another lane is not there.
async fn restrict(call: &Call, targets: &mut BulkTargets) -> Result<(), EngineError> {
    match targets {
        BulkTargets::Filter(filter) => {
            filter.lanes = call.caller.lanes_among(std::mem::take(&mut filter.lanes))?;
        }
        BulkTargets::Ids(ids) if call.caller.lanes().is_some() => {
            for id in ids {
                call.record(*id).await?;
            }
        }
        BulkTargets::Ids(_) => {}
    }
    Ok(())
}

async fn create(mut call: Call) -> Result<Response, Failed> {
    let form: NewBulk = call.body()?;
    let key = call.key(form.idempotency_key.clone(), "idempotency_key")?;
    let dry_run = form.dry_run;
    call.caller.need(scope_of(form.action))?;
    let mut create = form.operation(call.namespace.clone(), key.as_ref())?;
    create.check()?;
    restrict(&call, &mut create.targets).await?;
    if dry_run {
        let found = acts::preview(call.backend(), &call.namespace, &create.targets).await?;
        return reply::ok(&BulkPreview { matched: found.matched, sample: found.sample });
    }
    let bulk_id = create.bulk_id;
    let (created, matched) = acts::create_bulk(call.backend(), create).await?;
    let reply = |status: &str| BulkReply { status: status.to_owned(), bulk_id, matched };
    let response = match created {
        BulkCreated::Created => reply::json(202, &reply("created"))?,
        BulkCreated::AlreadySatisfied { .. } => reply::repeated(reply("duplicate"), true)?,
    };
    Ok(reply::located(&call, response, &format!("/bulk/{bulk_id}")))
}

async fn list(call: Call) -> Result<Response, Failed> {
    let paging: Counted = call.query()?;
    let namespace = call.namespace.clone();
    if call.caller.lanes().is_some() {
        return list_own(&call, namespace, &paging).await;
    }
    let question = |cursor, limit| ListBulks { namespace: namespace.clone(), cursor, limit };
    lists::page::<Bulk, _, _>(&call, paging, question).await
}

/// For a key with lanes: what acts on others is left out, so a page may be short.
async fn list_own(call: &Call, namespace: Namespace, paging: &Counted) -> Result<Response, Failed> {
    if paging.counts()? {
        let detail = "a count of bulk operations needs a key of all lanes";
        return Err(Refusal::new(Code::Forbidden, detail).into());
    }
    let (cursor, limit) = (paging.cursor.clone(), paging.limit());
    let page = call.ask(ListBulks { namespace, cursor, limit }).await?;
    let mut own: Vec<Bulk> = Vec::new();
    for bulk in page.items {
        if serves(call, &bulk).await? {
            own.push(bulk.into());
        }
    }
    reply::page(call, &Page::new(own, page.next_cursor))
}

async fn get(call: Call) -> Result<Response, Failed> {
    reply::ok(&Bulk::from(*found(&call, call.parsed("bulk_id")?).await?))
}

async fn set(mut call: Call, to: BulkWish) -> Result<Response, Failed> {
    let Nothing {} = call.body()?;
    let bulk = found(&call, call.parsed("bulk_id")?).await?;
    // Who may not begin it may neither hold it up nor let it go on.
    call.caller.need(scope_of(bulk.action))?;
    let bulk_id = bulk.id;
    let settled = call.act(SetBulk { bulk_id, to }).await?;
    let bulk = Bulk::from(*found(&call, bulk_id).await?);
    reply::settled(bulk, settled)
}
