//! Waitpoints and signals.

use ff_core::content::Content;
use ff_core::error::Refusal;
use ff_core::id::{
    ContentType, ExecutionId, IdempotencyKey, Kid, LaneId, SignalId, SignalName, WaitpointId,
    WaitpointKey,
};
use ff_core::operation::{self, Decision, Suffix, WaitpointRef};
use ff_core::read;
use ff_core::state::SignalEffect;
use ff_core::token::WaitpointToken;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::bytes::{Base64, content};
use crate::json::Json;
use crate::list::OneOrMany;
use crate::nullable::given;
use crate::object::Invalid;
use crate::problem::Failure;
use crate::reading::{Unreadable, among, word};
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
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
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
    /// Tells decisions of one name apart: with the same suffix it is a repetition. The id of the
    /// waitpoint when absent.
    pub suffix: Option<String>,
    /// The execution must be of this lane.
    pub lane: Option<LaneId>,
    /// Of the signal that the decision is; minted when absent.
    pub signal_id: Option<SignalId>,
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
    #[schema(value_type = Vec<LaneId>)]
    pub lane: OneOrMany<LaneId>,
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
    /// Size of the payload.
    #[serde(default)]
    pub payload_bytes: u32,
    pub content_type: ContentType,
}

/// A waitpoint in a path: its id, or its key.
pub fn waitpoint(text: &str) -> Result<WaitpointRef, Invalid> {
    let key = WaitpointKey::new(text).map_err(|error| Invalid::at("waitpoint", error))?;
    Ok(WaitpointRef::Text(key))
}

impl Signal {
    /// Refuses what nothing that is there could make right.
    pub fn check(&self) -> Result<(), Refusal> {
        operation::Message::check_name(&self.name)
    }

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
    /// Refuses what nothing that is there could make right.
    pub fn check(&self) -> Result<(), Refusal> {
        self.name.as_ref().map_or(Ok(()), operation::Message::check_name)
    }

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
            signal_id: self.signal_id.unwrap_or_else(SignalId::mint),
            decision,
            name: self.name,
            suffix: self.suffix.map_or(Suffix::Waitpoint, Suffix::Text),
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
            payload_bytes: signal.payload_bytes,
            content_type: signal.content_type,
        }
    }
}

impl From<operation::DeliverSignal> for Signal {
    fn from(deliver: operation::DeliverSignal) -> Self {
        let operation::DeliverSignal { waitpoint, token, signal, .. } = deliver;
        let (waitpoint_id, waitpoint_key) = match waitpoint {
            WaitpointRef::Id(id) => (Some(id), None),
            WaitpointRef::Key(key) | WaitpointRef::Text(key) => (None, Some(key)),
        };
        Self {
            waitpoint_id,
            waitpoint_key,
            token: token.map(|token| token.expose().to_owned()),
            name: signal.name,
            signal_id: Some(signal.signal_id),
            category: signal.category,
            source_type: signal.source_type,
            source_identity: signal.source_identity,
            payload_b64: Some(Base64(signal.content.bytes)),
            payload_json: None,
            content_type: Some(signal.content.content_type),
            correlation_id: signal.correlation_id,
            idempotency_key: signal.idempotency_key,
        }
    }
}

fn effect(text: &str) -> Result<SignalEffect, Unreadable> {
    among("effect", text, &SignalEffect::ALL, SignalEffect::as_str)
}

impl TryFrom<Signalled> for operation::Signalled {
    type Error = Unreadable;

    fn try_from(signalled: Signalled) -> Result<Self, Unreadable> {
        let (signal_id, effect) = (signalled.signal_id, effect(&signalled.effect)?);
        match signalled.status.as_str() {
            "accepted" => Ok(Self::Accepted { signal_id, effect }),
            "duplicate" => Ok(Self::Duplicate { signal_id, effect }),
            other => Err(Unreadable::new("status", other)),
        }
    }
}

impl From<operation::DeliverApproval> for Approval {
    /// Who decides is the caller, as the server knows it.
    fn from(approval: operation::DeliverApproval) -> Self {
        let operation::DeliverApproval { name, comment, suffix, lane, signal_id, .. } = approval;
        let suffix = match suffix {
            Suffix::Text(text) => Some(text),
            Suffix::Waitpoint => None,
        };
        Self { name, comment, suffix, lane, signal_id: Some(signal_id) }
    }
}

impl TryFrom<OpenWaitpoint> for read::ListedWaitpoint {
    type Error = Unreadable;

    fn try_from(listed: OpenWaitpoint) -> Result<Self, Unreadable> {
        Ok(Self {
            execution_id: listed.execution_id,
            waitpoint_id: listed.waitpoint_id,
            key: listed.key,
            state: word("state", &listed.state)?,
            kid: listed.kid,
            fingerprint: listed.fingerprint,
            reason: listed.reason,
            created_at: listed.created_at.into(),
            expires_at: listed.expires_at.map(Into::into),
        })
    }
}

impl TryFrom<AcceptedSignal> for read::ListedSignal {
    type Error = Unreadable;

    fn try_from(listed: AcceptedSignal) -> Result<Self, Unreadable> {
        let signal = task::Signal {
            signal_id: listed.signal_id,
            name: listed.name,
            category: listed.category,
            source_type: listed.source_type,
            source_identity: listed.source_identity,
            correlation_id: listed.correlation_id,
            accepted_at: listed.accepted_at,
            payload_b64: listed.payload_b64,
            payload_bytes: listed.payload_bytes,
            content_type: listed.content_type,
        };
        Ok(Self {
            number: listed.number,
            waitpoint_id: listed.waitpoint_id,
            waitpoint_key: listed.waitpoint_key,
            effect: effect(&listed.effect)?,
            signal: signal.into(),
        })
    }
}
