//! `ff watch`: one execution to its end, or all that filters find until stopped.

use std::collections::HashMap;
use std::process::ExitCode;

use clap::Args;
use indicatif::ProgressBar;
use serde_json::Value;
use serde_json::value::RawValue;

use super::events;
use super::filter::Search;
use super::list::{Bounds, LONGEST, walk};
use super::wait::has_ended;
use crate::client::{Follow, Request, at};
use crate::progress;
use crate::session::Session;
use crate::show::{event_line, shown, state};

/// Events that end an execution.
const ENDS: [&str; 5] = [
    "execution.completed",
    "execution.failed",
    "execution.cancelled",
    "execution.expired",
    "execution.skipped",
];

/// Watch an execution to its end, or everything that filters find
///
/// Prints the present state and then every event. Of one execution it ends with the outcome and
/// exits with 0, whatever the outcome is; with filters it goes on until stopped.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ff watch '{fp:7}:0199…'\n  \
    ff watch --lane mail\n  \
    ff watch '{fp:7}:0199…' --json | jq -r .type")]
pub(crate) struct Watch {
    /// Execution; all that the filters find when absent
    #[arg(conflicts_with_all = ["Filter", "Search"])]
    id: Option<String>,
    #[command(flatten)]
    search: Search,
}

impl Watch {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<ExitCode> {
        match &self.id {
            Some(id) => watch_one(session, id).await,
            None => self.watch_all(session).await,
        }
    }

    async fn watch_all(&self, session: &Session) -> anyhow::Result<ExitCode> {
        let sieve = self.search.sieve()?;
        let request = self.search.of_log().ask(Request::get(at(&["events"])?));
        let after = events::now(session, request.clone()).await?;
        let mut seen = HashMap::new();
        let list = self.search.ask(Request::get(at(&["executions"])?));
        let count = |row: &RawValue| {
            let record: Value = serde_json::from_str(row.get())?;
            if session.console.json {
                session.console.say(row.get())?;
            }
            *seen.entry(shown(&record["public_state"])).or_insert(0u64) += 1;
            Ok(())
        };
        let walked = walk(session, &list, None, Bounds::of(LONGEST), count).await?;
        if !session.console.json {
            let newest = match walked.next {
                None => String::new(),
                Some(_) => format!("of the newest {}: ", walked.rows),
            };
            session.console.note(format_args!("{newest}{}", tally(&seen)));
        }
        let live = Live::new(session);
        let mut follow = Follow::begin(&session.client, request.query("after", &after)).await?;
        let mut counts: HashMap<String, u64> = HashMap::new();
        loop {
            let event = follow.next().await?;
            if !events::passes(session, &sieve, &event).await? {
                continue;
            }
            *counts.entry(event.event.clone()).or_default() += 1;
            live.aside(|| events::tell(session, &event))?;
            live.set(|| tally(&counts));
        }
    }
}

/// `3 completed, 1 failed`.
fn tally(counts: &HashMap<String, u64>) -> String {
    let mut told: Vec<String> =
        counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    told.sort();
    if told.is_empty() { "nothing yet".to_owned() } else { told.join(", ") }
}

async fn watch_one(session: &Session, id: &str) -> anyhow::Result<ExitCode> {
    let of_it = Request::get(at(&["executions", id])?);
    let answer = session.client.send(of_it.clone()).await?;
    let record = answer.json()?;
    if session.console.json {
        session.console.pass(&answer.body)?;
    } else {
        session.console.say(present(&record, session.console.colour))?;
    }
    if has_ended(&record["public_state"]) {
        return Ok(ExitCode::SUCCESS);
    }
    let told = number(&record["last_event_id"]);
    let live = Live::new(session);
    live.set(|| present(&record, false));
    let path = at(&["executions", id, "events"])?;
    let mut follow = Follow::begin(&session.client, Request::get(path)).await?;
    loop {
        let event = follow.next().await?;
        let data: Value = serde_json::from_str(&event.data)?;
        // The state that was shown is of after these.
        if event.event != "gap" && number(&data["id"]) <= told {
            continue;
        }
        live.aside(|| match session.console.json {
            true => Ok(session.console.pass(event.data.as_bytes())?),
            false => Ok(session.console.say(event_line(&data, session.console.colour))?),
        })?;
        if ENDS.contains(&event.event.as_str()) {
            return Ok(ExitCode::SUCCESS);
        }
        if live.is_shown() {
            let now = session.client.ask(of_it.clone()).await?;
            live.set(|| present(&now, false));
        }
    }
}

/// The number of an event in the log of its partition: `42` of `7-42`.
fn number(id: &Value) -> u64 {
    let id = id.as_str().and_then(|id| id.rsplit_once('-'));
    id.and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
}

/// State, lane, kind, progress and holder in a line.
fn present(record: &Value, colour: bool) -> String {
    let mut line = format!(
        "{}  {}  {}  {}",
        shown(&record["execution_id"]),
        state(&record["public_state"], colour),
        shown(&record["lane"]),
        shown(&record["kind"]),
    );
    if let Some(pct) = record["progress_pct"].as_u64() {
        line = format!("{line}  {pct}% {}", shown(&record["progress_message"]));
    }
    let worker = shown(&record["worker_instance_id"]);
    if !worker.is_empty() {
        line = format!("{line}  by {worker}");
    }
    let reason = shown(&record["failure_reason"]);
    if !reason.is_empty() {
        line = format!("{line}  {reason}");
    }
    line.trim_end().to_owned()
}

/// A line at the bottom of the terminal that changes in place, where a person looks on.
struct Live(Option<ProgressBar>);

impl Live {
    fn new(session: &Session) -> Self {
        Self(session.console.is_live().then(|| progress::spinner("")))
    }

    fn is_shown(&self) -> bool {
        self.0.is_some()
    }

    fn set(&self, line: impl FnOnce() -> String) {
        if let Some(bar) = &self.0 {
            bar.set_message(line());
        }
    }

    /// Prints above it.
    fn aside(&self, print: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
        match &self.0 {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
