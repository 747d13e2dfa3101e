//! Why a handler did not succeed, and whether another attempt may.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use ff_core::limits;
use ff_core::state::FailureClass;

/// The handler returned an error.
pub const HANDLER_ERROR: &str = "handler_error";
/// The handler panicked.
pub const HANDLER_PANIC: &str = "handler_panic";
/// The handler took longer than its options allow.
pub const HANDLER_TIMEOUT: &str = "handler_timeout";
/// The handler asks for data that the runtime was not given.
pub const EXTRACTOR_MISSING_STATE: &str = "extractor_missing_state";
/// The payload is not what the handler expects.
pub const EXTRACTOR_PAYLOAD_DECODE: &str = "extractor_payload_decode";
/// This worker has no handler for the kind.
pub const RUNTIME_NO_HANDLER: &str = "runtime_no_handler";

/// The failure of an attempt, as it is told to the engine.
///
/// Every error, every text and every `anyhow`-like box becomes one by `?` or by `Err(…)?`: with the
/// category `handler_error`, and another attempt is made if the policy of the execution grants one.
/// What must not be tried again says so by [`Failure::permanent`].
///
/// ```
/// use std::time::Duration;
/// use ff_sdk::runtime::Failure;
///
/// fn charge(cents: u64) -> Result<(), Failure> {
///     let limit: u64 = "5000".parse()?;
///     if cents == 0 {
///         return Err(Failure::permanent("nothing to charge").category("invalid_order"));
///     }
///     if cents > limit {
///         return Err(Failure::transient("the bank is busy").retry_after(Duration::from_secs(60)));
///     }
///     Ok(())
/// }
/// assert_eq!(charge(0).unwrap_err().reason(), "nothing to charge");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    reason: String,
    category: String,
    class: FailureClass,
    retry_after: Option<Duration>,
}

impl Failure {
    /// Of this class, with the category `handler_error`. A reason that is too long is cut.
    ///
    /// ```
    /// use ff_core::state::FailureClass;
    /// use ff_sdk::runtime::Failure;
    ///
    /// let failure = Failure::new(FailureClass::Timeout, "the bank did not answer");
    /// assert_eq!(failure.class(), FailureClass::Timeout);
    /// ```
    pub fn new(class: FailureClass, reason: impl Into<String>) -> Self {
        let reason = cut(reason.into(), limits::REASON_BYTES);
        Self { reason, category: HANDLER_ERROR.to_owned(), class, retry_after: None }
    }

    /// Trying again would end the same way: the execution fails.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_core::state::Outcome;
    /// use ff_sdk::runtime::Failure;
    ///
    /// async fn greet() -> Result<(), Failure> {
    ///     Err(Failure::permanent("nobody to greet"))
    /// }
    ///
    /// let greeting = engine.run_handler(Submission::new("greet"), greet).await;
    /// let finished = engine.assert_outcome(greeting.id(), Outcome::Failed).await;
    /// assert_eq!(finished.record.retry_count, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn permanent(reason: impl Into<String>) -> Self {
        Self::new(FailureClass::Permanent, reason)
    }

    /// Another attempt may succeed; there is one if the policy grants it.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::runtime::{Failure, TaskInfo};
    ///
    /// async fn greet(info: TaskInfo) -> Result<(), Failure> {
    ///     if info.attempt_index() == 0 {
    ///         return Err(Failure::transient("no answer"));
    ///     }
    ///     Ok(())
    /// }
    ///
    /// let greeting = engine.run_handler(Submission::new("greet"), greet).await;
    /// assert_eq!(engine.assert_completed(greeting.id()).await.record.retry_count, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn transient(reason: impl Into<String>) -> Self {
        Self::new(FailureClass::Transient, reason)
    }

    /// What kind of failure it is, in a word that policies (`retryable_categories`) and people
    /// know.
    ///
    /// ```
    /// use ff_sdk::runtime::Failure;
    ///
    /// let failure = Failure::permanent("no such card").category("card_declined");
    /// assert_eq!(failure.to_string(), "card_declined: no such card");
    /// ```
    #[must_use]
    pub fn category(self, category: impl Into<String>) -> Self {
        Self { category: cut(category.into(), limits::CATEGORY_BYTES), ..self }
    }

    /// The next attempt begins no sooner than this.
    ///
    /// ```
    /// use ff_sdk::runtime::Failure;
    /// use std::time::Duration;
    ///
    /// let busy = Failure::transient("429").retry_after(Duration::from_secs(30));
    /// assert_eq!(busy.delay(), Some(Duration::from_secs(30)));
    /// ```
    #[must_use]
    pub fn retry_after(self, delay: Duration) -> Self {
        Self { retry_after: Some(delay), ..self }
    }

    /// What went wrong.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The category, see [`Self::category`].
    pub fn category_name(&self) -> &str {
        &self.category
    }

    /// Whether another attempt may help.
    pub fn class(&self) -> FailureClass {
        self.class
    }

    /// How long the next attempt waits at least, see [`Self::retry_after`].
    pub fn delay(&self) -> Option<Duration> {
        self.retry_after
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.category, self.reason)
    }
}

/// Errors, texts and whatever else can be boxed as an error. The reason tells the causes too.
impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error: Box<dyn Error + Send + Sync> = error.into();
        let mut reason = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            let said = inner.to_string();
            // An error that shows its cause in its own text has said it.
            if !reason.ends_with(&said) {
                reason = format!("{reason}: {said}");
            }
            cause = inner.source();
        }
        Self::transient(reason)
    }
}

/// No longer than the engine takes, and whole characters.
fn cut(mut text: String, most: usize) -> String {
    text.truncate(text.floor_char_boundary(most));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] std::num::ParseIntError);

    fn of(result: Result<(), Failure>) -> Failure {
        result.unwrap_err()
    }

    #[test]
    fn whatever_can_be_an_error_becomes_a_failure() {
        let parse = || "x".parse::<u8>().unwrap_err();
        let from_error = of((|| Ok("x".parse::<u8>().map(drop)?))());
        assert_eq!(from_error.reason(), "invalid digit found in string");
        assert_eq!(from_error.class(), FailureClass::Transient);
        assert_eq!(from_error.category_name(), HANDLER_ERROR);
        assert_eq!(of((|| Err("text")?)()).reason(), "text");
        assert_eq!(of((|| Err(String::from("text"))?)()).reason(), "text");
        let boxed: Box<dyn Error + Send + Sync> = "boxed".into();
        assert_eq!(of((|| Err(boxed)?)()).reason(), "boxed");
        let with_cause = Failure::from(Outer(parse()));
        assert_eq!(with_cause.reason(), "outer: invalid digit found in string");
        let kept = Failure::permanent("no").category("c");
        assert_eq!(of((|| Err(kept.clone())?)()), kept);
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let long = Failure::transient("é".repeat(limits::REASON_BYTES)).category("é".repeat(300));
        assert_eq!(long.reason().len(), limits::REASON_BYTES);
        assert!(long.category_name().len() <= limits::CATEGORY_BYTES);
    }
}
