//! Which executions.

use clap::Args;
use serde_json::{Value, json};

use super::pairs::body;
use crate::client::Request;

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

impl Search {
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
