//! How connections are made: address, TLS, login, time limits.

use std::convert::Infallible;
use std::io;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::socket2::{SockRef, TcpKeepalive};
use redis::{AsyncConnectionConfig, ProtocolVersion, RedisConnectionInfo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::address::Address;
use super::connection::Connection;
use super::gather::Gather;
use super::obstacle::Obstacle;
use super::tls;
use crate::error::OpenError;
use crate::options::ValkeyOptions;

/// Calls that wait in a connection's channel before its writer; senders beyond wait for a place.
const CHANNEL_CALLS: usize = 1024;
/// Bytes that may gather before they are written.
const WRITE_BYTES: usize = 64 * 1024;
/// After this much silence the kernel probes the peer.
const PROBE_AFTER: Duration = Duration::from_secs(10);
/// After this long without an acknowledgement from the peer's kernel the connection is over. A
/// node that vanished from the network says nothing, and without this bound its connection would
/// look alive for a quarter of an hour.
#[cfg(target_os = "linux")]
const PEER_SILENT_MAX: Duration = Duration::from_secs(10);

pub(super) struct Connector {
    login: RedisConnectionInfo,
    tls: Option<TlsConnector>,
    call_timeout: Duration,
    /// Every open connection holds a clone. None: closed, and nothing is opened any more.
    gate: Mutex<Option<mpsc::Sender<Infallible>>>,
}

impl Connector {
    /// The receiver ends when the connector is closed and the last connection is gone.
    pub(super) fn new(
        options: &ValkeyOptions,
    ) -> Result<(Self, mpsc::Receiver<Infallible>), OpenError> {
        let mut login = RedisConnectionInfo::default()
            .set_db(options.db)
            .set_protocol(ProtocolVersion::RESP3)
            .set_lib_name("flowfabric", env!("CARGO_PKG_VERSION"));
        if let Some(username) = &options.username {
            login = login.set_username(username);
        }
        if let Some(password) = &options.password {
            login = login.set_password(password.expose());
        }
        let tls = options.tls.then(|| tls::connector(options)).transpose()?;
        let (gate, all_gone) = mpsc::channel(1);
        let gate = Mutex::new(Some(gate));
        Ok((Self { login, tls, call_timeout: options.call_timeout, gate }, all_gone))
    }

    pub(super) async fn open(&self, address: &Address) -> Result<Connection, Obstacle> {
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let gate = gate.ok_or_else(|| Obstacle::Later("the store is closed".to_owned()))?;
        timeout(self.call_timeout, self.dial(address, gate)).await.unwrap_or_else(|_| {
            let hint = if self.tls.is_some() { "; does it speak TLS?" } else { "" };
            Err(Obstacle::Later(format!("no answer in {:?}{hint}", self.call_timeout)))
        })
    }

    /// Opens nothing from here on.
    pub(super) fn close(&self) {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    async fn dial(
        &self,
        address: &Address,
        gate: mpsc::Sender<Infallible>,
    ) -> Result<Connection, Obstacle> {
        let failed = |error: io::Error| Obstacle::of_network(address, &error);
        let stream = TcpStream::connect((&*address.host, address.port)).await.map_err(failed)?;
        tune(&stream).map_err(failed)?;
        let Some(tls) = &self.tls else { return self.greet(address, stream, gate).await };
        let name = ServerName::try_from(address.host.clone());
        let name = name.map_err(|error| failed(io::Error::other(error)))?;
        let stream = tls.connect(name, stream).await.map_err(failed)?;
        self.greet(address, stream, gate).await
    }

    async fn greet<S>(
        &self,
        address: &Address,
        stream: S,
        gate: mpsc::Sender<Infallible>,
    ) -> Result<Connection, Obstacle>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(Some(self.call_timeout))
            .set_pipeline_buffer_size(CHANNEL_CALLS)
            .set_write_backpressure_boundary(WRITE_BYTES);
        let calls = Arc::new(AtomicUsize::new(0));
        let stream = Gather::new(stream, Arc::clone(&calls));
        let greeting = MultiplexedConnection::new_with_config(&self.login, stream, config);
        let (wire, driver) =
            greeting.await.map_err(|error| Obstacle::of_greeting(address, &error))?;
        Ok(Connection::start(wire, driver, calls, gate))
    }
}

fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let probes = TcpKeepalive::new().with_time(PROBE_AFTER).with_interval(PROBE_AFTER / 5);
    socket.set_tcp_keepalive(&probes)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(PEER_SILENT_MAX))?;
    Ok(())
}
