//! Workers, lanes and keys.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use ff_core::state::Scope;
use serde_json::{Value, json};

use super::act::{Act, Show};
use super::list::Page;
use super::pairs::body;
use crate::client::{Refused, Request, at};
use crate::duration;
use crate::failure::Usage;
use crate::session::Session;
use crate::show::{Column, shown};

const WORKERS: &[Column] = &[
    Column::Text("INSTANCE", "worker_instance_id"),
    Column::Text("WORKER", "worker_id"),
    Column::State("STATUS", "status"),
    Column::Text("LANES", "lanes"),
    Column::Text("RUNNING", "running"),
    Column::Text("CAPABILITIES", "capabilities"),
    Column::Age("HEARD", "last_heartbeat_at"),
];

const LANES: &[Column] = &[
    Column::Text("LANE", "lane"),
    Column::State("STATE", "state"),
    Column::Text("DEPTH", "depth"),
    Column::Text("RUNNING", "running"),
    Column::Text("WORKERS", "live_workers"),
    Column::Length("OLDEST", "oldest_age_ms"),
    Column::Text("REASON", "reason"),
];

/// The scope that makes keys and takes them away.
const ADMIN: &str = Scope::Admin.as_str();

const KEYS: &[Column] = &[
    Column::Text("KEY", "key_id"),
    Column::Text("NAME", "name"),
    Column::Text("SCOPES", "scopes"),
    Column::Text("NAMESPACES", "namespaces"),
    Column::Text("LANES", "lanes"),
    Column::Text("EXPIRES", "expires_at"),
];

/// Workers that are registered
#[derive(Debug, Subcommand)]
pub(crate) enum Worker {
    /// List workers
    #[command(after_help = "Example: ff worker ls")]
    Ls(Page),
    /// Show a worker
    #[command(after_help = "Example: ff worker show w-1")]
    Show { instance: String },
    /// Give a worker no more work; what it has it finishes
    #[command(after_help = "Example: ff worker drain w-1 --reason 'new version'")]
    Drain {
        instance: String,
        /// Why, for the record
        #[arg(long, default_value = "")]
        reason: String,
    },
    /// Take a worker for dead: what it holds is claimable again at once
    #[command(after_help = "Example: ff worker dead w-1 --reason 'the machine is gone'")]
    Dead {
        instance: String,
        /// Why, for the record
        #[arg(long, default_value = "")]
        reason: String,
    },
}

/// Lanes
#[derive(Debug, Subcommand)]
pub(crate) enum Lane {
    /// List lanes with their depth
    #[command(after_help = "Example: ff lane ls")]
    Ls(Page),
    /// Show a lane
    #[command(after_help = "Example: ff lane show mail")]
    Show { lane: String },
    /// Change settings of a lane
    #[command(after_help = "Example: ff lane set mail --state paused --priority-ageing-ms 1m")]
    Set {
        lane: String,
        /// active, paused, draining or disabled
        #[arg(long)]
        state: Option<String>,
        /// Waiting so long counts as one step of priority; 0: never
        #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
        priority_ageing_ms: Option<u64>,
        /// Budget that the lane stands under; may be given several times
        #[arg(long, value_name = "ID")]
        budget: Vec<String>,
        /// Quota policy that the lane stands under
        #[arg(long, value_name = "ID")]
        quota: Option<String>,
    },
    /// Claim nothing from a lane; submits are taken
    #[command(after_help = "Example: ff lane pause mail")]
    Pause(Reasoned),
    /// Claim from a lane again
    #[command(after_help = "Example: ff lane resume mail")]
    Resume(Reasoned),
    /// Take no submits; what waits is worked off
    #[command(after_help = "Example: ff lane drain mail")]
    Drain(Reasoned),
}

/// A lane, and why.
#[derive(Debug, Args)]
pub(crate) struct Reasoned {
    lane: String,
    /// Why: told with the event, and shown with the lane until its state changes
    #[arg(long)]
    reason: Option<String>,
}

/// API keys
#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Make a key; it is shown this once
    ///
    /// The first key of a store closes its servers to all who show none. So it must have the scope
    /// admin: without it nobody could make another, or take this one away.
    #[command(after_help = "Examples:\n  \
        ff key create --name owner --all-scopes\n  \
        ff key create --name ci --scope executions:write --scope executions:read \
        --in-namespace team-a")]
    Create {
        /// What it is for
        #[arg(long)]
        name: String,
        /// What it may do; may be given several times
        #[arg(long, required_unless_present = "all_scopes")]
        scope: Vec<String>,
        /// All that the key which makes it may do; everything where there is no key yet
        #[arg(long, conflicts_with = "scope")]
        all_scopes: bool,
        /// Namespaces it is for; those of the key that makes it when absent
        #[arg(long, value_name = "NAME")]
        in_namespace: Vec<String>,
        /// Lanes it is for; those of the key that makes it when absent
        #[arg(long)]
        lane: Vec<String>,
        /// When it ends (2026-01-31T12:00:00Z, or milliseconds since 1970)
        #[arg(long, value_name = "TIME")]
        expires_at: Option<String>,
        /// Make it even if it is the first one and lacks admin
        #[arg(long)]
        yes: bool,
    },
    /// List keys, without their secrets
    #[command(after_help = "Example: ff key ls")]
    Ls(Page),
    /// Delete a key; it is refused within a second
    #[command(after_help = "Example: ff key rm 0a1b2c3d")]
    Rm { id: String },
}

fn new_status(reply: &Value) -> String {
    shown(if reply["status"].is_null() { &reply["state"] } else { &reply["status"] })
}

/// A list, or nothing when it is empty.
fn some(values: &[String]) -> Value {
    if values.is_empty() { Value::Null } else { json!(values) }
}

impl Worker {
    pub(crate) fn act(&self) -> anyhow::Result<Act> {
        let told = |instance: &str, verb: &str, reason: &str| {
            let path = at(&["workers", instance, verb])?;
            anyhow::Ok(Act::line(Request::post(path, &json!({ "reason": reason })), new_status))
        };
        match self {
            Self::Ls(page) => {
                let request = Request::get(at(&["workers"])?);
                Ok(Act::table(request, page, WORKERS, "no workers are registered"))
            }
            Self::Show { instance } => Ok(Act::fields(Request::get(at(&["workers", instance])?))),
            Self::Drain { instance, reason } => told(instance, "drain", reason),
            Self::Dead { instance, reason } => told(instance, "mark-dead", reason),
        }
    }
}

impl Lane {
    pub(crate) fn act(&self) -> anyhow::Result<Act> {
        match self {
            Self::Ls(page) => {
                let request = Request::get(at(&["lanes"])?);
                Ok(Act::table(request, page, LANES, "no lanes: they come with the first submit"))
            }
            Self::Show { lane } => Ok(Act::fields(Request::get(at(&["lanes", lane])?))),
            Self::Set { lane, state, priority_ageing_ms, budget, quota } => {
                let body = body([
                    ("state", json!(state)),
                    ("priority_ageing_ms", json!(priority_ageing_ms)),
                    ("budget_ids", some(budget)),
                    ("quota_policy_id", json!(quota)),
                ]);
                Ok(Act::fields(Request::patch(at(&["lanes", lane])?, &body)))
            }
            Self::Pause(of) => of.act("pause"),
            Self::Resume(of) => of.act("resume"),
            Self::Drain(of) => of.act("drain"),
        }
    }
}

impl Reasoned {
    fn act(&self, verb: &str) -> anyhow::Result<Act> {
        let body = body([("reason", json!(self.reason))]);
        let request = Request::post(at(&["lanes", &self.lane, verb])?, &body);
        Ok(Act::line(request, new_status))
    }
}

impl Key {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<ExitCode> {
        let act = match self {
            Self::Create { name, scope, in_namespace, lane, expires_at, yes, .. } => {
                let closes = !scope.is_empty() && !scope.iter().any(|scope| scope == ADMIN);
                if closes && !yes {
                    check_not_first(session).await?;
                }
                let body = body([
                    ("name", json!(name)),
                    ("scopes", some(scope)),
                    ("namespaces", some(in_namespace)),
                    ("lanes", some(lane)),
                    ("expires_at", json!(expires_at)),
                ]);
                Act::new(Request::post(at(&["keys"])?, &body), Show::Only("key"))
            }
            Self::Ls(page) => Act::table(Request::get(at(&["keys"])?), page, KEYS, "no keys"),
            Self::Rm { id } => Act::said(Request::delete(at(&["keys", id])?), "deleted"),
        };
        session.perform(act).await
    }
}

/// Refuses where there is no key yet. Who may not list keys has shown one, or is refused anyway.
async fn check_not_first(session: &Session) -> anyhow::Result<()> {
    let request = Request::get(at(&["keys"])?).query("limit", &1);
    let listed = match session.client.ask(request).await {
        Ok(page) => page["items"].as_array().is_some_and(|keys| !keys.is_empty()),
        Err(error) if error.is::<Refused>() => return Ok(()),
        Err(error) => return Err(error),
    };
    if listed || session.client.shows_key() {
        return Ok(());
    }
    let detail = "the first key closes the server to all who show none, and this one lacks the scope \
                  admin: nobody could make another; make the owner's first, with `ff key create \
                  --name owner --all-scopes`, or say --yes";
    Err(Usage(detail.to_owned()).into())
}
