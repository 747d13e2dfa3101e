//! `ff migrate`: brings a store to the form that this version writes.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ff_backend_sqlite::SqliteStore;
use ff_core::error::Code;
use serde_json::json;

use crate::client::Refused;
use crate::failure::Usage;
use crate::session::Common;
use crate::stores::{Options, Store};

const CLOSING: Duration = Duration::from_secs(10);

/// Bring a store to the form that this version writes
///
/// `ff server` does the same when it opens a store; this does it beforehand. SQLite: the schema.
/// Valkey: the function library. With --check nothing is changed, and the exit code is 4 when the
/// store is of an older form.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ff migrate --store sqlite:flowfabric.db --check\n  \
    ff migrate --store valkey://127.0.0.1:6379")]
pub(crate) struct Migrate {
    /// Say only whether there is something to do; for SQLite
    #[arg(long)]
    check: bool,
}

impl Migrate {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let Some(url) = &common.store else {
            return Err(Usage("name the store with --store URL".to_owned()).into());
        };
        let options = Options::parse(url)?;
        let schema = match &options {
            Options::Sqlite(options) => Some(SqliteStore::schema(options)?),
            Options::Valkey(_) => None,
        };
        if self.check {
            let Some(schema) = schema else {
                let detail = "--check is for SQLite; a Valkey server gets its library by itself";
                return Err(Usage(detail.to_owned()).into());
            };
            let (found, known) = (schema.found, schema.known);
            if schema.is_old() {
                let detail =
                    format!("the schema has version {found}; `ff migrate` leads to {known}");
                return Err(Refused::new(Code::PreconditionFailed, detail).into());
            }
            return tell(common, json!({ "version": found, "known": known, "migrated": false }));
        }
        let store = Store::open(&options).await?.backend();
        let identity = store.identity();
        store.shutdown_prepare(CLOSING).await?;
        let migrated = schema.is_some_and(|schema| schema.is_old());
        tell(common, json!({ "store": identity, "migrated": migrated }))
    }
}

fn tell(common: &Common, report: serde_json::Value) -> anyhow::Result<ExitCode> {
    let console = common.console();
    match report["migrated"].as_bool() {
        _ if console.json => console.say(report)?,
        Some(true) => console.say("migrated; the store is up to date")?,
        _ => console.say("the store is up to date")?,
    }
    Ok(ExitCode::SUCCESS)
}
