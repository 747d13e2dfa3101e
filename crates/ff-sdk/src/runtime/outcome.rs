//! What a handler returns, and what becomes of its task by it.

use std::any::TypeId;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bytes::Bytes;
use ff_core::content::Content;
use ff_core::id::ExecutionId;
use ff_core::time::TimestampMs;
use serde::{Serialize, Serializer};

use super::Failure;
use crate::task::Suspension;

/// How a task goes on, or ends well.
///
/// A handler that returns `()` or any value that serialises completes its task. It returns an
/// `Outcome` when it wants something else.
///
/// ```
/// use ff_sdk::Suspension;
/// use ff_sdk::runtime::{Failure, Outcome, TaskInfo};
///
/// /// Runs twice: once to ask, once with the answer.
/// async fn deploy(info: TaskInfo) -> Result<Outcome, Failure> {
///     match info.resume_signals().first() {
///         None => Ok(Outcome::suspend(Suspension::approval("go")?)),
///         Some(said) if said.name.as_str() == "approved" => Ok(Outcome::json(&"deployed")?),
///         Some(_) => Ok(Outcome::Cancel { reason: "denied".to_owned() }),
///     }
/// }
/// # ff_sdk::runtime::check_handler(deploy);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The execution has succeeded, without a result.
    None,
    /// The execution has succeeded with this result.
    Complete(Content),
    /// The task waits for what the suspension names; the handler is then called again, in the same
    /// attempt and on whichever worker. Should all of it have been said already, it is called again
    /// at once. Either way it finds what was said in
    /// [`TaskInfo::resume_signals`](super::TaskInfo::resume_signals).
    Suspend(Box<Suspension>),
    /// The handler is called again after this time, in the same attempt.
    Delay(Duration),
    /// The handler is called again at this moment of the store's clock, in the same attempt.
    DelayUntil(TimestampMs),
    /// The handler is called again when these members of its flow have ended; without names, when
    /// all have that the task depends on.
    WaitChildren(Option<Vec<ExecutionId>>),
    /// Nobody needs the execution any more: it ends as cancelled.
    Cancel {
        /// Why, for people.
        reason: String,
    },
}

impl Outcome {
    /// Success with bytes of any kind.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::runtime::Outcome;
    ///
    /// async fn render() -> Outcome {
    ///     Outcome::bytes(vec![0xff, 0xd8])
    /// }
    ///
    /// let picture = engine.run_handler(Submission::new("render"), render).await;
    /// assert_eq!(&picture.result_bytes().await?[..], [0xff, 0xd8]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn bytes(result: impl Into<Bytes>) -> Self {
        Self::Complete(Content::new(result))
    }

    /// Success with a value as JSON.
    ///
    /// ```
    /// use ff_sdk::runtime::Outcome;
    ///
    /// let outcome = Outcome::json(&["a", "b"])?;
    /// assert_eq!(outcome.name(), "completed");
    /// # Ok::<(), ff_sdk::runtime::Failure>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A permanent [`Failure`] where the value cannot be written as JSON.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, Failure> {
        let bytes = serde_json::to_vec(value).map_err(|error| {
            Failure::permanent(format!("the result cannot be written as JSON: {error}"))
        })?;
        Ok(Self::Complete(Content::json(bytes)))
    }

    /// Waits for what the suspension names.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_core::state::PublicState;
    /// use ff_sdk::Suspension;
    /// use ff_sdk::runtime::{Failure, Outcome};
    ///
    /// async fn review() -> Result<Outcome, Failure> {
    ///     Ok(Outcome::suspend(Suspension::approval("review")?))
    /// }
    ///
    /// let waiting = engine.run_handler(Submission::new("review"), review).await;
    /// engine.assert_state(waiting.id(), PublicState::Suspended).await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn suspend(suspension: Suspension) -> Self {
        Self::Suspend(Box::new(suspension))
    }

    /// A word for logs and metrics.
    ///
    /// ```
    /// use ff_sdk::runtime::Outcome;
    ///
    /// assert_eq!(Outcome::None.name(), "completed");
    /// assert_eq!(Outcome::Cancel { reason: String::new() }.name(), "cancelled");
    /// ```
    pub fn name(&self) -> &'static str {
        match self {
            Self::None | Self::Complete(_) => "completed",
            Self::Suspend(_) => "suspended",
            Self::Delay(_) | Self::DelayUntil(_) => "delayed",
            Self::WaitChildren(_) => "waiting_children",
            Self::Cancel { .. } => "cancelled",
        }
    }
}

/// A value whose JSON is the result; for handlers that return a value of their own and no `Result`.
///
/// ```
/// use ff_sdk::runtime::Json;
///
/// #[derive(serde::Serialize)]
/// struct Size { width: u32 }
///
/// async fn measure() -> Json<Size> {
///     Json(Size { width: 7 })
/// }
/// # ff_sdk::runtime::check_handler(measure);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Json<T>(pub T);

impl<T: Serialize> Serialize for Json<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// What may stand in the `Ok` of a handler: everything that serialises, `()` for no result, or an
/// [`Outcome`].
///
/// ```
/// use ff_sdk::runtime::{IntoOutcome, Outcome};
///
/// assert_eq!(().into_outcome(), Ok(Outcome::None));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the outcome of a task",
    note = "an outcome is (), a value that implements serde::Serialize, or an Outcome"
)]
pub trait IntoOutcome {
    /// What becomes of the task.
    fn into_outcome(self) -> Result<Outcome, Failure>;
}

impl<T: Serialize + 'static> IntoOutcome for T {
    fn into_outcome(self) -> Result<Outcome, Failure> {
        if TypeId::of::<T>() == TypeId::of::<()>() {
            return Ok(Outcome::None);
        }
        Outcome::json(&self)
    }
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Result<Outcome, Failure> {
        Ok(self)
    }
}

/// What a handler may return: `()`, an [`Outcome`], plain values, [`Json`] around any value that
/// serialises, or a `Result` of any value that serialises and any error.
///
/// A struct of your own stands in `Ok(…)` or in `Json(…)`: on its own it could not be told apart
/// from a `Result`, which serialises too.
///
/// ```
/// use ff_sdk::runtime::{IntoAnswer, Outcome};
///
/// assert_eq!(().into_answer(), Ok(Outcome::None));
/// assert_eq!(7.into_answer(), Ok(Outcome::Complete(ff_core::content::Content::json("7"))));
/// assert!(Err::<(), _>("no answer").into_answer().is_err());
/// ```
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    note = "it returns (), a plain value, Json(value), an Outcome, or a Result whose Ok serialises"
)]
pub trait IntoAnswer {
    /// What becomes of the task.
    fn into_answer(self) -> Result<Outcome, Failure>;
}

impl<T: IntoOutcome, E: Into<Failure>> IntoAnswer for Result<T, E> {
    fn into_answer(self) -> Result<Outcome, Failure> {
        self.map_err(Into::into)?.into_outcome()
    }
}

impl IntoAnswer for Outcome {
    fn into_answer(self) -> Result<Outcome, Failure> {
        Ok(self)
    }
}

impl<T: Serialize + 'static> IntoAnswer for Json<T> {
    fn into_answer(self) -> Result<Outcome, Failure> {
        Outcome::json(&self)
    }
}

/// Values that are no `Result` for sure, and what they are made of.
macro_rules! plain_answers {
    ($([$($part:ident)?] $plain:ty;)*) => {
        $(
            impl<$($part: Serialize + 'static)?> IntoAnswer for $plain {
                fn into_answer(self) -> Result<Outcome, Failure> {
                    self.into_outcome()
                }
            }
        )*
    };
}

plain_answers! {
    [] (); [] bool; [] char; [] String; [] &'static str; [] serde_json::Value;
    [] i8; [] i16; [] i32; [] i64; [] i128; [] isize; [] f32; [] f64;
    [] u8; [] u16; [] u32; [] u64; [] u128; [] usize;
    [T] Vec<T>; [T] Option<T>; [T] BTreeMap<String, T>; [T] HashMap<String, T>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result_of(answer: impl IntoAnswer) -> Option<String> {
        match answer.into_answer().unwrap() {
            Outcome::None => None,
            Outcome::Complete(content) => {
                assert_eq!(content.content_type, ff_core::id::ContentType::json());
                Some(String::from_utf8(content.bytes.to_vec()).unwrap())
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn values_are_results() {
        assert_eq!(result_of(()), None);
        assert_eq!(result_of(Ok::<_, Failure>(())), None);
        assert_eq!(result_of(7).as_deref(), Some("7"));
        assert_eq!(result_of("text").as_deref(), Some("\"text\""));
        assert_eq!(result_of(Ok::<_, String>(vec![1, 2])).as_deref(), Some("[1,2]"));
        assert_eq!(result_of(None::<u8>).as_deref(), Some("null"));
        assert_eq!(result_of(Json((1, "a"))).as_deref(), Some("[1,\"a\"]"));
        assert_eq!(result_of(Ok::<_, Failure>(Json(1))).as_deref(), Some("1"));
    }

    #[test]
    fn an_outcome_is_taken_as_it_is() {
        let delay = Outcome::Delay(Duration::from_secs(1));
        assert_eq!(delay.clone().into_answer().unwrap(), delay);
        assert_eq!(Ok::<_, String>(delay.clone()).into_answer().unwrap(), delay);
    }

    #[test]
    fn what_does_not_serialise_is_a_permanent_failure() {
        let bad = HashMap::from([((1, 2), 3)]);
        let failure = Ok::<_, String>(bad).into_answer().unwrap_err();
        assert_eq!(failure.class(), ff_core::state::FailureClass::Permanent);
    }
}
