//! The keys that sign waitpoint tokens.

use std::time::Duration;

use axum::response::Response;
use ff_api::secret::{Kids, RotateSecret, SecretRotated};
use ff_core::error::{Code, EngineError, Refusal};
use ff_core::id::Kid;
use ff_core::operation;
use ff_core::read::ListKids;
use ff_core::token::Secret;

use crate::call::Call;
use crate::failure::Failed;
use crate::reply;
use crate::route::Route;
use crate::route::Verb::{Get, Post};
use ff_core::state::Scope::Admin;

/// Longest time of a rotation.
const ROTATION: Duration = Duration::from_secs(120);

pub(super) const ROUTES: &[Route] = &[
    Route::new(
        Post,
        "/v1/admin/rotate-waitpoint-secret",
        Admin,
        "Make another key sign waitpoint tokens",
        |call| Box::pin(rotate(call)),
    )
    .takes::<RotateSecret>()
    .lasts(ROTATION.as_millis() as u64)
    .audited()
    .answers::<SecretRotated>(200),
    Route::new(
        Get,
        "/v1/admin/waitpoint-kids",
        Admin,
        "List the keys that waitpoint tokens may be signed with",
        |call| Box::pin(kids(call)),
    )
    .answers::<Kids>(200),
];

async fn rotate(mut call: Call) -> Result<Response, Failed> {
    let form: RotateSecret = call.body()?;
    let kid = Kid::parse(&form.new_kid)
        .map_err(|refusal| Refusal { field: Some("new_kid".into()), ..refusal })?;
    let secret = Secret::from_hex(&form.new_secret_hex)
        .map_err(|refusal| Refusal { field: Some("new_secret_hex".into()), ..refusal })?;
    let grace_ms = form.grace_ms()?;
    let busy = || Refusal::new(Code::RateLimited, "another rotation is under way");
    let _turn = call.app.rotation.try_lock().map_err(|_| busy())?;
    let grace_ms = grace_ms.unwrap_or(call.app.options.waitpoint_grace_ms);
    let rotating = call.act(operation::RotateSecret { kid, secret, grace_ms });
    let rotated = tokio::time::timeout(ROTATION, rotating)
        .await
        .map_err(|_| EngineError::Timeout { detail: "the rotation took too long".to_owned() })??;
    let new_kid = rotated.current_kid;
    reply::ok(&SecretRotated { new_kid, rotated: rotated.rotated, failed: Vec::new() })
}

async fn kids(call: Call) -> Result<Response, Failed> {
    reply::ok(&Kids::from(call.ask(ListKids).await?))
}
