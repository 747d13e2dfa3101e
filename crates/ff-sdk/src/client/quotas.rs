//! Quota policies: how many at a time, and how often.

use ff_core::error::{Code, Refusal};
use ff_core::id::QuotaPolicyId;
use ff_core::limits;
use ff_core::operation::{CreateQuotaPolicy, DeleteQuotaPolicy, QuotaChange, UpdateQuotaPolicy};
use ff_core::read::{
    DescribeQuotaPolicy, ListQuotaPolicies, Page, QuotaPolicyDescribed, QuotaPolicySnapshot,
};
use ff_core::state::QuotaSpec;

use super::Client;
use crate::error::SdkError;

impl Client {
    /// Makes a quota policy; 0 switches a part of it off.
    ///
    /// ```
    /// use ff_core::state::QuotaSpec;
    /// # use ff_sdk::{Client, Submission};
    /// # #[tokio::main] async fn main() -> Result<(), ff_sdk::SdkError> {
    /// # let client = Client::connect("sqlite::memory:").await?;
    /// let spec = QuotaSpec {
    ///     window_seconds: 60,
    ///     max_requests_per_window: 100,
    ///     max_concurrent: 5,
    ///     jitter_ms: 0,
    /// };
    /// let calls = client.create_quota_policy(spec).await?;
    /// client.submit(Submission::new("call").quota(calls)).await?;
    /// assert_eq!(client.describe_quota_policy(calls).await?.policy.slots, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `invalid_quota_spec`.
    pub async fn create_quota_policy(&self, spec: QuotaSpec) -> Result<QuotaPolicyId, SdkError> {
        let quota_policy_id = QuotaPolicyId::mint();
        let namespace = self.namespace.clone();
        self.insist(CreateQuotaPolicy { quota_policy_id, namespace, spec }).await?;
        Ok(quota_policy_id)
    }

    /// Changes the numbers that are given. Slots that are taken stay taken.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::operation::QuotaChange;
    /// use ff_core::state::QuotaSpec;
    ///
    /// # let spec = QuotaSpec {
    /// #     window_seconds: 60, max_requests_per_window: 100, max_concurrent: 5, jitter_ms: 0,
    /// # };
    /// let calls = client.create_quota_policy(spec).await?;
    /// let fewer = QuotaChange { max_concurrent: Some(2), ..QuotaChange::default() };
    /// client.update_quota_policy(calls, fewer).await?;
    /// assert_eq!(client.describe_quota_policy(calls).await?.policy.spec.max_concurrent, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `quota_policy_not_found` and `invalid_quota_spec`.
    pub async fn update_quota_policy(
        &self,
        quota_policy_id: QuotaPolicyId,
        change: QuotaChange,
    ) -> Result<(), SdkError> {
        let update = UpdateQuotaPolicy { quota_policy_id, change, expected_revision: None };
        self.insist(update).await?;
        Ok(())
    }

    /// A policy with the first of those who hold its slots.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_core::state::QuotaSpec;
    ///
    /// # let client = engine.client();
    /// # let spec = QuotaSpec {
    /// #     window_seconds: 0, max_requests_per_window: 0, max_concurrent: 5, jitter_ms: 0,
    /// # };
    /// let calls = client.create_quota_policy(spec).await?;
    /// let task = engine.claimed(Submission::new("call").quota(calls)).await;
    /// let policy = client.describe_quota_policy(calls).await?;
    /// assert_eq!((policy.policy.slots, policy.holders.len()), (1, 1));
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `quota_policy_not_found`.
    pub async fn describe_quota_policy(
        &self,
        quota_policy_id: QuotaPolicyId,
    ) -> Result<QuotaPolicyDescribed, SdkError> {
        let question =
            DescribeQuotaPolicy { quota_policy_id, holders_from: 0, limit: limits::PAGE };
        let missing = || {
            let detail = format!("no quota policy {quota_policy_id}");
            Refusal::at(Code::QuotaPolicyNotFound, "quota_policy_id", detail)
        };
        Ok(*self.ask(question).await?.ok_or_else(missing)?)
    }

    /// Policies of the client's namespace, newest first.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::state::QuotaSpec;
    ///
    /// # let spec = QuotaSpec {
    /// #     window_seconds: 0, max_requests_per_window: 0, max_concurrent: 5, jitter_ms: 0,
    /// # };
    /// let calls = client.create_quota_policy(spec).await?;
    /// assert_eq!(client.list_quota_policies(None).await?.items[0].quota_policy_id, calls);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `invalid_cursor` for a cursor of another list.
    pub async fn list_quota_policies(
        &self,
        cursor: Option<String>,
    ) -> Result<Page<QuotaPolicySnapshot>, SdkError> {
        let namespace = self.namespace.clone();
        self.ask(ListQuotaPolicies { namespace, cursor, limit: limits::PAGE }).await
    }

    /// Removes a policy with its slots.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::state::QuotaSpec;
    ///
    /// # let spec = QuotaSpec {
    /// #     window_seconds: 0, max_requests_per_window: 0, max_concurrent: 5, jitter_ms: 0,
    /// # };
    /// let calls = client.create_quota_policy(spec).await?;
    /// client.delete_quota_policy(calls).await?;
    /// assert!(client.describe_quota_policy(calls).await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `quota_policy_not_found`.
    pub async fn delete_quota_policy(
        &self,
        quota_policy_id: QuotaPolicyId,
    ) -> Result<(), SdkError> {
        self.call(DeleteQuotaPolicy { quota_policy_id }).await?;
        Ok(())
    }
}
