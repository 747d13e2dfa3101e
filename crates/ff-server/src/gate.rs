//! Who may come in at all while there is no key: pages of other sites must not reach a server on
//! loopback through somebody's browser.

use std::net::{IpAddr, Ipv6Addr};

use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, header};
use ff_core::error::{Code, Refusal};

/// Refuses a request that was not meant for this machine, or that another site's page sends.
pub(crate) fn check(head: &Parts) -> Result<(), Refusal> {
    let forbidden = |detail: &'static str| Err(Refusal::new(Code::Forbidden, detail));
    let Some(host) = text(&head.headers, &header::HOST) else {
        return forbidden("the request names no host");
    };
    let authority = head.uri.authority().map(Authority::as_str);
    if !is_loopback(host) || !authority.is_none_or(is_loopback) {
        return forbidden("without a key only loopback host names are served");
    }
    if !head.headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    let origin = text(&head.headers, &header::ORIGIN).and_then(|text| text.strip_prefix("http://"));
    if origin.is_some_and(|origin| origin.eq_ignore_ascii_case(host)) {
        Ok(())
    } else {
        forbidden("requests from other origins are not served")
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// `localhost`, 127.0.0.0/8 or `[::1]`, with or without a port.
fn is_loopback(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !host.ends_with(']') => (name, port),
        _ => (host, ""),
    };
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(address) => address.parse() == Ok(Ipv6Addr::LOCALHOST),
        None => matches!(name.parse(), Ok(IpAddr::V4(address)) if address.is_loopback()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_told_from_the_rest() {
        for host in
            ["localhost", "LOCALHOST:7171", "127.0.0.1", "127.8.9.1:80", "[::1]", "[::1]:7171"]
        {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "example.com",
            "localhost.example.com",
            "127.0.0.1.example.com:80",
            "10.0.0.1",
            "0.0.0.0",
            "[::]",
            "[2001:db8::1]:80",
            "localhost:x",
            "::1",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
