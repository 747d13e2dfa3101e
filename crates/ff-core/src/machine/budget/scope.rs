//! Where a budget is attached by its scope.

use super::super::Facts;
use super::super::document::DocumentDraft;
use super::super::draft::Halt;
use super::super::step::Step;
use crate::error::{Code, Refusal};
use crate::id::BudgetId;
use crate::limits;
use crate::operation::{AttachBudget, CreateBudget, Settled};
use crate::state::{Attached, BudgetScope, Flow, Lane, NamespaceRecord};
use crate::time::TimestampMs;

/// Refuses a scope that is not there, or that stands under as many as it may.
pub(super) fn check(facts: &impl Facts, op: &CreateBudget) -> Result<(), Halt> {
    let partitions = &facts.settings().partitions;
    let Some(id) = op.scope.document(&op.namespace, partitions) else { return Ok(()) };
    let found = facts.document(&id)?;
    if let BudgetScope::Flow(flow) = &op.scope
        && found.as_ref().is_none_or(|found| *found.namespace() != op.namespace)
    {
        return Err(Refusal::at(Code::FlowNotFound, "scope_id", format!("no flow {flow}")).into());
    }
    let attached = found.as_ref().and_then(|found| found.attached());
    if attached.is_some_and(|attached| attached.budget_ids.len() >= limits::BUDGETS_ATTACHED) {
        let most = limits::BUDGETS_ATTACHED;
        let detail = format!("{most} budgets are attached there, which is the most");
        return Err(Refusal::at(Code::BudgetAttachConflict, "scope_id", detail).into());
    }
    Ok(())
}

/// Attaches a budget to a flow, a lane or a namespace.
pub(in super::super) fn attach(
    facts: &impl Facts,
    op: &AttachBudget,
    now: TimestampMs,
) -> Result<Step<Settled>, Halt> {
    let partitions = &facts.settings().partitions;
    let Some(id) = op.scope.document(&op.namespace, partitions) else {
        return Ok(Step::unchanged(Settled::AlreadySatisfied));
    };
    match &op.scope {
        BudgetScope::Flow(flow) => {
            let Some(found) = facts.document(&id)? else {
                let detail = format!("no flow {flow}");
                return Err(Refusal::at(Code::FlowNotFound, "scope_id", detail).into());
            };
            let mut draft = DocumentDraft::<Flow>::of(found, now)?;
            let reply = add(&mut draft.body.attached, op.budget_id)?;
            Ok(draft.answer(reply))
        }
        BudgetScope::Lane(lane) => {
            let fresh = || Lane::new(&op.namespace, lane);
            let mut draft = DocumentDraft::open(facts, id, fresh, now)?;
            let reply = add(&mut draft.body.attached, op.budget_id)?;
            Ok(draft.answer(reply))
        }
        BudgetScope::Namespace(_) | BudgetScope::Custom(_) => {
            let fresh = || NamespaceRecord::new(&op.namespace);
            let mut draft = DocumentDraft::open(facts, id, fresh, now)?;
            let reply = add(&mut draft.body.attached, op.budget_id)?;
            Ok(draft.answer(reply))
        }
    }
}

fn add(attached: &mut Attached, budget_id: BudgetId) -> Result<Settled, Refusal> {
    if attached.budget_ids.contains(&budget_id) {
        return Ok(Settled::AlreadySatisfied);
    }
    attached.add([budget_id]);
    attached.check()?;
    Ok(Settled::Done)
}
