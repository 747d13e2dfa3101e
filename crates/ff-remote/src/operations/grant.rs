//! Grants, and claims by name. The server asks quota policies with the claim.

use ff_api::grant::{
    ClaimByName, ClaimForWorker as ForWorkerForm, Grant, Reclaim, Reclaimed as ReclaimedForm,
};
use ff_api::task::Task as TaskForm;
use ff_core::error::Code;
use ff_core::id::ExecutionId;
use ff_core::operation::{
    ClaimExecution, ClaimForWorker, ClaimGrant, ClaimResumedExecution, IssueGrantAndClaim,
    IssueReclaimGrant, IssuedReclaimGrant, ReclaimExecution, Reclaimed, Task,
};

use super::Asked;
use super::execution::post;
use crate::exchange::{Exchange, unreadable};
use crate::http::{Answer, Request};
use crate::link::{Link, of};

fn task(link: &Link, id: ExecutionId, verb: &str, form: &ClaimByName) -> Asked<Box<Task>> {
    let request = post(link, id, verb, form)?;
    Ok(Exchange::form(request, |form: TaskForm, link| {
        let task = form.read(link.store())?;
        link.note_task(&task);
        Ok(Box::new(task))
    }))
}

pub(crate) fn claim(link: &Link, op: ClaimExecution) -> Asked<Box<Task>> {
    task(link, op.execution_id, "claim", &op.into())
}

/// The route goes on with an open attempt by itself.
pub(crate) fn claim_resumed(link: &Link, op: ClaimResumedExecution) -> Asked<Box<Task>> {
    task(link, op.execution_id, "claim", &op.into())
}

pub(crate) fn grant_and_claim(link: &Link, op: IssueGrantAndClaim) -> Asked<Box<Task>> {
    task(link, op.execution_id, "grant-and-claim", &op.into())
}

pub(crate) fn reclaim(link: &Link, op: IssueReclaimGrant) -> Asked<IssuedReclaimGrant> {
    let request = post(link, op.execution_id, "reclaim", &Reclaim::from(op))?;
    Ok(Exchange::plain::<ReclaimedForm>(request))
}

/// The route takes grants of every kind. It has no cap on reclaims of its own: none may be asked for.
pub(crate) fn use_reclaim(link: &Link, op: ReclaimExecution) -> Asked<Reclaimed> {
    let task = task(link, op.execution_id, "claim", &op.into())?.map(Reclaimed::Reclaimed);
    Ok(task.or_else(|error| match error.code() {
        Code::InvalidClaimGrant => Ok(Reclaimed::GrantNotFound),
        Code::ExecutionNotLeaseable
        | Code::ExecutionNotActive
        | Code::ExecutionNotEligible
        | Code::LeaseConflict => Ok(Reclaimed::NotReclaimable { detail: error.to_string() }),
        _ => Err(error),
    }))
}

/// The next execution for a worker; an answer without a body says that there is none.
pub(crate) fn for_worker(op: ClaimForWorker) -> Asked<Option<ClaimGrant>> {
    let namespace = op.namespace.clone();
    let path = of("workers", &op.worker_id, "claim")?;
    let request = Request::post(path, &ForWorkerForm::from(op)).namespace(Some(&namespace));
    let read = |answer: Answer| match answer.status {
        204 => Ok(None),
        _ => {
            let grant: Grant = answer.form().map_err(unreadable)?;
            grant.try_into().map(Some).map_err(unreadable)
        }
    };
    Ok(Exchange::answer(request, read))
}
