//! Which executions.

use clap::Args;
use ff_api::time::Time;
use ff_core::error::Code;
use ff_core::state::PublicState;
use ff_core::time::TimestampMs;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::pairs::body;
use crate::client::{Refused, Request, at};
use crate::session::Session;

/// Filters; several of one name mean any of them, tags all of them.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct Filter {
    /// Lane
    #[arg(long, value_name = "LANE")]
    lane: Vec<String>,
    /// Kind
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Tag, as key:value
    #[arg(long, value_name = "K:V")]
    tag: Vec<String>,
    /// Flow
    #[arg(long, value_name = "ID")]
    flow: Option<String>,
}

/// What only a search knows.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct Search {
    #[command(flatten)]
    filter: Filter,
    /// State: waiting, delayed, rate_limited, waiting_children, active, suspended, resumable,
    /// completed, failed, cancelled, expired, skipped
    #[arg(long, value_name = "STATE")]
    state: Vec<String>,
    /// Submitted after this time (2026-01-31T12:00:00Z, or milliseconds since 1970)
    #[arg(long, value_name = "TIME")]
    created_after: Option<String>,
    /// Submitted before this time
    #[arg(long, value_name = "TIME")]
    created_before: Option<String>,
}

impl Filter {
    pub(crate) fn is_empty(&self) -> bool {
        self.lane.is_empty() && self.kind.is_empty() && self.tag.is_empty() && self.flow.is_none()
    }

    /// As parameters.
    pub(crate) fn ask(&self, request: Request) -> Request {
        request
            .each("lane", &self.lane)
            .each("kind", &self.kind)
            .each("tag", &self.tag)
            .each("flow", &self.flow)
    }
}

/// What the log does not know of an execution, and its record does.
pub(crate) struct Sieve {
    states: Vec<PublicState>,
    after: Option<TimestampMs>,
    before: Option<TimestampMs>,
}

impl Sieve {
    /// Whether an event is about an execution that was asked for: as it was submitted, and in the state
    /// that the event led to if it is the end, else the present one.
    pub(crate) async fn passes(&self, session: &Session, event: &Value) -> anyhow::Result<bool> {
        let is_timed = self.after.is_some() || self.before.is_some();
        if self.states.is_empty() && !is_timed {
            return Ok(true);
        }
        let Some(id) = event["subject"].as_str().filter(|subject| subject.starts_with('{')) else {
            return Ok(false);
        };
        let ended = ended_as(&event["outcome"]);
        if let Some(state) = ended.filter(|_| !is_timed) {
            return Ok(self.states.contains(&state));
        }
        let record = match session.client.ask(Request::get(at(&["executions", id])?)).await {
            Ok(record) => record,
            // It is gone: nobody knows any more.
            Err(error) if error.is::<Refused>() => return Ok(false),
            Err(error) => return Err(error),
        };
        let state = ended.or_else(|| read(&record["public_state"]));
        let created = read::<Time>(&record["created_at"]).map(TimestampMs::from);
        let in_time = created.is_some_and(|at| {
            self.after.is_none_or(|after| at >= after) && self.before.is_none_or(|end| at < end)
        });
        let in_state = self.states.is_empty() || state.is_some_and(|it| self.states.contains(&it));
        Ok(in_time && in_state)
    }
}

/// The state that an outcome is.
fn ended_as(outcome: &Value) -> Option<PublicState> {
    match outcome.as_str()? {
        "success" => Some(PublicState::Completed),
        _ => read(outcome),
    }
}

fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

/// A point in time as the API reads it.
fn time(field: &str, text: Option<&String>) -> Result<Option<TimestampMs>, Refused> {
    let Some(text) = text else { return Ok(None) };
    let value = text.parse::<i64>().map_or_else(|_| json!(text), Value::from);
    let wrong = || Refused::new(Code::InvalidInput, format!("--{field}: {text:?} is no time"));
    read::<Time>(&value).map(|time| Some(time.into())).ok_or_else(wrong)
}

impl Search {
    /// What of it the log knows.
    pub(crate) const fn of_log(&self) -> &Filter {
        &self.filter
    }

    /// The rest of it.
    pub(crate) fn sieve(&self) -> Result<Sieve, Refused> {
        let state = |text: &String| {
            let wrong =
                || Refused::new(Code::InvalidInput, format!("--state: no state is {text:?}"));
            read(&json!(text)).ok_or_else(wrong)
        };
        Ok(Sieve {
            states: self.state.iter().map(state).collect::<Result<_, _>>()?,
            after: time("created-after", self.created_after.as_ref())?,
            before: time("created-before", self.created_before.as_ref())?,
        })
    }

    /// As parameters.
    pub(crate) fn ask(&self, request: Request) -> Request {
        self.filter
            .ask(request)
            .each("state", &self.state)
            .each("created_after", &self.created_after)
            .each("created_before", &self.created_before)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.filter.is_empty()
            && self.state.is_empty()
            && self.created_after.is_none()
            && self.created_before.is_none()
    }

    /// As a body.
    pub(crate) fn body(&self) -> Value {
        let some = |values: &[String]| match values {
            [] => Value::Null,
            values => json!(values),
        };
        body([
            ("lane", some(&self.filter.lane)),
            ("kind", some(&self.filter.kind)),
            ("tag", some(&self.filter.tag)),
            ("flow", json!(self.filter.flow)),
            ("state", some(&self.state)),
            ("created_after", json!(self.created_after)),
            ("created_before", json!(self.created_before)),
        ])
    }
}
