//! What an explanation needs to know besides the execution.

use super::draft::Halt;
use super::standing::{of_execution, of_lane};
use super::{Facts, flow, quota};
use crate::id::{BudgetId, DocumentId, QuotaPolicyId};
use crate::limits;
use crate::read::{Around, BudgetStatus, DescribeQuotaPolicy, LimitFound};
use crate::state::{Execution, LaneState, LimitId, Next, Phase, Runnable};
use crate::time::TimestampMs;

pub(super) fn around(
    facts: &impl Facts,
    execution: &Execution,
    lane: LaneState,
    now: TimestampMs,
) -> Result<Around, Halt> {
    let mut around =
        Around { lane, stopped: flow::stopped(facts, execution)?, ..Around::default() };
    if !lane.gives_claims() {
        around.lane_reason = lane_reason(facts, execution)?;
    }
    let Phase::Runnable(runnable) = &execution.phase else { return Ok(around) };
    if runnable.causes.waits_for_members() {
        around.upstreams = flow::waited_for(facts, execution)?;
    }
    around.limit = match &runnable.causes.admission {
        Some(block) => match block.by {
            Some(LimitId::Budget(id)) => budget(facts, id, now)?,
            Some(LimitId::Quota(id)) => quota(facts, id, (execution, runnable), now)?,
            None => None,
        },
        None if runnable.causes.is_empty() && runnable.live_grant(now).is_none() => {
            refusing(facts, (execution, runnable), now)?
        }
        None => None,
    };
    Ok(around)
}

/// What was said when its lane was paused.
fn lane_reason(facts: &impl Facts, execution: &Execution) -> Result<Option<String>, Halt> {
    let about = &execution.about;
    let document = facts.document(&DocumentId::lane(&about.namespace, &about.lane))?;
    let lane = document.as_ref().and_then(|document| document.lane());
    let reason = lane.map(|lane| lane.reason.clone());
    Ok(reason.filter(|reason| !reason.is_empty()))
}

/// The first limit that would refuse a claim, asked in the order in which a claim asks.
fn refusing(
    facts: &impl Facts,
    (execution, runnable): (&Execution, &Runnable),
    now: TimestampMs,
) -> Result<Option<LimitFound>, Halt> {
    let of_lane = of_lane(facts, &execution.about.namespace, &execution.about.lane)?;
    let standing = of_execution(facts, &of_lane, execution)?;
    for id in standing.budget_ids {
        let found = budget(facts, id, now)?;
        if found.as_ref().is_some_and(LimitFound::refuses) {
            return Ok(found);
        }
    }
    for id in standing.quota_policy_ids {
        let found = quota(facts, id, (execution, runnable), now)?;
        if found.as_ref().is_some_and(LimitFound::refuses) {
            return Ok(found);
        }
    }
    Ok(None)
}

fn budget(facts: &impl Facts, id: BudgetId, now: TimestampMs) -> Result<Option<LimitFound>, Halt> {
    let found = facts.document(&DocumentId::budget(id, &facts.settings().partitions))?;
    let status = found.and_then(|found| BudgetStatus::of(&found, now));
    Ok(status.map(|status| LimitFound::Budget(Box::new(status))))
}

fn quota(
    facts: &impl Facts,
    quota_policy_id: QuotaPolicyId,
    (execution, runnable): (&Execution, &Runnable),
    now: TimestampMs,
) -> Result<Option<LimitFound>, Halt> {
    let limit = limits::EXPLAIN_ITEMS;
    let query = DescribeQuotaPolicy { quota_policy_id, holders_from: 0, limit };
    let Some(policy) = quota::describe(facts, &query, now)? else { return Ok(None) };
    let opens_attempt = runnable.next != Next::Resume;
    let (verdict, in_window) =
        quota::verdict(facts, quota_policy_id, (execution.id, opens_attempt), now)?;
    Ok(Some(LimitFound::Quota { policy, verdict, in_window }))
}
