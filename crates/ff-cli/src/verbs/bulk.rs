//! An action on all that a filter finds: shown first, then asked, then watched to its end.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use ff_core::error::Code;
use serde_json::{Value, json};

use super::filter::Search;
use super::pairs::body;
use crate::client::{Answer, Refused, Request, at};
use crate::failure::Usage;
use crate::progress;
use crate::session::Session;
use crate::show::shown;

/// How often to look how far it is.
const LOOK: Duration = Duration::from_millis(200);

/// What to do to all of them.
pub(crate) struct Bulk<'a> {
    pub(crate) action: &'static str,
    pub(crate) search: &'a Search,
    pub(crate) reason: Option<&'a str>,
    pub(crate) yes: bool,
}

impl Bulk<'_> {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<ExitCode> {
        if self.search.is_empty() {
            let detail = "--filter needs a filter: --lane, --state, --kind, --tag, --flow, …";
            return Err(Refused::new(Code::InvalidInput, detail).into());
        }
        let found = session.client.ask(self.request(true)?).await?;
        if !self.yes {
            self.ask(session, &found)?;
        }
        let begun = session.client.ask(self.request(false)?).await?;
        let id = begun["bulk_id"].as_str().unwrap_or_default().to_owned();
        session.client.run_engine();
        let answer = self.watch(session, &id).await?;
        if session.console.json {
            session.console.pass(&answer.body)?;
        } else if !session.console.quiet {
            let bulk = answer.json()?;
            let (state, done) = (shown(&bulk["state"]), shown(&bulk["done"]));
            let failed = bulk["failed"].as_u64().filter(|failed| *failed > 0);
            let failed = failed.map(|failed| format!(", {failed} not")).unwrap_or_default();
            session.console.say(format_args!("{state}: {done} of them{failed}"))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn request(&self, dry_run: bool) -> anyhow::Result<Request> {
        let body = body([
            ("action", json!(self.action)),
            ("filter", self.search.body()),
            ("dry_run", json!(dry_run)),
            ("reason", json!(self.reason)),
        ]);
        Ok(Request::post(at(&["bulk"])?, &body))
    }

    /// Shows what would be done, and goes on only with a yes.
    fn ask(&self, session: &Session, found: &Value) -> anyhow::Result<()> {
        let is_attended = std::io::stdin().is_terminal();
        let nobody = || Usage("nothing was done: nobody is there to ask; say --yes".to_owned());
        // A program reads the problem, and nothing before it.
        if session.console.json && !is_attended {
            return Err(nobody().into());
        }
        let mut err = std::io::stderr().lock();
        let matched = shown(&found["matched"]);
        writeln!(err, "{} would take {matched} executions", self.action)?;
        let sample = found["sample"].as_array().map_or(&[][..], Vec::as_slice);
        for sample in sample {
            let id = sample.get("execution_id").unwrap_or(sample);
            writeln!(err, "  {}", shown(id))?;
        }
        let more = found["matched"].as_u64().unwrap_or(0).saturating_sub(sample.len() as u64);
        if more > 0 {
            writeln!(err, "  … and {more} more")?;
        }
        if !is_attended {
            return Err(nobody().into());
        }
        write!(err, "{} them? [y/N] ", self.action)?;
        err.flush()?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        match answer.trim() {
            "y" | "yes" | "Y" | "YES" | "Yes" => Ok(()),
            _ => Err(Usage("nothing was done".to_owned()).into()),
        }
    }

    /// Looks until it is over: the last answer.
    async fn watch(&self, session: &Session, id: &str) -> anyhow::Result<Answer> {
        let mut bar = None;
        loop {
            let answer = session.client.send(Request::get(at(&["bulk", id])?)).await?;
            let bulk = answer.json()?;
            let count = |field: &str| bulk[field].as_u64().unwrap_or(0);
            if session.console.is_live() {
                let bar = bar.get_or_insert_with(|| progress::bar(self.action, count("matched")));
                bar.set_position(count("done") + count("failed"));
            }
            if matches!(bulk["state"].as_str(), Some("done" | "aborted")) {
                if let Some(bar) = bar {
                    bar.finish_and_clear();
                }
                return Ok(answer);
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
