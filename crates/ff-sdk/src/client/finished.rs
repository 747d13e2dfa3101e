//! How an execution ended.

use std::fmt;

use ff_core::error::EngineError;
use ff_core::id::ExecutionId;
use ff_core::read::Record;
use ff_core::state::Outcome;

use crate::error::SdkError;

/// An execution that has ended. Its text is one line for people: `failed: disk full (transient)`.
///
/// ```
/// # use ff_sdk::{Submission, testing::TestEngine};
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let client = TestEngine::start().await.client();
/// use std::time::Duration;
///
/// let greeting = client.submit(Submission::new("greet")).await?;
/// greeting.cancel("not today").await?;
/// let finished = greeting.wait(Duration::from_secs(10)).await?;
/// assert_eq!(finished.to_string(), "cancelled: not today");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// How it ended.
    pub outcome: Outcome,
    /// All that is known of it, but for payload and result.
    pub record: Box<Record>,
}

/// Why there is no result.
///
/// ```
/// use ff_sdk::ResultError;
///
/// /// Whether to look again, or to give up.
/// fn may_come(error: &ResultError) -> bool {
///     match error {
///         ResultError::Ended(_) => false,
///         ResultError::Call(error) => error.is_retryable(),
///     }
/// }
/// # let late = ff_sdk::SdkError::Http { message: "late".to_owned() };
/// # assert!(may_come(&ResultError::Call(late)));
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ResultError {
    /// The execution ended in another way than with success.
    #[error("{finished_id} {0}", finished_id = .0.execution_id())]
    Ended(Box<Finished>),
    /// It has not ended in time, or could not be asked for.
    #[error(transparent)]
    Call(#[from] SdkError),
}

impl Finished {
    pub(super) fn of(record: Box<Record>) -> Result<Self, SdkError> {
        let outcome = record.state.terminal_outcome;
        let outcome = outcome.ok_or_else(|| EngineError::bug("it ended without an outcome"))?;
        Ok(Self { outcome, record })
    }

    /// Whose end it is.
    pub fn execution_id(&self) -> ExecutionId {
        self.record.execution_id
    }

    /// Whether it ended well.
    pub fn is_success(&self) -> bool {
        self.outcome == Outcome::Success
    }

    /// Why it did not end well, as far as somebody said so.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// let task = engine.claimed(Submission::new("greet")).await;
    /// let id = task.execution_id();
    /// task.fail("disk full", "permanent").await?;
    /// let finished = engine.assert_outcome(id, ff_core::state::Outcome::Failed).await;
    /// assert_eq!(finished.reason(), Some("disk full"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn reason(&self) -> Option<&str> {
        match self.outcome {
            Outcome::Success => None,
            Outcome::Cancelled => self.record.cancellation_reason.as_deref(),
            Outcome::Failed | Outcome::Expired | Outcome::Skipped => {
                self.record.failure_reason.as_deref()
            }
        }
    }
}

impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.record.state.public_state.as_str())?;
        if let Some(reason) = self.reason().filter(|reason| !reason.is_empty()) {
            write!(f, ": {reason}")?;
        }
        match (&self.record.failure_category, self.outcome) {
            (Some(category), Outcome::Failed) => write!(f, " ({category})"),
            _ => Ok(()),
        }
    }
}
