//! What a request is called in logs and answers.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use uuid::Uuid;

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The name of one request.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    /// 32 hex digits: of the caller's W3C trace context, or new.
    pub(crate) id: String,
    pub(crate) path: String,
    /// Fields at fault are parameters, not places in a body.
    pub(crate) by_parameter: bool,
}

impl Trace {
    pub(crate) fn of(head: &Parts) -> Self {
        let id = from_traceparent(&head.headers);
        Self {
            id: id.unwrap_or_else(|| Uuid::now_v7().simple().to_string()),
            path: head.uri.path().to_owned(),
            by_parameter: false,
        }
    }
}

/// `00-<32 hex digits>-<16>-<2>`.
fn from_traceparent(headers: &HeaderMap) -> Option<String> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    let id = text.split('-').nth(1)?;
    let hex = id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (id.len() == 32 && hex && id.bytes().any(|byte| byte != b'0')).then(|| id.to_owned())
}
