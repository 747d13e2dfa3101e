//! The rules of grants: an execution is set aside for one worker, which claims it by name.
//!
//! Each of them first carries out what time has decided already, a lease that ran out or a deadline
//! that passed, and answers over what that leaves: a timer that comes late changes no answer.

use super::claim::{LeaseTerms, task_of};
use super::draft::{Draft, Halt, existing};
use super::facts::{Facts, Needs, Settings};
use super::flow;
use super::standing::{of_execution, of_lane};
use super::step::Step;
use super::transition::MAX_RECLAIMS_EXCEEDED;
use crate::capability::Capabilities;
use crate::error::{Code, Refusal};
use crate::id::{
    DocumentId, ExecutionId, LaneId, LeaseId, QuotaPolicyId, WorkerId, WorkerInstanceId,
};
use crate::limits;
use crate::operation::{
    ClaimAdmitted, ClaimExecution, ClaimGrant, ClaimResumedExecution, GrantAdmitted,
    IssueClaimGrant, IssueGrantAndClaim, IssueReclaimGrant, IssuedReclaimGrant, ReclaimExecution,
    Reclaimed, TakenSlots, Task,
};
use crate::state::{
    AdmissionReason, BlockingReason, CancelSource, Cancellation, Execution, Grant, GrantKind, Next,
    Outcome, Phase, Runnable,
};
use crate::time::TimestampMs;

pub(super) fn issue(
    facts: &impl Facts,
    op: &IssueClaimGrant,
    now: TimestampMs,
) -> Result<Step<ClaimGrant>, Halt> {
    let mut draft = arrive(facts, op.execution_id, now)?;
    draft.route_to(&op.lane, &op.capabilities);
    if draft.eligible(facts.settings()).is_none() {
        let refusal = Refusal::new(Code::ExecutionNotEligible, draft.standing());
        return Err(draft.refuse(refusal));
    }
    if draft.execution.about.lane != op.lane {
        let detail = draft.lane();
        return Err(draft.refuse(Refusal::at(Code::ExecutionNotInEligibleSet, "lane", detail)));
    }
    let grant = Grant {
        kind: GrantKind::Claim,
        worker_id: op.worker_id.clone(),
        worker_instance_id: Some(op.worker_instance_id.clone()),
        expires_at: now.after(op.grant_ttl_ms),
        slots: Vec::new(),
        places: Vec::new(),
        claimant: None,
        lapsed: false,
        recalled: false,
    };
    give(draft, grant, &op.capabilities)
}

pub(super) fn issue_reclaim(
    facts: &impl Facts,
    op: &IssueReclaimGrant,
    now: TimestampMs,
) -> Result<Step<IssuedReclaimGrant>, Halt> {
    let mut draft = arrive(facts, op.execution_id, now)?;
    if matches!(&draft.execution.phase, Phase::Runnable(Runnable { next: Next::Reclaim(_), .. })) {
        draft.route_to(&op.lane, &op.capabilities);
    }
    let lost =
        matches!(draft.eligible(facts.settings()), Some(Runnable { next: Next::Reclaim(_), .. }));
    let execution = &draft.execution;
    if ended_by_cap(execution) {
        let reclaim_count = execution.counts.reclaims;
        return Ok(draft.answer(IssuedReclaimGrant::ReclaimCapExceeded { reclaim_count }));
    }
    if !lost {
        let detail = draft.standing();
        return Ok(draft.answer(IssuedReclaimGrant::NotReclaimable { detail }));
    }
    if execution.about.lane != op.lane {
        let detail = draft.lane();
        return Ok(draft.answer(IssuedReclaimGrant::NotReclaimable { detail }));
    }
    let grant = Grant {
        kind: GrantKind::Reclaim,
        worker_id: op.worker_id.clone(),
        worker_instance_id: op.worker_instance_id.clone(),
        expires_at: now.after(op.grant_ttl_ms),
        slots: Vec::new(),
        places: Vec::new(),
        claimant: None,
        lapsed: false,
        recalled: false,
    };
    Ok(give(draft, grant, &op.capabilities)?.map(IssuedReclaimGrant::Granted))
}

pub(super) fn claim(
    facts: &impl Facts,
    op: &ClaimExecution,
    now: TimestampMs,
) -> Result<Step<Box<Task>>, Halt> {
    let terms =
        LeaseTerms::by_grant(op.lease_id, &op.worker_id, &op.worker_instance_id, op.lease_ttl_ms);
    let draft = arrive(facts, op.execution_id, now)?;
    take(facts, draft, &terms, &op.slots, Draft::eligible, |runnable| {
        check_grant(runnable, &op.worker_id, now)?;
        if runnable.next == Next::Resume {
            let detail = "its attempt is open: continue it with a resumed claim";
            return Err(Refusal::new(Code::UseClaimResumedExecution, detail));
        }
        Ok(())
    })
}

pub(super) fn claim_admitted(
    facts: &impl Facts,
    op: &ClaimAdmitted,
    now: TimestampMs,
) -> Result<Step<Box<Task>>, Halt> {
    let terms = LeaseTerms {
        slots: op.slots.clone(),
        places: op.places.clone(),
        ..LeaseTerms::by_grant(op.lease_id, &op.worker_id, &op.worker_instance_id, op.lease_ttl_ms)
    };
    let mut draft = arrive(facts, op.execution_id, now)?;
    if draft.is_leased_to(&terms) && draft.execution.lease_epoch == op.lease_epoch {
        let task = task_of(facts, &draft.execution, limits::CLAIM_REPLY_BYTES)?;
        return Ok(draft.answer(Box::new(task)));
    }
    match draft.check_aside(facts.settings(), op.lease_epoch, &op.worker_instance_id) {
        Ok(()) => lease(facts, draft, &terms),
        Err(refusal) => Err(draft.refuse(refusal)),
    }
}

pub(super) fn grant_admitted(
    facts: &impl Facts,
    op: &GrantAdmitted,
    now: TimestampMs,
) -> Result<Step<ClaimGrant>, Halt> {
    let mut draft = arrive(facts, op.execution_id, now)?;
    if let Err(refusal) =
        draft.check_aside(facts.settings(), op.lease_epoch, &op.worker_instance_id)
    {
        return Err(draft.refuse(refusal));
    }
    let grant = Grant {
        kind: GrantKind::Claim,
        worker_id: op.worker_id.clone(),
        worker_instance_id: Some(op.worker_instance_id.clone()),
        expires_at: now.after(op.grant_ttl_ms),
        slots: op.slots.clone(),
        places: op.places.clone(),
        claimant: Some(op.claimant),
        lapsed: false,
        recalled: false,
    };
    let reply = ClaimGrant::new(op.execution_id, grant.expires_at);
    draft.set_grant(grant);
    Ok(draft.answer(reply))
}

pub(super) fn claim_resumed(
    facts: &impl Facts,
    op: &ClaimResumedExecution,
    now: TimestampMs,
) -> Result<Step<Box<Task>>, Halt> {
    let terms =
        LeaseTerms::by_grant(op.lease_id, &op.worker_id, &op.worker_instance_id, op.lease_ttl_ms);
    let draft = arrive(facts, op.execution_id, now)?;
    take(facts, draft, &terms, &op.slots, Draft::eligible, |runnable| {
        check_grant(runnable, &op.worker_id, now)?;
        if runnable.next != Next::Resume {
            let detail = "no attempt is open: the claim would begin a new one";
            return Err(Refusal::new(Code::NotAResumedExecution, detail));
        }
        Ok(())
    })
}

pub(super) fn grant_and_claim(
    facts: &impl Facts,
    op: &IssueGrantAndClaim,
    now: TimestampMs,
) -> Result<Step<Box<Task>>, Halt> {
    let terms =
        LeaseTerms::by_grant(op.lease_id, &op.worker_id, &op.worker_instance_id, op.lease_ttl_ms);
    let draft = arrive(facts, op.execution_id, now)?;
    take(facts, draft, &terms, &op.slots, Draft::eligible_to_operator, |runnable| {
        match runnable.live_grant(now) {
            Some(grant) if grant.worker_id != op.worker_id => Err(already_granted(grant)),
            _ => Ok(()),
        }
    })
}

pub(super) fn reclaim(
    facts: &impl Facts,
    op: &ReclaimExecution,
    now: TimestampMs,
) -> Result<Step<Reclaimed>, Halt> {
    let mut draft = arrive(facts, op.execution_id, now)?;
    let terms =
        LeaseTerms::by_grant(op.lease_id, &op.worker_id, &op.worker_instance_id, op.lease_ttl_ms);
    if draft.is_leased_to(&terms) {
        let task = task_of(facts, &draft.execution, limits::CLAIM_REPLY_BYTES)?;
        return Ok(Step::unchanged(Reclaimed::Reclaimed(Box::new(task))));
    }
    let grant = draft.execution.phase.grant().filter(|grant| grant.kind == GrantKind::Reclaim);
    let Some(grant) = grant else {
        return Ok(draft.answer(Reclaimed::GrantNotFound));
    };
    if grant.is_over(now) {
        return Err(grant_over(grant).into());
    }
    if grant.worker_id != op.worker_id {
        return Err(not_granted().into());
    }
    if draft.eligible(facts.settings()).is_none() {
        let detail = draft.standing();
        return Ok(draft.answer(Reclaimed::NotReclaimable { detail }));
    }
    let reclaim_count = draft.execution.counts.reclaims;
    if op.max_reclaim_count.is_some_and(|cap| reclaim_count > cap) {
        draft.exceed_reclaims(facts.settings());
        return Ok(draft.answer(Reclaimed::ReclaimCapExceeded { reclaim_count }));
    }
    Ok(lease_with(facts, draft, &terms, &op.slots)?.map(Reclaimed::Reclaimed))
}

/// The execution, after a lease that has run out was taken away.
fn arrive(facts: &impl Facts, id: ExecutionId, now: TimestampMs) -> Result<Draft, Halt> {
    let mut draft = Draft::of(existing(facts, id)?, now);
    draft.lose_lease_if_over(facts.settings());
    if let Some(reason) = flow::stopped(facts, &draft.execution)? {
        let from = draft.execution.public_state();
        let source = CancelSource::FlowCascade;
        draft.cancel(Cancellation { reason, source, from, by_group: false }, facts.settings());
    }
    Ok(draft)
}

/// Sets it aside, if nobody else has it and the worker can run it.
fn give(mut draft: Draft, grant: Grant, offered: &Capabilities) -> Result<Step<ClaimGrant>, Halt> {
    if let Some(other) = draft.execution.phase.grant().filter(|other| !other.is_over(draft.now)) {
        let refusal = already_granted(other);
        return Err(draft.refuse(refusal));
    }
    let lacking = offered.lacking(&draft.execution.policy().required_capabilities);
    if !lacking.is_empty() {
        return Err(draft.mismatch(lacking));
    }
    let reply = ClaimGrant::new(draft.execution.id, grant.expires_at);
    draft.set_grant(grant);
    Ok(draft.answer(reply))
}

/// Leases one execution by name if it is `eligible`, once `check` has found the grant in order.
fn take(
    facts: &impl Facts,
    mut draft: Draft,
    terms: &LeaseTerms,
    taken: &TakenSlots,
    eligible: impl for<'a> FnOnce(&'a mut Draft, &Settings) -> Option<&'a Runnable>,
    check: impl FnOnce(&Runnable) -> Result<(), Refusal>,
) -> Result<Step<Box<Task>>, Halt> {
    if draft.is_leased_to(terms) {
        return Ok(Step::unchanged(Box::new(task_of(
            facts,
            &draft.execution,
            limits::CLAIM_REPLY_BYTES,
        )?)));
    }
    if let Some(lease) = draft.execution.phase.lease() {
        let detail = format!("{:?} runs it", lease.worker_instance_id);
        return Err(Refusal::new(Code::LeaseConflict, detail).into());
    }
    let checked = match eligible(&mut draft, facts.settings()) {
        Some(runnable) => check(runnable),
        None => Err(Refusal::new(Code::ExecutionNotLeaseable, draft.standing())),
    };
    match checked {
        Ok(()) => lease_with(facts, draft, terms, taken),
        Err(refusal) => Err(draft.refuse(refusal)),
    }
}

/// Leases it with the slots that its grant holds and those that were taken besides.
fn lease_with(
    facts: &impl Facts,
    draft: Draft,
    terms: &LeaseTerms,
    taken: &TakenSlots,
) -> Result<Step<Box<Task>>, Halt> {
    let grant = draft.execution.phase.grant().filter(|grant| !grant.is_over(draft.now));
    let held = grant.map(|grant| (grant.slots.clone(), grant.places.clone()));
    let (mut slots, mut places) = held.unwrap_or_default();
    if taken.lease_epoch == draft.execution.lease_epoch + 1 {
        slots.extend(&taken.quota_policy_ids);
        places.extend(&taken.places);
    }
    match lacking_slot(facts, &draft.execution, &slots)? {
        Some(id) => {
            let detail = format!("it stands under quota policy {id} and has no slot of it");
            Err(draft.refuse(Refusal::new(Code::ConcurrencyLimitExceeded, detail)))
        }
        None => lease(facts, draft, &LeaseTerms { slots, places, ..terms.clone() }),
    }
}

/// A policy that it stands under and has no slot of; one that is gone holds nobody up.
fn lacking_slot(
    facts: &impl Facts,
    execution: &Execution,
    slots: &[QuotaPolicyId],
) -> Result<Option<QuotaPolicyId>, Needs> {
    let about = &execution.about;
    let of_lane = of_lane(facts, &about.namespace, &about.lane)?;
    let standing = of_execution(facts, &of_lane, execution)?;
    let (mut lacking, mut needs) = (None, Needs::default());
    for id in standing.quota_policy_ids.into_iter().filter(|id| !slots.contains(id)) {
        let policy = DocumentId::quota_policy(id, &facts.settings().partitions);
        if needs.found(facts.document(&policy)).is_some() {
            lacking = lacking.or(Some(id));
        }
    }
    needs.into_result().map(|()| lacking)
}

fn lease(
    facts: &impl Facts,
    mut draft: Draft,
    terms: &LeaseTerms,
) -> Result<Step<Box<Task>>, Halt> {
    draft.lift_block();
    draft.lease_to(terms);
    let task = task_of(facts, &draft.execution, limits::CLAIM_REPLY_BYTES)?;
    Ok(draft.answer(Box::new(task)))
}

/// The grant of this worker, which must still live.
fn check_grant(runnable: &Runnable, worker_id: &WorkerId, now: TimestampMs) -> Result<(), Refusal> {
    match &runnable.grant {
        Some(grant) if grant.worker_id != *worker_id || grant.kind == GrantKind::Admission => {
            Err(not_granted())
        }
        Some(grant) if grant.is_over(now) => Err(grant_over(grant)),
        Some(_) => Ok(()),
        None => Err(not_granted()),
    }
}

fn not_granted() -> Refusal {
    Refusal::new(Code::InvalidClaimGrant, "no grant of this worker is there")
}

fn grant_over(grant: &Grant) -> Refusal {
    let detail =
        format!("the grant was good until {}; ask for another", grant.expires_at.rfc3339());
    Refusal::new(Code::ClaimGrantExpired, detail)
}

fn already_granted(grant: &Grant) -> Refusal {
    let (worker_id, until) = (&grant.worker_id, grant.expires_at.rfc3339());
    let detail = format!("{worker_id:?} may claim it until {until}");
    Refusal::new(Code::GrantAlreadyExists, detail)
}

fn ended_by_cap(execution: &Execution) -> bool {
    let failed = execution.phase.terminal().is_some_and(|end| end.outcome == Outcome::Failed);
    let reason = execution.failure.as_ref().map(|failure| failure.reason.as_str());
    failed && reason == Some(MAX_RECLAIMS_EXCEEDED)
}

impl Draft {
    /// The phase of an execution that could be claimed; a deadline that has passed ends it first.
    fn eligible(&mut self, settings: &Settings) -> Option<&Runnable> {
        if self.execution.phase.claimable().is_some() {
            self.expire_if_due(settings);
        }
        self.execution.phase.claimable()
    }

    /// The same of one whom an operator gives out: whether budgets have room and who could run it
    /// is not asked. A block goes when the lease is made, not before: a refusal leaves it.
    fn eligible_to_operator(&mut self, settings: &Settings) -> Option<&Runnable> {
        if self.execution.phase.claimable_by_operator().is_some() {
            self.expire_if_due(settings);
        }
        self.execution.phase.claimable_by_operator()
    }

    fn lift_block(&mut self) {
        if let Some(reason) = self.execution.admission_block().map(|block| block.reason) {
            self.admit(reason);
        }
    }

    /// Whether it is still set aside for the lease of this epoch, for this instance.
    fn check_aside(
        &mut self,
        settings: &Settings,
        lease_epoch: u64,
        instance: &WorkerInstanceId,
    ) -> Result<(), Refusal> {
        let (now, epoch) = (self.now, self.execution.lease_epoch + 1);
        let grant = self.eligible(settings).and_then(|runnable| runnable.grant.as_ref());
        match grant.filter(|grant| grant.kind == GrantKind::Admission) {
            Some(grant) if grant.is_over(now) => Err(grant_over(grant)),
            Some(grant)
                if epoch == lease_epoch && grant.worker_instance_id.as_ref() == Some(instance) =>
            {
                Ok(())
            }
            _ => Err(not_granted()),
        }
    }

    /// A worker that can run it has come: it need not wait for one any more.
    fn route_to(&mut self, lane: &LaneId, offered: &Capabilities) {
        let covered = offered.covers(&self.execution.policy().required_capabilities);
        if covered && self.execution.about.lane == *lane {
            self.admit(AdmissionReason::Route);
        }
    }

    /// Where it stands, in words.
    fn standing(&self) -> String {
        let state = self.execution.state_vector(self.now);
        let public = state.public_state.as_str();
        match state.blocking_reason {
            BlockingReason::None => format!("the execution is {public}"),
            reason => format!("the execution is {public}: {}", reason.as_str()),
        }
    }

    fn lane(&self) -> String {
        format!("the execution is of lane {:?}", self.execution.about.lane)
    }

    pub(super) fn set_grant(&mut self, grant: Grant) {
        if let Phase::Runnable(runnable) = &mut self.execution.phase {
            runnable.grant = Some(grant);
        }
    }

    /// Whether its instance holds the lease already, from a grant: the claim was sent again.
    fn is_leased_to(&self, terms: &LeaseTerms) -> bool {
        self.execution.phase.lease().is_some_and(|lease| {
            lease.granted
                && lease.worker_id == terms.worker_id
                && lease.worker_instance_id == terms.worker_instance_id
        })
    }

    /// Refuses, and remembers that a worker was not able.
    fn mismatch(mut self, missing: Capabilities) -> Halt {
        let detail = format!("the worker lacks {}", missing.as_csv());
        let refusal = Refusal::at(Code::CapabilityMismatch, "capabilities", detail);
        self.execution.last_capability_mismatch_at = Some(self.now);
        self.refuse(Refusal { missing_capabilities: Some(missing), ..refusal })
    }

    /// The grant's time is over: the execution is back in its queue, at its old place.
    pub(super) fn lapse_grant(&mut self) {
        if let Phase::Runnable(Runnable { grant: Some(grant), .. }) = &mut self.execution.phase {
            grant.lapsed = true;
        }
    }
}

impl LeaseTerms {
    fn by_grant(
        lease_id: LeaseId,
        worker_id: &WorkerId,
        worker_instance_id: &WorkerInstanceId,
        ttl_ms: u64,
    ) -> Self {
        let (worker_id, worker_instance_id) = (worker_id.clone(), worker_instance_id.clone());
        let (slots, places) = (Vec::new(), Vec::new());
        Self { lease_id, worker_id, worker_instance_id, ttl_ms, granted: true, slots, places }
    }
}
