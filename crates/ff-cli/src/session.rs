//! What a verb works with: who answers, and how somebody wants to be told.

use std::env::VarError;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::client::Client;
use crate::failure::Usage;
use crate::show::Console;

/// Where a server listens when nobody says otherwise.
const USUAL: &str = "http://127.0.0.1:7171";

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Common {
    /// Server to ask, http://127.0.0.1:7171 when nothing is said; also FF_URL
    // Read here and not by the parser, which would show it as required wherever it is set.
    #[arg(long, value_name = "URL", global = true)]
    url: Option<String>,

    /// File with certificates, as PEM, that vouch for a server over https besides those of the system;
    /// also FF_CA
    #[arg(long, value_name = "FILE", global = true)]
    ca: Option<PathBuf>,

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

    fn server(&self) -> anyhow::Result<Client> {
        let url = match (&self.url, std::env::var("FF_URL")) {
            (Some(given), _) => given.clone(),
            (None, Ok(set)) => set,
            (None, Err(VarError::NotPresent)) => USUAL.to_owned(),
            (None, Err(error)) => return Err(Usage(format!("FF_URL: {error}")).into()),
        };
        let set = || std::env::var_os("FF_CA").map(PathBuf::from);
        let ca = self.ca.clone().or_else(set);
        Client::of_server(&url, self.namespace.as_deref(), ca.as_deref())
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
            None => self.server()?,
        };
        let session = Session { client, console: self.console() };
        let ended = verb(&session).await;
        let closed = session.client.close().await;
        let code = ended?;
        closed?;
        Ok(code)
    }
}
