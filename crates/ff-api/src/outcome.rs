//! How an attempt ends, or stops for a while, by its worker's word.

use ff_core::content::Content;
use ff_core::id::{Authority, ContentType, ExecutionId};
use ff_core::operation::{self, DelayUntil};
use ff_core::state::FailureClass;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::bytes::{Base64, content};
use crate::fence::source;
use crate::json::Json;
use crate::lease::{Next, Offered, Tasks};
use crate::nullable::given;
use crate::object::Invalid;
use crate::problem::Failure;
use crate::reading::{Unreadable, present};
use crate::task::Task;
use crate::time::Time;

/// The work is done.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Complete {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_b64: Option<Base64>,
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub result_json: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<ContentType>,
    /// Claims more work in the same step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Next>,
    /// `operator_override` acts without a fence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Completed {
    pub status: String,
    pub tasks: Vec<Task>,
    pub replayed: bool,
}

/// This attempt did not succeed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Fail {
    pub reason: String,
    pub category: String,
    /// As the category says when absent.
    #[serde(default)]
    pub class: Option<FailureClass>,
    /// Replaces the backoff when it is longer.
    #[serde(default)]
    pub retry_after_ms: Option<u64>,
    /// `operator_override` acts without a fence.
    #[serde(default)]
    pub source: Option<String>,
}

/// What became of it: `retry_scheduled` or `terminal_failed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Failed {
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_until: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_count: Option<u32>,
    pub replayed: bool,
}

/// The task is put aside for a while; the same attempt goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Delay {
    pub delay_ms: Option<u64>,
    pub delay_until: Option<Time>,
    /// `operator_override` acts without a fence.
    pub source: Option<String>,
}

/// The task waits for other members of its flow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WaitChildren {
    /// All upstreams when absent.
    pub children: Option<Vec<ExecutionId>>,
    /// `operator_override` acts without a fence.
    pub source: Option<String>,
}

impl Complete {
    pub fn operation(
        self,
        execution_id: ExecutionId,
        authority: Authority,
        raw: Option<Content>,
        offered: Option<Offered>,
    ) -> Result<operation::Complete, Failure> {
        let result = content("result", self.result_b64, self.result_json, self.content_type)?;
        let next = self.next.map(|next| next.operation(offered)).transpose();
        let next = next.map_err(|failure| failure.under("/next"))?;
        Ok(operation::Complete { execution_id, authority, result: raw.or(result), next })
    }
}

impl From<operation::Completed> for Completed {
    fn from(completed: operation::Completed) -> Self {
        Self {
            status: "completed".to_owned(),
            tasks: completed.tasks.into_iter().map(Into::into).collect(),
            replayed: completed.replayed,
        }
    }
}

impl Fail {
    pub fn operation(self, execution_id: ExecutionId, authority: Authority) -> operation::Fail {
        operation::Fail {
            execution_id,
            authority,
            reason: self.reason,
            category: self.category,
            class: self.class,
            retry_after_ms: self.retry_after_ms,
        }
    }
}

impl From<operation::Failed> for Failed {
    fn from(failed: operation::Failed) -> Self {
        match failed {
            operation::Failed::RetryScheduled { delay_until, retry_count, replayed } => Self {
                status: "retry_scheduled".to_owned(),
                delay_until: Some(delay_until.into()),
                retry_count: Some(retry_count),
                replayed,
            },
            operation::Failed::TerminalFailed { replayed } => Self {
                status: "terminal_failed".to_owned(),
                delay_until: None,
                retry_count: None,
                replayed,
            },
        }
    }
}

impl Delay {
    pub fn operation(
        &self,
        execution_id: ExecutionId,
        authority: Authority,
    ) -> Result<operation::Delay, Failure> {
        let until = match (self.delay_until, self.delay_ms) {
            (Some(at), None) => DelayUntil::At(at.into()),
            (None, Some(ms)) => DelayUntil::For(ms),
            (None, None) => {
                return Err(Invalid::at("delay_ms", "give delay_ms or delay_until").into());
            }
            (Some(_), Some(_)) => {
                let message = "give delay_ms or delay_until, not both";
                return Err(Invalid::at("delay_until", message).into());
            }
        };
        Ok(operation::Delay { execution_id, authority, until })
    }
}

impl From<operation::Complete> for Complete {
    fn from(complete: operation::Complete) -> Self {
        let (result_b64, content_type) = match complete.result {
            Some(Content { bytes, content_type }) => (Some(Base64(bytes)), Some(content_type)),
            None => (None, None),
        };
        Self {
            result_b64,
            result_json: None,
            content_type,
            next: complete.next.map(Into::into),
            source: source(complete.authority),
        }
    }
}

impl Completed {
    /// The reply, of a store of this kind.
    pub fn read(self, store: &str) -> Result<operation::Completed, Unreadable> {
        let Self { tasks, replayed, .. } = self;
        Ok(operation::Completed { tasks: Tasks { tasks }.read(store)?, replayed })
    }
}

impl From<operation::Fail> for Fail {
    fn from(fail: operation::Fail) -> Self {
        Self {
            reason: fail.reason,
            category: fail.category,
            class: fail.class,
            retry_after_ms: fail.retry_after_ms,
            source: source(fail.authority),
        }
    }
}

impl TryFrom<Failed> for operation::Failed {
    type Error = Unreadable;

    fn try_from(failed: Failed) -> Result<Self, Unreadable> {
        let replayed = failed.replayed;
        match failed.status.as_str() {
            "retry_scheduled" => Ok(Self::RetryScheduled {
                delay_until: present("delay_until", failed.delay_until)?.into(),
                retry_count: present("retry_count", failed.retry_count)?,
                replayed,
            }),
            "terminal_failed" => Ok(Self::TerminalFailed { replayed }),
            other => Err(Unreadable::new("status", other)),
        }
    }
}

impl From<operation::Delay> for Delay {
    fn from(delay: operation::Delay) -> Self {
        let (delay_ms, delay_until) = match delay.until {
            DelayUntil::For(ms) => (Some(ms), None),
            DelayUntil::At(at) => (None, Some(at.into())),
        };
        Self { delay_ms, delay_until, source: source(delay.authority) }
    }
}

impl From<operation::WaitChildren> for WaitChildren {
    fn from(wait: operation::WaitChildren) -> Self {
        Self { children: wait.children, source: source(wait.authority) }
    }
}
