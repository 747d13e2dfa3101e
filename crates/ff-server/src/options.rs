//! Settings of the server.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// What the server may be told; every field has a default that fits.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Where it listens. Without any key only loopback is served.
    pub listen_addr: SocketAddr,
    /// Connections at a time; further ones are told to come back.
    pub max_connections: usize,
    /// Followed streams and waiting tails at a time.
    pub max_stream_tails: usize,
    /// Requests under way that do not wait for anything but the store.
    pub max_requests: usize,
    /// Longest time of a request, what it waits for not counted.
    pub request_timeout: Duration,
    /// How long a header may take, and how long a connection may be idle.
    pub header_timeout: Duration,
    /// Longest time from the wish to stop to the end.
    pub shutdown_grace: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            listen_addr: SocketAddr::from((Ipv4Addr::LOCALHOST, 7171)),
            max_connections: 10_000,
            max_stream_tails: 1_024,
            max_requests: 4_096,
            request_timeout: Duration::from_secs(60),
            header_timeout: Duration::from_secs(10),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}
