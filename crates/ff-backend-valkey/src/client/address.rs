//! Host and port of a node.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Address {
    pub(super) fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }

    /// As a redirection names it: `host:port`, where an IPv6 host has no brackets, and an empty
    /// host means that of the node that answered.
    pub(super) fn redirected(text: &str, answered: &Self) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        Some(Self::of_node(host, port.parse().ok()?, answered))
    }

    /// A node that does not know its own host (`""`), or is told to hide it (`?`), is where the
    /// node that was asked is.
    pub(super) fn of_node(host: &str, port: u16, asked: &Self) -> Self {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Self::new(if matches!(host, "" | "?") { &asked.host } else { host }, port)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(out, "[{}]:{}", self.host, self.port)
        } else {
            write!(out, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirections_are_read() {
        let asked = Address::new("seed", 6379);
        let cases = [
            ("10.0.0.1:7001", Some("10.0.0.1:7001")),
            ("node-2.example:7001", Some("node-2.example:7001")),
            (":7001", Some("seed:7001")),
            ("?:7001", Some("seed:7001")),
            ("fe80::1:7001", Some("[fe80::1]:7001")),
            ("10.0.0.1", None),
            ("10.0.0.1:x", None),
        ];
        for (text, expected) in cases {
            let read = Address::redirected(text, &asked).map(|it| it.to_string());
            assert_eq!(read.as_deref(), expected, "{text}");
        }
    }
}
