//! The way of every request to its handler: what all routes share is checked here, once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body as HttpBody;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use ff_api::object::{Invalid, Object};
use ff_api::problem::{Failure, FieldError, Problem};
use ff_api::submit::raw_content;
use ff_core::error::{Code, EngineError};
use ff_core::id::Namespace;
use ff_observe::traces;
use tracing::Instrument as _;

use crate::app::App;
use crate::audit;
use crate::auth;
use crate::body;
use crate::call::{Body, Call};
use crate::caller::Caller;
use crate::cors::{self, Granted};
use crate::failure::{self, Failed};
use crate::reply;
use crate::route::{Route, Takes};
use crate::table;
use crate::trace::{REQUEST_ID, Trace};
use crate::wait;

/// Longest part of a path that names something, decoded.
const PART_BYTES: usize = 256;
const NO_SNIFFING: HeaderValue = HeaderValue::from_static("nosniff");

/// Answers a request for a path that these routes serve.
pub(crate) async fn serve(
    app: Arc<App>,
    routes: Arc<[&'static Route]>,
    path: Vec<(String, String)>,
    request: Request,
) -> Response {
    let (begun, metrics) = (Instant::now(), app.options.metrics.clone());
    let (head, body) = request.into_parts();
    let mut trace = Trace::of(&head);
    let route = routes.iter().copied().find(|route| route.verb.serves(&head.method));
    trace.by_parameter = route.is_some_and(|route| !route.verb.has_body() || is_raw(route, &head));
    let method = route.map_or("other", |route| route.verb.as_str());
    let served = route.or(routes.first().copied()).map_or("", |route| route.path);
    let span = traces::request(method, served, trace.context.as_deref());
    trace.context = traces::context(&span).or(trace.context);
    let answering = answer(app, &routes, route, path, (head, body), &trace);
    let response = answering.instrument(span.clone()).await;
    let status = response.status().as_u16();
    traces::answered(&span, status);
    metrics.request(method, served, status, begun.elapsed());
    response
}

async fn answer(
    app: Arc<App>,
    routes: &[&'static Route],
    route: Option<&'static Route>,
    path: Vec<(String, String)>,
    (head, body): (Parts, HttpBody),
    trace: &Trace,
) -> Response {
    let (granted, answered) = match (app.origins.check(&head), route) {
        (Err(refusal), _) => (Granted::Own, Err(refusal.into())),
        (Ok(granted), _) if cors::is_preflight(&head) => (granted, Ok(cors::preflight())),
        (Ok(granted), None) => {
            let visited = auth::visit(&app, &head).await;
            (granted, Err(visited.err().unwrap_or_else(|| wrong_method(routes, &head))))
        }
        (Ok(granted), Some(route)) if route.is_audited() => {
            (granted, carried_through(app, route, path, (head, body), trace.clone()).await)
        }
        (Ok(granted), Some(route)) => {
            (granted, admitted(app, route, path, (head, body), trace).await)
        }
    };
    finish(answered, &granted, trace)
}

/// A task of its own: a caller who goes away does not end it, so what it does is noted in any case.
async fn carried_through(
    app: Arc<App>,
    route: &'static Route,
    path: Vec<(String, String)>,
    request: (Parts, HttpBody),
    trace: Trace,
) -> Result<Response, Failed> {
    let work = async move { admitted(app, route, path, request, &trace).await };
    let ended = tokio::spawn(work.in_current_span()).await;
    ended.unwrap_or_else(|error| Err(EngineError::bug(format!("a request: {error}")).into()))
}

/// Lets the request in and carries it out; both are noted where the route is audited.
async fn admitted(
    app: Arc<App>,
    route: &'static Route,
    path: Vec<(String, String)>,
    (head, body): (Parts, HttpBody),
    trace: &Trace,
) -> Result<Response, Failed> {
    let things = if route.is_audited() { path.clone() } else { Vec::new() };
    let identified = within(app.options.request_timeout, auth::identify(&app, route, &head)).await;
    let (caller, answered) = match identified.and_then(std::convert::identity) {
        Ok(caller) => {
            let answered = match auth::authorize(&app, route, &caller) {
                Ok(()) => run(app, route, &caller, path, (head, body), trace).await,
                Err(failed) => Err(failed),
            };
            (Some(caller), answered)
        }
        Err(failed) => (None, Err(failed)),
    };
    audit::note(route, caller.as_ref(), &things, &answered, trace);
    answered
}

/// Answers a request for a path that nothing serves.
pub(crate) async fn unknown(app: Arc<App>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let trace = Trace::of(&head);
    let not_found = || Problem::new(Code::RouteNotFound, "nothing is served under this path");
    let (granted, failed) = match app.origins.check(&head) {
        Err(refusal) => (Granted::Own, refusal.into()),
        Ok(granted) => {
            let visited = auth::visit(&app, &head).await;
            (granted, visited.err().unwrap_or_else(|| Failure::new(not_found()).into()))
        }
    };
    finish(Err(failed), &granted, &trace)
}

fn finish(answered: Result<Response, Failed>, granted: &Granted, trace: &Trace) -> Response {
    let mut response = answered.unwrap_or_else(|failed| failure::response(failed, trace));
    let headers = response.headers_mut();
    granted.tell(headers);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
    if let Ok(id) = HeaderValue::from_str(&trace.id) {
        headers.insert(REQUEST_ID, id);
    }
    response
}

fn wrong_method(routes: &[&Route], head: &Parts) -> Failed {
    let detail = format!("{} is not served under this path", head.method);
    let problem = Failure::new(Problem::new(Code::MethodNotAllowed, detail));
    Failed::Method { allow: table::allowed(routes), problem }
}

async fn run(
    app: Arc<App>,
    route: &'static Route,
    caller: &Caller,
    path: Vec<(String, String)>,
    (head, body): (Parts, HttpBody),
    trace: &Trace,
) -> Result<Response, Failed> {
    // Who waits holds nobody up, and is bounded by the number of connections.
    let _place = if route.wait_ms.is_none() { Some(app.admit()?) } else { None };
    let timeout = app.options.request_timeout;
    let reading = async {
        match route.verb.has_body() {
            true => body::read(body, &head.headers, route).await,
            false => Ok(Bytes::new()),
        }
    };
    let bytes = within(timeout, reading).await??;
    let call = call(Arc::clone(&app), route, caller, path, (&head, bytes), trace)?;
    let wait = call.wait;
    let response =
        within(timeout + wait + Duration::from_millis(route.lasts_ms), (route.run)(call)).await??;
    if !wait.is_zero() && !reply::tells_nothing(&response) {
        auth::check_still(&app, caller).await?;
    }
    Ok(response)
}

async fn within<T>(timeout: Duration, work: impl Future<Output = T>) -> Result<T, Failed> {
    tokio::time::timeout(timeout, work)
        .await
        .map_err(|_| EngineError::Timeout { detail: "the request took too long".to_owned() }.into())
}

/// Takes the request apart.
fn call(
    app: Arc<App>,
    route: &'static Route,
    caller: &Caller,
    mut path: Vec<(String, String)>,
    (head, bytes): (&Parts, Bytes),
    trace: &Trace,
) -> Result<Call, Failed> {
    check_parts(&path)?;
    let mut query = parameters(head.uri.query().unwrap_or(""))?;
    let parameter = wait::parameter(route, &mut query)?;
    let mut body = body_of(route, &mut query, &head.headers, bytes)?;
    let mut fields = match &mut body {
        Body::Object(object) | Body::Raw(object, _) => Some(object),
        Body::Lines(_) => None,
    };
    let wait = wait::read(route, parameter, fields.as_deref_mut(), &head.headers)?;
    let named = match route.is_of_namespace() {
        true => namespace(&mut path, &head.headers, fields.as_deref_mut())?,
        false => None,
    };
    let names_namespace = named.is_some();
    let namespace = match route.is_of_namespace() {
        true => caller.enter(named)?,
        false => Namespace::default(),
    };
    if let Some(fields) = fields {
        agree_with_path(&path, fields)?;
    }
    if route.query.is_none() && !matches!(body, Body::Raw(..)) {
        let _: Nothing = query.read()?;
    }
    let target = head.uri.path_and_query().map_or("", |target| target.as_str()).to_owned();
    let (headers, trace, caller) = (head.headers.clone(), trace.clone(), caller.clone());
    Ok(Call {
        app,
        caller,
        headers,
        target,
        namespace,
        names_namespace,
        trace,
        wait,
        path,
        query,
        body,
    })
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

fn check_parts(path: &[(String, String)]) -> Result<(), Invalid> {
    match path.iter().find(|(_, value)| value.len() > PART_BYTES) {
        Some((name, _)) => {
            let message = format!("a name in a path has at most {PART_BYTES} bytes");
            Err(Invalid(vec![FieldError::parameter(name, message)]))
        }
        None => Ok(()),
    }
}

fn body_of(
    route: &Route,
    query: &mut Object,
    headers: &HeaderMap,
    bytes: Bytes,
) -> Result<Body, Failed> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if route.takes == Takes::ObjectOrRaw && query.take::<bool>("raw")? == Some(true) {
        let content = raw_content(bytes, content_type)?;
        let fields = std::mem::replace(query, Object::Query(Vec::new()));
        return Ok(Body::Raw(fields, content));
    }
    let is_lines = content_type.is_some_and(|text| text.starts_with("application/x-ndjson"));
    if route.takes == Takes::ObjectOrLines && is_lines {
        return Ok(Body::Lines(bytes));
    }
    Ok(Body::Object(Object::from_body(&bytes)?))
}

/// Whether the body is the content itself, and the fields are parameters.
fn is_raw(route: &Route, head: &Parts) -> bool {
    let query = head.uri.query().unwrap_or("");
    route.takes == Takes::ObjectOrRaw && query.split('&').any(|pair| pair == "raw=true")
}

/// The pairs of a query string, decoded.
fn parameters(query: &str) -> Result<Object, Invalid> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decoded(name)?, decoded(value)?))
    });
    let pairs: Option<Vec<_>> = pairs.collect();
    let pairs = pairs.ok_or_else(|| Invalid::document("the query string is malformed"))?;
    Ok(Object::from_query(pairs))
}

/// Undoes percent-encoding; a plus is a space.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            plain => plain,
        });
    }
    String::from_utf8(bytes).ok()
}

/// The namespace that prefix, header and body agree on; none when none of them names any.
fn namespace(
    path: &mut Vec<(String, String)>,
    headers: &HeaderMap,
    fields: Option<&mut Object>,
) -> Result<Option<Namespace>, Invalid> {
    let named = path.iter().position(|(name, _)| name == "namespace");
    let prefix = named.map(|at| path.remove(at).1);
    let header = headers.get("ff-namespace").map(|value| value.to_str().unwrap_or("").to_owned());
    let field: Option<String> = match fields {
        Some(fields) => fields.take("namespace")?,
        None => None,
    };
    let mut given = [prefix, header, field].into_iter().flatten();
    let Some(first) = given.next() else { return Ok(None) };
    if given.any(|other| other != first) {
        let message = "path, Ff-Namespace and body name different namespaces";
        return Err(Invalid::at("namespace", message));
    }
    Namespace::new(first).map(Some).map_err(|error| Invalid::at("namespace", error))
}

/// What the path names may stand in the body too, if it is the same.
fn agree_with_path(path: &[(String, String)], fields: &mut Object) -> Result<(), Invalid> {
    for (name, value) in path {
        let field: Option<String> = fields.take(name)?;
        if field.is_some_and(|field| field != *value) {
            return Err(Invalid::at(name, "path and body name different things"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_strings_are_decoded() {
        assert_eq!(decoded("a+b%2Fc%c3%a9").as_deref(), Some("a b/cé"));
        for bad in ["%", "%4", "%zz", "%ff"] {
            assert_eq!(decoded(bad), None, "{bad}");
        }
    }
}
