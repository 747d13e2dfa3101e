//! Which pages of other sites may call.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use ff_core::error::{Code, Refusal};

use crate::gate::text;

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE, HEAD");
const HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, ff-namespace, ff-waitpoint-token, idempotency-key, if-match, \
     last-event-id, prefer, traceparent",
);
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "etag, idempotency-replayed, link, location, retry-after, www-authenticate, x-request-id",
);
/// How long a browser may remember the answer to its question, in seconds.
const REMEMBERED: HeaderValue = HeaderValue::from_static("600");
const ANY: &str = "*";

/// The origins that may call besides the server's own.
#[derive(Debug, Clone)]
pub(crate) struct Origins {
    listed: Vec<String>,
    /// `https` or `http`: what the server's own origin begins with.
    scheme: &'static str,
}

/// What the answer must say to the browser.
#[derive(Debug, Clone)]
pub(crate) enum Granted {
    /// No page of another site asks.
    Own,
    /// Any page, which then sends no cookies or certificates along.
    Any,
    Listed(HeaderValue),
}

impl Origins {
    pub(crate) fn new(listed: &[String], over_tls: bool) -> Self {
        let listed = listed.iter().map(|origin| origin.to_ascii_lowercase()).collect();
        Self { listed, scheme: if over_tls { "https" } else { "http" } }
    }

    /// The first of these that is no origin.
    pub(crate) fn first_wrong(listed: &[String]) -> Option<&String> {
        listed.iter().find(|origin| *origin != ANY && !is_origin(origin))
    }

    /// Refuses a request that another site's page sends.
    pub(crate) fn check(&self, head: &Parts) -> Result<Granted, Refusal> {
        let Some(value) = head.headers.get(header::ORIGIN) else { return Ok(Granted::Own) };
        let origin = value.to_str().unwrap_or("").to_ascii_lowercase();
        let host = text(&head.headers, &header::HOST);
        let is_own = host.is_some_and(|host| {
            let own = origin.strip_prefix(self.scheme).and_then(|rest| rest.strip_prefix("://"));
            own.is_some_and(|own| own.eq_ignore_ascii_case(host))
        });
        if is_own {
            Ok(Granted::Own)
        } else if self.listed.contains(&origin) {
            Ok(Granted::Listed(value.clone()))
        } else if self.listed.iter().any(|listed| listed == ANY) {
            Ok(Granted::Any)
        } else {
            Err(Refusal::new(Code::Forbidden, "requests from other origins are not served"))
        }
    }
}

/// `scheme://host`, with a port or without, and nothing behind it.
fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else { return false };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let named = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:[]_".contains(&byte);
    !scheme.is_empty() && scheme.bytes().all(plain) && !host.is_empty() && host.bytes().all(named)
}

/// Whether a browser asks what it may send.
pub(crate) fn is_preflight(head: &Parts) -> bool {
    head.method == Method::OPTIONS
        && head.headers.contains_key(header::ORIGIN)
        && head.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// What it may send. The browser compares; nothing is looked up.
pub(crate) fn preflight() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, REMEMBERED);
    response
}

impl Granted {
    /// Tells the browser that the page may read the answer.
    pub(crate) fn tell(&self, headers: &mut HeaderMap) {
        let origin = match self {
            Self::Own => return,
            Self::Any => HeaderValue::from_static(ANY),
            Self::Listed(origin) => {
                let yes = HeaderValue::from_static("true");
                headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
                headers.append(header::VARY, HeaderValue::from_static("origin"));
                origin.clone()
            }
        };
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_told_from_addresses() {
        let listed = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            Origins::first_wrong(&texts).cloned()
        };
        let good = ["*", "https://a.example", "http://localhost:3000", "http://[::1]:80"];
        assert_eq!(listed(&good), None);
        for bad in ["", "a.example", "https://a.example/", "https://", "https://*.example", "null"]
        {
            assert_eq!(listed(&[bad]).as_deref(), Some(bad));
        }
    }
}
