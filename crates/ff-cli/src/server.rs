//! `ff server`: the HTTP API and the engine over a store.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use ff_engine::{Engine, EngineOptions, Shutdown};
use ff_server::{Server as HttpServer, ServerOptions};

use crate::output::say;
use crate::security::Security;
use crate::stop;
use crate::stores::{Options, Store};

/// How long the store may take to close. Together with the server's own grace a stop is over in time.
const CLOSING: Duration = Duration::from_secs(4);

/// Serve the HTTP API and run the engine over a store, until told to stop
///
/// Without a key, in the store or as FF_API_TOKEN, only loopback is served. On SIGTERM or SIGINT it takes no more requests, answers
/// those that wait, and exits with 0 within 15 seconds.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ff server --store sqlite:flowfabric.db\n  \
    ff server --store valkey://127.0.0.1:6379 --listen-addr 127.0.0.1:7171 --no-engine")]
pub(crate) struct Server {
    /// Store: sqlite:PATH, valkey://HOST:PORT (valkeys:// with TLS)
    #[arg(long, value_name = "URL", env = "FF_STORE", default_value = "sqlite:flowfabric.db")]
    store: String,

    #[command(flatten)]
    listen: Listen,

    #[command(flatten)]
    security: Security,

    /// Serve only; timers and other background work are left to other servers
    #[arg(long, conflicts_with = "engine_only")]
    no_engine: bool,

    /// Do background work only; serve nothing
    #[arg(long)]
    engine_only: bool,
}

/// Where to listen.
#[derive(Args)]
pub(crate) struct Listen {
    /// Address and port; port 0 takes any that is free
    #[arg(long, value_name = "ADDR", env = "FF_LISTEN_ADDR", default_value = "127.0.0.1:7171")]
    pub(crate) listen_addr: SocketAddr,
}

impl Listen {
    pub(crate) fn options(&self) -> ServerOptions {
        ServerOptions { listen_addr: self.listen_addr, ..ServerOptions::default() }
    }
}

impl Server {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let stop_wanted = stop::wanted()?;
        let backend = Store::open(&Options::parse(&self.store)?).await?.backend();
        let (stop, shutdown) = Shutdown::channel();
        let server = if self.engine_only {
            None
        } else {
            let mut options = self.listen.options();
            self.security.add_to(&mut options)?;
            Some(HttpServer::bind(backend.clone(), options, shutdown.clone()).await?)
        };
        if let Some(server) = &server {
            let scheme = if server.speaks_tls() { "https" } else { "http" };
            say(format_args!("listening on {scheme}://{}", server.local_addr()?))?;
        }
        let engine = Engine::new(backend.clone(), EngineOptions::default());
        let engine = (!self.no_engine).then(|| tokio::spawn(engine.run(shutdown)));
        let server = server.map(|server| tokio::spawn(server.run()));
        stop_wanted.await;
        stop.send_replace(true);
        for work in [server, engine].into_iter().flatten() {
            work.await?;
        }
        backend.shutdown_prepare(CLOSING).await?;
        Ok(())
    }
}
