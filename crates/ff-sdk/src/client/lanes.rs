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
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ff_sdk::SdkError> {
    /// # let client = Client::connect("sqlite::memory:").await?;
    /// client.pause_lane("images", "the disk is full").await?;
    /// client.submit(Submission::new("resize").lane("images")).await?;
    /// let lane = client.describe_lane("images").await?;
    /// assert_eq!((lane.state.as_str(), lane.running), ("paused", 0));
    /// client.resume_lane("images", "there is room again").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn describe_lane(&self, lane: &str) -> Result<LaneSnapshot, SdkError> {
        let (namespace, lane) = (self.namespace.clone(), parse("lane", lane)?);
        Ok(*self.ask(DescribeLane { namespace, lane }).await?)
    }

    /// Lanes of the client's namespace that something names, by name.
    pub async fn list_lanes(&self, cursor: Option<String>) -> Result<Page<LaneSnapshot>, SdkError> {
        let namespace = self.namespace.clone();
        self.ask(ListLanes { namespace, within: None, cursor, limit: limits::PAGE }).await
    }

    /// Changes a lane; [`SetLane::new`] changes nothing, and its fields say what.
    pub async fn set_lane(&self, set: SetLane) -> Result<LaneSet, SdkError> {
        self.insist(set).await
    }

    /// Nothing of the lane is claimed; submits are accepted. Running work is untouched.
    pub async fn pause_lane(&self, lane: &str, reason: &str) -> Result<LaneSet, SdkError> {
        self.set_lane_state(lane, LaneState::Paused, reason).await
    }

    /// The lane is served again.
    pub async fn resume_lane(&self, lane: &str, reason: &str) -> Result<LaneSet, SdkError> {
        self.set_lane_state(lane, LaneState::Active, reason).await
    }

    /// Nothing more is submitted to the lane; what is there is claimed.
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
    pub async fn describe_namespace(&self) -> Result<NamespaceSnapshot, SdkError> {
        Ok(*self.ask(DescribeNamespace { namespace: self.namespace.clone() }).await?)
    }

    /// What all of the client's namespace stands under, and how long its ended executions are
    /// kept; what is not given stays as it is.
    pub async fn set_namespace(
        &self,
        attach: Attach,
        retention: Option<Retention>,
    ) -> Result<NamespaceSet, SdkError> {
        let namespace = self.namespace.clone();
        self.insist(SetNamespace { namespace, attach, retention, expected_revision: None }).await
    }
}
