//! Waitpoints, suspends and signals.

use ff_api::reading::Unreadable;
use ff_api::signal::{Approval, Closed, Remint, Signal, Signalled as SignalledForm};
use ff_api::suspend::{
    CreateWaitpoint, Suspend as SuspendForm, Suspended as SuspendedForm, Waitpoint,
};
use ff_api::worker::Reason;
use ff_core::error::EngineError;
use ff_core::id::ExecutionId;
use ff_core::operation::{
    CloseWaitpoint, CreatePendingWaitpoint, Decision, DeliverApproval, DeliverSignal, IssueToken,
    IssuedWaitpoint, Settled, Signalled, Suspend, Suspended, WaitpointRef,
};

use super::Asked;
use super::execution::{post, post_fenced};
use crate::exchange::Exchange;
use crate::http::Request;
use crate::link::{Link, path};

/// The path of what is done at a waitpoint.
fn at(id: ExecutionId, waitpoint: &WaitpointRef, verb: &str) -> Result<String, EngineError> {
    let waitpoint = match waitpoint {
        WaitpointRef::Id(id) => id.to_string(),
        WaitpointRef::Key(key) | WaitpointRef::Text(key) => key.to_string(),
    };
    path(&["executions", &id.to_string(), "waitpoints", &waitpoint, verb])
}

pub(crate) fn create(link: &Link, op: CreatePendingWaitpoint) -> Asked<IssuedWaitpoint> {
    let (id, fence) = (op.execution_id, op.fence);
    let request = post_fenced(link, id, "waitpoints", fence, CreateWaitpoint::from(op))?;
    Ok(Exchange::plain::<Waitpoint>(request))
}

pub(crate) fn close(link: &Link, op: CloseWaitpoint) -> Asked<Settled> {
    let (namespace, path) =
        (link.known.of(op.execution_id.uuid()), at(op.execution_id, &op.waitpoint, "close")?);
    let request = Request::post(path, &Reason { reason: op.reason });
    Ok(Exchange::form(request.namespace(namespace.as_ref()), |form: Closed, _| {
        match form.status.as_str() {
            "closed" => Ok(Settled::Done),
            "already_closed" => Ok(Settled::AlreadySatisfied),
            other => Err(Unreadable::new("status", other)),
        }
    }))
}

pub(crate) fn issue_token(link: &Link, op: &IssueToken) -> Asked<IssuedWaitpoint> {
    let (namespace, path) =
        (link.known.of(op.execution_id.uuid()), at(op.execution_id, &op.waitpoint, "token")?);
    let request = match &op.remint {
        None => Request::get(path),
        Some(remint) => Request::post(path, &Remint { token_ttl_ms: remint.token_ttl_ms }),
    };
    Ok(Exchange::plain::<Waitpoint>(request.namespace(namespace.as_ref())))
}

pub(crate) fn suspend(link: &Link, op: Suspend) -> Asked<Suspended> {
    let (id, fence) = (op.execution_id, op.fence);
    let request = post_fenced(link, id, "suspend", fence, SuspendForm::from(op))?;
    Ok(Exchange::form(request, |form: SuspendedForm, link| form.read(link.store())))
}

pub(crate) fn signal(link: &Link, op: DeliverSignal) -> Asked<Signalled> {
    let request = post(link, op.execution_id, "signal", &Signal::from(op))?;
    Ok(Exchange::plain::<SignalledForm>(request))
}

/// Who decides is told by the key: the operation's own word for it is not sent.
pub(crate) fn approve(link: &Link, op: DeliverApproval) -> Asked<Signalled> {
    let verb = match op.decision {
        Decision::Approve => "approve",
        Decision::Deny => "deny",
    };
    let (namespace, path) =
        (link.known.of(op.execution_id.uuid()), at(op.execution_id, &op.waitpoint, verb)?);
    let request = Request::post(path, &Approval::from(op)).namespace(namespace.as_ref());
    Ok(Exchange::plain::<SignalledForm>(request))
}
