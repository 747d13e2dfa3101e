//! `ff dev`: a store, the server, the engine and a demonstration in one process.

mod demo;
mod feed;
mod tally;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use ff_backend_sqlite::{SqliteOptions, SqliteStore};
use ff_core::backend::{Backend, Upkeep};
use ff_engine::{Engine, EngineOptions, Shutdown};
use ff_server::Server;

use self::feed::Feed;
use self::tally::Tally;
use crate::output::say;
use crate::server::Listen;
use crate::stop;

/// How long work under way may take to end after the wish to stop.
const GRACE: Duration = Duration::from_secs(10);

/// Run FlowFabric on this machine with a small demonstration
///
/// Opens the store (and makes it), serves the HTTP API, runs the engine, submits a few executions,
/// works on them and prints every event as it happens, until Ctrl-C. Everything stays in the store: start again and
/// it is still there. One process owns the file; a second one exits with 8.
#[derive(Args)]
#[command(after_help = "Example: ff dev --store sqlite:flowfabric.db")]
pub(crate) struct Dev {
    /// Store: sqlite:PATH, or sqlite::memory: to keep nothing
    #[arg(long, value_name = "URL", env = "FF_STORE", default_value = "sqlite:flowfabric.db")]
    store: String,

    #[command(flatten)]
    listen: Listen,
}

impl Dev {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let stop_wanted = stop::wanted()?;
        let options: SqliteOptions = self.store.parse()?;
        let place = place(options.path.as_deref());
        let store = Arc::new(SqliteStore::open(options)?);
        let worked = match greet(&store, &place).await {
            Ok(()) => work_until(stop_wanted, &store, &self.listen).await,
            Err(error) => Err(error),
        };
        let tally = Tally::of(&*store).await;
        store.shutdown_prepare(GRACE).await?;
        worked?;
        say(format_args!("\nstopped  {}; store: {place}", tally?))?;
        Ok(())
    }
}

async fn greet(store: &SqliteStore, place: &str) -> anyhow::Result<()> {
    say(format_args!("store    {place}, durability {}", store.identity().durability))?;
    say(format_args!("kept     {}", Tally::of(store).await?))?;
    say("stop     Ctrl-C; what is in the store stays there")?;
    Ok(())
}

/// Engine, worker and feed, until somebody wants them to stop or one of them fails.
async fn work_until(
    stop_wanted: impl Future<Output = ()>,
    store: &Arc<SqliteStore>,
    listen: &Listen,
) -> anyhow::Result<()> {
    let backend = Arc::clone(store) as Arc<dyn Backend>;
    let (stop, shutdown) = Shutdown::channel();
    let server = Server::bind(Arc::clone(&backend), listen.options(), shutdown.clone()).await?;
    invite(server.local_addr()?)?;
    let server = tokio::spawn(server.run());
    let (stop_feed, feed_shutdown) = Shutdown::channel();
    let feed = Feed::from_now(Arc::clone(&backend)).await?;
    let mut feed = tokio::spawn(feed.run(feed_shutdown));
    let engine = Engine::new(Arc::clone(&backend), EngineOptions::default());
    let engine = tokio::spawn(engine.run(shutdown.clone()));
    let mut worker = tokio::spawn(demo::work(Arc::clone(&backend), shutdown));
    demo::submit(&*backend).await?;
    let failed = tokio::select! {
        () = stop_wanted => None,
        ended = &mut worker => Some(ended),
        ended = &mut feed => Some(ended),
    };
    stop.send_replace(true);
    if let Some(ended) = failed {
        return ended?.context("the demonstration broke off");
    }
    // The feed goes last, so that it tells how the work under way ended.
    let worked = worker.await;
    stop_feed.send_replace(true);
    feed.await??;
    engine.await?;
    server.await?;
    worked?
}

/// Says how to go on from here.
fn invite(addr: SocketAddr) -> anyhow::Result<()> {
    say(format_args!("serving  http://{addr}"))?;
    let submit = r#"'{"lane":"mail","kind":"send","payload_json":{"to":"a@b.c"}}'"#;
    say(format_args!("try      curl -s http://{addr}/v1/executions -d {submit}"))?;
    say("try      ff bench lifecycle --tasks 1000\n")?;
    Ok(())
}

fn place(path: Option<&Path>) -> String {
    match path {
        None => "in memory, gone with this process".to_owned(),
        Some(path) => std::path::absolute(path).unwrap_or(path.to_owned()).display().to_string(),
    }
}
