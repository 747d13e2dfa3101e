//! What a client is told before it connects.

use std::fmt;

use ff_core::id::Namespace;

use crate::config::{DEFAULT_URL, WorkerConfig, reaches};

/// Settings of a client. Everything has a default, and a URL alone is enough:
///
/// ```
/// use ff_sdk::ClientConfig;
///
/// let config = ClientConfig::new().url("valkey://cache:6379").namespace("billing").engine(false);
/// assert_eq!(ClientConfig::from("sqlite::memory:").namespace, "default");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ClientConfig {
    /// Of a store (`sqlite:PATH`, `valkey://…`) or of a server (`http://…`, `https://…`).
    pub url: String,
    /// Shown to a server; never printed.
    pub token: Option<String>,
    /// Of everything that the client submits and lists.
    pub namespace: String,
    /// Whether the engine runs in this process; absent: only with an embedded store.
    pub engine: Option<bool>,
}

impl ClientConfig {
    /// The server that `ff dev` starts, namespace `default`.
    ///
    /// ```
    /// use ff_sdk::{ClientConfig, DEFAULT_URL};
    ///
    /// assert_eq!(ClientConfig::new().url, DEFAULT_URL);
    /// ```
    pub fn new() -> Self {
        Self {
            url: DEFAULT_URL.to_owned(),
            token: None,
            namespace: Namespace::default().to_string(),
            engine: None,
        }
    }
}

reaches!(ClientConfig, "ClientConfig::new()");

impl Default for ClientConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl From<&String> for ClientConfig {
    fn from(url: &String) -> Self {
        Self::from(&url[..])
    }
}

impl From<&str> for ClientConfig {
    fn from(url: &str) -> Self {
        Self::new().url(url)
    }
}

impl From<String> for ClientConfig {
    fn from(url: String) -> Self {
        Self::new().url(url)
    }
}

/// A client of what a worker works for.
impl From<&WorkerConfig> for ClientConfig {
    fn from(worker: &WorkerConfig) -> Self {
        Self {
            url: worker.url.clone(),
            token: worker.token.clone(),
            namespace: worker.namespace.clone(),
            engine: worker.engine,
        }
    }
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConfig")
            .field("namespace", &self.namespace)
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}
