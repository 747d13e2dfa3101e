//! What steps of a flow hand on to those that waited for them.

use serde::de::DeserializeOwned;

use super::extract::decode;
use super::{Failure, Task};

impl Task {
    /// The result of a step that this one waited for, read as JSON: by the name of the step, or by
    /// the one that [`Flow::input_as`](crate::Flow::input_as) gave it. A result that was too large
    /// to come along is fetched; a step that completed without one has `null`.
    ///
    /// ```
    /// use ff_sdk::runtime::{Failure, Task};
    ///
    /// async fn publish(task: Task) -> Result<String, Failure> {
    ///     let video: String = task.input("video").await?;
    ///     let sound: String = task.input("sound").await?;
    ///     Ok(format!("{video} with {sound}"))
    /// }
    /// # ff_sdk::runtime::check_handler(publish);
    /// ```
    ///
    /// # Errors
    ///
    /// A permanent failure when the task waited for nothing of this name, or when the result does
    /// not decode; it names the place, and never what stands there. A transient one when the
    /// result could not be fetched.
    pub async fn input<T: DeserializeOwned>(&self, name: &str) -> Result<T, Failure> {
        let Some(input) = self.info().inputs().get(name) else {
            let known: Vec<&str> = self.info().inputs().keys().map(String::as_str).collect();
            let known = known.join(", ");
            return Err(Failure::permanent(format!("there is no input {name}, only: {known}")));
        };
        let result = match &input.result {
            Some(result) => Some(result.clone()),
            None if input.inline => None,
            None => Some(self.client().get_result(input.execution_id, None).await?),
        };
        let bytes = result.as_ref().map_or(&[][..], |result| &result.bytes);
        let text = if bytes.is_empty() { b"null" } else { bytes };
        decode(text).map_err(|what| {
            Failure::permanent(format!("the result of {name} does not decode: {what}"))
        })
    }
}
