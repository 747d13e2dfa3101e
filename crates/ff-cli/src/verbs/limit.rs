//! Budgets and quota policies.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::act::Act;
use super::list::Page;
use super::pairs::{self, body, dimensions, map};
use crate::client::{Request, at};
use crate::duration;
use crate::show::{Column, shown};

const BUDGETS: &[Column] = &[
    Column::Text("BUDGET", "budget_id"),
    Column::Text("SCOPE", "scope_type"),
    Column::Text("OF", "scope_id"),
    Column::Text("USAGE", "usage"),
    Column::Text("LIMITS", "dimensions"),
    Column::Text("BREACHES", "breach_count"),
];

const QUOTAS: &[Column] = &[
    Column::Text("QUOTA", "quota_policy_id"),
    Column::Text("WINDOW S", "window_seconds"),
    Column::Text("REQUESTS", "max_requests_per_window"),
    Column::Text("CONCURRENT", "max_concurrent"),
];

/// What may be said of a budget when it is made, and changed afterwards.
#[derive(Debug, Args)]
pub(crate) struct BudgetLimits {
    /// Hard limit of a dimension, as name=amount; may be given several times
    #[arg(long, value_name = "D=N", value_parser = pairs::amount)]
    hard: Vec<(String, u64)>,
    /// Soft limit of a dimension, as name=amount; may be given several times
    #[arg(long, value_name = "D=N", value_parser = pairs::amount)]
    soft: Vec<(String, u64)>,
    /// At a hard limit: block, cancel or fail
    #[arg(long, value_name = "ACTION")]
    on_hard_limit: Option<String>,
    /// At a soft limit: warn or ignore
    #[arg(long, value_name = "ACTION")]
    on_soft_limit: Option<String>,
    /// Begin anew every so often; 0: never
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    reset_interval_ms: Option<u64>,
}

/// Budgets: how much may be used
#[derive(Debug, Subcommand)]
pub(crate) enum Budget {
    /// Make a budget
    #[command(after_help = "Example: ff budget create --scope-type lane --scope-id mail \
        --hard output_tokens=100000 --soft output_tokens=80000")]
    Create {
        /// flow, lane, namespace or custom
        #[arg(long)]
        scope_type: String,
        /// The flow, lane or namespace; any text for custom
        #[arg(long)]
        scope_id: String,
        /// record or refuse: whether usage over a hard limit is counted
        #[arg(long, value_name = "MODE")]
        enforcement_mode: Option<String>,
        /// Id; minted when absent
        #[arg(long)]
        id: Option<String>,
        #[command(flatten)]
        limits: BudgetLimits,
    },
    /// List budgets
    #[command(after_help = "Example: ff budget ls")]
    Ls(Page),
    /// Show a budget with its usage
    #[command(after_help = "Example: ff budget show $BUDGET")]
    Show { id: String },
    /// Change limits; dimensions that are not named stay as they are
    #[command(after_help = "Example: ff budget set $BUDGET --hard output_tokens=200000")]
    Set {
        id: String,
        #[command(flatten)]
        limits: BudgetLimits,
    },
    /// Report usage
    #[command(after_help = "Example: ff budget usage $BUDGET output_tokens=512 --dedup r1")]
    Usage {
        id: String,
        /// Usage, as dimension=amount
        #[arg(required = true, value_name = "D=N", value_parser = pairs::amount)]
        usage: Vec<(String, u64)>,
        /// Counted once for each key
        #[arg(long, value_name = "KEY")]
        dedup: Option<String>,
        /// Execution that it was used by
        #[arg(long, value_name = "ID")]
        execution: Option<String>,
    },
    /// Begin anew: usage is 0, and what waited goes on
    #[command(after_help = "Example: ff budget reset $BUDGET")]
    Reset { id: String },
    /// Give back what an execution has used
    #[command(after_help = "Example: ff budget release $BUDGET '{fp:7}:0199…'")]
    Release { id: String, execution: String },
    /// Delete a budget
    #[command(after_help = "Example: ff budget rm $BUDGET")]
    Rm { id: String },
}

/// What may be said of a quota policy; 0 switches a part off.
#[derive(Debug, Args)]
pub(crate) struct QuotaLimits {
    /// Length of the window in seconds
    #[arg(long, value_name = "N")]
    window_seconds: Option<u64>,
    /// Most claims in any window
    #[arg(long, value_name = "N")]
    max_requests: Option<u64>,
    /// Most at a time
    #[arg(long, value_name = "N")]
    max_concurrent: Option<u64>,
    /// Spreads those who come when the window opens over so much time
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    jitter_ms: Option<u64>,
}

/// Quota policies: how fast, and how many at a time
#[derive(Debug, Subcommand)]
pub(crate) enum Quota {
    /// Make a quota policy
    #[command(after_help = "Example: ff quota create --window-seconds 60 --max-requests 100 \
        --max-concurrent 8")]
    Create {
        /// Id; minted when absent
        #[arg(long)]
        id: Option<String>,
        #[command(flatten)]
        limits: QuotaLimits,
    },
    /// List quota policies
    #[command(after_help = "Example: ff quota ls")]
    Ls(Page),
    /// Show a quota policy
    #[command(after_help = "Example: ff quota show $QUOTA")]
    Show { id: String },
    /// Change a quota policy
    #[command(after_help = "Example: ff quota set $QUOTA --max-concurrent 16")]
    Set {
        id: String,
        #[command(flatten)]
        limits: QuotaLimits,
    },
    /// Delete a quota policy
    #[command(after_help = "Example: ff quota rm $QUOTA")]
    Rm { id: String },
}

impl BudgetLimits {
    fn fields(&self) -> anyhow::Result<[(&'static str, Value); 4]> {
        Ok([
            ("dimensions", dimensions(&self.hard, &self.soft)?),
            ("on_hard_limit", json!(self.on_hard_limit)),
            ("on_soft_limit", json!(self.on_soft_limit)),
            ("reset_interval_ms", json!(self.reset_interval_ms)),
        ])
    }
}

impl QuotaLimits {
    fn fields(&self) -> [(&'static str, Value); 4] {
        [
            ("window_seconds", json!(self.window_seconds)),
            ("max_requests_per_window", json!(self.max_requests)),
            ("max_concurrent", json!(self.max_concurrent)),
            ("jitter_ms", json!(self.jitter_ms)),
        ]
    }
}

/// What a report of usage, a reset or a release came to.
fn settled(reply: &Value) -> String {
    let of = ["dimension", "current", "limit"].map(|field| shown(&reply[field]));
    match of {
        [dimension, current, limit] if !dimension.is_empty() => {
            format!("{}: {dimension} is {current} of {limit}", shown(&reply["status"]))
        }
        _ if reply["status"].is_null() => "done".to_owned(),
        _ => shown(&reply["status"]),
    }
}

impl Budget {
    pub(crate) fn act(&self) -> anyhow::Result<Act> {
        let verb = |id: &str, verb: &str, body: &Value| {
            let request = Request::post(at(&["budgets", id, verb])?, body);
            anyhow::Ok(Act::line(request, settled))
        };
        match self {
            Self::Create { scope_type, scope_id, enforcement_mode, id, limits } => {
                let [dimensions, hard, soft, reset] = limits.fields()?;
                let body = body([
                    ("scope_type", json!(scope_type)),
                    ("scope_id", json!(scope_id)),
                    ("enforcement_mode", json!(enforcement_mode)),
                    ("budget_id", json!(id)),
                    dimensions,
                    hard,
                    soft,
                    reset,
                ]);
                Ok(Act::new_thing(Request::post(at(&["budgets"])?, &body), "budget_id"))
            }
            Self::Ls(page) => {
                Ok(Act::table(Request::get(at(&["budgets"])?), page, BUDGETS, "no budgets"))
            }
            Self::Show { id } => Ok(Act::fields(Request::get(at(&["budgets", id])?))),
            Self::Set { id, limits } => {
                let body = body(limits.fields()?);
                Ok(Act::fields(Request::patch(at(&["budgets", id])?, &body)))
            }
            Self::Usage { id, usage, dedup, execution } => {
                let body = body([
                    ("dimensions", json!(map(usage)?)),
                    ("dedup_key", json!(dedup)),
                    ("execution_id", json!(execution)),
                ]);
                verb(id, "usage", &body)
            }
            Self::Reset { id } => verb(id, "reset", &json!({})),
            Self::Release { id, execution } => {
                verb(id, "release", &json!({ "execution_id": execution }))
            }
            Self::Rm { id } => Ok(Act::said(Request::delete(at(&["budgets", id])?), "deleted")),
        }
    }
}

impl Quota {
    pub(crate) fn act(&self) -> anyhow::Result<Act> {
        match self {
            Self::Create { id, limits } => {
                let [window, requests, concurrent, jitter] = limits.fields();
                let id = ("quota_policy_id", json!(id));
                let body = body([id, window, requests, concurrent, jitter]);
                Ok(Act::new_thing(Request::post(at(&["quotas"])?, &body), "quota_policy_id"))
            }
            Self::Ls(page) => {
                Ok(Act::table(Request::get(at(&["quotas"])?), page, QUOTAS, "no quotas"))
            }
            Self::Show { id } => Ok(Act::fields(Request::get(at(&["quotas", id])?))),
            Self::Set { id, limits } => {
                let body = body(limits.fields());
                Ok(Act::fields(Request::patch(at(&["quotas", id])?, &body)))
            }
            Self::Rm { id } => Ok(Act::said(Request::delete(at(&["quotas", id])?), "deleted")),
        }
    }
}
