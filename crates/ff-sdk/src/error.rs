//! What a call of the SDK may end in when it does not end well.

use std::borrow::Cow;

use ff_core::error::{Code, EngineError, Refusal};

/// Failure of a call.
///
/// Three kinds are kept apart. The engine refused ([`Self::Engine`]): it understood, and the
/// [code](Self::code) says why. The store or the server did not answer ([`Self::Backend`],
/// [`Self::BackendContext`], [`Self::Http`]): the same call may go well later. What was asked for
/// is wrong ([`Self::Config`]): nothing was sent, and the field is named.
///
/// ```
/// # use ff_sdk::{Submission, testing::TestEngine};
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let client = TestEngine::start().await.client();
/// use ff_core::error::Code;
/// use ff_sdk::SdkError;
///
/// let missing = client.describe_worker("nobody").await.unwrap_err();
/// match &missing {
///     SdkError::Engine(_) => assert_eq!(missing.code(), Some(Code::WorkerNotFound)),
///     other if other.is_retryable() => println!("later: {other}"),
///     other => panic!("{other}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SdkError {
    /// The store or the server did not answer as it should. What was asked may be asked again.
    #[error(transparent)]
    Backend(EngineError),
    /// The same, with the act during which it happened.
    #[error("{context}: {source}")]
    BackendContext {
        /// What was being done.
        context: String,
        /// What the store or the server said.
        source: Box<EngineError>,
    },
    /// The engine understood and refused; the code says why.
    #[error(transparent)]
    Engine(EngineError),
    /// A setting or an argument is wrong. Nothing was sent.
    #[error("{}{field}: {message}", context.map(|context| format!("{context}: ")).unwrap_or_default())]
    Config {
        /// The call that got it, where it was a call.
        context: Option<&'static str>,
        /// Which one.
        field: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// All permits of the worker are taken. Whatever was to be claimed is untouched.
    #[error("the worker runs as many tasks as it may; nothing was claimed")]
    WorkerAtCapacity,
    /// A server could not be talked to.
    #[error("{message}")]
    Http {
        /// What happened on the way.
        message: String,
    },
    /// A server refused an administrative call.
    #[error("{code} (HTTP {status}): {message}")]
    AdminApi {
        /// Of HTTP.
        status: u16,
        /// Also one that this version does not know.
        code: String,
        /// For a person.
        message: String,
        /// Whether the same call may go well later.
        retryable: bool,
        /// The document as it came.
        body: String,
    },
}

impl SdkError {
    /// A setting that is wrong.
    ///
    /// For code around the SDK that has settings of its own.
    ///
    /// ```
    /// use ff_sdk::SdkError;
    ///
    /// let error = SdkError::config("retries", "at most 9");
    /// assert_eq!(error.to_string(), "retries: at most 9");
    /// ```
    pub fn config(field: &'static str, message: impl Into<String>) -> Self {
        Self::Config { context: None, field, message: message.into() }
    }

    pub(crate) fn argument(
        context: &'static str,
        field: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self::Config { context: Some(context), field, message: message.into() }
    }

    /// What was found wrong before anything was sent.
    pub(crate) fn unsent(refusal: Refusal) -> Self {
        match refusal.field {
            Some(Cow::Borrowed(field)) if refusal.code == Code::InvalidInput => {
                Self::config(field, refusal.detail)
            }
            _ => refusal.into(),
        }
    }

    /// Says what was being done, where it was the store or the server that failed.
    ///
    /// ```
    /// use ff_core::error::EngineError;
    /// use ff_sdk::SdkError;
    ///
    /// let error = SdkError::from(EngineError::unavailable("connection refused"));
    /// assert_eq!(error.during("startup").to_string(), "startup: unavailable: connection refused");
    /// ```
    #[must_use]
    pub fn during(self, context: impl Into<String>) -> Self {
        match self {
            Self::Backend(source) => {
                Self::BackendContext { context: context.into(), source: source.into() }
            }
            other => other,
        }
    }

    /// What the engine or the store said, if it was one of them.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let missing = client.describe_worker("nobody").await.unwrap_err();
    /// assert!(missing.engine_error().is_some());
    /// assert!(ff_sdk::SdkError::WorkerAtCapacity.engine_error().is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn engine_error(&self) -> Option<&EngineError> {
        match self {
            Self::Backend(error) | Self::Engine(error) => Some(error),
            Self::BackendContext { source, .. } => Some(source),
            _ => None,
        }
    }

    /// The stable code, where there is one.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::error::Code;
    ///
    /// let missing = client.describe_worker("nobody").await.unwrap_err();
    /// assert_eq!(missing.code(), Some(Code::WorkerNotFound));
    /// assert_eq!(missing.code().map(|code| code.as_str()), Some("worker_not_found"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::AdminApi { code, .. } => code.parse().ok(),
            Self::WorkerAtCapacity => Some(Code::ResourceExhausted),
            Self::Config { .. } => Some(Code::InvalidInput),
            Self::Http { .. } => Some(Code::Unavailable),
            other => other.engine_error().map(EngineError::code),
        }
    }

    /// Whether the same call may go well later.
    ///
    /// ```
    /// use ff_sdk::SdkError;
    ///
    /// assert!(SdkError::WorkerAtCapacity.is_retryable());
    /// assert!(!SdkError::config("lane", "no such lane").is_retryable());
    /// ```
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Backend(_) | Self::BackendContext { .. } => true,
            Self::Engine(error) => error.is_retryable(),
            Self::WorkerAtCapacity | Self::Http { .. } => true,
            Self::AdminApi { retryable, .. } => *retryable,
            Self::Config { .. } => false,
        }
    }
}

impl From<EngineError> for SdkError {
    fn from(error: EngineError) -> Self {
        match &error {
            EngineError::Contextual { source, .. } if is_fault(source) => Self::Backend(error),
            other if is_fault(other) => Self::Backend(error),
            _ => Self::Engine(error),
        }
    }
}

impl From<Refusal> for SdkError {
    fn from(refusal: Refusal) -> Self {
        EngineError::from(refusal).into()
    }
}

/// Whether it is the store or the way to it that failed: the operation was not decided, or it is
/// not known how. The same one may be sent again.
pub(crate) fn is_fault(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Transport { .. }
            | EngineError::Unavailable { .. }
            | EngineError::Timeout { .. }
            | EngineError::StreamDisconnected { .. }
            | EngineError::StreamBackpressure { .. }
    ) || matches!(error.code(), Code::StoreBusy | Code::RateLimited)
}
