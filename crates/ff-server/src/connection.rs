//! One connection.

use std::pin::pin;
use std::time::Duration;

use ff_api::problem::Problem;
use ff_core::error::Code;
use ff_engine::Shutdown;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::api::Api;
use crate::wire::{self, Spoken};

/// The line and the headers of a request.
const HEADER_BYTES: usize = 16 << 10;
/// What is read ahead of a body; also what an idle connection may hold.
const BUFFER_BYTES: usize = 64 << 10;

/// Serves a connection to its end, over TLS where there is an acceptor.
pub(crate) async fn serve(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    api: Api,
    header_timeout: Duration,
    shutdown: Shutdown,
) {
    let Some(acceptor) = tls else { return speak(stream, api, header_timeout, shutdown).await };
    match timeout(header_timeout, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => speak(stream, api, header_timeout, shutdown).await,
        Ok(Err(error)) => tracing::debug!(%error, "a handshake failed"),
        Err(_) => tracing::debug!("a handshake took too long"),
    }
}

/// Speaks HTTP. With the wish to stop it ends after the request under way.
async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    api: Api,
    header_timeout: Duration,
    mut shutdown: Shutdown,
) {
    let io = Spoken::new(TokioIo::new(stream));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_header_size(HEADER_BYTES)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(io, TowerToHyperService::new(api));
    let mut served = pin!(served);
    let ended = tokio::select! {
        ended = &mut served => ended,
        () = shutdown.requested() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

/// Tells a caller for whom there is no place to come back. What does not go out at once does not: a
/// crowd must not be waited for.
pub(crate) fn turn_away(stream: &TcpStream) {
    let problem = Problem::new(Code::Unavailable, "too many connections are open");
    let _ = stream.try_write(&wire::answer(&problem));
}
