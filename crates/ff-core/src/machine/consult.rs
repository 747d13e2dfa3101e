//! Questions about things that they name: facts answer them, as they answer rules.

use std::sync::Arc;

use super::around::around;
use super::draft::{Halt, existing};
use super::extras::settled;
use super::standing::{of_execution, of_lane};
use super::{Facts, Needs, budget, extras, flow, quota};
use crate::error::Refusal;
use crate::id::{DocumentId, ExecutionId, Namespace};
use crate::read::{
    Answer, BudgetStatus, ListedWaitpoint, NamespaceSnapshot, Query, Record, StandingFound, explain,
};
use crate::state::{ApiKey, Bulk, Execution, NamespaceRecord, Part, Phase, Surroundings};
use crate::time::TimestampMs;

/// The answer, or none if the question is about more than what it names. It asks for a fact before
/// it looks at `now`: a store whose clock comes with what it reads needs to know it only then.
pub fn consult(
    facts: &impl Facts,
    query: &Query,
    now: TimestampMs,
) -> Result<Result<Option<Answer>, Refusal>, Needs> {
    settled(answer(facts, query, now))
}

fn answer(facts: &impl Facts, query: &Query, now: TimestampMs) -> Result<Option<Answer>, Halt> {
    Ok(Some(match query {
        Query::Describe(q) => {
            let found = surrounded(facts, q.execution_id)?;
            let record = found.map(|(found, around)| Record::of(&found, now).amid(around));
            Answer::Describe(record.map(Box::new))
        }
        Query::ReadState(q) => {
            let found = surrounded(facts, q.execution_id)?;
            Answer::ReadState(found.map(|(found, around)| found.state_vector(now).amid(around)))
        }
        Query::Explain(q) => {
            let Some((found, Surroundings { lane, .. })) = surrounded(facts, q.execution_id)?
            else {
                return Ok(Some(Answer::Explain(None)));
            };
            let around = around(facts, &found, lane, now)?;
            Answer::Explain(Some(Box::new(explain(&found, &around, now))))
        }
        Query::ListWaitpoints(q) => {
            let found = existing(facts, q.execution_id)?;
            Answer::ListWaitpoints(ListedWaitpoint::all_of(&found, now))
        }
        Query::ListSignals(q) => {
            let found = existing(facts, q.execution_id)?;
            Answer::ListSignals(extras::list_signals(facts, &found, q)?)
        }
        Query::ObserveSignals(q) => {
            let found = existing(facts, q.execution_id)?;
            Answer::ObserveSignals(extras::observe_signals(facts, &found, &q.fence)?)
        }
        Query::ListFlowMembers(q) => Answer::ListFlowMembers(flow::list_members(facts, q)?),
        Query::ListFlowEdges(q) => Answer::ListFlowEdges(flow::list_edges(facts, q)?),
        Query::DescribeEdge(q) => Answer::DescribeEdge(flow::describe_edge(facts, q, now)?),
        Query::EvaluateEligibility(q) => Answer::EvaluateEligibility(flow::eligibility(facts, q)?),
        Query::ReadStanding(q) => {
            let Some(found) = facts.execution(q.execution_id)? else {
                return Ok(Some(Answer::ReadStanding(None)));
            };
            Answer::ReadStanding(Some(standing(facts, &found)?))
        }
        Query::ReadLaneStanding(q) => {
            Answer::ReadLaneStanding(of_lane(facts, &q.namespace, &q.lane)?)
        }
        Query::DescribeNamespace(q) => Answer::DescribeNamespace(namespace(facts, &q.namespace)?),
        Query::GetKey(q) => {
            let found = facts.document(&DocumentId::key(&q.key_id))?;
            let key = found.as_ref().and_then(|found| ApiKey::of(&found.body));
            Answer::GetKey(key.cloned().map(Box::new))
        }
        Query::GetBulk(q) => {
            let found = facts.document(&DocumentId::bulk(q.bulk_id))?;
            let bulk = found.as_ref().and_then(|found| Bulk::of(&found.body));
            Answer::GetBulk(bulk.cloned().map(Box::new))
        }
        _ => return of_limits(facts, query, now),
    }))
}

/// Questions about budgets and quota policies.
fn of_limits(facts: &impl Facts, query: &Query, now: TimestampMs) -> Result<Option<Answer>, Halt> {
    Ok(Some(match query {
        Query::GetBudgetStatus(q) => {
            let id = DocumentId::budget(q.budget_id, &facts.settings().partitions);
            let found = facts.document(&id)?;
            let status = found.and_then(|found| BudgetStatus::of(&found, now));
            Answer::GetBudgetStatus(status.map(Box::new))
        }
        Query::ReadLedger(q) => Answer::ReadLedger(budget::read_ledger(facts, q, now)?),
        Query::ReadQuotaLimits(q) => {
            let id = DocumentId::quota_policy(q.quota_policy_id, &facts.settings().partitions);
            let found = facts.document(&id)?;
            let policy = found.as_ref().and_then(|found| found.quota_policy());
            Answer::ReadQuotaLimits(policy.map(|policy| policy.spec))
        }
        Query::DescribeQuotaPolicy(q) => {
            Answer::DescribeQuotaPolicy(quota::describe(facts, q, now)?)
        }
        _ => return Ok(None),
    }))
}

fn standing(facts: &impl Facts, found: &Execution) -> Result<Box<StandingFound>, Halt> {
    let of_lane = of_lane(facts, &found.about.namespace, &found.about.lane)?;
    let standing = of_execution(facts, &of_lane, found)?;
    Ok(Box::new(StandingFound::of(found, standing)))
}

/// What was said of a namespace, if anything was.
fn namespace(facts: &impl Facts, name: &Namespace) -> Result<Box<NamespaceSnapshot>, Halt> {
    let found = facts.document(&DocumentId::namespace(name))?;
    let known = found.as_ref().and_then(|found| found.about_namespace());
    let record = known.cloned().unwrap_or_else(|| NamespaceRecord::new(name));
    let revision = found.as_ref().map_or(0, |found| found.revision);
    Ok(Box::new(NamespaceSnapshot { record, revision }))
}

/// An execution and what stands around it.
fn surrounded(
    facts: &impl Facts,
    id: ExecutionId,
) -> Result<Option<(Arc<Execution>, Surroundings)>, Halt> {
    let Some(found) = facts.execution(id)? else { return Ok(None) };
    let lane = facts.lane_state(&found.about.namespace, &found.about.lane)?;
    let member = found.member.as_ref().filter(|_| matches!(found.phase, Phase::Runnable(_)));
    let flow_stops = match member {
        Some(member) => {
            let flow = facts.document(&DocumentId::flow_in(id.partition(), member.flow_id))?;
            flow.is_some_and(|flow| Surroundings::by(&flow).flow_stops)
        }
        None => false,
    };
    Ok(Some((found, Surroundings { lane, flow_stops })))
}
