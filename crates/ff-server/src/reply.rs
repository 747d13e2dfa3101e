//! Answers that went well.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use ff_api::again::Again;
use ff_api::list::Page;
use ff_core::content::Content;
use ff_core::operation::Settled;
use serde::Serialize;

use crate::call::Call;
use crate::failure::Failed;

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// What became of a request to make something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Made {
    Created,
    Duplicate,
}

impl Made {
    pub(crate) fn word(self) -> String {
        match self {
            Self::Created => "created".to_owned(),
            Self::Duplicate => "duplicate".to_owned(),
        }
    }
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A JSON document.
pub(crate) fn json(status: u16, value: &impl Serialize) -> Result<Response, Failed> {
    let body = serde_json::to_vec(value)
        .map_err(|error| ff_core::error::EngineError::bug(format!("an answer: {error}")))?;
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    Ok(response)
}

pub(crate) fn ok(value: &impl Serialize) -> Result<Response, Failed> {
    json(200, value)
}

/// Done, and nothing to say.
pub(crate) fn nothing() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Marks an answer that holds nothing of the store.
#[derive(Debug, Clone, Copy)]
struct TellsNothing;

/// The answer holds nothing of the store: whoever gets it need not be asked for their key again.
pub(crate) fn telling_nothing(mut response: Response) -> Response {
    response.extensions_mut().insert(TellsNothing);
    response
}

pub(crate) fn tells_nothing(response: &Response) -> bool {
    response.extensions().get::<TellsNothing>().is_some()
}

/// Adds a header, unless its value is none that can be sent.
pub(crate) fn with(mut response: Response, name: HeaderName, value: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
    response
}

/// Marks the answer to a request that was answered before.
pub(crate) fn marked(response: Response) -> Response {
    with(response, REPLAYED, "true")
}

/// An answer that says whether it was given before.
pub(crate) fn again(reply: impl Serialize, replayed: bool) -> Result<Response, Failed> {
    ok(&Again { reply, replayed })
}

/// The same, of a request that a key names or that any caller may repeat.
pub(crate) fn repeated(reply: impl Serialize, replayed: bool) -> Result<Response, Failed> {
    let response = again(reply, replayed)?;
    Ok(if replayed { marked(response) } else { response })
}

/// The answer to a request for what may have been so before.
pub(crate) fn settled(reply: impl Serialize, settled: Settled) -> Result<Response, Failed> {
    repeated(reply, settled == Settled::AlreadySatisfied)
}

/// The same, where there is nothing to say.
pub(crate) fn gone(settled: Settled) -> Response {
    match settled {
        Settled::Done => nothing(),
        Settled::AlreadySatisfied => marked(nothing()),
    }
}

/// A thing that was made, or had been made before with the same words.
pub(crate) fn made(
    call: &Call,
    status: Made,
    by_key: bool,
    reply: &impl Serialize,
    location: &str,
) -> Result<Response, Failed> {
    let response = match status {
        Made::Created => json(201, reply)?,
        Made::Duplicate if by_key => repeated(reply, true)?,
        Made::Duplicate => again(reply, true)?,
    };
    Ok(located(call, response, location))
}

/// Says where the thing stands, by its path inside the version: in the namespace that the request's own
/// path names, if it does. Ids hold braces, which no URL does.
pub(crate) fn located(call: &Call, response: Response, path: &str) -> Response {
    let path = path.replace('{', "%7B").replace('}', "%7D");
    let named = call.target.strip_prefix("/v1/namespaces/").and_then(|rest| rest.split_once('/'));
    let location = match named {
        Some((namespace, _)) => format!("/v1/namespaces/{namespace}{path}"),
        None => format!("/v1{path}"),
    };
    with(response, header::LOCATION, &location)
}

/// What holds a token must not stay in any cache.
pub(crate) fn not_stored(response: Response) -> Response {
    with(response, header::CACHE_CONTROL, "no-store")
}

/// Which revision of a thing the answer shows.
pub(crate) fn tagged(response: Response, revision: u64) -> Response {
    with(response, header::ETAG, &format!("\"{revision}\""))
}

/// The bytes themselves. They are somebody else's: no browser may take them for a page of ours.
pub(crate) fn raw(content: Content) -> Response {
    let response = Response::new(Body::from(content.bytes));
    let response = with(response, header::CONTENT_TYPE, &content.content_type);
    with(response, header::CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'")
}

/// A page, with a link to the next.
pub(crate) fn page<T: Serialize>(call: &Call, page: &Page<T>) -> Result<Response, Failed> {
    let response = ok(page)?;
    let Some(cursor) = &page.next_cursor else { return Ok(response) };
    let (path, query) = call.target.split_once('?').unwrap_or((&call.target, ""));
    let others = query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("cursor="));
    let cursor = format!("cursor={cursor}");
    let query: Vec<&str> = others.chain([cursor.as_str()]).collect();
    let link = format!("<{path}?{}>; rel=\"next\"", query.join("&"));
    Ok(with(response, header::LINK, &link))
}
