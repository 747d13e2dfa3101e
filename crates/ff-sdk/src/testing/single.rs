//! One piece of work in a test's hands: as a task, or run by a handler.

use ff_core::backend::BackendExt as _;
use ff_core::capability::Capabilities;
use ff_core::id::LaneId;
use ff_core::operation::IssueClaimGrant;
use tokio_util::sync::CancellationToken;

use super::TestEngine;
use super::engine::must;
use crate::client::{Execution, Submission};
use crate::config::{WorkerConfig, parse};
use crate::runtime::{Handler, WorkerRuntime};
use crate::task::ClaimedTask;
use crate::worker::FlowFabricWorker;

/// The name of the workers that are made here.
const NAME: &str = "test";
/// How long work is set aside between its grant and its claim, which follows at once.
const ASIDE_MS: u64 = 10_000;

impl TestEngine {
    /// Submits work and claims it, with a worker of its own that can do what it requires: for tests
    /// of code that is given a task.
    ///
    /// ```
    /// use ff_sdk::testing::TestEngine;
    /// use ff_sdk::{ClaimedTask, EndError, Submission};
    ///
    /// /// What is tested.
    /// async fn greet(task: ClaimedTask) -> Result<(), EndError> {
    ///     let name = String::from_utf8_lossy(task.input_payload()).into_owned();
    ///     task.complete(Some(format!("hello {name}").into())).await
    /// }
    ///
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = TestEngine::start().await;
    /// let task = engine.claimed(Submission::new("greet").payload("Ada")).await;
    /// let greeting = engine.client().execution(task.execution_id());
    /// greet(task).await?;
    /// assert_eq!(&greeting.result_bytes().await?[..], b"hello Ada");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When it cannot be claimed now: it is delayed, held, or a limit keeps it back.
    pub async fn claimed(&self, submission: Submission) -> ClaimedTask {
        let worker = self.worker_for(&submission).await;
        let lane: LaneId = must("read the lane", parse("lane", submission.lane_name()));
        let capabilities = Capabilities::new(submission.required());
        let instance = parse("worker_instance_id", worker.worker_instance_id());
        let submitted = must("submit", self.client().submit(submission).await);
        let aside = IssueClaimGrant {
            execution_id: submitted.id(),
            worker_id: must("name its worker", parse("worker_id", NAME)),
            worker_instance_id: must("name its worker", instance),
            lane: lane.clone(),
            capabilities: must("read capabilities", capabilities),
            grant_ttl_ms: ASIDE_MS,
        };
        let grant = must("set the work aside", self.inner.store.call(aside).await);
        must("claim the work", worker.claim_from_grant(&lane, &grant).await)
    }

    /// Submits work and runs it by a handler, as a [`WorkerRuntime`] does, until all is
    /// [idle](Self::run_until_idle): retries, delays and timeouts happen on the way. Gives the
    /// execution as it stands then, ended or suspended.
    ///
    /// ```
    /// use ff_sdk::Submission;
    /// use ff_sdk::runtime::Payload;
    /// use ff_sdk::testing::TestEngine;
    ///
    /// /// What is tested.
    /// async fn greet(name: Payload<String>) -> String {
    ///     format!("hello {}", *name)
    /// }
    ///
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let engine = TestEngine::start().await;
    /// let greeting = engine.run_handler(Submission::new("greet").json("Ada")?, greet).await;
    /// assert_eq!(greeting.result::<String>().await?, "hello Ada");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A handler that needs [`Data`](crate::runtime::Data) or stands behind layers is tested with a
    /// runtime of its own, over [`Self::worker`].
    ///
    /// # Panics
    ///
    /// As [`Self::run_until_idle`]; when the submission is wrong.
    pub async fn run_handler<H, Args>(&self, submission: Submission, handler: H) -> Execution
    where
        H: Handler<Args>,
        Args: 'static,
    {
        let worker = self.worker_for(&submission).await;
        let instance = parse("worker_instance_id", worker.worker_instance_id());
        // Its first claim may be late; the clock waits for it.
        self.inner.bench.expect(must("name its worker", instance));
        let runtime = WorkerRuntime::new(worker).on(submission.kind(), handler);
        let stop = CancellationToken::new();
        let running = tokio::spawn(runtime.run(stop.clone().cancelled_owned()));
        let submitted = must("submit", self.client().submit(submission).await);
        self.run_until_idle().await;
        stop.cancel();
        must("run the handler", must("wait for the handler", running.await));
        submitted
    }

    async fn worker_for(&self, submission: &Submission) -> FlowFabricWorker {
        let capabilities = submission.required();
        let config = WorkerConfig { capabilities, ..WorkerConfig::new(NAME) };
        self.worker(config.lane(submission.lane_name())).await
    }
}
