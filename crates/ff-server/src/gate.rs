//! What browsers must not do: pages of other sites must not reach a server through somebody's browser.

use std::net::{IpAddr, Ipv6Addr};

use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, header};
use ff_core::error::{Code, Refusal};

fn forbidden(detail: &'static str) -> Refusal {
    Refusal::new(Code::Forbidden, detail)
}

/// Refuses a request that was not meant for this machine. Without keys nothing else keeps out a page
/// whose name was made to point to loopback.
pub(crate) fn check_host(head: &Parts) -> Result<(), Refusal> {
    let Some(host) = text(&head.headers, &header::HOST) else {
        return Err(forbidden("the request names no host"));
    };
    let authority = head.uri.authority().map(Authority::as_str);
    if !is_loopback(host) || !authority.is_none_or(is_loopback) {
        return Err(forbidden("without a key only loopback host names are served"));
    }
    Ok(())
}

pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
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
