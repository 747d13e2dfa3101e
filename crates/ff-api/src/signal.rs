//! Waitpoints and signals.

use ff_core::content::Content;
use ff_core::id::{
    ContentType, ExecutionId, IdempotencyKey, Kid, SignalId, SignalName, WaitpointId, WaitpointKey,
};
use ff_core::operation::{self, Decision, WaitpointRef};
use ff_core::read;
use ff_core::token::WaitpointToken;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::bytes::{Base64, content};
use crate::json::Json;
use crate::object::Invalid;
use crate::problem::Failure;
use crate::task;
use crate::time::{Time, some};

/// A message to a waitpoint.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Signal {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waitpoint_id: Option<WaitpointId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waitpoint_key: Option<WaitpointKey>,
    /// Also as header `Ff-Waitpoint-Token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    pub name: SignalName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal_id: Option<SignalId>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub category: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source_type: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source_identity: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_b64: Option<Base64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_json: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<ContentType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
}

/// What became of it: `accepted` or `duplicate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Signalled {
    pub status: String,
    pub signal_id: SignalId,
    pub effect: String,
}

/// An operator's yes or no.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Approval {
    /// `approved` or `denied` when absent.
    pub name: Option<SignalName>,
    pub comment: Option<String>,
    /// Tells repeated decisions of one name apart; `0` when absent.
    pub suffix: Option<String>,
    /// The execution must be of this lane.
    pub lane: Option<ff_core::id::LaneId>,
}

/// A waitpoint that is not closed. Shows no token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OpenWaitpoint {
    pub execution_id: ExecutionId,
    pub waitpoint_id: WaitpointId,
    pub key: WaitpointKey,
    /// `pending` or `open`.
    pub state: String,
    pub kid: Kid,
    pub fingerprint: String,
    /// Why the execution waits; null while it does not.
    pub reason: Option<String>,
    pub created_at: Time,
    pub expires_at: Option<Time>,
}

/// Which waitpoints of a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Inbox {
    pub lane: Option<ff_core::id::LaneId>,
    /// Why the execution is suspended.
    pub reason: Option<String>,
    /// Waits so many milliseconds at least.
    pub age: Option<u64>,
    pub cursor: Option<String>,
    pub limit: Option<u32>,
    /// `estimate`: how many there are in all, counted up to a bound.
    pub count: Option<String>,
}

/// A new token is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Remint {
    pub token_ttl_ms: Option<u64>,
}

/// `closed`, or `already_closed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Closed {
    pub status: String,
}

/// A signal that an execution has accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AcceptedSignal {
    pub number: u32,
    pub waitpoint_id: WaitpointId,
    pub waitpoint_key: WaitpointKey,
    pub effect: String,
    pub signal_id: SignalId,
    pub name: SignalName,
    pub category: String,
    pub source_type: String,
    pub source_identity: String,
    pub correlation_id: Option<String>,
    pub accepted_at: Time,
    pub payload_b64: Option<Base64>,
    pub content_type: ContentType,
}

/// A waitpoint in a path: its id, or its key.
pub fn waitpoint(text: &str) -> Result<WaitpointRef, Invalid> {
    match text.parse() {
        Ok(id) => Ok(WaitpointRef::Id(id)),
        Err(_) => WaitpointKey::new(text)
            .map(WaitpointRef::Key)
            .map_err(|error| Invalid::at("waitpoint", error)),
    }
}

impl Signal {
    fn waitpoint(&self) -> Result<WaitpointRef, Invalid> {
        match (self.waitpoint_id, &self.waitpoint_key) {
            (Some(id), None) => Ok(WaitpointRef::Id(id)),
            (None, Some(key)) => Ok(WaitpointRef::Key(key.clone())),
            (None, None) => Err(Invalid::at("waitpoint_id", "give waitpoint_id or waitpoint_key")),
            (Some(_), Some(_)) => {
                Err(Invalid::at("waitpoint_key", "give waitpoint_id or waitpoint_key, not both"))
            }
        }
    }

    /// The operation; `header` is the token that came beside the body.
    pub fn operation(
        self,
        execution_id: ExecutionId,
        header: Option<&str>,
        raw: Option<Content>,
    ) -> Result<operation::DeliverSignal, Failure> {
        let waitpoint = self.waitpoint()?;
        let token = match (self.token.as_deref(), header) {
            (Some(body), Some(header)) if body != header => {
                return Err(Invalid::at("token", "header and body hold different tokens").into());
            }
            (body, header) => body.or(header),
        };
        let token = token.map(WaitpointToken::parse).transpose()?;
        let body = content("payload", self.payload_b64, self.payload_json, self.content_type)?;
        Ok(operation::DeliverSignal {
            execution_id,
            waitpoint,
            token,
            signal: operation::Message {
                signal_id: self.signal_id.unwrap_or_else(SignalId::mint),
                name: self.name,
                category: self.category,
                source_type: self.source_type,
                source_identity: self.source_identity,
                content: raw.or(body).unwrap_or_default(),
                correlation_id: self.correlation_id,
                idempotency_key: self.idempotency_key,
            },
        })
    }
}

impl From<operation::Signalled> for Signalled {
    fn from(signalled: operation::Signalled) -> Self {
        let (status, signal_id, effect) = match signalled {
            operation::Signalled::Accepted { signal_id, effect } => ("accepted", signal_id, effect),
            operation::Signalled::Duplicate { signal_id, effect } => {
                ("duplicate", signal_id, effect)
            }
        };
        Self { status: status.to_owned(), signal_id, effect: effect.as_str().to_owned() }
    }
}

impl Approval {
    pub fn operation(
        self,
        execution_id: ExecutionId,
        waitpoint: WaitpointRef,
        decision: Decision,
        operator: String,
    ) -> operation::DeliverApproval {
        operation::DeliverApproval {
            execution_id,
            waitpoint,
            lane: self.lane,
            signal_id: SignalId::mint(),
            decision,
            name: self.name,
            suffix: self.suffix,
            comment: self.comment,
            operator,
        }
    }
}

impl From<read::ListedWaitpoint> for OpenWaitpoint {
    fn from(listed: read::ListedWaitpoint) -> Self {
        Self {
            execution_id: listed.execution_id,
            waitpoint_id: listed.waitpoint_id,
            key: listed.key,
            state: listed.state.as_str().to_owned(),
            kid: listed.kid,
            fingerprint: listed.fingerprint,
            reason: listed.reason,
            created_at: listed.created_at.into(),
            expires_at: some(listed.expires_at),
        }
    }
}

impl From<read::ListedSignal> for AcceptedSignal {
    fn from(listed: read::ListedSignal) -> Self {
        let signal = task::Signal::from(listed.signal);
        Self {
            number: listed.number,
            waitpoint_id: listed.waitpoint_id,
            waitpoint_key: listed.waitpoint_key,
            effect: listed.effect.as_str().to_owned(),
            signal_id: signal.signal_id,
            name: signal.name,
            category: signal.category,
            source_type: signal.source_type,
            source_identity: signal.source_identity,
            correlation_id: signal.correlation_id,
            accepted_at: signal.accepted_at,
            payload_b64: signal.payload_b64,
            content_type: signal.content_type,
        }
    }
}
