//! Metrics at an address of their own, and what whoever watches a process asks besides: does it live,
//! is it ready.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ff_core::backend::Backend;
use ff_engine::Shutdown;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::api::{self, Api};
use crate::app::App;
use crate::connection;
use crate::options::ServerOptions;
use crate::server::{BindError, accept, listen};

/// Connections at a time. Whoever comes beyond that is not served.
const CONNECTIONS: usize = 64;

/// Serves `/metrics`, `/livez` and `/readyz` and nothing else, without a key. A [`crate::Server`] has
/// one by itself where its options name an address for it; a process that serves nothing else has it
/// alone.
pub struct MetricsServer {
    listener: TcpListener,
    api: Api,
    header_timeout: Duration,
    shutdown: Shutdown,
}

impl MetricsServer {
    /// Listens at [`ServerOptions::metrics_addr`]; none where there is none. Serves nothing before
    /// [`MetricsServer::run`].
    pub async fn bind(
        backend: Arc<dyn Backend>,
        options: ServerOptions,
        shutdown: Shutdown,
    ) -> Result<Option<Self>, BindError> {
        Self::over(&App::new(backend, options, shutdown)).await
    }

    pub(crate) async fn over(app: &Arc<App>) -> Result<Option<Self>, BindError> {
        let Some(addr) = app.options.metrics_addr else { return Ok(None) };
        Ok(Some(Self {
            listener: listen(addr).await?,
            api: api::of_metrics(app),
            header_timeout: app.options.header_timeout,
            shutdown: app.shutdown.clone(),
        }))
    }

    /// Where it listens.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the wish to stop.
    pub async fn run(self) {
        let Self { listener, api, header_timeout, mut shutdown } = self;
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        while let Some(accepted) = shutdown.or(accept(&listener)).await {
            let place = Arc::clone(&places).try_acquire_owned();
            let (Some(stream), Ok(place)) = (accepted, place) else { continue };
            let api = api.clone();
            let served = connection::serve(stream, None, api, header_timeout, shutdown.clone());
            tokio::spawn(async move {
                served.await;
                drop(place);
            });
        }
    }
}
