//! The rules of admission: blocked, and unblocked again.

use super::Facts;
use super::draft::{Draft, Halt, existing};
use super::standing::{of_execution, of_lane};
use super::step::Step;
use crate::error::{Code, Refusal};
use crate::event::{EventData, EventKind};
use crate::operation::{
    AdmissionVoided, BlockForAdmission, EndForBudget, SettleSlots, Settled, Unblock, Unblocked,
    VoidAdmission, admission_reason,
};
use crate::state::{
    AdmissionBlock, AdmissionReason, CancelSource, Cancellation, Execution, Failure, FailureClass,
    Grant, GrantKind, HardAction, LimitId, Phase, Runnable,
};
use crate::time::TimestampMs;

/// Why executions end that run under a budget which is used up.
const BUDGET_EXCEEDED: &str = "budget_exceeded";

pub(super) fn block(
    facts: &impl Facts,
    op: &BlockForAdmission,
    now: TimestampMs,
) -> Result<Step<Settled>, Halt> {
    let reason = admission_reason(op.reason)?;
    let mut draft = Draft::of(existing(facts, op.execution_id)?, now);
    if draft.execution.phase.claimable().is_none() {
        return Err(not_eligible(&draft.execution).into());
    }
    let aside = draft.aside();
    let recalled = reason == AdmissionReason::Quota && aside.is_some_and(|grant| grant.recalled);
    let lifted = match op.by.filter(|_| aside.is_some()) {
        Some(limit) => !stands_under(facts, &draft.execution, limit)?,
        None => false,
    };
    if recalled || lifted {
        // The claim that set it aside knew less: it goes back to where it was.
        draft.take_grant_back();
        return Ok(draft.answer(Settled::AlreadySatisfied));
    }
    if let Phase::Runnable(runnable) = &mut draft.execution.phase {
        let (by, detail) = (op.by, op.detail.clone());
        runnable.causes.admission = Some(AdmissionBlock { reason, by, detail, since: now });
        runnable.since = now;
        runnable.grant = None;
    }
    let data = EventData::from([
        ("reason".to_owned(), op.reason.as_str().into()),
        ("detail".to_owned(), op.detail.as_str().into()),
    ]);
    draft.event_with(EventKind::Blocked, data);
    Ok(Step::done(Settled::Done, draft.finish().into()))
}

pub(super) fn unblock(
    facts: &impl Facts,
    op: &Unblock,
    now: TimestampMs,
) -> Result<Step<Unblocked>, Halt> {
    let expected = admission_reason(op.expected)?;
    let mut draft = Draft::of(existing(facts, op.execution_id)?, now);
    if expected == AdmissionReason::Quota && draft.recall() {
        return Ok(draft.answer(Unblocked { claimable: true }));
    }
    if !draft.admit(expected) {
        return Err(not_eligible(&draft.execution).into());
    }
    let Execution { about, phase, .. } = &draft.execution;
    let claimable = phase.claimable().is_some()
        && facts.lane_state(&about.namespace, &about.lane)?.gives_claims();
    Ok(Step::done(Unblocked { claimable }, draft.finish().into()))
}

pub(super) fn void(
    facts: &impl Facts,
    op: &VoidAdmission,
    now: TimestampMs,
) -> Result<Step<AdmissionVoided>, Halt> {
    let Some(execution) = facts.execution(op.execution_id)? else {
        return Ok(Step::unchanged(AdmissionVoided::Void));
    };
    let leased = execution.phase.lease().is_some() && execution.lease_epoch == op.lease_epoch;
    let next = execution.lease_epoch + 1 == op.lease_epoch;
    let grant = execution.phase.grant().filter(|grant| next && !grant.is_over(now));
    let holds = |grant: &Grant| op.quota_policy_id.is_some_and(|id| grant.slots.contains(&id));
    if leased {
        return Ok(Step::unchanged(AdmissionVoided::Leased));
    }
    if grant.is_some_and(holds) {
        return Ok(Step::unchanged(AdmissionVoided::Granted));
    }
    let never = execution.lease_epoch < op.lease_epoch;
    let mut draft = Draft::of(execution, now);
    if next {
        draft.take_grant_back();
    }
    Ok(draft.answer(if never { AdmissionVoided::Never } else { AdmissionVoided::Void }))
}

/// Whether a limit applies to an execution now.
fn stands_under(facts: &impl Facts, execution: &Execution, limit: LimitId) -> Result<bool, Halt> {
    let about = &execution.about;
    let of_lane = of_lane(facts, &about.namespace, &about.lane)?;
    Ok(of_execution(facts, &of_lane, execution)?.contains(limit))
}

pub(super) fn settle_slots(
    facts: &impl Facts,
    op: &SettleSlots,
    now: TimestampMs,
) -> Result<Step<Settled>, Halt> {
    let mut draft = Draft::of(existing(facts, op.execution_id)?, now);
    let Some(owed) = &mut draft.execution.owed else {
        return Ok(draft.answer(Settled::AlreadySatisfied));
    };
    let before = owed.slots.len();
    owed.slots.retain(|slot| !op.slots.contains(slot));
    let reply = match owed.slots.len() {
        left if left == before => Settled::AlreadySatisfied,
        _ => Settled::Done,
    };
    if owed.slots.is_empty() {
        draft.execution.owed = None;
    }
    Ok(draft.answer(reply))
}

pub(super) fn end_for_budget(
    facts: &impl Facts,
    op: &EndForBudget,
    now: TimestampMs,
) -> Result<Step<Settled>, Halt> {
    let execution = existing(facts, op.execution_id)?;
    let applies = stands_under(facts, &execution, LimitId::Budget(op.budget_id))?;
    let runs = execution.phase.lease().is_some_and(|lease| lease.id == op.lease_id);
    if !applies || !runs {
        return Ok(Step::unchanged(Settled::AlreadySatisfied));
    }
    let mut draft = Draft::of(execution, now);
    let reason = BUDGET_EXCEEDED.to_owned();
    match op.action {
        HardAction::Block => return Ok(draft.answer(Settled::AlreadySatisfied)),
        HardAction::Cancel => {
            let from = draft.execution.public_state();
            let source = CancelSource::Custom(BUDGET_EXCEEDED.to_owned());
            draft.cancel(Cancellation { reason, source, from, by_group: false }, facts.settings());
        }
        HardAction::Fail => {
            let class = FailureClass::Permanent;
            let failure = Failure { category: reason.clone(), reason, class };
            draft.fail_for_good(failure, facts.settings());
        }
    }
    Ok(draft.answer(Settled::Done))
}

fn not_eligible(execution: &Execution) -> Refusal {
    let state = execution.public_state().as_str();
    Refusal::new(Code::ExecutionNotEligible, format!("the execution is {state}"))
}

impl Draft {
    /// The grant by which a claim has set it aside, while it lives.
    fn aside(&self) -> Option<&Grant> {
        let grant = self.execution.phase.grant()?;
        (grant.kind == GrantKind::Admission && !grant.is_over(self.now)).then_some(grant)
    }

    /// Tells the claim that has set it aside, should it be about to keep it back.
    fn recall(&mut self) -> bool {
        let is_aside = self.aside().is_some();
        if let Phase::Runnable(Runnable { grant: Some(grant), .. }) = &mut self.execution.phase {
            grant.recalled |= is_aside;
        }
        is_aside
    }

    fn take_grant_back(&mut self) {
        if let Phase::Runnable(runnable) = &mut self.execution.phase {
            runnable.grant = None;
        }
    }

    /// Takes the block away, if this is the reason of it.
    pub(super) fn admit(&mut self, expected: AdmissionReason) -> bool {
        let Phase::Runnable(runnable) = &mut self.execution.phase else { return false };
        let block = runnable.causes.admission.take_if(|block| block.reason == expected);
        if block.is_none() {
            return false;
        }
        runnable.since = self.now;
        let reason = expected.blocking_reason().as_str();
        let data = EventData::from([("reason".to_owned(), reason.into())]);
        self.event_with(EventKind::Unblocked, data);
        true
    }
}
