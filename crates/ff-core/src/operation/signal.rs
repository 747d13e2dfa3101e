//! Signals: messages to a waitpoint.

use uuid::Uuid;

use super::command::Shape;
use super::{IssuedWaitpoint, WaitpointRef};
use crate::check::check_bytes;
use crate::content::Content;
use crate::error::{Code, Refusal};
use crate::id::{ExecutionId, IdempotencyKey, LaneId, SignalId, SignalName, WaitpointId};
use crate::limits;
use crate::state::SignalEffect;
use crate::token::WaitpointToken;

/// Names that begin so are made by the engine alone.
const RESERVED: &str = "__";

/// Delivers a message; whoever shows the waitpoint's token may.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliverSignal {
    pub execution_id: ExecutionId,
    pub waitpoint: WaitpointRef,
    pub token: Option<WaitpointToken>,
    pub signal: Message,
}

/// What a signal says.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub signal_id: SignalId,
    pub name: SignalName,
    pub category: String,
    pub source_type: String,
    pub source_identity: String,
    pub content: Content,
    pub correlation_id: Option<String>,
    pub idempotency_key: Option<IdempotencyKey>,
}

/// An operator's yes or no; needs no token.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliverApproval {
    pub execution_id: ExecutionId,
    pub waitpoint: WaitpointRef,
    /// The execution must be of this lane.
    pub lane: Option<LaneId>,
    pub signal_id: SignalId,
    pub decision: Decision,
    /// `approved` or `denied` when absent.
    pub name: Option<SignalName>,
    /// Tells repeated decisions of one name apart.
    pub suffix: Suffix,
    pub comment: Option<String>,
    /// Who decided.
    pub operator: String,
}

/// What tells one decision from the next of the same name: with the same suffix it is a repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Suffix {
    Text(String),
    /// The id of the waitpoint that it is for.
    Waitpoint,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Approve,
    Deny,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signalled {
    Accepted {
        signal_id: SignalId,
        effect: SignalEffect,
    },
    /// The first signal with this key, and what it did.
    Duplicate {
        signal_id: SignalId,
        effect: SignalEffect,
    },
}

impl Default for Suffix {
    fn default() -> Self {
        Self::Text("0".to_owned())
    }
}

impl From<String> for Suffix {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl DeliverSignal {
    /// A signal to a waitpoint, by its id.
    pub fn new(execution_id: ExecutionId, to: &IssuedWaitpoint, name: SignalName) -> Self {
        Self {
            execution_id,
            waitpoint: WaitpointRef::Id(to.waitpoint_id),
            token: Some(to.token.clone()),
            signal: Message::new(name),
        }
    }
}

impl Message {
    /// A message that is nothing but its name.
    pub fn new(name: SignalName) -> Self {
        Self {
            signal_id: SignalId::mint(),
            name,
            category: String::new(),
            source_type: String::new(),
            source_identity: String::new(),
            content: Content::default(),
            correlation_id: None,
            idempotency_key: None,
        }
    }

    /// Refuses a name that only the engine gives.
    pub fn check_name(name: &SignalName) -> Result<(), Refusal> {
        if name.starts_with(RESERVED) {
            let detail = format!("names that begin with {RESERVED} are reserved");
            return Err(Refusal::invalid("name", detail));
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Refusal> {
        Self::check_name(&self.name)?;
        check_bytes("category", &self.category, limits::CATEGORY_BYTES)?;
        check_bytes("source_type", &self.source_type, limits::CATEGORY_BYTES)?;
        check_bytes("source_identity", &self.source_identity, limits::CATEGORY_BYTES)?;
        let correlation = self.correlation_id.as_deref().unwrap_or("");
        check_bytes("correlation_id", correlation, limits::CATEGORY_BYTES)?;
        let bytes = self.content.bytes.len();
        if bytes > limits::SIGNAL_PAYLOAD_BYTES {
            let limit = limits::SIGNAL_PAYLOAD_BYTES;
            let detail = format!("payload has {bytes} bytes, the limit is {limit}");
            return Err(Refusal::at(Code::PayloadTooLarge, "payload", detail));
        }
        Ok(())
    }
}

impl Shape for DeliverSignal {
    fn check_shape(&self) -> Result<(), Refusal> {
        self.signal.check()
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}

impl DeliverApproval {
    /// The message that the decision is, for a waitpoint with this id.
    pub fn message(&self, waitpoint: WaitpointId) -> Result<Message, Refusal> {
        let (word, decided) = match self.decision {
            Decision::Approve => ("approve", "approved"),
            Decision::Deny => ("deny", "denied"),
        };
        let bad = |error: &dyn std::fmt::Display| Refusal::invalid("name", error);
        let name = match &self.name {
            Some(name) => name.clone(),
            None => SignalName::new(decided).map_err(|error| bad(&error))?,
        };
        let key = match &self.suffix {
            Suffix::Text(text) => format!("approval:{name}:{text}"),
            Suffix::Waitpoint => format!("approval:{name}:{waitpoint}"),
        };
        let key = IdempotencyKey::new(key);
        let payload = serde_json::json!({ "decision": word, "comment": self.comment });
        Ok(Message {
            signal_id: self.signal_id,
            category: "approval".to_owned(),
            source_type: "operator".to_owned(),
            source_identity: self.operator.clone(),
            content: Content::json(payload.to_string()),
            correlation_id: None,
            idempotency_key: Some(key.map_err(|error| bad(&error))?),
            name,
        })
    }
}

impl Shape for DeliverApproval {
    fn check_shape(&self) -> Result<(), Refusal> {
        check_bytes("comment", self.comment.as_deref().unwrap_or(""), limits::REASON_BYTES)?;
        // Every id is as long as any other.
        self.message(WaitpointId::new(Uuid::nil()))?.check()
    }

    fn target(&self) -> Option<ExecutionId> {
        Some(self.execution_id)
    }
}
