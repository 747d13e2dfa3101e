//! What an execution stands under: its own budgets and quotas, and those of its flow, its lane and
//! its namespace.

use super::draft::Halt;
use super::{Facts, Needs};
use crate::error::{Code, Refusal};
use crate::id::{BudgetId, DocumentId, LaneId, Namespace};
use crate::state::{Attached, Execution, Standing};

/// What every execution of a lane stands under.
pub(super) fn of_lane(
    facts: &impl Facts,
    namespace: &Namespace,
    lane: &LaneId,
) -> Result<Standing, Needs> {
    let mut needs = Needs::default();
    let record = needs.found(facts.document(&DocumentId::namespace(namespace)));
    let lane = needs.found(facts.document(&DocumentId::lane(namespace, lane)));
    needs.into_result()?;
    let record = record.as_ref().and_then(|found| found.about_namespace());
    let lane = lane.as_ref().and_then(|found| found.lane());
    let mut standing = Standing::default();
    standing.add(record.map(|record| &record.attached));
    standing.add(lane.map(|lane| &lane.attached));
    Ok(standing)
}

/// All that applies to an execution, in the order in which it is asked.
pub fn of_execution(
    facts: &impl Facts,
    of_lane: &Standing,
    execution: &Execution,
) -> Result<Standing, Needs> {
    let mut standing = of_lane.clone();
    if let Some(member) = &execution.member {
        let id = DocumentId::flow_in(execution.id.partition(), member.flow_id);
        let flow = facts.document(&id)?;
        standing.add(flow.as_ref().and_then(|found| found.flow()).map(|flow| &flow.attached));
    }
    standing.add(Some(&execution.policy().attached));
    Ok(standing)
}

/// Refuses ids that nothing in the namespace bears. What is kept as it was may have gone meanwhile.
pub(super) fn check_attached(
    facts: &impl Facts,
    namespace: &Namespace,
    attached: &Attached,
    kept: &Attached,
) -> Result<(), Halt> {
    let partitions = facts.settings().partitions;
    let mut needs = Needs::default();
    let mut lacking = None;
    let is_new = |id: &&BudgetId| !kept.budget_ids.contains(id);
    let budgets = attached.budget_ids.iter().filter(is_new).map(|id| {
        let refusal = (Code::BudgetNotFound, "budget_ids", format!("no budget {id}"));
        (DocumentId::budget(*id, &partitions), refusal)
    });
    let quota = attached.quota_policy_id.filter(|id| kept.quota_policy_id != Some(*id));
    let quotas = quota.iter().map(|id| {
        let detail = format!("no quota policy {id}");
        let refusal = (Code::QuotaPolicyNotFound, "quota_policy_id", detail);
        (DocumentId::quota_policy(*id, &partitions), refusal)
    });
    for (id, refusal) in budgets.chain(quotas) {
        match facts.document(&id) {
            Ok(Some(found)) if found.namespace() == namespace => {}
            Ok(_) => lacking = lacking.or(Some(refusal)),
            Err(more) => needs.merge(more),
        }
    }
    needs.into_result()?;
    match lacking {
        Some((code, field, detail)) => Err(Refusal::at(code, field, detail).into()),
        None => Ok(()),
    }
}
