//! API keys: made, listed, taken away.

use axum::response::Response;
use ff_api::key::{CreateKey, CreatedKey, Key};
use ff_api::list::{Page, Paging};
use ff_api::object::Invalid;
use ff_api::problem::FieldError;
use ff_core::error::{Code, Refusal};
use ff_core::id::KeyId;
use ff_core::operation::{self, DeleteKey};
use ff_core::read::{GetKey, ListKeys};
use ff_core::state::Access;
use ff_core::time::TimestampMs;

use super::manage::Nothing;
use crate::audit::Made;
use crate::call::Call;
use crate::failure::Failed;
use crate::reply;
use crate::route::Route;
use crate::route::Verb::{Delete, Get, Post};
use crate::token::NewKey;
use ff_core::state::Scope::Admin;

pub(super) const ROUTES: &[Route] = &[
    Route::new(Post, "/v1/keys", Admin, "Make an API key", |call| Box::pin(create(call)))
        .audited()
        .takes::<CreateKey>()
        .answers::<CreatedKey>(201),
    Route::new(Get, "/v1/keys", Admin, "List API keys, newest first", |call| Box::pin(list(call)))
        .asks::<Paging>()
        .answers::<Page<Key>>(200),
    Route::new(Delete, "/v1/keys/{key_id}", Admin, "Take an API key away", |call| {
        Box::pin(delete(call))
    })
    .takes::<Nothing>()
    .answers_nothing(),
];

/// Refuses a key that may do more than the caller.
fn check_within(access: &Access, call: &Call) -> Result<(), Refusal> {
    if access.is_within(call.caller.access()) {
        return Ok(());
    }
    Err(Refusal::new(Code::Forbidden, "the key may do more than the one that asks"))
}

/// Refuses a key that is over before anybody can show it: as the first one it would shut everybody out.
async fn check_lives(expires_at: Option<TimestampMs>, call: &Call) -> Result<(), Failed> {
    let Some(end) = expires_at else { return Ok(()) };
    if end > call.backend().server_time_ms().await? {
        return Ok(());
    }
    let (pointer, code) = ("/expires_at".to_owned(), Code::InvalidInput);
    let wrong = FieldError::new(pointer, code, "it is in the past");
    Err(Invalid(vec![wrong]).into())
}

async fn create(mut call: Call) -> Result<Response, Failed> {
    let form: CreateKey = call.body()?;
    let access = form.access(call.caller.access())?;
    check_within(&access, &call)?;
    let expires_at = form.expires_at.map(Into::into);
    check_lives(expires_at, &call).await?;
    let minted = NewKey::mint()?;
    let made = operation::CreateKey {
        key_id: minted.key_id.clone(),
        name: form.name,
        secret: minted.hash(),
        access,
        expires_at,
    };
    call.act(made.clone()).await?;
    call.app.keys.made(&made.key_id);
    let response = reply::json(201, &CreatedKey::new(&made, minted.text()))?;
    let mut response = reply::not_stored(response);
    response.extensions_mut().insert(Made(made.key_id.to_string()));
    Ok(response)
}

async fn list(call: Call) -> Result<Response, Failed> {
    let paging: Paging = call.query()?;
    let (within, limit) = (Some(call.caller.access().clone()), paging.limit());
    let page = call.ask(ListKeys { within, cursor: paging.cursor, limit }).await?;
    let items: Vec<Key> = page.items.into_iter().map(Into::into).collect();
    reply::page(&call, &Page::new(items, page.next_cursor))
}

async fn delete(mut call: Call) -> Result<Response, Failed> {
    let Nothing {} = call.body()?;
    let key_id: KeyId = call.parsed("key_id")?;
    let missing = || Refusal::new(Code::KeyNotFound, "there is no such key");
    let found = call.ask(GetKey { key_id: key_id.clone() }).await?.ok_or_else(missing)?;
    check_within(&found.access, &call)?;
    let settled = call.act(DeleteKey { key_id: key_id.clone() }).await?;
    call.app.keys.gone(&key_id);
    Ok(reply::gone(settled))
}
