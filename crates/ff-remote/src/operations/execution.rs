//! Executions: submitted, and what their workers say of them.

use ff_api::execution::PutAside;
use ff_api::fence::Fence;
use ff_api::lease::{Progress, RenewLease, Renewed as RenewedForm};
use ff_api::outcome::{self, Completed as CompletedForm, Failed as FailedForm};
use ff_api::submit::{Submit as SubmitForm, SubmitReply};
use ff_core::error::EngineError;
use ff_core::id::ExecutionId;
use ff_core::operation::{
    Complete, Completed, Delay, Delayed, Fail, Failed, Progressed, Renew, Renewed, Submit,
    Submitted, UpdateProgress, WaitChildren, WaitingChildren,
};
use serde::Serialize;

use super::Asked;
use crate::exchange::Exchange;
use crate::http::Request;
use crate::link::{Link, of_execution, path};

/// A body with the fields of a fence.
#[derive(Serialize)]
struct Fenced<F> {
    #[serde(flatten)]
    fence: Fence,
    #[serde(flatten)]
    form: F,
}

/// A call about an execution, in the namespace that it is in.
pub(super) fn post(
    link: &Link,
    id: ExecutionId,
    verb: &str,
    body: &impl Serialize,
) -> Result<Request, EngineError> {
    let namespace = link.known.of(id.uuid());
    Ok(Request::post(of_execution(id, verb)?, body).namespace(namespace.as_ref()))
}

/// The same, of somebody who shows a fence.
pub(super) fn post_fenced(
    link: &Link,
    id: ExecutionId,
    verb: &str,
    fence: impl Into<Fence>,
    form: impl Serialize,
) -> Result<Request, EngineError> {
    post(link, id, verb, &Fenced { fence: fence.into(), form })
}

pub(crate) fn submit(_: &Link, op: Submit) -> Asked<Submitted> {
    let namespace = op.namespace.clone();
    let request = Request::post(path(&["executions"])?, &SubmitForm::from(op));
    let request = request.namespace(Some(&namespace));
    Ok(Exchange::form(request, move |form: SubmitReply, link| {
        link.known.note(form.execution_id.uuid(), &namespace);
        form.try_into()
    }))
}

pub(crate) fn renew(link: &Link, op: &Renew) -> Asked<Renewed> {
    let form = RenewLease { ttl_ms: op.ttl_ms };
    let request = post_fenced(link, op.execution_id, "renew", op.fence, form)?;
    Ok(Exchange::plain::<RenewedForm>(request))
}

pub(crate) fn progress(link: &Link, op: UpdateProgress) -> Asked<Progressed> {
    let form = Progress { pct: op.pct.into(), message: op.message };
    let request = post_fenced(link, op.execution_id, "progress", op.fence, form)?;
    Ok(Exchange::answer(request, |_| Ok(Progressed)))
}

pub(crate) fn complete(link: &Link, op: Complete) -> Asked<Completed> {
    let (id, authority) = (op.execution_id, op.authority);
    let form = outcome::Complete::from(op);
    let request = post_fenced(link, id, "complete", authority, form)?;
    Ok(Exchange::form(request, |form: CompletedForm, link| {
        let completed = form.read(link.store())?;
        completed.tasks.iter().for_each(|task| link.note_task(task));
        Ok(completed)
    }))
}

pub(crate) fn fail(link: &Link, op: Fail) -> Asked<Failed> {
    let (id, authority) = (op.execution_id, op.authority);
    let request = post_fenced(link, id, "fail", authority, outcome::Fail::from(op))?;
    Ok(Exchange::plain::<FailedForm>(request))
}

pub(crate) fn delay(link: &Link, op: Delay) -> Asked<Delayed> {
    let (id, authority) = (op.execution_id, op.authority);
    let request = post_fenced(link, id, "delay", authority, outcome::Delay::from(op))?;
    Ok(Exchange::plain::<PutAside>(request))
}

pub(crate) fn wait_children(link: &Link, op: WaitChildren) -> Asked<WaitingChildren> {
    let (id, authority) = (op.execution_id, op.authority);
    let form = outcome::WaitChildren::from(op);
    let request = post_fenced(link, id, "wait-children", authority, form)?;
    Ok(Exchange::plain::<PutAside>(request))
}
