//! What the settings come to.

use ff_core::partition::GivenPartitions;
use ff_core::policy::Retention;
use ff_core::token::Secret;
use ff_engine::EngineOptions;
use ff_observe::reports::Dsn;
use ff_server::ServerOptions;

/// The options of every component.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) store: String,
    pub(crate) server: ServerOptions,
    pub(crate) engine_enabled: bool,
    pub(crate) engine: EngineOptions,
    pub(crate) partitions: GivenPartitions,
    pub(crate) retention: Retention,
    pub(crate) waitpoint_secret: Option<Secret>,
    pub(crate) log_filter: String,
    pub(crate) log_format: Format,
    pub(crate) otlp_endpoint: Option<String>,
    pub(crate) sentry_dsn: Option<Dsn>,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
}

impl Format {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            store: "sqlite:flowfabric.db".to_owned(),
            server: ServerOptions::default(),
            engine_enabled: true,
            engine: EngineOptions::default(),
            partitions: GivenPartitions::default(),
            retention: Retention::default(),
            waitpoint_secret: None,
            log_filter: "info".to_owned(),
            log_format: Format::Text,
            otlp_endpoint: None,
            sentry_dsn: None,
        }
    }
}
