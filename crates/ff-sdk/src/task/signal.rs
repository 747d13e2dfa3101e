//! Messages to those who wait.

use bytes::Bytes;
use ff_core::content::Content;
use ff_core::id::{ContentType, ExecutionId, IdempotencyKey, SignalId};
use ff_core::operation::{DeliverSignal, Message, Signalled, WaitpointRef};
use ff_core::state::SignalEffect;
use ff_core::token::WaitpointToken;

use crate::config::parse;
use crate::error::SdkError;

/// A message to a waitpoint.
///
/// ```
/// use ff_sdk::Signal;
///
/// # fn main() -> Result<(), ff_sdk::SdkError> {
/// # let text = format!("k1:0:{}", "0".repeat(64));
/// let signal = Signal::new("approved", text.parse()?)
///     .source("user", "ada")
///     .json(&serde_json::json!({ "comment": "ship it" }))?
///     .idempotency_key("mail-17");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq)]
pub struct Signal {
    /// What conditions match by.
    pub name: String,
    /// A word for people and filters.
    pub category: String,
    /// Bytes that come along unchanged.
    pub payload: Bytes,
    /// What these bytes are.
    pub content_type: ContentType,
    /// What kind of source it comes from: `user`, `system`.
    pub source_type: String,
    /// Who it comes from.
    pub source_identity: String,
    /// Without one every signal counts, also one that was sent twice.
    pub idempotency_key: Option<String>,
    /// Shows that the sender may speak to the waitpoint.
    pub waitpoint_token: WaitpointToken,
}

/// What a signal did.
///
/// ```
/// use ff_sdk::SignalOutcome;
///
/// fn told(outcome: SignalOutcome) -> &'static str {
///     match outcome {
///         SignalOutcome::TriggeredResume { .. } => "it goes on",
///         SignalOutcome::Accepted { .. } => "noted",
///         SignalOutcome::Duplicate { .. } => "you have said so before",
///     }
/// }
/// # let signal_id = ff_core::id::SignalId::mint();
/// assert_eq!(told(SignalOutcome::TriggeredResume { signal_id }), "it goes on");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalOutcome {
    /// It was kept; what waits goes on waiting.
    Accepted {
        /// The new signal.
        signal_id: SignalId,
        /// What it did.
        effect: SignalEffect,
    },
    /// It was what the execution waited for.
    TriggeredResume {
        /// The new signal.
        signal_id: SignalId,
    },
    /// It had come before, as this one.
    Duplicate {
        /// The signal that had come.
        existing: SignalId,
    },
}

impl Signal {
    /// A message that is nothing but its name, with the token that its waitpoint was given.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let text = format!("k1:0:{}", "0".repeat(64));
    /// let signal = ff_sdk::Signal::new("paid", text.parse()?);
    /// assert_eq!((signal.name.as_str(), signal.payload.len()), ("paid", 0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(name: impl Into<String>, token: WaitpointToken) -> Self {
        Self {
            name: name.into(),
            category: String::new(),
            payload: Bytes::new(),
            content_type: ContentType::default(),
            source_type: String::new(),
            source_identity: String::new(),
            idempotency_key: None,
            waitpoint_token: token,
        }
    }

    /// A word for people and filters.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let text = format!("k1:0:{}", "0".repeat(64));
    /// let signal = ff_sdk::Signal::new("paid", text.parse()?).category("billing");
    /// assert_eq!(signal.category, "billing");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn category(self, category: impl Into<String>) -> Self {
        Self { category: category.into(), ..self }
    }

    /// Bytes that come along unchanged.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let text = format!("k1:0:{}", "0".repeat(64));
    /// let signal = ff_sdk::Signal::new("paid", text.parse()?).payload("42 EUR");
    /// assert_eq!(&signal.payload[..], b"42 EUR");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn payload(self, payload: impl Into<Bytes>) -> Self {
        Self { payload: payload.into(), ..self }
    }

    /// JSON that comes along.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let text = format!("k1:0:{}", "0".repeat(64));
    /// let amount = serde_json::json!({ "cents": 4200 });
    /// let signal = ff_sdk::Signal::new("paid", text.parse()?).json(&amount)?;
    /// assert_eq!(signal.content_type.as_str(), "application/json");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] where the value cannot be written as JSON.
    pub fn json(self, value: &impl serde::Serialize) -> Result<Self, SdkError> {
        let bytes = serde_json::to_vec(value)
            .map_err(|error| SdkError::config("payload", error.to_string()))?;
        Ok(Self { payload: bytes.into(), content_type: ContentType::json(), ..self })
    }

    /// Who says it. Conditions that count different sources count these.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let text = format!("k1:0:{}", "0".repeat(64));
    /// let signal = ff_sdk::Signal::new("approved", text.parse()?).source("user", "ada");
    /// assert_eq!(signal.source_identity, "ada");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn source(self, source_type: impl Into<String>, identity: impl Into<String>) -> Self {
        Self { source_type: source_type.into(), source_identity: identity.into(), ..self }
    }

    /// Sent again with the same key within a day, it counts once.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let text = format!("k1:0:{}", "0".repeat(64));
    /// let signal = ff_sdk::Signal::new("paid", text.parse()?).idempotency_key("event-991");
    /// assert_eq!(signal.idempotency_key.as_deref(), Some("event-991"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn idempotency_key(self, key: impl Into<String>) -> Self {
        Self { idempotency_key: Some(key.into()), ..self }
    }

    /// The operation that delivers it.
    pub(crate) fn deliver(
        self,
        execution_id: ExecutionId,
        waitpoint: WaitpointRef,
    ) -> Result<DeliverSignal, SdkError> {
        let key = self.idempotency_key.as_deref();
        let key = key.map(|key| parse::<IdempotencyKey>("idempotency_key", key)).transpose()?;
        let message = Message {
            category: self.category,
            source_type: self.source_type,
            source_identity: self.source_identity,
            content: Content { bytes: self.payload, content_type: self.content_type },
            idempotency_key: key,
            ..Message::new(parse("name", &self.name)?)
        };
        let token = Some(self.waitpoint_token);
        Ok(DeliverSignal { execution_id, waitpoint, token, signal: message })
    }
}

impl std::fmt::Debug for Signal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signal")
            .field("name", &self.name)
            .field("source_type", &self.source_type)
            .field("source_identity", &self.source_identity)
            .field("bytes", &self.payload.len())
            .finish_non_exhaustive()
    }
}

impl From<Signalled> for SignalOutcome {
    fn from(signalled: Signalled) -> Self {
        match signalled {
            Signalled::Accepted { signal_id, effect: SignalEffect::ResumeConditionSatisfied } => {
                Self::TriggeredResume { signal_id }
            }
            Signalled::Accepted { signal_id, effect } => Self::Accepted { signal_id, effect },
            Signalled::Duplicate { signal_id, .. } => Self::Duplicate { existing: signal_id },
        }
    }
}
