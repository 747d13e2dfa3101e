//! The guard of flows: a flow of another namespace, or with a member on a lane that the caller's key is
//! not for, is not there.

use ff_core::error::{Code, EngineError, Refusal};
use ff_core::id::FlowId;
use ff_core::limits;
use ff_core::read::{DescribeFlow, FlowSnapshot, ListFlowMembers};

use crate::call::Call;

fn not_found() -> EngineError {
    Refusal::new(Code::FlowNotFound, "there is no such flow").into()
}

/// A flow that is there for the caller. For a key without lanes its members are not looked at.
pub(crate) async fn flow(call: &Call, flow_id: FlowId) -> Result<Box<FlowSnapshot>, EngineError> {
    let found = call.ask(DescribeFlow { flow_id }).await?.ok_or_else(not_found)?;
    if found.namespace != call.namespace {
        return Err(not_found());
    }
    if call.caller.lanes().is_some() {
        check_members(call, flow_id).await?;
    }
    Ok(found)
}

async fn check_members(call: &Call, flow_id: FlowId) -> Result<(), EngineError> {
    let (mut from, limit) = (Some(0), limits::PAGE_MAX);
    while let Some(at) = from {
        let page = call.ask(ListFlowMembers { flow_id, from: at, limit }).await?;
        if !page.items.iter().all(|member| call.caller.serves(&member.lane)) {
            return Err(not_found());
        }
        from = page.next;
    }
    Ok(())
}
