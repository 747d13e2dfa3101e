//! The guard of flows: a flow of another namespace, or with a member on a lane that the caller's key is
//! not for, is not there.

use ff_core::error::{Code, EngineError, Refusal};
use ff_core::id::FlowId;
use ff_core::limits;
use ff_core::read::{DescribeFlow, FlowSnapshot, ListFlowMembers};

use crate::call::Call;
use crate::namespaces;

const MISSING: (Code, &str) = (Code::FlowNotFound, "flow");

/// A flow that is there for the caller. For a key without lanes its members are not looked at.
pub(crate) async fn flow(call: &Call, flow_id: FlowId) -> Result<Box<FlowSnapshot>, EngineError> {
    let found = call.ask(DescribeFlow { flow_id }).await?;
    let found = namespaces::own(found, &call.namespace, |flow| &flow.namespace, MISSING)?;
    if serves_members(call, flow_id).await? { Ok(found) } else { Err(missing()) }
}

fn missing() -> EngineError {
    Refusal::new(MISSING.0, format!("there is no such {}", MISSING.1)).into()
}

/// Whether the caller's key is for the lanes of all members.
pub(crate) async fn serves_members(call: &Call, flow_id: FlowId) -> Result<bool, EngineError> {
    let (mut from, limit) = (call.caller.lanes().map(|_| 0), limits::PAGE_MAX);
    while let Some(at) = from {
        let page = call.ask(ListFlowMembers { flow_id, from: at, limit }).await?;
        if !page.items.iter().all(|member| call.caller.serves(&member.lane)) {
            return Ok(false);
        }
        from = page.next;
    }
    Ok(true)
}
