//! What operators do to one execution, or with `--filter` to all that a filter finds.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::act::Act;
use super::bulk::Bulk;
use super::filter::Search;
use super::pairs::{self, body, map};
use crate::client::{Request, at};
use crate::duration;
use crate::failure::Usage;
use crate::session::Session;
use crate::show::shown;

/// One execution, or all that a filter finds.
#[derive(Debug, Args)]
pub(crate) struct OneOrMany {
    /// Execution
    #[arg(conflicts_with = "filter")]
    id: Option<String>,
    /// All that the filters find; shows what they are and asks
    #[arg(long)]
    filter: bool,
    /// Do not ask
    #[arg(long, requires = "filter")]
    yes: bool,
    #[command(flatten)]
    search: Search,
}

/// Cancel an execution, or all that a filter finds
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ff cancel '{fp:7}:0199…' --reason 'wrong input'\n  \
    ff cancel --filter --lane mail --state waiting\n  \
    ff cancel --filter --tag mail.campaign:spring --yes")]
pub(crate) struct Cancel {
    #[command(flatten)]
    which: OneOrMany,
    /// Why, for the record
    #[arg(long, default_value = "")]
    reason: String,
}

/// Give an ended execution another generation, or all that a filter finds
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ff replay '{fp:7}:0199…'\n  \
    ff replay --filter --lane mail --state failed")]
pub(crate) struct Replay {
    #[command(flatten)]
    which: OneOrMany,
    /// Downstreams in its flow that have run are replayed too
    #[arg(long, conflicts_with = "filter")]
    descendants: bool,
}

/// Keep an execution from being claimed
#[derive(Debug, Args)]
#[command(after_help = "Example: ff hold '{fp:7}:0199…' --detail 'until the disk is larger'")]
pub(crate) struct Hold {
    /// Execution
    id: String,
    /// Why; shown as the blocking detail
    #[arg(long, default_value = "")]
    detail: String,
}

/// Release an execution that is held
#[derive(Debug, Args)]
#[command(after_help = "Example: ff release '{fp:7}:0199…'")]
pub(crate) struct Release {
    /// Execution
    id: String,
}

/// Resume a suspended execution by hand
#[derive(Debug, Args)]
#[command(after_help = "Example: ff resume '{fp:7}:0199…' --delay 5m")]
pub(crate) struct Resume {
    /// Execution
    id: String,
    /// Who or what does it, for the record
    #[arg(long, default_value = "")]
    detail: String,
    /// Not before so long from now: 500ms, 2s, 5m, 1h; as the suspension asked when absent
    #[arg(long, value_parser = duration::parse)]
    delay: Option<u64>,
}

/// Change the priority of an execution
#[derive(Debug, Args)]
#[command(after_help = "Example: ff priority '{fp:7}:0199…' 100")]
pub(crate) struct Priority {
    /// Execution
    id: String,
    /// 0 to 9000; higher is claimed first
    #[arg(allow_negative_numbers = true)]
    priority: i64,
}

/// Put tags over those of an execution
#[derive(Debug, Args)]
#[command(after_help = "Example: ff tag '{fp:7}:0199…' mail.campaign=spring mail.owner=ada")]
pub(crate) struct Tag {
    /// Execution
    id: String,
    /// Tags, as key=value; keys have the form caller.field
    #[arg(required = true, value_name = "K=V", value_parser = pairs::text)]
    tags: Vec<(String, String)>,
}

/// Take a lease away; the execution is claimable again
#[derive(Debug, Args)]
#[command(after_help = "Example: ff revoke '{fp:7}:0199…' --reason 'the worker hangs'")]
pub(crate) struct Revoke {
    /// Execution
    id: String,
    /// Why, for the record
    #[arg(long, default_value = "")]
    reason: String,
    /// Only if this is the lease
    #[arg(long, value_name = "ID")]
    expected_lease_id: Option<String>,
}

/// Remove an ended execution with everything that belongs to it
#[derive(Debug, Args)]
#[command(after_help = "Example: ff delete '{fp:7}:0199…'")]
pub(crate) struct Delete {
    /// Execution
    id: String,
}

fn on(id: &str, verb: &str, body: &Value) -> anyhow::Result<Request> {
    Ok(Request::post(at(&["executions", id, verb])?, body))
}

fn new_state(record: &Value) -> String {
    let detail = shown(&record["state_vector"]["blocking_reason"]);
    let state = shown(&record["public_state"]);
    if detail.is_empty() || detail == "none" { state } else { format!("{state} ({detail})") }
}

impl Cancel {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<ExitCode> {
        let Some(id) = self.which.one()? else {
            let reason = Some(self.reason.as_str()).filter(|reason| !reason.is_empty());
            return self.which.bulk("cancel", reason).run(session).await;
        };
        let request = on(id, "cancel", &json!({ "reason": self.reason }))?;
        let line = |reply: &Value| match reply["replayed"].as_bool() {
            Some(true) => "cancelled already".to_owned(),
            _ => format!("cancelled; it was {}", shown(&reply["from"])),
        };
        session.perform(Act::line(request, line)).await
    }
}

impl Replay {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<ExitCode> {
        let Some(id) = self.which.one()? else {
            return self.which.bulk("replay", None).run(session).await;
        };
        let request = on(id, "replay", &json!({ "descendants": self.descendants }))?;
        let line = |reply: &Value| {
            let (state, count) = (shown(&reply["public_state"]), shown(&reply["replay_count"]));
            format!("replayed; it is {state} now, generation {count}")
        };
        session.perform(Act::line(request, line)).await
    }
}

impl OneOrMany {
    /// The execution, if it is one. Filters beside it would do nothing; without --filter they are not
    /// meant to reach many.
    fn one(&self) -> Result<Option<&str>, Usage> {
        let told = match (&self.id, self.search.is_empty()) {
            (Some(_), false) => "filters go with --filter, not with an execution",
            (None, false) if !self.filter => "say --filter for all that the filters find",
            (None, true) if !self.filter => "name an execution by its <ID>, or many with --filter",
            _ => return Ok(self.id.as_deref()),
        };
        Err(Usage(told.to_owned()))
    }

    fn bulk<'a>(&'a self, action: &'static str, reason: Option<&'a str>) -> Bulk<'a> {
        Bulk { action, search: &self.search, reason, yes: self.yes }
    }
}

impl Hold {
    pub(crate) fn act(&self) -> anyhow::Result<Act> {
        Ok(Act::line(on(&self.id, "hold", &json!({ "detail": self.detail }))?, new_state))
    }
}

impl Release {
    pub(crate) fn act(&self) -> anyhow::Result<Act> {
        Ok(Act::line(on(&self.id, "release", &json!({}))?, new_state))
    }
}

impl Resume {
    pub(crate) fn act(&self) -> anyhow::Result<Act> {
        let body = json!({ "detail": self.detail, "delay_ms": self.delay });
        Ok(Act::line(on(&self.id, "resume", &body)?, new_state))
    }
}

impl Priority {
    pub(crate) fn act(&self) -> anyhow::Result<Act> {
        let body = json!({ "new_priority": self.priority });
        let request = Request::put(at(&["executions", &self.id, "priority"])?, &body);
        Ok(Act::line(request, |reply| {
            format!("priority {}; it was {}", shown(&reply["new"]), shown(&reply["old"]))
        }))
    }
}

impl Tag {
    pub(crate) fn act(&self) -> anyhow::Result<Act> {
        let body = json!({ "tags": map(&self.tags)? });
        let request = Request::patch(at(&["executions", &self.id, "tags"])?, &body);
        Ok(Act::line(request, |reply| format!("{} tags", shown(&reply["count"]))))
    }
}

impl Revoke {
    pub(crate) fn act(&self) -> anyhow::Result<Act> {
        let body = body([
            ("reason", json!(self.reason)),
            ("expected_lease_id", json!(self.expected_lease_id)),
        ]);
        let line = |reply: &Value| format!("revoked lease {}", shown(&reply["lease_id"]));
        Ok(Act::line(on(&self.id, "revoke-lease", &body)?, line))
    }
}

impl Delete {
    pub(crate) fn act(&self) -> anyhow::Result<Act> {
        Ok(Act::said(Request::delete(at(&["executions", &self.id])?), "deleted"))
    }
}
