//! `ff`: FlowFabric for a person at a terminal. Arguments, dispatch and exit codes are here; each
//! command has a module of its own.

mod bench;
mod dev;
mod doctor;
mod failure;
mod output;
mod security;
mod server;
mod stop;
mod stores;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

#[derive(Parser)]
#[command(
    name = "ff",
    version,
    about = "FlowFabric: durable execution of long, interruptible work",
    after_help = "Begin with `ff dev`: a store, the engine and a few demonstration executions.\n\
                  RUST_LOG sets what is logged to stderr, as in RUST_LOG=debug."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Dev(dev::Dev),
    Server(server::Server),
    Bench(bench::Bench),
    Doctor(doctor::Doctor),
    /// Print the version
    Version,
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    match run(cli.command).await {
        Ok(code) => code,
        Err(error) if output::is_reader_gone(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", failure::text_of(&error));
            failure::code_of(&error).into()
        }
    }
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Dev(dev) => dev.run().await.map(|()| ExitCode::SUCCESS),
        Command::Server(server) => server.run().await.map(|()| ExitCode::SUCCESS),
        Command::Bench(bench) => {
            let sound = bench.run().await?;
            Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Command::Doctor(doctor) => {
            let sound = doctor.run().await?;
            Ok(if sound { ExitCode::SUCCESS } else { failure::VIOLATED.into() })
        }
        Command::Version => {
            output::say(format_args!("ff {}", env!("CARGO_PKG_VERSION")))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
