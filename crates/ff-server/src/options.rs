//! Settings of the server.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ff_engine::Report;
use ff_observe::Metrics;

use crate::token::ApiToken;

/// What the server may be told; every field has a default that fits.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Where it listens. Without any key only loopback is served, and nothing else is listened on.
    pub listen_addr: SocketAddr,
    /// Certificate chain and private key, as PEM files; with both the server speaks TLS. They are read
    /// again when they change.
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    /// Certificates, as a PEM file: only clients with a certificate signed by one of them connect.
    pub client_ca: Option<PathBuf>,
    /// One key with every scope, namespace and lane, beside those of the store.
    pub api_token: Option<ApiToken>,
    /// Origins of pages that may call: `https://a.example`, or `*` for all.
    pub cors_origins: Vec<String>,
    /// Signals need the token of their waitpoint and no key.
    pub public_signals: bool,
    /// Requests of one key in a second; none: no limit.
    pub requests_per_second_per_key: Option<u32>,
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
    /// Where metrics alone are served, without a key.
    pub metrics_addr: Option<SocketAddr>,
    /// Where it counts, and what `/metrics` shows.
    pub metrics: Metrics,
    /// How long a key that signs waitpoint tokens is accepted after a rotation that does not say.
    pub waitpoint_grace_ms: u64,
    /// What the engine of this process has done so far, if it has one.
    pub engine: Option<Arc<Report>>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            listen_addr: SocketAddr::from((Ipv4Addr::LOCALHOST, 7171)),
            tls_cert: None,
            tls_key: None,
            client_ca: None,
            api_token: None,
            cors_origins: Vec::new(),
            public_signals: false,
            requests_per_second_per_key: None,
            max_connections: 10_000,
            max_stream_tails: 1_024,
            max_requests: 4_096,
            request_timeout: Duration::from_secs(60),
            header_timeout: Duration::from_secs(10),
            shutdown_grace: Duration::from_secs(10),
            metrics_addr: None,
            metrics: Metrics::default(),
            waitpoint_grace_ms: 86_400_000,
            engine: None,
        }
    }
}
