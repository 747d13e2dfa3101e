//! Flows: graphs of executions.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use ff_core::error::Code;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::act::Act;
use super::graph;
use super::list::Page;
use super::pairs::body;
use super::submit::contents;
use super::wait::Patience;
use crate::client::{Refused, Request, at};
use crate::duration;
use crate::failure::UNSUCCESSFUL;
use crate::session::Session;
use crate::show::{Column, shown, state};

/// More than the server takes.
const GRAPH_BYTES: u64 = (16 << 20) + 1;
const PAGE: u32 = 500;

const FLOWS: &[Column] = &[
    Column::Text("FLOW", "flow_id"),
    Column::State("STATE", "state"),
    Column::Text("KIND", "kind"),
    Column::Text("MEMBERS", "node_count"),
    Column::Text("BY STATE", "counts"),
    Column::Age("AGE", "created_at"),
];

/// Flows: graphs of executions that depend on each other
#[derive(Debug, Subcommand)]
pub(crate) enum Flow {
    /// Submit a whole graph
    #[command(after_help = "Examples:\n  \
        ff flow submit graph.json\n  \
        ff flow submit graph.json --wait\n\n\
        A graph: {\"kind\":\"etl\",\n  \
        \"members\":[{\"name\":\"a\",\"lane\":\"l\",\"kind\":\"x\"},{\"name\":\"b\",\"lane\":\"l\",\"kind\":\"y\"}],\n  \
        \"edges\":[{\"from\":\"a\",\"to\":\"b\"}]}")]
    Submit {
        /// File with the graph as JSON; `-`: standard input
        graph: PathBuf,
        /// Wait for its end; exits with 9 when it did not complete
        #[arg(long)]
        wait: bool,
        /// Give up waiting after so long and exit with 8; the flow goes on
        #[arg(long, value_name = "DURATION", value_parser = duration::parse, requires = "wait")]
        timeout: Option<u64>,
    },
    /// Draw a flow with the states of its members
    #[command(after_help = "Example: ff flow show $FLOW")]
    Show { id: String },
    /// List flows
    #[command(after_help = "Example: ff flow ls --state failed")]
    Ls {
        /// State: open, running, blocked, completed, failed, cancelled
        #[arg(long)]
        state: Option<String>,
        /// Kind
        #[arg(long)]
        kind: Option<String>,
        /// Tag, as key:value
        #[arg(long, value_name = "K:V")]
        tag: Vec<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Cancel a flow
    #[command(after_help = "Example: ff flow cancel $FLOW --policy cancel_pending --wait")]
    Cancel {
        id: String,
        /// cancel_all, cancel_pending or flow_only
        #[arg(long, value_name = "POLICY")]
        policy: Option<String>,
        /// Why, for the record
        #[arg(long, default_value = "")]
        reason: String,
        /// Wait until members that it ends or lets end have ended, up to 5 minutes
        #[arg(long)]
        wait: bool,
    },
    /// Replay what failed in a flow, or some members
    #[command(after_help = "Example: ff flow replay $FLOW --member extract")]
    Replay {
        id: String,
        /// Only these members, by name or execution; may be given several times
        #[arg(long, value_name = "MEMBER")]
        member: Vec<String>,
    },
}

impl Flow {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<ExitCode> {
        match self {
            Self::Submit { graph, wait, timeout } => {
                submit(session, graph, wait.then_some(*timeout)).await
            }
            Self::Show { id } => show(session, id).await,
            Self::Ls { state, kind, tag, page } => {
                let request = Request::get(at(&["flows"])?).each("state", state);
                let request = request.each("kind", kind).each("tag", tag);
                session.perform(Act::table(request, page, FLOWS, "no flows")).await
            }
            Self::Cancel { id, policy, reason, wait } => {
                let body =
                    body([("cancellation_policy", json!(policy)), ("reason", json!(reason))]);
                let request = Request::post(at(&["flows", id, "cancel"])?, &body);
                let request = request.each("wait", wait.then_some(true)).patient(*wait);
                session.perform(Act::line(request, |reply| shown(&reply["status"]))).await
            }
            Self::Replay { id, member } => {
                let members = by_name(session, id, member).await?;
                let members = Some(members).filter(|members| !members.is_empty());
                let body = body([("members", json!(members))]);
                let request = Request::post(at(&["flows", id, "replay"])?, &body);
                session.perform(Act::line(request, replayed)).await
            }
        }
    }
}

/// Executions of members that are given by their names; what is an execution already stays.
async fn by_name(session: &Session, flow: &str, given: &[String]) -> anyhow::Result<Vec<String>> {
    let is_name = |member: &String| !member.starts_with('{');
    let members = match given.iter().any(is_name) {
        true => all(session, &at(&["flows", flow, "members"])?).await?,
        false => Vec::new(),
    };
    let execution = |given: &String| {
        if !is_name(given) {
            return Ok(given.clone());
        }
        let named = members.iter().find(|member| member["name"] == given.as_str());
        let none = || {
            let detail = format!("no member of this flow has the name {given:?}");
            Refused::new(Code::ExecutionNotInFlow, detail)
        };
        Ok(shown(&named.ok_or_else(none)?["execution_id"]))
    };
    given.iter().map(execution).collect()
}

fn replayed(reply: &Value) -> String {
    let count = reply["replayed"].as_array().map_or(0, Vec::len);
    let more = if reply["more"] == true { ", and more follow" } else { "" };
    format!("replayed {count}{more}")
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let bytes = contents(path, GRAPH_BYTES)?;
    if let Err(error) = serde_json::from_slice::<&RawValue>(&bytes) {
        let detail = format!("{} is not JSON: {error}", path.display());
        return Err(Refused::new(Code::InvalidInput, detail).into());
    }
    Ok(bytes)
}

/// `wait`: to its end, but no longer than so many milliseconds if it says so.
async fn submit(
    session: &Session,
    graph: &Path,
    wait: Option<Option<u64>>,
) -> anyhow::Result<ExitCode> {
    let request = Request::post_text(at(&["flows"])?, read(graph)?, "application/json");
    let answer = session.client.send(request).await?;
    let reply = answer.json()?;
    let id = reply["flow_id"].as_str().unwrap_or_default().to_owned();
    let Some(timeout) = wait else {
        if session.console.json {
            session.console.pass(&answer.body)?;
        } else {
            session.console.say(&id)?;
            session.console.note(format_args!("follow it: ff flow show {id}"));
        }
        return Ok(ExitCode::SUCCESS);
    };
    // A program finds the id in what it is told at the end.
    if !session.console.json {
        session.console.note(&id);
    }
    let patience = Patience::new(timeout, "flow_id", &id);
    let of_it = Request::get(at(&["flows", &id])?);
    let ended = patience.until_ended(&session.client, &of_it, "state").await?;
    if session.console.json {
        session.console.pass(&patience.send(&session.client, &of_it).await?.body)?;
    } else {
        session.console.say(state(&ended["state"], session.console.colour))?;
    }
    let succeeded = ended["state"] == "completed";
    Ok(if succeeded { ExitCode::SUCCESS } else { UNSUCCESSFUL.into() })
}

/// All pages of a list.
async fn all(session: &Session, path: &str) -> anyhow::Result<Vec<Value>> {
    let (mut items, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let request = Request::get(path.to_owned()).query("limit", &PAGE).each("cursor", &cursor);
        let page = session.client.ask(request).await?;
        items.extend(page["items"].as_array().into_iter().flatten().cloned());
        cursor = page["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            return Ok(items);
        }
    }
}

async fn show(session: &Session, id: &str) -> anyhow::Result<ExitCode> {
    if session.console.json {
        return session.perform(Act::fields(Request::get(at(&["flows", id, "graph"])?))).await;
    }
    let flow = session.client.ask(Request::get(at(&["flows", id])?)).await?;
    let members = all(session, &at(&["flows", id, "members"])?).await?;
    let edges = all(session, &at(&["flows", id, "edges"])?).await?;
    let colour = session.console.colour;
    session.console.say(format_args!(
        "{}  {}  {}",
        shown(&flow["flow_id"]),
        state(&flow["state"], colour),
        shown(&flow["kind"])
    ))?;
    for line in graph::draw(&members, &edges, colour) {
        session.console.say(line)?;
    }
    Ok(ExitCode::SUCCESS)
}
