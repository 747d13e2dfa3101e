//! What a task is: everything that came with its claim.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use ff_core::id::{
    AttemptId, ContentType, ExecutionId, FlowId, Kind, LaneId, MemberName, Namespace,
};
use ff_core::operation::{Input, PreviousFailure, ResumeSignal, Task as Claimed};
use ff_core::tags::Tags;
use ff_core::time::TimestampMs;

/// What a task is. Cheap to clone, and an extractor.
///
/// ```
/// use ff_sdk::runtime::TaskInfo;
///
/// async fn greet(info: TaskInfo) -> String {
///     match info.previous_failure() {
///         Some(failure) => format!("{} failed before: {}", info.kind(), failure.reason),
///         None => format!("the first attempt of {}", info.execution_id()),
///     }
/// }
/// # ff_sdk::runtime::check_handler(greet);
/// ```
#[derive(Clone)]
pub struct TaskInfo(Arc<Claimed>);

impl TaskInfo {
    pub(super) fn new(claimed: Arc<Claimed>) -> Self {
        Self(claimed)
    }

    /// The execution that the task is an attempt of.
    pub fn execution_id(&self) -> ExecutionId {
        self.0.execution_id
    }

    /// The namespace of the execution.
    pub fn namespace(&self) -> &Namespace {
        &self.0.namespace
    }

    /// The lane that it came from.
    pub fn lane(&self) -> &LaneId {
        &self.0.lane
    }

    /// What kind of work it is.
    pub fn kind(&self) -> &Kind {
        &self.0.kind
    }

    /// Its priority: higher ones are claimed first.
    pub fn priority(&self) -> u16 {
        self.0.priority
    }

    /// The tags of the execution.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::runtime::TaskInfo;
    ///
    /// async fn bill(info: TaskInfo) -> String {
    ///     info.tags().get("tenant").unwrap_or("nobody").to_owned()
    /// }
    ///
    /// let done = engine.run_handler(Submission::new("bill").tag("tenant", "acme"), bill).await;
    /// assert_eq!(done.result::<String>().await?, "acme");
    /// # Ok(())
    /// # }
    /// ```
    pub fn tags(&self) -> &Tags {
        &self.0.tags
    }

    /// The payload as it came.
    ///
    /// [`Payload`](super::Payload) reads it as JSON.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::runtime::TaskInfo;
    ///
    /// async fn count(info: TaskInfo) -> usize {
    ///     info.payload().len()
    /// }
    ///
    /// let done = engine.run_handler(Submission::new("count").payload("Ada"), count).await;
    /// assert_eq!(done.result::<usize>().await?, 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn payload(&self) -> &Bytes {
        &self.0.payload
    }

    /// What the payload is.
    pub fn content_type(&self) -> &ContentType {
        &self.0.content_type
    }

    /// The number of this attempt, from 0.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::runtime::{Failure, TaskInfo};
    ///
    /// async fn stubborn(info: TaskInfo) -> Result<u32, Failure> {
    ///     match info.attempt_index() {
    ///         0 | 1 => Err(Failure::transient("no answer")),
    ///         attempt => Ok(attempt),
    ///     }
    /// }
    ///
    /// let done = engine.run_handler(Submission::new("call"), stubborn).await;
    /// assert_eq!(done.result::<u32>().await?, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn attempt_index(&self) -> u32 {
        self.0.attempt_index
    }

    /// The name of this attempt: it stays the same over suspends and delays.
    pub fn attempt_id(&self) -> AttemptId {
        self.0.attempt_id
    }

    /// Counts the leases of the execution: a later one shuts out all before it.
    pub fn lease_epoch(&self) -> u64 {
        self.0.lease_epoch
    }

    /// Attempts that failed and were tried again.
    pub fn retry_count(&self) -> u32 {
        self.0.retry_count
    }

    /// Attempts whose worker was lost.
    pub fn reclaim_count(&self) -> u32 {
        self.0.reclaim_count
    }

    /// Why the attempt before this one failed.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::runtime::{Failure, TaskInfo};
    ///
    /// async fn learns(info: TaskInfo) -> Result<String, Failure> {
    ///     let before = info.previous_failure().ok_or("the disk is full")?;
    ///     Ok(before.reason.clone())
    /// }
    ///
    /// let done = engine.run_handler(Submission::new("write"), learns).await;
    /// assert_eq!(done.result::<String>().await?, "the disk is full");
    /// # Ok(())
    /// # }
    /// ```
    pub fn previous_failure(&self) -> Option<&PreviousFailure> {
        self.0.previous_failure.as_ref()
    }

    /// Outcomes and results of the members of its flow that it waited for, by the names of edges.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::Flow;
    /// use ff_sdk::runtime::TaskInfo;
    ///
    /// async fn print(info: TaskInfo) -> Option<String> {
    ///     let page = info.inputs().get("fetch")?.result.as_ref()?;
    ///     Some(String::from_utf8_lossy(&page.bytes).into_owned())
    /// }
    /// # ff_sdk::runtime::check_handler(print);
    ///
    /// let flow = Flow::new("report")
    ///     .step("fetch", Submission::new("fetch"))
    ///     .step("print", Submission::new("print")).after("fetch");
    /// # Ok(())
    /// # }
    /// ```
    pub fn inputs(&self) -> &BTreeMap<String, Input> {
        &self.0.extras.inputs
    }

    /// What the suspend before left for this part of the attempt.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::Suspension;
    /// use ff_sdk::runtime::{Failure, Outcome, TaskInfo};
    /// use std::time::Duration;
    ///
    /// /// Counts down with a day between, on whichever worker.
    /// async fn countdown(info: TaskInfo) -> Result<Outcome, Failure> {
    ///     let left = info.metadata().map_or(3, |bytes| bytes[0]);
    ///     if left == 0 {
    ///         return Ok(Outcome::None);
    ///     }
    ///     let day = Suspension::sleep(Duration::from_secs(86_400));
    ///     Ok(Outcome::suspend(day.metadata(vec![left - 1])))
    /// }
    ///
    /// let done = engine.run_handler(Submission::new("countdown"), countdown).await;
    /// engine.assert_completed(done.id()).await;
    /// assert_eq!(engine.elapsed(), Duration::from_secs(3 * 86_400));
    /// # Ok(())
    /// # }
    /// ```
    pub fn metadata(&self) -> Option<&Bytes> {
        self.0.extras.metadata.as_ref()
    }

    /// The signals that resumed this attempt, in the order in which they came; none if it was not
    /// resumed by signals. Bodies that were too large to come along are none here:
    /// [`Task::resume_signals`](super::Task::resume_signals) reads them.
    ///
    /// ```
    /// use ff_sdk::Suspension;
    /// use ff_sdk::runtime::{Failure, Outcome, TaskInfo};
    ///
    /// async fn deploy(info: TaskInfo) -> Result<Outcome, Failure> {
    ///     match info.resume_signals() {
    ///         [] => Ok(Outcome::suspend(Suspension::approval("go")?)),
    ///         [said, ..] => Ok(Outcome::json(&said.source_identity)?),
    ///     }
    /// }
    /// # ff_sdk::runtime::check_handler(deploy);
    /// ```
    pub fn resume_signals(&self) -> &[ResumeSignal] {
        &self.0.extras.resume_signals
    }

    /// When the execution ends, whether it is done or not.
    pub fn deadline_at(&self) -> Option<TimestampMs> {
        self.0.deadline_at
    }

    /// When this attempt ends, whether it is done or not.
    pub fn attempt_deadline_at(&self) -> Option<TimestampMs> {
        self.0.attempt_deadline_at
    }

    /// When the execution was submitted.
    pub fn created_at(&self) -> TimestampMs {
        self.0.created_at
    }

    /// The W3C trace context of whoever submitted it.
    pub fn trace_context(&self) -> Option<&str> {
        self.0.trace_context.as_deref()
    }

    /// The flow that it is a member of.
    pub fn flow_id(&self) -> Option<FlowId> {
        self.0.flow_id
    }

    /// Its name in that flow.
    pub fn member_name(&self) -> Option<&MemberName> {
        self.0.member_name.as_ref()
    }
}

impl fmt::Debug for TaskInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskInfo")
            .field("execution_id", &self.0.execution_id)
            .field("kind", &self.0.kind)
            .field("attempt_index", &self.0.attempt_index)
            .finish_non_exhaustive()
    }
}
