//! The server: the API behind a socket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ff_core::backend::Backend;
use ff_core::error::EngineError;
use ff_engine::Shutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::api::Api;
use crate::app::App;
use crate::connection;
use crate::cors::Origins;
use crate::metrics_server::MetricsServer;
use crate::options::ServerOptions;
use crate::tls::{Tls, TlsError};

/// How long the listener rests when the system gives no more connections.
const REST: Duration = Duration::from_millis(50);

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error("{addr} is not loopback, and without a key nothing else is served")]
    NotLoopback { addr: SocketAddr },
    #[error("{addr} is not loopback, and whether there is a key could not be read: {source}")]
    Keys { addr: SocketAddr, source: EngineError },
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    #[error("cors_origins: {origin:?} is no origin such as https://a.example")]
    Origin { origin: String },
    #[error("cannot listen on {addr}: {source}")]
    Listen { addr: SocketAddr, source: std::io::Error },
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    api: Api,
    /// Where metrics alone are served.
    metrics: Option<MetricsServer>,
    tls: Option<Tls>,
    options: ServerOptions,
    connections: Arc<Semaphore>,
    shutdown: Shutdown,
}

impl Server {
    /// Listens; serves nothing before [`Server::run`].
    pub async fn bind(
        backend: Arc<dyn Backend>,
        options: ServerOptions,
        shutdown: Shutdown,
    ) -> Result<Self, BindError> {
        let addr = options.listen_addr;
        if let Some(origin) = Origins::first_wrong(&options.cors_origins) {
            return Err(BindError::Origin { origin: origin.clone() });
        }
        let tls = Tls::of(&options)?;
        let app = App::new(backend, options.clone(), shutdown.clone());
        check_keys(&app, addr).await?;
        let listener = listen(addr).await?;
        let metrics = MetricsServer::over(&app).await?;
        let api = Api::of(app);
        let connections = Arc::new(Semaphore::new(options.max_connections));
        Ok(Self { listener, api, metrics, tls, options, connections, shutdown })
    }

    /// Whether it speaks TLS.
    pub fn speaks_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Where it listens.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Where it serves metrics alone.
    pub fn metrics_addr(&self) -> Option<std::io::Result<SocketAddr>> {
        self.metrics.as_ref().map(MetricsServer::local_addr)
    }

    /// Serves until the wish to stop; then takes no more, lets what is under way end, and is over
    /// within the grace.
    pub async fn run(mut self) {
        if let Some(tls) = &self.tls {
            tokio::spawn(tls.clone().keep_current(self.shutdown.clone()));
        }
        if let Some(metrics) = self.metrics.take() {
            tokio::spawn(metrics.run());
        }
        while let Some(accepted) = self.shutdown.or(accept(&self.listener)).await {
            if let Some(stream) = accepted {
                self.take(stream);
            }
        }
        let Self { listener, options, connections, .. } = self;
        drop(listener);
        let all = u32::try_from(options.max_connections).unwrap_or(u32::MAX);
        // Whoever holds all places has seen every connection end.
        if timeout(options.shutdown_grace, connections.acquire_many(all)).await.is_err() {
            tracing::warn!("connections are cut: they did not end within the grace");
            options.metrics.shutdown_timeout();
        }
    }

    fn take(&self, stream: TcpStream) {
        // Answers are small and complete: waiting for more to send would only delay them.
        let _ = stream.set_nodelay(true);
        match Arc::clone(&self.connections).try_acquire_owned() {
            Ok(place) => self.serve(stream, place),
            // Over TLS a word of refusal would cost a handshake.
            Err(_) if self.tls.is_some() => {}
            Err(_) => connection::turn_away(&stream),
        }
    }

    fn serve(&self, stream: TcpStream, place: OwnedSemaphorePermit) {
        let served = connection::serve(
            stream,
            self.tls.as_ref().map(Tls::acceptor),
            self.api.clone(),
            self.options.header_timeout,
            self.shutdown.clone(),
        );
        tokio::spawn(async move {
            served.await;
            drop(place);
        });
    }
}

pub(crate) async fn listen(addr: SocketAddr) -> Result<TcpListener, BindError> {
    TcpListener::bind(addr).await.map_err(|source| BindError::Listen { addr, source })
}

/// The next connection; none when the system gives none at the moment.
pub(crate) async fn accept(listener: &TcpListener) -> Option<TcpStream> {
    match listener.accept().await {
        Ok((stream, _)) => Some(stream),
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(REST).await;
            None
        }
    }
}

/// Others than this machine are let in only where there is a key.
async fn check_keys(app: &App, addr: SocketAddr) -> Result<(), BindError> {
    if addr.ip().is_loopback() || app.options.api_token.is_some() {
        return Ok(());
    }
    match app.keys.any(&*app.backend).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(BindError::NotLoopback { addr }),
        Err(source) => Err(BindError::Keys { addr, source }),
    }
}
