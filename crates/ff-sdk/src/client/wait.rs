//! Waiting for executions and flows to end, without asking again and again.

use std::time::Duration;

use ff_core::backend::BackendExt as _;
use ff_core::error::{Code, EngineError, Refusal};
use ff_core::id::{ExecutionId, FlowId};
use ff_core::read::{Describe, DescribeFlow, FlowSnapshot, Record};
use ff_engine::Awaited;
use tokio::time::Instant;

use super::{Client, Finished};
use crate::error::{SdkError, is_fault};
use crate::outage::Pauses;
use crate::patience::within;

/// One look ahead; a longer wait is several.
const LOOK: Duration = Duration::from_secs(3600);

impl Client {
    /// Waits until an execution has ended; the store tells when. Goes on over faults of the store
    /// until the time is up.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use std::time::Duration;
    ///
    /// let greeting = client.submit(Submission::new("greet")).await?;
    /// client.cancel(greeting.id(), "not today").await?;
    /// let finished = client.wait_for_outcome(greeting.id(), Duration::from_secs(10)).await?;
    /// assert_eq!(finished.reason(), Some("not today"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`EngineError::Timeout`] when it has not ended in time, and `execution_not_found`.
    pub async fn wait_for_outcome(
        &self,
        execution_id: ExecutionId,
        timeout: Duration,
    ) -> Result<Finished, SdkError> {
        let look = || self.look_at(execution_id);
        let awaited = Awaited::Execution(execution_id);
        let record = self.wait_until(awaited, timeout, look, |it| it.has_ended()).await?;
        Finished::of(record)
    }

    /// The same for a flow: until its last member has ended.
    pub(super) async fn wait_until_flow(
        &self,
        flow_id: FlowId,
        timeout: Duration,
    ) -> Result<Box<FlowSnapshot>, SdkError> {
        let look = || self.look_at_flow(flow_id);
        let awaited = Awaited::Flow(flow_id);
        self.wait_until(awaited, timeout, look, |it| it.state.is_terminal()).await
    }

    pub(super) async fn look_at(&self, id: ExecutionId) -> Result<Box<Record>, EngineError> {
        let asked = self.backend().ask(Describe { execution_id: id });
        let found = within("describe_execution", asked).await?;
        let missing = || {
            let detail = format!("no execution {id}");
            Refusal::at(Code::ExecutionNotFound, "execution_id", detail)
        };
        Ok(found.ok_or_else(missing)?)
    }

    pub(super) async fn look_at_flow(&self, id: FlowId) -> Result<Box<FlowSnapshot>, EngineError> {
        let asked = self.backend().ask(DescribeFlow { flow_id: id });
        let found = within("describe_flow", asked).await?;
        let missing = || Refusal::at(Code::FlowNotFound, "flow_id", format!("no flow {id}"));
        Ok(found.ok_or_else(missing)?)
    }

    async fn wait_until<T, F>(
        &self,
        awaited: Awaited,
        timeout: Duration,
        look: impl Fn() -> F,
        has_ended: impl Fn(&T) -> bool,
    ) -> Result<T, SdkError>
    where
        F: Future<Output = Result<T, EngineError>>,
    {
        let (begun, mut pauses) = (Instant::now(), Pauses::default());
        loop {
            let left = timeout.saturating_sub(begun.elapsed());
            let waiting = &self.waiting.ends;
            match waiting.until(awaited, left.min(LOOK), &look, &has_ended).await {
                Ok(found) if has_ended(&found) => return Ok(found),
                Ok(_) if self.waiting.is_over() => {
                    return Err(EngineError::unavailable("the client was closed").into());
                }
                Ok(_) if left > LOOK => {}
                Ok(_) => return Err(not_yet(awaited, timeout).into()),
                Err(error) if is_fault(&error) && !left.is_zero() => {
                    tokio::time::sleep(pauses.next().min(left)).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn not_yet(awaited: Awaited, timeout: Duration) -> EngineError {
    let (what, ms) = match awaited {
        Awaited::Execution(id) => (id.to_string(), timeout.as_millis()),
        Awaited::Flow(id) => (format!("flow {id}"), timeout.as_millis()),
    };
    EngineError::Timeout { detail: format!("{what} has not ended within {ms} ms") }
}
