//! How a server is spoken to.

use std::fmt;
use std::time::Duration;

use ff_core::id::Namespace;

/// Settings of a connection to a server.
#[derive(Clone)]
pub struct Options {
    /// The API key, `ffk_…`, or the server's token. None: the server asks for none. It is never printed.
    pub key: Option<String>,
    /// In which namespace things are that an operation names by id alone. None: the key's own.
    pub namespace: Option<Namespace>,
    /// How long a connection may take to come about; 5 seconds.
    pub connect_timeout: Duration,
    /// How long an answer may take, besides the wait that was asked for; 75 seconds, a little longer
    /// than a server gives a request.
    pub call_timeout: Duration,
    /// Certificates, as PEM, that are trusted besides those of the system.
    pub roots: Vec<Vec<u8>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            key: None,
            namespace: None,
            connect_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(75),
            roots: Vec::new(),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("has_key", &self.key.is_some())
            .field("namespace", &self.namespace)
            .field("connect_timeout", &self.connect_timeout)
            .field("call_timeout", &self.call_timeout)
            .field("roots", &self.roots.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_printed_by_accident() {
        let options = Options { key: Some("ffk_abc_secret".to_owned()), ..Options::default() };
        assert!(!format!("{options:?}").contains("secret"));
    }
}
