//! A handle of one execution.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use ff_core::id::ExecutionId;
use ff_core::operation::Cancelled;
use ff_core::read::{Explanation, Record};
use serde::de::DeserializeOwned;

use super::{Client, Finished, OutputTail, ResultError};
use crate::error::SdkError;

/// An execution, to be waited for, looked at and cancelled.
///
/// ```
/// use std::time::Duration;
/// use ff_sdk::testing::TestEngine;
/// use ff_sdk::{Submission, WorkerConfig};
///
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = TestEngine::start().await;
/// # let client = engine.client();
/// # let worker = engine.worker(WorkerConfig::new("w")).await;
/// let execution = client.submit(Submission::new("double").json(&21)?).await?;
/// # let task = worker.claim_next().await?.expect("a task");
/// # let n: u32 = serde_json::from_slice(task.input_payload())?;
/// # task.complete(Some((n * 2).to_string().into())).await?;
/// let doubled: u32 = execution.wait_for_result(Duration::from_secs(10)).await?;
/// assert_eq!(doubled, 42);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Execution {
    client: Client,
    id: ExecutionId,
    was_there: bool,
}

impl Execution {
    pub(super) fn new(client: Client, id: ExecutionId, was_there: bool) -> Self {
        Self { client, id, was_there }
    }

    /// Its id.
    pub fn id(&self) -> ExecutionId {
        self.id
    }

    /// Whether it was submitted before, under the same idempotency key.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let work = Submission::new("greet").idempotency_key("order-17");
    /// assert!(!client.submit(work.clone()).await?.was_there_already());
    /// assert!(client.submit(work).await?.was_there_already());
    /// # Ok(())
    /// # }
    /// ```
    pub fn was_there_already(&self) -> bool {
        self.was_there
    }

    /// Waits until it has ended. See [`Client::wait_for_outcome`].
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use std::time::Duration;
    ///
    /// let task = engine.claimed(Submission::new("greet")).await;
    /// let greeting = engine.client().execution(task.execution_id());
    /// task.complete(None).await?;
    /// assert!(greeting.wait(Duration::from_secs(10)).await?.is_success());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Client::wait_for_outcome`].
    pub async fn wait(&self, timeout: Duration) -> Result<Finished, SdkError> {
        self.client.wait_for_outcome(self.id, timeout).await
    }

    /// Waits until it has ended, and reads its result as JSON.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::ResultError;
    /// use std::time::Duration;
    ///
    /// let task = engine.claimed(Submission::new("greet")).await;
    /// let greeting = engine.client().execution(task.execution_id());
    /// task.fail("nobody to greet", "permanent").await?;
    /// match greeting.wait_for_result::<String>(Duration::from_secs(10)).await {
    ///     Err(ResultError::Ended(how)) => assert_eq!(how.reason(), Some("nobody to greet")),
    ///     other => panic!("{other:?}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ResultError::Ended`] when it ended in another way than with success.
    pub async fn wait_for_result<T: DeserializeOwned>(
        &self,
        timeout: Duration,
    ) -> Result<T, ResultError> {
        let finished = self.wait(timeout).await?;
        if !finished.is_success() {
            return Err(ResultError::Ended(Box::new(finished)));
        }
        Ok(self.result().await?)
    }

    /// The result of the last success, as JSON. A result without bytes is `null`.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// let task = engine.claimed(Submission::new("sum")).await;
    /// let sum = engine.client().execution(task.execution_id());
    /// task.complete(Some("42".into())).await?;
    /// let read: u32 = sum.result().await?;
    /// assert_eq!(read, 42);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `result_not_found` while there is none; [`SdkError::Config`] for a result that does not read
    /// as this type.
    pub async fn result<T: DeserializeOwned>(&self) -> Result<T, SdkError> {
        let bytes = self.result_bytes().await?;
        let text: &[u8] = if bytes.is_empty() { b"null" } else { &bytes };
        serde_json::from_slice(text)
            .map_err(|error| SdkError::argument("result", "result", error.to_string()))
    }

    /// The result of the last success, as it is.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// let task = engine.claimed(Submission::new("render")).await;
    /// let picture = engine.client().execution(task.execution_id());
    /// task.complete(Some(vec![0xff, 0xd8].into())).await?;
    /// assert_eq!(&picture.result_bytes().await?[..], [0xff, 0xd8]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `result_not_found` while there is none.
    pub async fn result_bytes(&self) -> Result<Bytes, SdkError> {
        Ok(self.client.get_result(self.id, None).await?.bytes)
    }

    /// Ends it as cancelled, unless it has ended.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let greeting = client.submit(Submission::new("greet")).await?;
    /// greeting.cancel("not today").await?;
    /// assert!(greeting.describe().await?.has_ended());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Client::cancel`].
    pub async fn cancel(&self, reason: &str) -> Result<Cancelled, SdkError> {
        self.client.cancel(self.id, reason).await
    }

    /// All that is known of it, but for payload and result.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let greeting = client.submit(Submission::new("greet").priority(7)).await?;
    /// assert_eq!(greeting.describe().await?.priority, 7);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `execution_not_found`.
    pub async fn describe(&self) -> Result<Record, SdkError> {
        self.client.describe(self.id).await
    }

    /// Why it is where it is, and what would change it.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let greeting = client.submit(Submission::new("greet").held()).await?;
    /// println!("{}", greeting.explain().await?.summary);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `execution_not_found`.
    pub async fn explain(&self) -> Result<Explanation, SdkError> {
        self.client.explain(self.id).await
    }

    /// Output of its newest attempt, from the beginning to the end of the attempt. Of one that
    /// nobody has claimed yet it is the first attempt.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// task.append_frame("token", "Once", None).await?;
    /// let story = engine.client().execution(task.execution_id());
    /// task.complete(None).await?;
    /// let mut output = story.tail().await?;
    /// assert_eq!(&output.next().await?.expect("a piece").content.bytes[..], b"Once");
    /// assert!(output.next().await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `execution_not_found`.
    pub async fn tail(&self) -> Result<OutputTail, SdkError> {
        let attempt = self.describe().await?.current_attempt_index;
        Ok(self.client.tail(self.id, attempt.unwrap_or(0)))
    }

    /// The client that it is asked through.
    pub fn client(&self) -> &Client {
        &self.client
    }
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution").field("id", &self.id.to_string()).finish_non_exhaustive()
    }
}
