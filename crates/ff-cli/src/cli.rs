//! All commands by name.

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;
use ff_api::system::Version;

use crate::bench::Bench;
use crate::dev::Dev;
use crate::doctor::Doctor;
use crate::failure::VIOLATED;
use crate::logging;
use crate::migrate::Migrate;
use crate::output::say;
use crate::server::Server;
use crate::session::Common;
use crate::verbs::Verb;

#[derive(Parser)]
#[command(
    name = "ff",
    version,
    about = "FlowFabric: durable execution of long, interruptible work",
    after_help = "Begin with `ff dev --demo` in one terminal and `ff watch` in another.\n\
                  A key for the server goes into FF_API_TOKEN, or its file into FF_API_TOKEN_FILE.\n\
                  RUST_LOG sets what is logged to stderr, as in RUST_LOG=debug."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Subcommand)]
enum Command {
    Dev(Dev),
    Server(Server),
    #[command(flatten)]
    Verb(Verb),
    Bench(Bench),
    Doctor(Doctor),
    Migrate(Migrate),
    /// Print the description of the HTTP API (OpenAPI 3.1)
    #[command(after_help = "Example: ff openapi > openapi.json")]
    Openapi,
    /// Print a script that completes commands in a shell
    #[command(
        after_help = "Example: ff completions bash > ~/.local/share/bash-completion/completions/ff"
    )]
    Completions {
        shell: Shell,
    },
    /// Print the version
    Version,
}

impl Cli {
    /// Whether it starts a process that others ask.
    pub(crate) const fn boots(&self) -> bool {
        matches!(self.command, Command::Dev(_) | Command::Server(_))
    }

    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        let common = self.common;
        match self.command {
            Command::Dev(dev) => dev.run(&common).await.map(|()| ExitCode::SUCCESS),
            Command::Server(server) => server.run(&common).await.map(|()| ExitCode::SUCCESS),
            Command::Verb(verb) => {
                logging::of_client();
                common.run(verb.makes(), async |session| verb.run(session).await).await
            }
            Command::Bench(bench) => {
                logging::of_client();
                let sound = bench.run(&common).await?;
                Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
            }
            Command::Doctor(doctor) => {
                logging::of_client();
                let sound = doctor.run(&common).await?;
                Ok(if sound { ExitCode::SUCCESS } else { VIOLATED.into() })
            }
            Command::Migrate(migrate) => {
                logging::of_client();
                migrate.run(&common).await
            }
            Command::Openapi => openapi(common.json),
            Command::Completions { shell } => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut Self::command(), "ff", &mut script);
                common.console().raw(&script)?;
                Ok(ExitCode::SUCCESS)
            }
            Command::Version => version(common.json),
        }
    }
}

fn openapi(json: bool) -> anyhow::Result<ExitCode> {
    let document = ff_server::openapi();
    say(if json { document.to_json()? } else { document.to_pretty_json()? })?;
    Ok(ExitCode::SUCCESS)
}

fn version(json: bool) -> anyhow::Result<ExitCode> {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    if json {
        say(serde_json::to_string(&Version { version, api: "v1".to_owned() })?)?;
    } else {
        say(format_args!("ff {version}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
