//! Signals, waitpoints and the secrets that sign their tokens.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ff_api::bytes::Base64;
use serde_json::{Value, json};

use super::act::{Act, Show};
use super::list::Page;
use super::pairs::body;
use super::submit::bytes_of;
use crate::client::{Request, at, one_line_of};
use crate::duration;
use crate::show::{Column, shown};

const WAITPOINTS: &[Column] = &[
    Column::Text("WAITPOINT", "waitpoint_id"),
    Column::Text("EXECUTION", "execution_id"),
    Column::Text("KEY", "key"),
    Column::State("STATE", "state"),
    Column::Text("REASON", "reason"),
    Column::Age("AGE", "created_at"),
];

const KIDS: &[Column] =
    &[Column::Text("KID", "kid"), Column::Text("ACCEPTED UNTIL", "accepted_until")];

/// Send a signal to a waitpoint
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ff signal '{fp:7}:0199…' --key approval --token-file token --name approved\n  \
    ff waitpoint token '{fp:7}:0199…' approval | \
    ff signal '{fp:7}:0199…' --key approval --token-file - --name approved")]
pub(crate) struct Signal {
    /// Execution
    id: String,
    /// Waitpoint, by its key
    #[arg(long, required_unless_present = "waitpoint", conflicts_with = "waitpoint")]
    key: Option<String>,
    /// Waitpoint, by its id
    #[arg(long, value_name = "ID")]
    waitpoint: Option<String>,
    /// File with the waitpoint's token; `-`: standard input
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
    /// Name of the signal
    #[arg(long)]
    name: String,
    /// Payload: the text itself, @FILE, or - for standard input
    #[arg(long, value_name = "TEXT|@FILE|-")]
    payload: Option<String>,
    /// Content type of the payload
    #[arg(long, value_name = "TYPE", requires = "payload")]
    content_type: Option<String>,
    /// Idempotency key: the same again is not delivered twice
    #[arg(long, value_name = "KEY")]
    dedup: Option<String>,
}

/// Waitpoints that are not closed, and their tokens
#[derive(Debug, Subcommand)]
pub(crate) enum Waitpoint {
    /// List the waitpoints of an execution, or of all, that are not closed
    #[command(after_help = "Examples:\n  ff waitpoint ls\n  ff waitpoint ls '{fp:7}:0199…'\n  \
        ff waitpoint ls --reason waiting_for_approval --age 1h")]
    Ls {
        /// Only of this execution
        #[arg(conflicts_with_all = ["lane", "reason", "age"])]
        id: Option<String>,
        /// Only of this lane
        #[arg(long)]
        lane: Option<String>,
        /// Only for this reason
        #[arg(long)]
        reason: Option<String>,
        /// Only those that wait so long at least: 500ms, 2s, 5m, 1h
        #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
        age: Option<u64>,
        #[command(flatten)]
        page: Page,
    },
    /// Print the token of a waitpoint
    #[command(after_help = "Example: ff waitpoint token '{fp:7}:0199…' approval > token")]
    Token {
        /// Execution
        id: String,
        /// Waitpoint, by its id or key
        waitpoint: String,
        /// Make a new one; the old one is refused from then on
        #[arg(long)]
        remint: bool,
        /// How long a new one lives: 500ms, 2s, 5m, 1h
        #[arg(long, value_name = "DURATION", value_parser = duration::parse, requires = "remint")]
        ttl: Option<u64>,
    },
}

/// Secrets that sign waitpoint tokens
#[derive(Debug, Subcommand)]
pub(crate) enum Secret {
    /// Sign with a new secret; tokens of the one before are accepted for a grace
    #[command(after_help = "Example: openssl rand -hex 32 > secret && \
        ff secret rotate --kid k2 --secret-file secret --grace-ms 1h")]
    Rotate {
        /// Name of the new secret
        #[arg(long)]
        kid: String,
        /// File with the secret, 32 to 128 bytes in hex; `-`: standard input
        #[arg(long, value_name = "FILE")]
        secret_file: PathBuf,
        /// How long tokens of the secret before are accepted: milliseconds, or 2s, 5m, 1h
        #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
        grace_ms: Option<u64>,
    },
    /// List the names of the secrets that are accepted
    #[command(after_help = "Example: ff secret ls")]
    Ls,
}

pub(crate) fn signalled(reply: &Value) -> String {
    format!("{}: {}", shown(&reply["status"]), shown(&reply["effect"]))
}

impl Signal {
    pub(crate) fn act(&self) -> anyhow::Result<Act> {
        let payload = self.payload.as_deref().map(bytes_of).transpose()?;
        let body = body([
            ("waitpoint_key", json!(self.key)),
            ("waitpoint_id", json!(self.waitpoint)),
            ("token", json!(one_line_of(&self.token_file)?)),
            ("name", json!(self.name)),
            ("payload_b64", json!(payload.map(|bytes| Base64(bytes.into())))),
            ("content_type", json!(self.content_type)),
            ("idempotency_key", json!(self.dedup)),
        ]);
        Ok(Act::line(Request::post(at(&["executions", &self.id, "signal"])?, &body), signalled))
    }
}

impl Waitpoint {
    pub(crate) fn act(&self) -> anyhow::Result<Act> {
        match self {
            Self::Ls { id, lane, reason, age, page } => {
                let path = match id {
                    Some(id) => at(&["executions", id, "pending-waitpoints"])?,
                    None => at(&["waitpoints"])?,
                };
                let request = Request::get(path).each("lane", lane);
                let request = request.each("reason", reason).each("age", age);
                Ok(Act::table(request, page, WAITPOINTS, "nobody waits for a signal"))
            }
            Self::Token { id, waitpoint, remint, ttl } => {
                let path = at(&["executions", id, "waitpoints", waitpoint, "token"])?;
                let request = match remint {
                    true => Request::post(path, &body([("token_ttl_ms", json!(ttl))])),
                    false => Request::get(path),
                };
                Ok(Act::new(request, Show::Only("token")))
            }
        }
    }
}

impl Secret {
    pub(crate) fn act(&self) -> anyhow::Result<Act> {
        match self {
            Self::Rotate { kid, secret_file, grace_ms } => {
                let body = body([
                    ("new_kid", json!(kid)),
                    ("new_secret_hex", json!(one_line_of(secret_file)?)),
                    ("grace_ms", json!(grace_ms)),
                ]);
                let request = Request::post(at(&["admin", "rotate-waitpoint-secret"])?, &body);
                Ok(Act::line(request, |reply| match reply["rotated"].as_bool() {
                    Some(false) => format!("{} signs already", shown(&reply["new_kid"])),
                    _ => format!("{} signs from now on", shown(&reply["new_kid"])),
                }))
            }
            Self::Ls => {
                let request = Request::get(at(&["admin", "waitpoint-kids"])?);
                Ok(Act::new(request, Show::Rows("kids", KIDS)))
            }
        }
    }
}
