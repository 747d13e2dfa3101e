//! `ff migrate`: brings a store to the form that this version writes.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ff_backend_sqlite::SqliteStore;
use ff_backend_valkey::{LibraryVersion, ValkeyStore};
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
/// store is of an older form. A store of a newer build is refused with 2.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ff migrate --store sqlite:flowfabric.db --check\n  \
    ff migrate --store valkey://127.0.0.1:6379")]
pub(crate) struct Migrate {
    /// Say only which version is there and whether there is something to do
    #[arg(long)]
    check: bool,
}

/// The form of a store and the one that this version writes; none: there is no store yet.
struct Form {
    /// What has a version: the schema, or the function library.
    what: &'static str,
    found: Option<u32>,
    known: u32,
    is_old: bool,
}

impl Migrate {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let Some(url) = &common.store else {
            return Err(Usage("name the store with --store URL".to_owned()).into());
        };
        let options = Options::parse(url)?;
        let form = Form::of(&options).await?;
        if self.check {
            return form.check(common);
        }
        let store = Store::open(&options).await?.backend();
        let identity = store.identity();
        store.shutdown_prepare(CLOSING).await?;
        tell(common, json!({ "store": identity, "migrated": form.is_old }))
    }
}

impl Form {
    /// Looks without opening the store.
    async fn of(options: &Options) -> anyhow::Result<Self> {
        Ok(match options {
            Options::Sqlite(options) => {
                let schema = SqliteStore::schema(options)?;
                schema.check_known()?;
                let found = Some(schema.found).filter(|found| *found > 0);
                Self { what: "schema", found, known: schema.known, is_old: schema.is_old() }
            }
            Options::Valkey(options) => {
                let LibraryVersion { found, known, is_old } = ValkeyStore::library(options).await?;
                Self { what: "function library", found, known, is_old }
            }
        })
    }

    fn check(&self, common: &Common) -> anyhow::Result<ExitCode> {
        let Self { what, found, known, is_old } = self;
        if !is_old {
            return tell(common, json!({ "version": found, "known": known, "migrated": false }));
        }
        let detail = match found {
            None => format!("there is no {what} yet; `ff migrate` brings version {known}"),
            Some(found) if found < known => {
                format!("the {what} has version {found}; `ff migrate` leads to {known}")
            }
            Some(found) => format!(
                "the {what} has version {found} with another content; `ff migrate` replaces it"
            ),
        };
        Err(Refused::new(Code::PreconditionFailed, detail).into())
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
