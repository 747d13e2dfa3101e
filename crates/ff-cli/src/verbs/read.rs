//! Executions, read: one, many, a result, a reason.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::act::Act;
use super::filter::Search;
use super::list::Page;
use crate::client::{Request, at};
use crate::session::Session;
use crate::show::{Column, shown};

/// Columns of a list of executions.
const EXECUTIONS: &[Column] = &[
    Column::Text("ID", "execution_id"),
    Column::State("STATE", "public_state"),
    Column::Text("LANE", "lane"),
    Column::Text("KIND", "kind"),
    Column::Text("PRIORITY", "priority"),
    Column::Text("ATTEMPTS", "total_attempt_count"),
    Column::Age("AGE", "created_at"),
];

/// Show an execution
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ff get '{fp:7}:0199…'\n  \
    ff get '{fp:7}:0199…' --include payload,attempts --json")]
pub(crate) struct Get {
    /// Execution
    id: String,
    /// Also: payload, result, attempts, with commas between
    #[arg(long, value_name = "PARTS")]
    include: Option<String>,
}

/// List executions, newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ff ls --state failed --lane mail\n  \
    ff ls --tag mail.campaign:spring --limit 500\n  \
    ff ls --state waiting --quiet | xargs -n1 ff cancel")]
pub(crate) struct Ls {
    #[command(flatten)]
    search: Search,
    #[command(flatten)]
    page: Page,
}

/// Print the result of an execution, exactly its bytes
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ff result '{fp:7}:0199…' > result.json\n  \
    ff result '{fp:7}:0199…' --attempt 0 --json")]
pub(crate) struct ResultOf {
    /// Execution
    id: String,
    /// Of this attempt; the last success when absent
    #[arg(long)]
    attempt: Option<u32>,
}

/// Say why an execution is where it is, and what would change it
#[derive(Debug, Args)]
#[command(after_help = "Example: ff explain '{fp:7}:0199…'")]
pub(crate) struct Explain {
    /// Execution
    id: String,
}

impl Get {
    pub(crate) fn act(&self) -> anyhow::Result<Act> {
        let request = Request::get(at(&["executions", &self.id])?);
        Ok(Act::fields(request.each("include", &self.include)))
    }
}

impl Ls {
    pub(crate) fn act(&self) -> anyhow::Result<Act> {
        let request = self.search.ask(Request::get(at(&["executions"])?));
        let none = match self.search.is_empty() {
            true => "no executions; submit one: ff submit --help",
            false => "no executions that the filters find",
        };
        Ok(Act::table(request, &self.page, EXECUTIONS, none))
    }
}

impl ResultOf {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<ExitCode> {
        let request = Request::get(at(&["executions", &self.id, "result"])?);
        let request = request.each("attempt", self.attempt);
        if session.console.json {
            session.console.pass(&session.client.send(request).await?.body)?;
        } else {
            session.console.raw(&session.client.send(request.octets()).await?.body)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Explain {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<ExitCode> {
        let answer =
            session.client.send(Request::get(at(&["executions", &self.id, "explain"])?)).await?;
        if session.console.json {
            session.console.pass(&answer.body)?;
        } else {
            for line in explanation(&answer.json()?) {
                session.console.say(line)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn explanation(reply: &Value) -> Vec<String> {
    let mut lines = vec![format!("{}: {}", shown(&reply["cause"]), shown(&reply["summary"]))];
    for (name, value) in reply["evidence"].as_object().into_iter().flatten() {
        let text = shown(value);
        if !text.is_empty() {
            lines.push(format!("  {name}: {text}"));
        }
    }
    if !reply["earliest_start_at"].is_null() {
        lines.push(format!("earliest start: {}", shown(&reply["earliest_start_at"])));
    }
    for action in reply["unblock"].as_array().into_iter().flatten() {
        lines.push(format!("to change it: {}", shown(&action["summary"])));
        lines.push(format!("  {}", shown(&action["cli"])));
    }
    lines
}
