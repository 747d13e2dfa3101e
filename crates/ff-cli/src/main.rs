//! `ff`: FlowFabric for a person at a terminal. Dispatch and exit codes are here; each command has a
//! module of its own.

mod bench;
mod cli;
mod client;
mod config;
mod dev;
mod doctor;
mod duration;
mod failure;
mod logging;
mod migrate;
mod output;
#[cfg(test)]
mod pages;
mod process;
mod progress;
mod server;
mod session;
mod show;
mod stop;
mod stores;
mod verbs;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::cli::Cli;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return misused(&error),
    };
    let (json, boots) = (cli.common.json, cli.boots());
    match cli.run().await {
        Ok(code) => code,
        Err(error) if output::is_reader_gone(&error) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&error, json, boots);
            failure::code_of(&error).into()
        }
    }
}

/// Says what went wrong. That nobody reads it changes nothing.
fn tell(error: &anyhow::Error, json: bool, boots: bool) {
    let mut err = std::io::stderr().lock();
    if json {
        let _ = err.write_all(&failure::document_of(error));
        let _ = err.write_all(b"\n");
        return;
    }
    let _ = writeln!(err, "error: {}", failure::text_of(error));
    if let Some(hint) = failure::hint_of(error, boots) {
        let _ = writeln!(err, "  try: {hint}");
    }
}

/// Help and version, or wrong usage. A value that breaks a rule has a code of its own, except where
/// a process is to be started.
fn misused(error: &clap::Error) -> ExitCode {
    let json = std::env::args().any(|argument| argument == "--json");
    if json && error.use_stderr() {
        let text = error.render().to_string();
        let text = text.trim_end().trim_start_matches("error: ").to_owned();
        tell(&failure::Usage(text).into(), json, false);
    } else {
        let _ = error.print();
    }
    let boots = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let boots = boots.is_some_and(|command| matches!(command.as_str(), "server" | "dev"));
    if error.kind() == ErrorKind::ValueValidation && !boots {
        return failure::INVALID.into();
    }
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}
