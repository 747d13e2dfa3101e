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
    pub async fn replay(
        &self,
        execution_id: ExecutionId,
        descendants: bool,
    ) -> Result<Replayed, SdkError> {
        self.call(Replay { execution_id, descendants }).await
    }

    /// Nobody gets an execution that waits until it is let go.
    pub async fn hold(&self, execution_id: ExecutionId, why: &str) -> Result<Settled, SdkError> {
        self.insist(Hold { execution_id, detail: why.to_owned() }).await
    }

    /// Lets an execution go that an operator holds.
    pub async fn release(&self, execution_id: ExecutionId) -> Result<Settled, SdkError> {
        self.insist(Release { execution_id }).await
    }

    /// Goes on with a suspended execution, whatever it waits for. `by` is who does it.
    pub async fn resume(
        &self,
        execution_id: ExecutionId,
        by: &str,
    ) -> Result<ResumedNow, SdkError> {
        self.call(Resume { execution_id, trigger: by.to_owned(), delay_ms: 0 }).await
    }

    /// 0 to 9000, higher first.
    pub async fn change_priority(
        &self,
        execution_id: ExecutionId,
        priority: i64,
    ) -> Result<PriorityChanged, SdkError> {
        self.insist(ChangePriority { execution_id, priority }).await
    }

    /// Puts tags over those that the execution has. Keys have the form `<caller>.<field>`.
    pub async fn set_tags(
        &self,
        execution_id: ExecutionId,
        tags: BTreeMap<String, String>,
    ) -> Result<TagsSet, SdkError> {
        let tags = read_tags(tags)?;
        self.insist(SetTags { execution_id, tags, expected_revision: None }).await
    }

    /// Takes the lease away from whoever runs an execution, so that another may take it up.
    pub async fn revoke_lease(
        &self,
        execution_id: ExecutionId,
        reason: &str,
    ) -> Result<Revoked, SdkError> {
        let reason = reason.to_owned();
        self.call(Revoke { execution_id, reason, expected_lease_id: None }).await
    }

    /// Removes every trace of an execution that has ended, except its events.
    pub async fn delete(&self, execution_id: ExecutionId) -> Result<(), SdkError> {
        self.call(Delete { execution_id }).await?;
        Ok(())
    }
}
