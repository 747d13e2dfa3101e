//! What a request is called in logs and answers.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use uuid::Uuid;

/// Where the id stands in a trace context.
const ID: std::ops::Range<usize> = 3..35;

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The name of one request.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    /// 32 hex digits: of the caller's W3C trace context, or new.
    pub(crate) id: String,
    /// The trace context that travels with what this request submits: that of the request's own span
    /// or, where no spans are collected, the caller's.
    pub(crate) context: Option<String>,
    pub(crate) path: String,
    /// Fields at fault are parameters, not places in a body.
    pub(crate) by_parameter: bool,
}

impl Trace {
    pub(crate) fn of(head: &Parts) -> Self {
        let parent = traceparent(&head.headers);
        let id = parent.and_then(|parent| parent.get(ID)).map(ToOwned::to_owned);
        Self {
            id: id.unwrap_or_else(new_id),
            context: parent.map(ToOwned::to_owned),
            path: head.uri.path().to_owned(),
            by_parameter: false,
        }
    }
}

/// A name for what has none yet.
pub(crate) fn new_id() -> String {
    Uuid::now_v7().simple().to_string()
}

/// The caller's W3C trace context, if it is one of the version that everybody speaks:
/// `00-<32 hex digits>-<16>-<2>`, neither id being zero.
fn traceparent(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    let rest = text.strip_prefix("00-")?;
    let is_hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let mut parts = rest.split('-');
    let fits = [32, 16, 2]
        .into_iter()
        .all(|digits| parts.next().is_some_and(|part| part.len() == digits && is_hex(part)));
    let some = |range| text.get(range).is_some_and(|id: &str| id.bytes().any(|b| b != b'0'));
    (fits && parts.next().is_none() && some(ID) && some(36..52)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_context_is_taken() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", text.parse().unwrap());
            traceparent(&headers).map(ToOwned::to_owned)
        };
        let whole = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(read(whole).as_deref(), Some(whole));
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
