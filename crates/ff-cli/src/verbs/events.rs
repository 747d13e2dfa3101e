//! `ff events`: the log, as it is written.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;

use super::filter::{Search, Sieve};
use crate::client::{Follow, Request, SseEvent, at};
use crate::session::Session;
use crate::show::event_line;

/// Follow the log of everything that happens, until stopped
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ff events\n  \
    ff events --after start --types execution.failed,execution.expired\n  \
    ff events --lane mail --json | jq .type")]
pub(crate) struct Events {
    #[command(flatten)]
    search: Search,
    /// Only these, with commas between, as execution.completed
    #[arg(long, value_name = "TYPES")]
    types: Option<String>,
    /// Only ends of this outcome: success, failed, cancelled, expired, skipped
    #[arg(long)]
    outcome: Option<String>,
    /// Begin behind this cursor; `start`: with the oldest event that is kept; from now when absent
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
}

impl Events {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<ExitCode> {
        let sieve = self.search.sieve()?;
        let request = self.search.of_log().ask(Request::get(at(&["events"])?));
        let request = request.each("types", &self.types).each("outcome", &self.outcome);
        let after = match &self.after {
            Some(after) => after.clone(),
            None => now(session, request.clone()).await?,
        };
        let mut follow = Follow::begin(&session.client, request.query("after", &after)).await?;
        loop {
            let event = follow.next().await?;
            if passes(session, &sieve, &event).await? {
                tell(session, &event)?;
            }
        }
    }
}

/// Whether an event is one that was asked for; what is missing is always told.
pub(super) async fn passes(
    session: &Session,
    sieve: &Sieve,
    event: &SseEvent,
) -> anyhow::Result<bool> {
    if event.event == "gap" {
        return Ok(true);
    }
    sieve.passes(session, &serde_json::from_str(&event.data)?).await
}

/// The end of the log. Who begins there by name misses nothing when the connection breaks.
pub(super) async fn now(session: &Session, request: Request) -> anyhow::Result<String> {
    let page = session.client.ask(request.query("limit", &1)).await?;
    page["next_cursor"].as_str().map(str::to_owned).context("the log has no cursor")
}

/// Prints an event; what retention removed is told beside.
pub(super) fn tell(session: &Session, event: &SseEvent) -> anyhow::Result<()> {
    if event.event == "gap" {
        session.console.note("here events are missing: they were past their retention");
    } else if session.console.json {
        session.console.pass(event.data.as_bytes())?;
    } else {
        let event: Value = serde_json::from_str(&event.data)?;
        session.console.say(event_line(&event, session.console.colour))?;
    }
    Ok(())
}
