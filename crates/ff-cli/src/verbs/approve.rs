//! `ff approve`: a person decides what an execution waits for.

use std::process::ExitCode;

use clap::Args;
use ff_core::error::Code;
use serde_json::{Value, json};

use super::act::Act;
use super::pairs::body;
use super::signal::signalled;
use crate::client::{Refused, Request, at};
use crate::session::Session;
use crate::show::shown;

/// Longest page of waitpoints.
const PAGE: u32 = 500;

/// Approve what an execution waits for, or deny it
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ff approve '{fp:7}:0199…' --comment 'looks good'\n  \
    ff approve '{fp:7}:0199…' --waitpoint legal --deny --comment 'not this quarter'\n  \
    ff waitpoint ls --quiet | xargs -n1 ff approve")]
pub(crate) struct Approve {
    /// Execution with one open waitpoint, or the id of a waitpoint
    #[arg(value_name = "ID|WAITPOINT")]
    id: String,
    /// Which waitpoint of the execution, by its id or key, if there are several
    #[arg(long, value_name = "WAITPOINT")]
    waitpoint: Option<String>,
    /// Deny
    #[arg(long)]
    deny: bool,
    /// Why, handed to the execution
    #[arg(long)]
    comment: Option<String>,
    /// Name of the signal; approved or denied when absent
    #[arg(long)]
    name: Option<String>,
    /// Tells decisions of one name apart; the waitpoint's id when absent
    #[arg(long)]
    suffix: Option<String>,
}

impl Approve {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<ExitCode> {
        let (execution, waitpoint) = if self.id.starts_with('{') || self.waitpoint.is_some() {
            (self.id.clone(), self.of_execution(session).await?)
        } else {
            self.owner(session).await?
        };
        let verb = if self.deny { "deny" } else { "approve" };
        // Decisions are told apart by name and suffix within an execution. The waitpoint as suffix
        // lets a later wait of the same execution have its own.
        let suffix = self.suffix.as_ref().unwrap_or(&waitpoint);
        let body = body([
            ("name", json!(self.name)),
            ("comment", json!(self.comment)),
            ("suffix", json!(suffix)),
        ]);
        let path = at(&["executions", &execution, "waitpoints", &waitpoint, verb])?;
        session.perform(Act::line(Request::post(path, &body), signalled)).await
    }

    /// The waitpoint of the execution that was named, or the only one that is not closed.
    async fn of_execution(&self, session: &Session) -> anyhow::Result<String> {
        let path = at(&["executions", &self.id, "pending-waitpoints"])?;
        let page = session.client.ask(Request::get(path).query("limit", &PAGE)).await?;
        let open = page["items"].as_array().map_or(&[][..], Vec::as_slice);
        if let Some(named) = &self.waitpoint {
            let by = |field: &str| open.iter().find(|it| it[field] == **named);
            let found = by("waitpoint_id").or_else(|| by("key"));
            return Ok(found.map_or_else(|| named.clone(), |it| text(it, "waitpoint_id")));
        }
        match open {
            [only] => Ok(text(only, "waitpoint_id")),
            [] => {
                let detail = "the execution has no open waitpoint: it waits for nobody";
                Err(Refused::new(Code::TargetNotSignalable, detail).into())
            }
            several => {
                let listed: Vec<String> = several
                    .iter()
                    .map(|it| format!("{} ({})", shown(&it["key"]), shown(&it["waitpoint_id"])))
                    .collect();
                let listed = listed.join(", ");
                let detail = format!("it has several open waitpoints, name one: {listed}");
                Err(Refused::new(Code::InvalidInput, detail).into())
            }
        }
    }

    /// The execution that a waitpoint belongs to.
    async fn owner(&self, session: &Session) -> anyhow::Result<(String, String)> {
        let mut cursor: Option<String> = None;
        loop {
            let request = Request::get(at(&["waitpoints"])?).query("limit", &PAGE);
            let page = session.client.ask(request.each("cursor", &cursor)).await?;
            let found = page["items"].as_array().into_iter().flatten();
            let found = found.into_iter().find(|it| it["waitpoint_id"] == *self.id);
            if let Some(found) = found {
                return Ok((text(found, "execution_id"), self.id.clone()));
            }
            cursor = page["next_cursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                let detail = format!("no open waitpoint has the id {}", shown(&json!(self.id)));
                return Err(Refused::new(Code::WaitpointNotFound, detail).into());
            }
        }
    }
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}
