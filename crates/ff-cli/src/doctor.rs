//! `ff doctor`: is the store sound, and if not, what is wrong and what can be done.

use std::time::Duration;

use clap::Args;
use ff_core::backend::BackendExt as _;
use ff_core::read::{Audit, Audited, Repaired};

use crate::output::say;
use crate::stores::{Options, Store};

const CLOSING: Duration = Duration::from_secs(10);
/// Violations that are listed for a person.
const LISTED: usize = 20;

/// Check the invariants of a store, and repair what records decide by themselves
///
/// Compares every record with queues, timers, lists and what else belongs to it. A repair derives
/// these again and removes what belongs to no record; records are never changed. Run it on a store
/// at rest: what changes during the check may look wrong. Exits with 10 when violations are left.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ff doctor --store sqlite:flowfabric.db\n  \
    ff doctor --store valkey://127.0.0.1:6379 --repair --json")]
pub(crate) struct Doctor {
    /// Store: sqlite:PATH, valkey://HOST:PORT (valkeys:// with TLS)
    #[arg(long, value_name = "URL", env = "FF_STORE", default_value = "sqlite:flowfabric.db")]
    store: String,

    /// Make right what can be derived again
    #[arg(long)]
    repair: bool,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Doctor {
    /// Whether the store is sound now.
    pub(crate) async fn run(self) -> anyhow::Result<bool> {
        let store = Store::open(&Options::parse(&self.store)?).await?.backend();
        let report = if self.repair {
            store.repair().await?
        } else {
            let found = store.ask(Audit).await?;
            Repaired { left: found.clone(), found }
        };
        let identity = store.identity();
        store.shutdown_prepare(CLOSING).await?;
        // On a store that is at work more may be wrong afterwards than before.
        let (found, left) = (report.found.violations.len(), report.left.violations.len());
        let repaired = found.saturating_sub(left);
        if self.json {
            let document = serde_json::json!({
                "store": identity,
                "checked": report.left.checked,
                "violations": report.left.violations,
                "repaired": repaired,
            });
            say(document)?;
        } else {
            say(format_args!("store      {} {}", identity.backend, identity.version))?;
            say(format_args!("durability {}", identity.durability))?;
            self.tell(&report.left, repaired)?;
        }
        Ok(report.left.violations.is_empty())
    }

    fn tell(&self, left: &Audited, repaired: usize) -> anyhow::Result<()> {
        let Audited { checked, violations } = left;
        say(format_args!("checked    {checked} executions"))?;
        if self.repair {
            say(format_args!("repaired   {repaired} violations"))?;
        }
        if violations.is_empty() {
            say("sound      no invariant is violated")?;
            return Ok(());
        }
        say(format_args!("violated   {} times:", violations.len()))?;
        for violation in violations.iter().take(LISTED) {
            let of = violation.subject.as_ref().map(|id| format!(" {id}")).unwrap_or_default();
            say(format_args!("  {}{of}: {}", violation.invariant, violation.detail))?;
        }
        if violations.len() > LISTED {
            say(format_args!("  and {} more; --json lists them", violations.len() - LISTED))?;
        }
        if !self.repair {
            say("try        ff doctor --repair (it changes no record)")?;
        }
        Ok(())
    }
}
