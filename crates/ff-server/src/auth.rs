//! Who may come in, and for what: the one place where a request gets its [`Caller`].
//!
//! Scopes are checked here, before anything is looked up. Namespaces and lanes come into play with the
//! things they belong to: [`Caller::enter`], and the guards that take a caller.

use std::time::Duration;

use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use ff_api::problem::{Failure, Problem};
use ff_core::error::{Code, EngineError, Refusal};
use ff_core::state::Access;
use tokio::time::timeout;

use crate::app::App;
use crate::caller::{Caller, Who};
use crate::failure::Failed;
use crate::gate;
use crate::route::Route;
use crate::token::ShownKey;

/// How long a route that needs no key waits to hear whether there are keys.
const PATIENCE: Duration = Duration::from_millis(500);

/// Tells who calls, and refuses whom nobody knows where somebody must be known.
pub(crate) async fn identify(app: &App, route: &Route, head: &Parts) -> Result<Caller, Failed> {
    match route.scope {
        Some(_) => authenticate(app, route, head).await,
        None => visit(app, head).await,
    }
}

/// Refuses a caller whose key is not for the route, or who calls too often.
pub(crate) fn authorize(app: &App, route: &Route, caller: &Caller) -> Result<(), Failed> {
    app.rates.count(caller).map_err(slow_down)?;
    Ok(check_scopes(route, caller)?)
}

/// Lets in whoever needs no key. Without an answer of the store it may be that nobody does.
pub(crate) async fn visit(app: &App, head: &Parts) -> Result<Caller, Failed> {
    let is_open = match timeout(PATIENCE, is_open(app)).await {
        Ok(Ok(is_open)) => is_open,
        _ => app.may_be_open(),
    };
    if is_open {
        gate::check_host(head)?;
    }
    Ok(Caller::everybody())
}

/// Whether whoever is on this machine needs no key.
async fn is_open(app: &App) -> Result<bool, EngineError> {
    Ok(app.may_be_open() && !app.keys.any(&*app.backend).await?)
}

async fn authenticate(app: &App, route: &Route, head: &Parts) -> Result<Caller, Failed> {
    // Who shows something is held to it, also where nothing is asked for.
    if head.headers.contains_key(header::AUTHORIZATION) {
        let shown =
            bearer(&head.headers).ok_or_else(|| unauthenticated("no bearer token is shown"))?;
        return known(app, shown).await;
    }
    if is_open(app).await? {
        gate::check_host(head)?;
        return Ok(Caller::everybody());
    }
    if route.is_public(&app.options) {
        return Ok(Caller::token_bearer());
    }
    Err(unauthenticated("a key is needed: Authorization: Bearer ffk_…").into())
}

/// The token of the one `Authorization` header.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

async fn known(app: &App, shown: &str) -> Result<Caller, Failed> {
    if app.options.api_token.is_some_and(|token| token.is(shown)) {
        return Ok(Caller::api_token());
    }
    // One answer for all that is wrong: it tells nobody which keys there are.
    let refused = || unauthenticated("the key is unknown, expired or taken away");
    let shown = ShownKey::parse(shown).ok_or_else(refused)?;
    let found = app.keys.find(&*app.backend, &shown.key_id).await?;
    match found.filter(|found| shown.opens(&found.secret) && !found.is_over()) {
        Some(found) => Ok(found.caller.clone()),
        None => Err(refused().into()),
    }
}

fn unauthenticated(detail: &'static str) -> Refusal {
    Refusal::new(Code::Unauthenticated, detail)
}

fn check_scopes(route: &Route, caller: &Caller) -> Result<(), Refusal> {
    let Some(scope) = route.scope else { return Ok(()) };
    let other = route.or_scope.is_some_and(|other| caller.need(other).is_ok());
    if !other {
        caller.need(scope)?;
    }
    route.also.map_or(Ok(()), |also| caller.need(also))?;
    let Access { namespaces, lanes, .. } = caller.access();
    if route.is_of_all_namespaces() && (namespaces.is_some() || lanes.is_some()) {
        return Err(Refusal::new(Code::Forbidden, "this needs a key of all namespaces and lanes"));
    }
    Ok(())
}

fn slow_down(wait: Duration) -> Failure {
    let problem = Problem::new(Code::RateLimited, "the key sends too many requests");
    let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
    Failure::new(Problem { retry_after_ms: Some(ms), ..problem })
}

/// Refuses a caller whose key was taken away, or ran out, while it waited.
pub(crate) async fn check_still(app: &App, caller: &Caller) -> Result<(), Failed> {
    let stands = match &caller.who {
        Who::ApiToken | Who::TokenBearer => true,
        Who::Everybody => is_open(app).await?,
        Who::Key { id, .. } => {
            app.keys.find(&*app.backend, id).await?.is_some_and(|found| !found.is_over())
        }
    };
    if stands {
        return Ok(());
    }
    Err(unauthenticated("the key is no longer one").into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::http::HeaderValue;
    use ff_core::id::{KeyId, Namespace};
    use ff_core::state::{Access, Scope};

    use super::*;
    use crate::route::Verb;

    #[test]
    fn there_is_one_bearer_or_none() {
        let shown = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, HeaderValue::from_static(value));
            }
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(shown(&["Bearer abc"]).as_deref(), Some("abc"));
        assert_eq!(shown(&["bEARER  abc"]).as_deref(), Some("abc"));
        for none in [&["Basic abc"][..], &["abc"], &["Bearer"], &["Bearer a", "Bearer b"], &[]] {
            assert_eq!(shown(none), None, "{none:?}");
        }
    }

    #[test]
    fn what_is_about_the_whole_store_needs_all_namespaces() {
        let route = |path| Route::new(Verb::Get, path, Scope::Admin, "", |_| unreachable!());
        let caller = |namespaces: Option<Vec<Namespace>>| {
            let access = Access { namespaces, ..Access::all() };
            Caller::key(KeyId::new("abcdefgh").unwrap(), "k", Arc::new(access))
        };
        let limited = caller(Some(vec![Namespace::default()]));
        for path in ["/v1/admin/waitpoint-kids", "/v1/system/audit", "/v1/system/invariants"] {
            assert!(check_scopes(&route(path), &caller(None)).is_ok(), "{path}");
            assert!(check_scopes(&route(path), &limited).is_err(), "{path}");
        }
        assert!(check_scopes(&route("/v1/keys"), &limited).is_ok());
    }
}
