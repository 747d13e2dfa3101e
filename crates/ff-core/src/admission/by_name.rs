//! Claims of executions by their names, and usage of one execution.

use super::UnderWay;
use crate::act::{self, TakeUp};
use crate::backend::{Backend, BackendExt};
use crate::errand;
use crate::error::{Code, EngineError};
use crate::id::{BudgetId, ExecutionId, LeaseId};
use crate::operation::{
    Applicant, ClaimExecution, ClaimResumedExecution, IssueGrantAndClaim, Operation,
    ReclaimExecution, ReportToAll, ReportUsage, TakenSlots, UsageReported,
};
use crate::read::ReadStanding;

/// A claim by name, with a slot of every quota policy that the execution stands under. A refusal
/// leaves a grant valid.
pub(crate) async fn take_up<B: Backend + ?Sized, O: ByName>(
    backend: &B,
    op: O,
) -> Result<O::Reply, EngineError> {
    if let Some(acts) = backend.acts() {
        return O::reply(act::whole(acts, TakeUp(op.into())).await?);
    }
    let execution_id = op.named();
    match backend.call(op.clone()).await {
        Err(error) if error.code() == Code::ConcurrencyLimitExceeded => {}
        done => {
            errand::carry_out_noted(backend).await;
            return done;
        }
    }
    let Some(found) = backend.ask(ReadStanding { execution_id }).await? else {
        return backend.call(op).await;
    };
    let applicant = Applicant { lease_id: op.lease_id(), ..found.applicant };
    let mut it = UnderWay::new(applicant, &found.held);
    while let Some(id) = it.left.next() {
        let reply = backend.apply(vec![it.check(id).into()]).await.pop();
        let reply = reply.unwrap_or_else(|| Err(EngineError::bug("no reply to a command")));
        if let Some(refusal) = it.note(id, reply)? {
            give_back(backend, &it).await;
            return Err(refusal.into());
        }
    }
    let slots = TakenSlots {
        lease_epoch: it.applicant.lease_epoch,
        quota_policy_ids: it.slots.clone(),
        places: it.places.clone(),
    };
    let done = backend.call(op.with_slots(slots)).await;
    errand::carry_out_noted(backend).await;
    // Whether a call that failed otherwise came through, a pending slot finds out later.
    if done.as_ref().is_err_and(|error| error.refusal().is_some()) {
        give_back(backend, &it).await;
    }
    done
}

/// Gives back what it asked for in vain; whoever waits for that comes at once.
async fn give_back<B: Backend + ?Sized>(backend: &B, it: &UnderWay) {
    let releases: Vec<_> = it.releases().collect();
    if !releases.is_empty() {
        backend.apply(releases).await;
        errand::carry_out_noted(backend).await;
    }
}

/// A claim that names its execution.
pub trait ByName: Operation + Clone {
    fn named(&self) -> ExecutionId;

    /// Of the lease that it makes.
    fn lease_id(&self) -> LeaseId;

    fn with_slots(self, slots: TakenSlots) -> Self;
}

macro_rules! by_name {
    ($($operation:ident),* $(,)?) => {$(
        impl ByName for $operation {
            fn named(&self) -> ExecutionId {
                self.execution_id
            }

            fn lease_id(&self) -> LeaseId {
                self.lease_id
            }

            fn with_slots(self, slots: TakenSlots) -> Self {
                Self { slots, ..self }
            }
        }
    )*};
}

by_name!(ClaimExecution, ClaimResumedExecution, IssueGrantAndClaim, ReclaimExecution);

/// Reports usage to every budget that an execution stands under.
pub(crate) async fn report_to_all<B: Backend + ?Sized>(
    backend: &B,
    report: ReportToAll,
) -> Result<Vec<(BudgetId, UsageReported)>, EngineError> {
    report.check()?;
    if let Some(acts) = backend.acts() {
        return act::whole(acts, report).await;
    }
    let execution_id = report.spender.execution_id;
    let found = backend.ask(ReadStanding { execution_id }).await?;
    let budget_ids = found.map(|found| found.applicant.standing.budget_ids).unwrap_or_default();
    let reports = budget_ids.iter().map(|id| report.to(*id).into()).collect();
    let replies = backend.apply(reports).await;
    errand::carry_out_noted(backend).await;
    let mut reported = Vec::with_capacity(budget_ids.len());
    for (budget_id, reply) in budget_ids.into_iter().zip(replies) {
        match reply.and_then(ReportUsage::reply) {
            Ok(reply) => reported.push((budget_id, reply)),
            // It is gone, and counts nothing.
            Err(error) if error.code() == Code::BudgetNotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(reported)
}

impl ReportToAll {
    fn to(&self, budget_id: BudgetId) -> ReportUsage {
        ReportUsage {
            budget_id,
            spender: self.spender,
            dimensions: self.dimensions.clone(),
            dedup_key: self.dedup_key.clone(),
            mode: self.mode,
        }
    }
}
