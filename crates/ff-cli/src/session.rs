//! What a verb works with: who answers, and how somebody wants to be told.

use std::process::ExitCode;

use clap::Args;

use crate::client::Client;
use crate::show::Console;

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Common {
    /// Server to ask
    #[arg(
        long,
        value_name = "URL",
        env = "FF_URL",
        default_value = "http://127.0.0.1:7171",
        global = true
    )]
    url: String,

    /// Work on a store directly, without a server: sqlite:PATH, sqlite::memory:, valkey://HOST:PORT
    /// (valkeys:// with TLS); goes before --url
    #[arg(long, value_name = "URL", global = true)]
    pub(crate) store: Option<String>,

    /// Namespace of what is asked for; `default` when the key does not say
    #[arg(long, value_name = "NAME", global = true)]
    namespace: Option<String>,

    /// Print the reply as JSON: one document, or one a line for streams
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Print only what was asked for: ids of lists, no hints, no progress
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

/// A command under way.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) console: Console,
}

impl Common {
    pub(crate) fn console(&self) -> Console {
        Console::new(self.json, self.quiet)
    }

    /// Runs a verb against the server or the store that was named; `makes`: what it does makes sense
    /// in a store that is not there yet.
    pub(crate) async fn run(
        &self,
        makes: bool,
        verb: impl AsyncFnOnce(&Session) -> anyhow::Result<ExitCode>,
    ) -> anyhow::Result<ExitCode> {
        let namespace = self.namespace.as_deref();
        let client = match &self.store {
            Some(store) => Client::of_store(store, makes, namespace).await?,
            None => Client::of_server(&self.url, namespace)?,
        };
        let session = Session { client, console: self.console() };
        let ended = verb(&session).await;
        let closed = session.client.close().await;
        let code = ended?;
        closed?;
        Ok(code)
    }
}
