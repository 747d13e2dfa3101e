//! `ff submit`: one execution, or a file of them.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use ff_api::bytes::Base64;
use ff_api::time::Time;
use ff_core::error::Code;
use ff_core::limits;
use ff_core::time::TimestampMs;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::batch;
use super::pairs::{self, body, map};
use super::wait::{Patience, has_ended};
use crate::client::{Refused, Request, at};
use crate::duration;
use crate::failure::{UNSUCCESSFUL, Usage};
use crate::session::Session;
use crate::show::{now_ms, shown, state};

/// Submit an execution, or a file of them
///
/// Prints its id. With --wait it prints the result, exactly its bytes, and exits with 0 if the
/// execution succeeded and with 9 if it ended otherwise.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ff submit --lane mail --kind send --payload '{\"to\":\"a@b.c\"}' --key mail-1\n  \
    ff submit --lane video --kind transcode --payload @job.json --delay 5m\n  \
    generate | ff submit --lane llm --kind ask --payload - --wait > answer.txt\n  \
    ff submit --batch jobs.ndjson")]
pub(crate) struct Submit {
    /// Lane that it waits in
    #[arg(long, required_unless_present = "batch")]
    lane: Option<String>,
    /// Kind of work
    #[arg(long, required_unless_present = "batch")]
    kind: Option<String>,
    #[command(flatten)]
    what: What,
    /// Wait for the outcome
    #[arg(long)]
    wait: bool,
    /// Give up waiting after so long and exit with 8; the execution goes on
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, requires = "wait")]
    timeout: Option<u64>,
    /// Submit every line of a file, each a JSON object with the fields of a submit; `-`: standard
    /// input. Exits with the code of the first that is refused
    #[arg(long, value_name = "FILE", conflicts_with_all = ["lane", "kind", "wait", "What"])]
    batch: Option<PathBuf>,
}

/// What is submitted, beside lane and kind.
#[derive(Debug, Args)]
struct What {
    /// Payload: the text itself, @FILE, or - for standard input
    #[arg(long, value_name = "TEXT|@FILE|-")]
    payload: Option<String>,
    /// Content type of the payload; application/json when it is JSON
    #[arg(long, value_name = "TYPE", requires = "payload")]
    content_type: Option<String>,
    /// Idempotency key: the same again is not submitted twice
    #[arg(long)]
    key: Option<String>,
    /// Not before so long from now: 500ms, 2s, 5m, 1h
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    delay: Option<u64>,
    /// 0 to 9000; higher is claimed first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i64>,
    /// Tag, as key=value; may be given several times
    #[arg(long, value_name = "K=V", value_parser = pairs::text)]
    tag: Vec<(String, String)>,
    /// Policy: a JSON object, or @FILE
    #[arg(long, value_name = "JSON|@FILE")]
    policy: Option<String>,
    /// Budget that it stands under; may be given several times
    #[arg(long, value_name = "ID")]
    budget: Vec<String>,
    /// Quota policy that it stands under
    #[arg(long, value_name = "ID")]
    quota: Option<String>,
    /// Start as held by an operator
    #[arg(long)]
    held: bool,
    /// Id: full, or a uuid; minted when absent
    #[arg(long, value_name = "ID")]
    id: Option<String>,
}

/// What `@FILE`, `-` or a text stands for; never more than a payload may have, and a byte.
pub(super) fn bytes_of(argument: &str) -> Result<Vec<u8>, Usage> {
    match argument.strip_prefix('@') {
        Some(file) => contents(Path::new(file), limits::PAYLOAD_BYTES as u64 + 1),
        None if argument == "-" => contents(Path::new("-"), limits::PAYLOAD_BYTES as u64 + 1),
        None => Ok(argument.as_bytes().to_vec()),
    }
}

/// What stands in a file, or on standard input for `-`, up to a length.
pub(super) fn contents(path: &Path, most: u64) -> Result<Vec<u8>, Usage> {
    let unreadable = |error| Usage::unreadable(path, &error);
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        std::io::stdin().take(most).read_to_end(&mut bytes).map_err(unreadable)?;
    } else {
        let file = std::fs::File::open(path).map_err(unreadable)?;
        file.take(most).read_to_end(&mut bytes).map_err(unreadable)?;
    }
    Ok(bytes)
}

impl What {
    /// The fields of a submit.
    fn body(&self, lane: &str, kind: &str) -> anyhow::Result<Value> {
        let payload = self.payload.as_deref().map(bytes_of).transpose()?;
        let is_json = |bytes: &[u8]| serde_json::from_slice::<&RawValue>(bytes).is_ok();
        let content_type = match (&self.content_type, &payload) {
            (Some(given), _) => Some(given.as_str()),
            (None, Some(bytes)) if is_json(bytes) => Some("application/json"),
            _ => None,
        };
        let policy = self.policy.as_deref().map(policy).transpose()?;
        let later = |ms: u64| Time(TimestampMs(now_ms()).after(ms));
        let tags = map(&self.tag)?;
        Ok(body([
            ("lane", json!(lane)),
            ("kind", json!(kind)),
            ("payload_b64", json!(payload.map(|bytes| Base64(bytes.into())))),
            ("content_type", json!(content_type)),
            ("idempotency_key", json!(self.key)),
            ("delay_until", json!(self.delay.filter(|ms| *ms > 0).map(later))),
            ("priority", json!(self.priority)),
            ("tags", if tags.is_empty() { Value::Null } else { json!(tags) }),
            ("policy", json!(policy)),
            ("budget_ids", json!(Some(&self.budget).filter(|ids| !ids.is_empty()))),
            ("quota_policy_id", json!(self.quota)),
            ("held", if self.held { json!(true) } else { Value::Null }),
            ("execution_id", json!(self.id)),
        ]))
    }
}

fn policy(argument: &str) -> anyhow::Result<Value> {
    serde_json::from_slice(&bytes_of(argument)?).map_err(|error| {
        Refused::new(Code::InvalidPolicyJson, format!("the policy is not JSON: {error}")).into()
    })
}

impl Submit {
    pub(crate) async fn run(&self, session: &Session) -> anyhow::Result<ExitCode> {
        if let Some(file) = &self.batch {
            return batch::run(session, file).await;
        }
        let lane = self.lane.as_deref().unwrap_or_default();
        let kind = self.kind.as_deref().unwrap_or_default();
        let request = Request::post(at(&["executions"])?, &self.what.body(lane, kind)?);
        if self.wait {
            return self.wait(session, request).await;
        }
        let answer = session.client.send(request).await?;
        if session.console.json {
            session.console.pass(&answer.body)?;
            return Ok(ExitCode::SUCCESS);
        }
        let reply = answer.json()?;
        let id = shown(&reply["execution_id"]);
        session.console.say(&id)?;
        let is_new = reply["status"] == "created";
        if self.what.priority.is_some_and(|given| is_new && reply["priority"] != given) {
            let taken = shown(&reply["priority"]);
            session.console.note(format_args!("priority {taken}: it goes from 0 to 9000"));
        }
        let (status, now) = (shown(&reply["status"]), shown(&reply["public_state"]));
        session.console.note(format_args!("{status}, {now}; follow it: ff watch '{id}'"));
        Ok(ExitCode::SUCCESS)
    }

    /// Submits and waits: only the result goes to standard output.
    async fn wait(&self, session: &Session, request: Request) -> anyhow::Result<ExitCode> {
        // Not together: whoever breaks the wait off, or loses the server meanwhile, knows the id.
        let reply = session.client.ask(request).await?;
        let id = reply["execution_id"].as_str().unwrap_or_default().to_owned();
        let patience = Patience::new(self.timeout, "execution_id", &id);
        let of_it = Request::get(at(&["executions", &id])?);
        if !session.console.json {
            session.console.note(&id);
        }
        let ended = if has_ended(&reply["public_state"]) {
            patience.send(&session.client, &of_it).await?.json()?
        } else {
            patience.until_ended(&session.client, &of_it, "public_state").await?
        };
        let succeeded = ended["public_state"] == "completed";
        if session.console.json {
            let whole = of_it.query("include", "result");
            session.console.pass(&patience.send(&session.client, &whole).await?.body)?;
        } else {
            let state = state(&ended["public_state"], false);
            session.console.note([state, shown(&ended["failure_reason"])].join(" ").trim_end());
            if succeeded {
                print_result(session, &patience, &id).await?;
            }
        }
        Ok(if succeeded { ExitCode::SUCCESS } else { UNSUCCESSFUL.into() })
    }
}

async fn print_result(session: &Session, patience: &Patience, id: &str) -> anyhow::Result<()> {
    let request = Request::get(at(&["executions", id, "result"])?).octets();
    match patience.send(&session.client, &request).await {
        Ok(result) => session.console.raw(&result.body)?,
        // It succeeded and left none.
        Err(error) if is_none(&error) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

fn is_none(error: &anyhow::Error) -> bool {
    let refused = error.downcast_ref::<Refused>();
    refused.is_some_and(|refused| refused.code() == Code::ResultNotFound.as_str())
}
