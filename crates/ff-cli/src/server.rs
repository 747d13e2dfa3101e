//! `ff server`: the HTTP API and the engine over a store.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use ff_core::backend::Backend;
use ff_engine::Shutdown;
use ff_server::{MetricsServer, Server as HttpServer, ServerOptions};
use tokio::task::JoinHandle;

use crate::config::{self, Flags, Misconfigured, Settings};
use crate::logging::{self, Watchers};
use crate::output::say;
use crate::process::{Process, check_free};
use crate::session::Common;
use crate::stop;
use crate::stores::{Options, Store};

/// How long the store may take to close. Together with the server's own grace a stop is over in time.
const CLOSING: Duration = Duration::from_secs(4);

/// Serve the HTTP API and run the engine over a store, until told to stop
///
/// Settings come from a file, then the environment, then flags; what comes later wins. Without a key,
/// in the store or as FF_API_TOKEN, only loopback is served. On SIGTERM or SIGINT it takes no more
/// requests, answers those that wait, and exits with 0 within 15 seconds.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ff server --store sqlite:flowfabric.db\n  \
    ff server --store valkey://127.0.0.1:6379 --listen-addr 127.0.0.1:7171 --no-engine\n  \
    ff server --config flowfabric.toml --set server.max_connections=100\n  \
    ff server --config flowfabric.toml --print-config")]
pub(crate) struct Server {
    #[command(flatten)]
    flags: Flags,

    /// Serve only; timers and other background work are left to other servers
    #[arg(long, conflicts_with = "engine_only")]
    no_engine: bool,

    /// Do background work only; serve nothing but metrics, where server.metrics_addr says
    #[arg(long)]
    engine_only: bool,

    /// Print the settings as TOML, with where each comes from, and do nothing else
    #[arg(long)]
    print_config: bool,
}

/// Reads the settings, warns of names that mean nothing, and begins to log.
pub(crate) fn settings(
    flags: &Flags,
    common: &Common,
    no_engine: bool,
) -> Result<(config::Loaded, Watchers), Misconfigured> {
    let loaded = config::load(flags, common.store.as_deref(), no_engine)?;
    if !loaded.unknown.is_empty() {
        let names = loaded.unknown.join(", ");
        eprintln!("warning: these names of the environment mean nothing here: {names}");
    }
    let watchers = logging::of_server(&loaded.settings)?;
    Ok((loaded, watchers))
}

impl Server {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<()> {
        let (loaded, watchers) = settings(&self.flags, common, self.no_engine)?;
        if self.print_config {
            let mut text = config::toml(&loaded);
            text.truncate(text.trim_end().len());
            say(text)?;
            return Ok(());
        }
        let settings = loaded.settings;
        if self.engine_only && !settings.engine_enabled {
            let detail = "engine.enabled is false, and --engine-only leaves nothing to do";
            return Err(Misconfigured(detail.to_owned()).into());
        }
        let served = self.serve(settings).await;
        watchers.finish();
        served
    }

    async fn serve(&self, settings: Settings) -> anyhow::Result<()> {
        let mut stop_wanted = std::pin::pin!(stop::wanted()?);
        let options = Options::of(&settings)?;
        let place = options.place();
        if !self.engine_only {
            check_free(settings.server.listen_addr)?;
        }
        let Some(store) = stop::or(&mut stop_wanted, Store::open(&options)).await else {
            return Ok(());
        };
        let backend = store?.backend();
        let Process { backend, engine, options } = Process::new(backend, settings);
        let (stop, shutdown) = Shutdown::channel();
        let serving = if self.engine_only {
            watch_only(backend.clone(), options, shutdown.clone()).await?
        } else {
            Some(serve(backend.clone(), options, shutdown.clone()).await?)
        };
        let engine = engine.map(|engine| tokio::spawn(engine.run(shutdown)));
        if self.engine_only {
            say(format_args!("background work on {place}; nothing is served"))?;
        }
        stop_wanted.await;
        stop.send_replace(true);
        for work in [serving, engine].into_iter().flatten() {
            work.await?;
        }
        backend.shutdown_prepare(CLOSING).await?;
        Ok(())
    }
}

/// Begins to serve, and says where.
async fn serve(
    backend: Arc<dyn Backend>,
    options: ServerOptions,
    shutdown: Shutdown,
) -> anyhow::Result<JoinHandle<()>> {
    let server = HttpServer::bind(backend, options, shutdown).await?;
    let scheme = if server.speaks_tls() { "https" } else { "http" };
    say(format_args!("listening on {scheme}://{}", server.local_addr()?))?;
    if let Some(addr) = server.metrics_addr() {
        announce_metrics(addr?)?;
    }
    Ok(tokio::spawn(server.run()))
}

/// Begins to serve metrics alone, if there is an address for them.
async fn watch_only(
    backend: Arc<dyn Backend>,
    options: ServerOptions,
    shutdown: Shutdown,
) -> anyhow::Result<Option<JoinHandle<()>>> {
    let Some(server) = MetricsServer::bind(backend, options, shutdown).await? else {
        return Ok(None);
    };
    announce_metrics(server.local_addr()?)?;
    Ok(Some(tokio::spawn(server.run())))
}

fn announce_metrics(addr: SocketAddr) -> std::io::Result<()> {
    say(format_args!("metrics on http://{addr}/metrics"))
}
