//! `ff doctor`: is the store sound, and if not, what is wrong and what can be done.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ff_api::system::AuditReport;
use ff_engine::acts;
use serde_json::{Value, json};

use crate::client::{Request, at};
use crate::session::{Common, Session};
use crate::show::{Console, shown};
use crate::stores::{Options, Store};

const CLOSING: Duration = Duration::from_secs(10);
/// Violations that are listed for a person.
const LISTED: usize = 20;

/// Check the invariants of a store, and repair what records decide by themselves
///
/// Compares every record with queues, timers, lists and what else belongs to it. A repair derives
/// these again and removes what belongs to no record; records are never changed. With --store it
/// looks itself, else it asks the server. Run it on a store at rest: what changes during the check
/// may look wrong. Exits with 10 when violations are left.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ff doctor\n  \
    ff doctor --store sqlite:flowfabric.db\n  \
    ff doctor --store valkey://127.0.0.1:6379 --repair --json")]
pub(crate) struct Doctor {
    /// Make right what can be derived again
    #[arg(long)]
    repair: bool,
}

impl Doctor {
    /// Whether the store is sound now.
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<bool> {
        let console = common.console();
        if let Some(url) = &common.store {
            let report = self.look(url).await?;
            return self.tell(&console, report.to_string().as_bytes(), &report);
        }
        let mut is_sound = false;
        let ask = async |session: &Session| {
            let body = json!({ "repair": self.repair });
            let request = Request::post(at(&["system", "audit"])?, &body).patient(true);
            let answer = session.client.send(request).await?;
            is_sound = self.tell(&console, &answer.body, &answer.json()?)?;
            Ok(ExitCode::SUCCESS)
        };
        common.run(false, ask).await?;
        Ok(is_sound)
    }

    async fn look(&self, url: &str) -> anyhow::Result<Value> {
        let options = Options::parse(url)?;
        options.check_there().await?;
        let store = Store::open(&options).await?.backend();
        let found = acts::audit(&*store, self.repair).await?;
        let audited_at = store.server_time_ms().await?.into();
        let report = AuditReport::new(store.identity(), &found, audited_at);
        store.shutdown_prepare(CLOSING).await?;
        Ok(serde_json::to_value(report)?)
    }

    /// Tells the report: whether nothing is wrong.
    fn tell(&self, console: &Console, body: &[u8], report: &Value) -> anyhow::Result<bool> {
        let violations = report["violations"].as_array().map_or(&[][..], Vec::as_slice);
        if console.json {
            console.pass(body)?;
            return Ok(violations.is_empty());
        }
        let store = &report["store"];
        if store.is_object() {
            let (backend, version) = (shown(&store["backend"]), shown(&store["version"]));
            console.say(format_args!("store      {backend} {version}"))?;
            console.say(format_args!("durability {}", shown(&store["durability"])))?;
        }
        console.say(format_args!("checked    {} records", shown(&report["checked"])))?;
        if self.repair {
            console.say(format_args!("repaired   {} violations", shown(&report["repaired"])))?;
        }
        if violations.is_empty() {
            console.say("sound      no invariant is violated")?;
            return Ok(true);
        }
        console.say(format_args!("violated   {} times:", violations.len()))?;
        for violation in violations.iter().take(LISTED) {
            let invariant = shown(&violation["invariant"]);
            let of = [shown(&violation["subject"]), shown(&violation["detail"])];
            let of: Vec<String> = of.into_iter().filter(|text| !text.is_empty()).collect();
            console.say(format_args!("  {invariant} {}", of.join(": ")))?;
        }
        if violations.len() > LISTED {
            let more = violations.len() - LISTED;
            console.say(format_args!("  and {more} more; --json lists them"))?;
        }
        if !self.repair {
            console.say("try        ff doctor --repair (it changes no record)")?;
        }
        Ok(false)
    }
}
