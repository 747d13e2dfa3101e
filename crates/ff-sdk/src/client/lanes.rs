//! Lanes and the namespace.

use ff_core::limits;
use ff_core::operation::{Attach, LaneSet, NamespaceSet, SetLane, SetNamespace};
use ff_core::policy::Retention;
use ff_core::read::{
    DescribeLane, DescribeNamespace, LaneSnapshot, ListLanes, NamespaceSnapshot, Page,
};
use ff_core::state::LaneState;

use super::Client;
use crate::config::parse;
use crate::error::SdkError;

impl Client {
    /// A lane: its state, what waits in it, and who serves it.
    ///
    /// ```
    /// # use ff_sdk::{Client, Submission};
    /// # #[tokio::main] async fn main() -> Result<(), ff_sdk::SdkError> {
    /// # let client = Client::connect("sqlite::memory:").await?;
    /// client.pause_lane("images", "the disk is full").await?;
    /// client.submit(Submission::new("resize").lane("images")).await?;
    /// let lane = client.describe_lane("images").await?;
    /// assert_eq!((lane.state.as_str(), lane.running), ("paused", 0));
    /// client.resume_lane("images", "there is room again").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] for a name that is none. A lane that nobody has named is an empty one.
    pub async fn describe_lane(&self, lane: &str) -> Result<LaneSnapshot, SdkError> {
        let (namespace, lane) = (self.namespace.clone(), parse("lane", lane)?);
        Ok(*self.ask(DescribeLane { namespace, lane }).await?)
    }

    /// Lanes of the client's namespace that something names, by name.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// client.submit(Submission::new("resize").lane("images")).await?;
    /// let lanes = client.list_lanes(None).await?.items;
    /// assert!(lanes.iter().any(|lane| lane.lane.as_str() == "images"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `invalid_cursor` for a cursor of another list.
    pub async fn list_lanes(&self, cursor: Option<String>) -> Result<Page<LaneSnapshot>, SdkError> {
        let namespace = self.namespace.clone();
        self.ask(ListLanes { namespace, within: None, cursor, limit: limits::PAGE }).await
    }

    /// Changes a lane; [`SetLane::new`] changes nothing, and its fields say what.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::operation::SetLane;
    ///
    /// let mail = SetLane::new(client.namespace().clone(), "mail".parse()?);
    /// let set = client.set_lane(SetLane { priority_ageing_ms: Some(60_000), ..mail }).await?;
    /// assert_eq!(set.priority_ageing_ms, 60_000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `precondition_failed` when it has another revision than the one that was expected;
    /// `budget_not_found` and `quota_policy_not_found` for what is attached.
    pub async fn set_lane(&self, set: SetLane) -> Result<LaneSet, SdkError> {
        self.insist(set).await
    }

    /// Nothing of the lane is claimed; submits are accepted. Running work is untouched.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// let client = engine.client();
    /// client.submit(Submission::new("greet")).await?;
    /// client.pause_lane("default", "the mail server is down").await?;
    /// assert!(worker.claim_next().await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] for a name that is none.
    pub async fn pause_lane(&self, lane: &str, reason: &str) -> Result<LaneSet, SdkError> {
        self.set_lane_state(lane, LaneState::Paused, reason).await
    }

    /// The lane is served again.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// let client = engine.client();
    /// client.submit(Submission::new("greet")).await?;
    /// client.pause_lane("default", "the mail server is down").await?;
    /// client.resume_lane("default", "it is up again").await?;
    /// worker.claim_next().await?.expect("there is work").complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] for a name that is none.
    pub async fn resume_lane(&self, lane: &str, reason: &str) -> Result<LaneSet, SdkError> {
        self.set_lane_state(lane, LaneState::Active, reason).await
    }

    /// Nothing more is submitted to the lane; what is there is claimed.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// client.drain_lane("old", "it is replaced").await?;
    /// let refused = client.submit(Submission::new("greet").lane("old")).await;
    /// assert_eq!(refused.unwrap_err().code(), Some(ff_core::error::Code::LaneNotAccepting));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] for a name that is none.
    pub async fn drain_lane(&self, lane: &str, reason: &str) -> Result<LaneSet, SdkError> {
        self.set_lane_state(lane, LaneState::Draining, reason).await
    }

    async fn set_lane_state(
        &self,
        lane: &str,
        state: LaneState,
        reason: &str,
    ) -> Result<LaneSet, SdkError> {
        let set = SetLane::new(self.namespace.clone(), parse("lane", lane)?);
        self.set_lane(SetLane { state: Some(state), reason: reason.to_owned(), ..set }).await
    }

    /// What is said of the client's namespace.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let namespace = client.describe_namespace().await?;
    /// assert_eq!(namespace.record.namespace, *client.namespace());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Backend`] when there is no answer.
    pub async fn describe_namespace(&self) -> Result<NamespaceSnapshot, SdkError> {
        Ok(*self.ask(DescribeNamespace { namespace: self.namespace.clone() }).await?)
    }

    /// What all of the client's namespace stands under, and how long its ended executions are
    /// kept; what is not given stays as it is.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::operation::Attach;
    /// use ff_core::policy::Retention;
    ///
    /// let an_hour = Retention { success_ms: Some(3_600_000), ..Retention::default() };
    /// let set = client.set_namespace(Attach::default(), Some(an_hour)).await?;
    /// assert_eq!(set.record.retention.success_ms, Some(3_600_000));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `budget_not_found` and `quota_policy_not_found` for what is attached.
    pub async fn set_namespace(
        &self,
        attach: Attach,
        retention: Option<Retention>,
    ) -> Result<NamespaceSet, SdkError> {
        let namespace = self.namespace.clone();
        self.insist(SetNamespace { namespace, attach, retention, expected_revision: None }).await
    }
}
