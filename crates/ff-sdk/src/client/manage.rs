//! What operators do with executions.

use std::collections::BTreeMap;

use ff_core::id::ExecutionId;
use ff_core::operation::{
    Cancel, Cancelled, ChangePriority, Delete, Hold, PriorityChanged, Release, Replay, Replayed,
    Resume, ResumedNow, Revoke, Revoked, SetTags, Settled, TagsSet,
};
use ff_core::state::CancelSource;
use ff_core::tags::Tags;

use super::Client;
use crate::error::SdkError;

pub(super) fn read_tags(tags: BTreeMap<String, String>) -> Result<Tags, SdkError> {
    Tags::new(tags).map_err(|refusal| SdkError::config("tags", refusal.detail))
}

impl Client {
    /// Ends an execution as cancelled, whatever it does now. Sent again when the reply is lost.
    ///
    /// A worker that runs it is told within a second: see
    /// [`ClaimedTask::cancelled`](crate::ClaimedTask::cancelled).
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let greeting = client.submit(Submission::new("greet")).await?;
    /// let cancelled = client.cancel(greeting.id(), "not today").await?;
    /// assert_eq!(cancelled.from.as_str(), "waiting");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `execution_not_active` when it has ended in another way; `execution_not_found`.
    pub async fn cancel(
        &self,
        execution_id: ExecutionId,
        reason: &str,
    ) -> Result<Cancelled, SdkError> {
        let source = CancelSource::OperatorOverride;
        self.insist(Cancel { execution_id, reason: reason.to_owned(), source, fence: None }).await
    }

    /// Runs an execution that has ended once more. With `descendants`, members of its flow that ran
    /// because of it are run again too.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// let task = engine.claimed(Submission::new("greet")).await;
    /// let id = task.execution_id();
    /// task.fail("nobody to greet", "permanent").await?;
    /// let replayed = engine.client().replay(id, false).await?;
    /// assert_eq!((replayed.replay_count, replayed.public_state.as_str()), (1, "waiting"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `execution_not_terminal` while it has not ended, `max_replays_exhausted`,
    /// `replay_not_allowed` and `execution_not_found`.
    pub async fn replay(
        &self,
        execution_id: ExecutionId,
        descendants: bool,
    ) -> Result<Replayed, SdkError> {
        self.call(Replay { execution_id, descendants }).await
    }

    /// Nobody gets an execution that waits until it is let go.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let greeting = client.submit(Submission::new("greet")).await?;
    /// client.hold(greeting.id(), "wrong recipient").await?;
    /// assert_eq!(greeting.explain().await?.cause.as_str(), "operator_hold");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `execution_not_eligible` for one that runs, is suspended or has ended;
    /// `execution_not_found`.
    pub async fn hold(&self, execution_id: ExecutionId, why: &str) -> Result<Settled, SdkError> {
        self.insist(Hold { execution_id, detail: why.to_owned() }).await
    }

    /// Lets an execution go that an operator holds.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let greeting = client.submit(Submission::new("greet").held()).await?;
    /// client.release(greeting.id()).await?;
    /// assert_eq!(greeting.describe().await?.state.public_state.as_str(), "waiting");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::hold`].
    pub async fn release(&self, execution_id: ExecutionId) -> Result<Settled, SdkError> {
        self.insist(Release { execution_id }).await
    }

    /// Goes on with a suspended execution, whatever it waits for. `by` is who does it.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// # use ff_sdk::Suspension;
    /// let id = task.execution_id();
    /// task.suspend_on(Suspension::approval("go")?).await?;
    /// let resumed = engine.client().resume(id, "ada").await?;
    /// assert_eq!(resumed.public_state.as_str(), "resumable");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `execution_not_suspended` and `execution_not_found`.
    pub async fn resume(
        &self,
        execution_id: ExecutionId,
        by: &str,
    ) -> Result<ResumedNow, SdkError> {
        self.call(Resume { execution_id, trigger: by.to_owned(), delay_ms: None }).await
    }

    /// 0 to 9000, higher first.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let greeting = client.submit(Submission::new("greet")).await?;
    /// let changed = client.change_priority(greeting.id(), 100).await?;
    /// assert_eq!((changed.old, changed.new), (0, 100));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `execution_not_eligible` for one that no longer waits; `execution_not_found`.
    pub async fn change_priority(
        &self,
        execution_id: ExecutionId,
        priority: i64,
    ) -> Result<PriorityChanged, SdkError> {
        self.insist(ChangePriority { execution_id, priority }).await
    }

    /// Puts tags over those that the execution has. Keys have the form `<caller>.<field>`.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let greeting = client.submit(Submission::new("greet")).await?;
    /// let tags = [("crm.customer".to_owned(), "acme".to_owned())];
    /// client.set_tags(greeting.id(), tags.into()).await?;
    /// assert_eq!(greeting.describe().await?.tags.get("crm.customer"), Some("acme"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] for tags that are none, `invalid_tag_key` for a key of another form,
    /// `execution_not_found`.
    pub async fn set_tags(
        &self,
        execution_id: ExecutionId,
        tags: BTreeMap<String, String>,
    ) -> Result<TagsSet, SdkError> {
        let tags = read_tags(tags)?;
        self.insist(SetTags { execution_id, tags, expected_revision: None }).await
    }

    /// Takes the lease away from whoever runs an execution, so that another may take it up.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// let id = task.execution_id();
    /// engine.client().revoke_lease(id, "its machine is on fire").await?;
    /// task.cancelled().await;
    /// assert!(task.complete(None).await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `execution_not_active` when nobody runs it; `execution_not_found`.
    pub async fn revoke_lease(
        &self,
        execution_id: ExecutionId,
        reason: &str,
    ) -> Result<Revoked, SdkError> {
        let reason = reason.to_owned();
        self.call(Revoke { execution_id, reason, expected_lease_id: None }).await
    }

    /// Removes every trace of an execution that has ended, except its events.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let greeting = client.submit(Submission::new("greet")).await?;
    /// greeting.cancel("not today").await?;
    /// client.delete(greeting.id()).await?;
    /// assert!(greeting.describe().await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `execution_not_terminal` while it has not ended; `execution_not_found`.
    pub async fn delete(&self, execution_id: ExecutionId) -> Result<(), SdkError> {
        self.call(Delete { execution_id }).await?;
        Ok(())
    }
}
