//! `ff dev`: a store, the server and the engine in one process, and on demand a demonstration.

mod demo;
mod feed;
mod tally;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use ff_core::backend::Backend;
use ff_engine::Shutdown;
use ff_server::Server;

use self::demo::Story;
use self::feed::Feed;
use self::tally::Tally;
use crate::config::{Flags, Settings};
use crate::output::say;
use crate::process::{Process, check_free};
use crate::session::Common;
use crate::stores::{Options, Store};
use crate::{server, stop};

/// How long work under way may take to end after the wish to stop.
const GRACE: Duration = Duration::from_secs(10);
/// Where commands look when nobody says otherwise.
const USUAL: &str = "127.0.0.1:7171";

/// Run FlowFabric on this machine: a store, the server and the engine in one process
///
/// Opens the store (and makes it), serves the HTTP API and runs the engine until Ctrl-C. Everything
/// stays in the store: start again and it is still there. A SQLite file has one owner; a second
/// process exits with 8. With --demo there is something to watch at once: a worker, a flow that fans
/// out, streams its output, spends a budget and waits for an approval, and a line for every event.
#[derive(Args)]
#[command(after_help = "Examples:\n  ff dev\n  ff dev --demo\n  \
    ff dev --store sqlite::memory: --listen-addr 127.0.0.1:0")]
pub(crate) struct Dev {
    #[command(flatten)]
    flags: Flags,

    /// Submit a sample flow, work on it and print every event
    #[arg(long)]
    demo: bool,
}

impl Dev {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<()> {
        let (loaded, watchers) = server::settings(&self.flags, common, false)?;
        let settings = loaded.settings;
        let mut stop_wanted = std::pin::pin!(stop::wanted()?);
        let options = Options::of(&settings)?;
        check_free(settings.server.listen_addr)?;
        let place = options.place();
        let Some(store) = stop::or(&mut stop_wanted, Store::open(&options)).await else {
            return Ok(());
        };
        let backend = store?.backend();
        let worked = match greet(&*backend, &place).await {
            Ok(()) => self.work_until(stop_wanted, &backend, settings).await,
            Err(error) => Err(error),
        };
        watchers.finish();
        let tally = Tally::of(&*backend).await;
        backend.shutdown_prepare(GRACE).await?;
        worked?;
        say(format_args!("\nstopped  {}; store: {place}", tally?))?;
        Ok(())
    }

    /// Serves until somebody wants it to stop or the demonstration fails.
    async fn work_until(
        &self,
        stop_wanted: impl Future<Output = ()>,
        backend: &Arc<dyn Backend>,
        settings: Settings,
    ) -> anyhow::Result<()> {
        let Process { backend, engine, options } = Process::new(Arc::clone(backend), settings);
        let (stop, shutdown) = Shutdown::channel();
        let server = Server::bind(Arc::clone(&backend), options, shutdown.clone()).await?;
        let addr = server.local_addr()?;
        let server = tokio::spawn(server.run());
        let engine = engine.map(|engine| tokio::spawn(engine.run(shutdown.clone())));
        let ended = match invite(addr, self.demo) {
            Ok(()) if self.demo => demonstrate(stop_wanted, &backend, &stop, shutdown, addr).await,
            Ok(()) => {
                stop_wanted.await;
                Ok(())
            }
            Err(error) => Err(error),
        };
        stop.send_replace(true);
        if let Some(engine) = engine {
            engine.await?;
        }
        server.await?;
        ended
    }
}

async fn greet(backend: &dyn Backend, place: &str) -> anyhow::Result<()> {
    say(format_args!("store    {place}, durability {}", backend.identity().durability))?;
    say(format_args!("kept     {}", Tally::of(backend).await?))?;
    Ok(())
}

/// Says how to go on from here.
fn invite(addr: SocketAddr, demo: bool) -> anyhow::Result<()> {
    let ff = ff_at(addr);
    say(format_args!("serving  http://{addr}"))?;
    let submit = r#"'{"lane":"mail","kind":"send","payload_json":{"to":"a@b.c"}}'"#;
    say(format_args!("try      curl -s http://{addr}/v1/executions -d {submit}"))?;
    say(format_args!("try      {ff} ls"))?;
    if !demo {
        say("try      ff dev --demo, for something to watch")?;
    }
    say("stop     Ctrl-C; what is in the store stays there")?;
    Ok(())
}

/// The command that reaches this server.
fn ff_at(addr: SocketAddr) -> String {
    if addr.to_string() == USUAL { "ff".to_owned() } else { format!("ff --url http://{addr}") }
}

/// Worker and feed, until the wish to stop. The feed goes last, so that it tells how the work under
/// way ended.
async fn demonstrate(
    stop_wanted: impl Future<Output = ()>,
    backend: &Arc<dyn Backend>,
    stop: &tokio::sync::watch::Sender<bool>,
    shutdown: Shutdown,
    addr: SocketAddr,
) -> anyhow::Result<()> {
    let (stop_feed, feed_shutdown) = Shutdown::channel();
    let feed = Feed::from_now(Arc::clone(backend)).await?;
    let story = Story::new(&**backend)?;
    if let Some(review) = story.review() {
        let ff = ff_at(addr);
        say(format_args!("try      {ff} approve '{review}', once it is suspended\n"))?;
    }
    let mut feed = tokio::spawn(feed.run(feed_shutdown));
    let mut worker = tokio::spawn(demo::work(Arc::clone(backend), shutdown));
    story.submit(&**backend).await?;
    let failed = tokio::select! {
        () = stop_wanted => None,
        ended = &mut worker => Some(ended),
        ended = &mut feed => Some(ended),
    };
    stop.send_replace(true);
    if let Some(ended) = failed {
        return ended?.context("the demonstration broke off");
    }
    let worked = worker.await;
    stop_feed.send_replace(true);
    feed.await??;
    worked?
}
