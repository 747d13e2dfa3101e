//! The server: the API behind a socket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ff_core::backend::Backend;
use ff_engine::Shutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::api::Api;
use crate::connection;
use crate::options::ServerOptions;

/// How long the listener rests when the system gives no more connections.
const REST: Duration = Duration::from_millis(50);

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error("{addr} is not loopback, and without a key nothing else is served")]
    NotLoopback { addr: SocketAddr },
    #[error("cannot listen on {addr}: {source}")]
    Listen { addr: SocketAddr, source: std::io::Error },
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    api: Api,
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
        if !addr.ip().is_loopback() {
            return Err(BindError::NotLoopback { addr });
        }
        let listener = TcpListener::bind(addr).await;
        let listener = listener.map_err(|source| BindError::Listen { addr, source })?;
        let api = Api::new(backend, options.clone(), shutdown.clone());
        let connections = Arc::new(Semaphore::new(options.max_connections));
        Ok(Self { listener, api, options, connections, shutdown })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the wish to stop; then takes no more, lets what is under way end, and is over
    /// within the grace.
    pub async fn run(mut self) {
        while let Some(accepted) = self.shutdown.or(self.listener.accept()).await {
            match accepted {
                Ok((stream, _)) => self.take(stream),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(REST).await;
                }
            }
        }
        let Self { listener, options, connections, .. } = self;
        drop(listener);
        let all = u32::try_from(options.max_connections).unwrap_or(u32::MAX);
        // Whoever holds all places has seen every connection end.
        if timeout(options.shutdown_grace, connections.acquire_many(all)).await.is_err() {
            tracing::warn!("connections are cut: they did not end within the grace");
        }
    }

    fn take(&self, stream: TcpStream) {
        // Answers are small and complete: waiting for more to send would only delay them.
        let _ = stream.set_nodelay(true);
        match Arc::clone(&self.connections).try_acquire_owned() {
            Ok(place) => self.serve(stream, place),
            Err(_) => connection::turn_away(&stream),
        }
    }

    fn serve(&self, stream: TcpStream, place: OwnedSemaphorePermit) {
        let served = connection::serve(
            stream,
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
