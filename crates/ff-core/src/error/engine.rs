//! What a call on a backend may end in when it does not end well.

use super::{Class, Code, Refusal};

/// Failure of a call. The first five are refusals, sorted by what a caller does about them.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EngineError {
    /// The thing named does not exist.
    #[error(transparent)]
    NotFound(Refusal),
    /// The input breaks a rule; sending it again will not help.
    #[error(transparent)]
    Validation(Refusal),
    /// Somebody else was first; another try may succeed.
    #[error(transparent)]
    Contention(Refusal),
    /// The input contradicts what exists.
    #[error(transparent)]
    Conflict(Refusal),
    /// The thing is in another state than the operation needs.
    #[error(transparent)]
    State(Refusal),
    /// A limit was met; try later.
    #[error(transparent)]
    ResourceExhausted(Refusal),
    /// A defect of FlowFabric or a damaged store.
    #[error("{code}: {detail}")]
    Bug { code: Code, detail: String },
    /// The connection failed. With `outcome_unknown` the operation may have been carried out;
    /// sending the same one again is safe.
    #[error("{}: {detail}", if *outcome_unknown { "outcome_unknown" } else { "unavailable" })]
    Transport { outcome_unknown: bool, detail: String },
    /// The store does not answer, or is shutting down.
    #[error("unavailable: {detail}")]
    Unavailable { detail: String },
    #[error("timeout: {detail}")]
    Timeout { detail: String },
    /// A subscription lost its place; it may be taken up again at the cursor.
    #[error("subscription was cut off; resume at {cursor}")]
    StreamDisconnected { cursor: String },
    /// A subscriber did not keep up; it may go on at the cursor.
    #[error("subscriber fell behind; resume at {cursor}")]
    StreamBackpressure { cursor: String },
    /// An error with the act during which it happened.
    #[error("{context}: {source}")]
    Contextual { context: String, source: Box<EngineError> },
}

impl EngineError {
    pub fn code(&self) -> Code {
        match self {
            Self::NotFound(refusal)
            | Self::Validation(refusal)
            | Self::Contention(refusal)
            | Self::Conflict(refusal)
            | Self::State(refusal)
            | Self::ResourceExhausted(refusal) => refusal.code,
            Self::Bug { code, .. } => *code,
            Self::Transport { outcome_unknown: true, .. } => Code::OutcomeUnknown,
            Self::Transport { .. } | Self::Unavailable { .. } | Self::StreamDisconnected { .. } => {
                Code::Unavailable
            }
            Self::Timeout { .. } => Code::Timeout,
            Self::StreamBackpressure { .. } => Code::ResourceExhausted,
            Self::Contextual { source, .. } => source.code(),
        }
    }

    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::NotFound(refusal)
            | Self::Validation(refusal)
            | Self::Contention(refusal)
            | Self::Conflict(refusal)
            | Self::State(refusal)
            | Self::ResourceExhausted(refusal) => Some(refusal),
            Self::Contextual { source, .. } => source.refusal(),
            _ => None,
        }
    }

    /// It is about the thing itself, and the same whoever asks and when: a defect, or a damaged record.
    pub fn is_bug(&self) -> bool {
        self.code().class() == Class::Bug
    }

    pub fn is_retryable(&self) -> bool {
        self.code().is_retryable()
    }

    pub fn bug(detail: impl Into<String>) -> Self {
        Self::Bug { code: Code::Internal, detail: detail.into() }
    }

    pub fn corruption(detail: impl Into<String>) -> Self {
        Self::Bug { code: Code::Corruption, detail: detail.into() }
    }

    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::Unavailable { detail: detail.into() }
    }
}

impl From<Refusal> for EngineError {
    fn from(refusal: Refusal) -> Self {
        let code = refusal.code;
        match (code.http_status(), code.class()) {
            (404, _) => Self::NotFound(refusal),
            (422 | 412, _) => Self::Conflict(refusal),
            (429, _) => Self::ResourceExhausted(refusal),
            (_, Class::Bug) => Self::Bug { code, detail: refusal.detail.into_owned() },
            (_, Class::Retryable) => Self::Contention(refusal),
            (409, _) => Self::State(refusal),
            _ => Self::Validation(refusal),
        }
    }
}
