//! Quota policies: made, changed, removed, and who holds their slots.

use axum::response::Response;
use ff_api::again::Again;
use ff_api::list::{Counted, Page, Paging, scope};
use ff_api::quota::{ChangeQuota, Holder, NewQuota, Quota, QuotaReply};
use ff_core::cursor;
use ff_core::error::{Code, EngineError};
use ff_core::id::QuotaPolicyId;
use ff_core::operation::{DeleteQuotaPolicy, QuotaPolicyCreated};
use ff_core::read::{DescribeQuotaPolicy, ListQuotaPolicies, QuotaPolicyDescribed};

use super::manage::Nothing;
use crate::call::Call;
use crate::failure::Failed;
use crate::reply::Made;
use crate::route::Route;
use crate::route::Verb::{Delete, Get, Patch, Post};
use crate::{failure, lists, namespaces, reply};
use ff_core::state::Scope::{BudgetsWrite, ExecutionsRead};

pub(super) const ROUTES: &[Route] = &[
    Route::new(Post, "/v1/quotas", BudgetsWrite, "Make a quota policy", |call| {
        Box::pin(create(call))
    })
    .takes::<NewQuota>()
    .answers::<Again<QuotaReply>>(201),
    Route::new(Get, "/v1/quotas", ExecutionsRead, "List quota policies, newest first", |call| {
        Box::pin(list(call))
    })
    .asks::<Counted>()
    .answers::<Page<Quota>>(200),
    Route::new(
        Get,
        "/v1/quotas/{quota_policy_id}",
        ExecutionsRead,
        "Read a quota policy",
        |call| Box::pin(get(call)),
    )
    .answers::<Quota>(200),
    Route::new(
        Get,
        "/v1/quotas/{quota_policy_id}/holders",
        ExecutionsRead,
        "List who holds slots of a quota policy",
        |call| Box::pin(holders(call)),
    )
    .asks::<Paging>()
    .answers::<Page<Holder>>(200),
    Route::new(
        Patch,
        "/v1/quotas/{quota_policy_id}",
        BudgetsWrite,
        "Change a quota policy",
        |call| Box::pin(change(call)),
    )
    .takes::<ChangeQuota>()
    .answers::<Quota>(200),
    Route::new(
        Delete,
        "/v1/quotas/{quota_policy_id}",
        BudgetsWrite,
        "Remove a quota policy",
        |call| Box::pin(delete(call)),
    )
    .takes::<Nothing>()
    .answers_nothing(),
];

/// A quota policy of the caller's namespace, with a page of its holders.
async fn described(
    call: &Call,
    quota_policy_id: QuotaPolicyId,
    holders_from: u32,
    limit: u32,
) -> Result<Box<QuotaPolicyDescribed>, EngineError> {
    let found = call.ask(DescribeQuotaPolicy { quota_policy_id, holders_from, limit }).await?;
    let missing = (Code::QuotaPolicyNotFound, "quota policy");
    namespaces::own(found, &call.namespace, |found| &found.policy.namespace, missing)
}

async fn row(call: &Call, id: QuotaPolicyId) -> Result<Quota, EngineError> {
    Ok(Quota::from(described(call, id, 0, 1).await?.policy))
}

async fn own(call: &Call) -> Result<QuotaPolicyId, Failed> {
    Ok(row(call, call.parsed("quota_policy_id")?).await?.quota_policy_id)
}

async fn as_it_is_now(call: &Call, id: QuotaPolicyId) -> Result<Response, Failed> {
    let quota = row(call, id).await?;
    Ok(reply::tagged(reply::ok(&quota)?, quota.revision))
}

const fn made(created: QuotaPolicyCreated) -> Made {
    match created {
        QuotaPolicyCreated::Created => Made::Created,
        QuotaPolicyCreated::AlreadySatisfied => Made::Duplicate,
    }
}

async fn create(mut call: Call) -> Result<Response, Failed> {
    let form: NewQuota = call.body()?;
    let key = call.key(None, "quota_policy_id")?;
    let operation = form.operation(call.namespace.clone(), key.as_ref())?;
    let id = operation.quota_policy_id;
    let created = call.act(operation).await;
    let created =
        created.map_err(|error| failure::of_key(error, key.as_ref(), Code::QuotaAttachConflict))?;
    let quota = row(&call, id).await?;
    let (status, revision) = (made(created), quota.revision);
    let made = QuotaReply { status: status.word(), quota };
    let response = reply::made(&call, status, key.is_some(), &made, &format!("/quotas/{id}"))?;
    Ok(reply::tagged(response, revision))
}

async fn list(call: Call) -> Result<Response, Failed> {
    let paging: Counted = call.query()?;
    let namespace = call.namespace.clone();
    let question =
        |cursor, limit| ListQuotaPolicies { namespace: namespace.clone(), cursor, limit };
    lists::page::<Quota, _, _>(&call, paging, question).await
}

async fn get(call: Call) -> Result<Response, Failed> {
    as_it_is_now(&call, call.parsed("quota_policy_id")?).await
}

async fn holders(call: Call) -> Result<Response, Failed> {
    let paging: Paging = call.query()?;
    let id: QuotaPolicyId = call.parsed("quota_policy_id")?;
    let scope = scope("holders", &call.namespace, id);
    let from = paging.cursor.as_deref().map(|text| cursor::decode(&scope, text)).transpose()?;
    let found = described(&call, id, from.unwrap_or(0), paging.limit()).await?;
    let items = own_holders(&call, found.holders.into_iter().map(Into::into).collect()).await?;
    let next_cursor = found.next.map(|slot| cursor::encode(&scope, &slot));
    reply::page(&call, &Page::new(items, next_cursor))
}

/// Those of lanes that the caller's key is for.
async fn own_holders(call: &Call, holders: Vec<Holder>) -> Result<Vec<Holder>, EngineError> {
    if call.caller.lanes().is_none() {
        return Ok(holders);
    }
    let mut own = Vec::new();
    for holder in holders {
        match call.record(holder.execution_id).await {
            Ok(_) => own.push(holder),
            Err(error) if error.refusal().is_some() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(own)
}

async fn change(mut call: Call) -> Result<Response, Failed> {
    let form: ChangeQuota = call.body()?;
    let id = own(&call).await?;
    call.act(form.operation(id, call.expected_revision()?)).await?;
    as_it_is_now(&call, id).await
}

async fn delete(mut call: Call) -> Result<Response, Failed> {
    let Nothing {} = call.body()?;
    let quota_policy_id = own(&call).await?;
    let settled = call.act(DeleteQuotaPolicy { quota_policy_id }).await?;
    Ok(reply::gone(settled))
}
