//! Questions about things that they name: facts answer them, as they answer rules.

use super::draft::{Halt, existing};
use super::extras::settled;
use super::{Facts, Needs, extras, flow, quota};
use crate::error::Refusal;
use crate::id::DocumentId;
use crate::read::{Answer, BudgetStatus, ListedWaitpoint, Query, Record, explain};
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
            let found = facts.execution(q.execution_id)?;
            Answer::Describe(found.map(|found| Box::new(Record::of(&found, now))))
        }
        Query::ReadState(q) => {
            let found = facts.execution(q.execution_id)?;
            Answer::ReadState(found.map(|found| found.state_vector(now)))
        }
        Query::Explain(q) => {
            let found = facts.execution(q.execution_id)?;
            Answer::Explain(found.map(|found| explain(&found, now)))
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
        Query::GetBudgetStatus(q) => {
            let id = DocumentId::budget(q.budget_id, &facts.settings().partitions);
            let found = facts.document(&id)?;
            let status = found.and_then(|found| BudgetStatus::of(&found, now));
            Answer::GetBudgetStatus(status.map(Box::new))
        }
        Query::ReadQuotaLimits(q) => {
            let id = DocumentId::quota_policy(q.quota_policy_id, &facts.settings().partitions);
            let found = facts.document(&id)?;
            let policy = found.as_ref().and_then(|found| found.quota_policy());
            Answer::ReadQuotaLimits(policy.map(|policy| policy.spec))
        }
        Query::DescribeQuotaPolicy(q) => Answer::DescribeQuotaPolicy(quota::describe(facts, q)?),
        _ => return Ok(None),
    }))
}
