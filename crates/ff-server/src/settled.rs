//! Waiting for executions and flows to end, as long as a request is willing to wait.

use ff_core::error::EngineError;
use ff_core::id::{ExecutionId, FlowId};
use ff_core::read::{FlowSnapshot, Record};
use ff_engine::Awaited;

use crate::call::Call;
use crate::flows;

/// The record of an execution once it has ended, or as it is when the wait is over.
pub(crate) async fn record(call: &Call, id: ExecutionId) -> Result<Box<Record>, EngineError> {
    let look = || call.record(id);
    call.app.ends.until(Awaited::Execution(id), call.wait, look, |found| found.has_ended()).await
}

/// The same of a flow.
pub(crate) async fn flow(call: &Call, id: FlowId) -> Result<Box<FlowSnapshot>, EngineError> {
    let look = || flows::flow(call, id);
    call.app.ends.until(Awaited::Flow(id), call.wait, look, |found| found.state.is_terminal()).await
}
