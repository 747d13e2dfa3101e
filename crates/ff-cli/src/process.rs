//! What a server process is made of: a store whose calls are measured, the engine, and how it serves.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use ff_core::backend::Backend;
use ff_engine::Engine;
use ff_observe::traced;
use ff_server::{BindError, ServerOptions};

use crate::config::Settings;

pub(crate) struct Process {
    pub(crate) backend: Arc<dyn Backend>,
    /// None where others do the background work.
    pub(crate) engine: Option<Engine>,
    pub(crate) options: ServerOptions,
}

/// Refuses an address that another process listens on, before a store is opened, or made, for nothing.
pub(crate) fn check_free(addr: SocketAddr) -> anyhow::Result<()> {
    TcpListener::bind(addr).map(drop).map_err(|source| BindError::Listen { addr, source }.into())
}

impl Process {
    pub(crate) fn new(backend: Arc<dyn Backend>, settings: Settings) -> Self {
        let Settings { server, engine, engine_enabled, otlp_endpoint, .. } = settings;
        let backend = server.metrics.around(backend);
        let backend = if otlp_endpoint.is_some() { traced(backend) } else { backend };
        let engine = engine_enabled.then(|| Engine::new(Arc::clone(&backend), engine));
        let report = engine.as_ref().map(Engine::report);
        if let Some(report) = &report {
            server.metrics.watch(Arc::clone(report));
        }
        Self { backend, engine, options: ServerOptions { engine: report, ..server } }
    }
}
