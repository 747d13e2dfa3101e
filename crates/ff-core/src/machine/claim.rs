//! The rule of claim: the store proposes candidates in order, the rule confirms them.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;

use super::draft::{Draft, Halt};
use super::extras::{extras, settled};
use super::facts::{Candidates, Facts, Needs, QueueView, Settings};
use super::flow;
use super::standing::{of_execution, of_lane};
use super::step::{Changed, Changes, Step};
use super::worker;
use crate::error::{Code, Refusal};
use crate::event::{EventData, EventKind};
use crate::id::{
    AttemptId, ExecutionId, Handle, HandleKind, LeaseId, QuotaPolicyId, WorkerId, WorkerInstanceId,
};
use crate::limits;
use crate::operation::{Applicant, Claim, Claimed, Extras, PreviousFailure, Task};
use crate::rota::Rota;
use crate::state::{
    Attempt, AttemptState, AttemptType, Execution, Grant, GrantKind, LaneState, Lease, Next, Phase,
    Standing,
};
use crate::time::TimestampMs;

/// Up to `max` tasks and applicants, best first.
pub fn claim(facts: &impl Facts, op: &Claim, now: TimestampMs) -> Result<Step<Claimed>, Needs> {
    look(facts, op, Limited::SetAside, now)
}

/// Up to `max` tasks that stand under no limits, best first.
pub(super) fn claim_free(
    facts: &impl Facts,
    op: &Claim,
    now: TimestampMs,
) -> Result<Step<Vec<Task>>, Needs> {
    Ok(look(facts, op, Limited::PassOver, now)?.map(|claimed| claimed.tasks))
}

/// What becomes of executions that stand under limits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limited {
    SetAside,
    PassOver,
}

fn look(
    facts: &impl Facts,
    op: &Claim,
    limited: Limited,
    now: TimestampMs,
) -> Result<Step<Claimed>, Needs> {
    if let Err(refusal) = op.check() {
        return Ok(Step::refused(refusal));
    }
    let gate = match gate(facts, op, now)? {
        Ok(gate) => gate,
        Err(refusal) => return Ok(Step::refused(refusal)),
    };
    let mut round = Round::new(facts, op, gate, limited, now);
    round.run()?;
    let changes = Changes { executions: round.changed, ..Changes::default() };
    flow::settle(facts, Step::done(round.claimed, changes), now)
}

/// What a claim may look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// For each lane of the claim what all its executions stand under; none: nothing is claimed from
    /// it.
    pub lanes: Vec<Option<Standing>>,
    /// From this instant on the worker counts as silent.
    pub until: TimestampMs,
    /// The worker takes nothing more: nobody need wait for it.
    pub drains: bool,
}

/// What was said of the worker and of the lanes of a claim.
pub fn gate(
    facts: &impl Facts,
    op: &Claim,
    now: TimestampMs,
) -> Result<Result<Gate, Refusal>, Needs> {
    let worker = worker::registered(facts, op, now);
    let (worker, mut lanes) = match (worker, open_lanes(facts, op)) {
        (Ok(worker), Ok(lanes)) => (worker, lanes),
        (worker, lanes) => {
            let mut needs = worker.err().unwrap_or_default();
            needs.merge(lanes.err().unwrap_or_default());
            return Err(needs);
        }
    };
    Ok(worker.map(|worker| {
        if worker.drains() {
            lanes.fill(None);
        }
        Gate { lanes, until: worker.expires_at(), drains: worker.drains() }
    }))
}

fn open_lanes(facts: &impl Facts, op: &Claim) -> Result<Vec<Option<Standing>>, Needs> {
    let (mut lanes, mut needs) = (Vec::with_capacity(op.lanes.len()), Needs::default());
    for share in &op.lanes {
        let state = needs.found(facts.lane_state(&op.namespace, &share.lane).map(Some));
        let under = needs.found(of_lane(facts, &op.namespace, &share.lane).map(Some));
        lanes.push(under.filter(|_| state.is_some_and(LaneState::gives_claims)));
    }
    needs.into_result().map(|()| lanes)
}

/// Who takes up an execution, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseTerms {
    pub lease_id: LeaseId,
    pub worker_id: WorkerId,
    pub worker_instance_id: WorkerInstanceId,
    pub ttl_ms: u64,
    /// It uses a grant up.
    pub granted: bool,
    /// Quota policies of which it holds a slot.
    pub slots: Vec<QuotaPolicyId>,
    /// Those of them that keep a place in their window for it.
    pub places: Vec<QuotaPolicyId>,
}

/// What a claim makes of one execution. For a store that notes a claim in short and works it out
/// when it reads the record.
pub fn lease(execution: Arc<Execution>, terms: &LeaseTerms, now: TimestampMs) -> Changed {
    let mut draft = Draft::untouched(execution, now);
    draft.lease_to(terms);
    draft.finish()
}

/// What a claim makes of an execution whose limits it has to ask first. For the same stores as
/// [`lease`].
pub fn set_aside(execution: Arc<Execution>, terms: &LeaseTerms, now: TimestampMs) -> Changed {
    let mut draft = Draft::untouched(execution, now);
    draft.set_grant(Grant {
        kind: GrantKind::Admission,
        worker_id: terms.worker_id.clone(),
        worker_instance_id: Some(terms.worker_instance_id.clone()),
        expires_at: now.after(limits::SLOT_PENDING_MS),
        slots: Vec::new(),
        places: Vec::new(),
        claimant: None,
        lapsed: false,
        recalled: false,
    });
    draft.finish()
}

/// One claim under way.
struct Round<'a, F> {
    facts: &'a F,
    op: &'a Claim,
    limited: Limited,
    now: TimestampMs,
    rota: Rota,
    lanes: Vec<Front>,
    claimed: Claimed,
    changed: Vec<Changed>,
    bytes: usize,
    /// Candidates that facts are missing for, and those facts. The ones behind are looked at all the
    /// same, so that one round loads what all of them lack; nothing of such a claim is kept.
    undecided: usize,
    needs: Needs,
}

/// How far a claim has looked into one lane.
struct Front {
    view: QueueView,
    /// What all its executions stand under.
    under: Standing,
    candidates: Candidates,
    seen: usize,
    /// Those of them that it had no use for.
    passed: usize,
}

impl<'a, F: Facts> Round<'a, F> {
    /// Lanes that nothing is claimed from count as empty.
    fn new(facts: &'a F, op: &'a Claim, gate: Gate, limited: Limited, now: TimestampMs) -> Self {
        let mut rota = Rota::new(&op.lanes, op.order);
        let lanes = op.lanes.iter().zip(gate.lanes).enumerate().map(|(index, (share, under))| {
            if under.is_none() {
                rota.mark_empty(index);
            }
            Front {
                view: QueueView {
                    namespace: op.namespace.clone(),
                    lane: share.lane.clone(),
                    capabilities: op.capabilities.clone(),
                },
                under: under.unwrap_or_default(),
                candidates: Candidates::default(),
                seen: 0,
                passed: 0,
            }
        });
        Self {
            lanes: lanes.collect(),
            rota,
            facts,
            op,
            limited,
            now,
            claimed: Claimed::default(),
            changed: Vec::new(),
            bytes: 0,
            undecided: 0,
            needs: Needs::default(),
        }
    }

    fn run(&mut self) -> Result<(), Needs> {
        while self.wanted() > 0 {
            let Some(lane) = self.rota.pick() else { break };
            let Some(id) = self.next_candidate(lane)? else {
                self.rota.mark_empty(lane);
                continue;
            };
            match self.confirm(lane, id) {
                Ok(Confirmed::Taken) => self.rota.charge(lane),
                Ok(Confirmed::PassedOver) => self.lanes[lane].passed += 1,
                Ok(Confirmed::ReplyFull) => break,
                // What cannot be read keeps nobody back who stands behind it.
                Err(lacking) if self.facts.is_lost(&lacking) => self.lanes[lane].passed += 1,
                Err(lacking) => {
                    self.needs.merge(lacking);
                    self.undecided += 1;
                    self.rota.charge(lane);
                }
            }
        }
        std::mem::take(&mut self.needs).into_result()
    }

    fn wanted(&self) -> usize {
        (self.op.max as usize).saturating_sub(self.claimed.len() + self.undecided)
    }

    fn next_candidate(&mut self, lane: usize) -> Result<Option<ExecutionId>, Needs> {
        let wanted = self.wanted();
        let front = &mut self.lanes[lane];
        if front.seen == front.candidates.ids.len() {
            if front.candidates.complete {
                return Ok(None);
            }
            // Behind many of no use it looks as far again, so that a crowd of them takes few rounds.
            let asked = wanted.max(front.passed);
            front.candidates = self.facts.candidates(&front.view, front.seen + asked)?;
            let fresh = &front.candidates.ids[front.seen..];
            let (first, behind) = fresh.split_at(wanted.min(fresh.len()));
            let mut lacking = Needs::default();
            lacking.note(self.facts.want_tasks(first).map(Some));
            lacking.note(self.facts.want_executions(behind).map(Some));
            match lacking.into_result() {
                Err(lacking) if !self.facts.is_lost(&lacking) => return Err(lacking),
                // Those that can be read are asked for one by one.
                _ => {}
            }
        }
        let id = front.candidates.ids.get(front.seen).copied();
        front.seen += usize::from(id.is_some());
        Ok(id)
    }

    fn confirm(&mut self, lane: usize, id: ExecutionId) -> Result<Confirmed, Needs> {
        let Some(execution) = self.facts.execution(id)? else { return Ok(Confirmed::PassedOver) };
        let eligible =
            execution.queue_place().is_some_and(|place| self.op.capabilities.covers(place.class));
        if !eligible {
            return Ok(Confirmed::PassedOver);
        }
        // A flow that is not known yet is asked for along with what the start takes.
        if matches!(flow::stopped(self.facts, &execution), Ok(Some(_))) {
            return Ok(Confirmed::PassedOver);
        }
        flow::want_start(self.facts, &execution)?;
        if execution.deadline_at.is_some_and(|deadline| deadline <= self.now) {
            let mut draft = Draft::of(execution, self.now);
            draft.expire_if_due(self.facts.settings());
            self.changed.push(draft.finish());
            return Ok(Confirmed::PassedOver);
        }
        #[expect(clippy::cast_possible_truncation, reason = "a claim has at most 1000 tasks")]
        let terms = self.op.terms(self.claimed.len() as u32);
        let standing = of_execution(self.facts, &self.lanes[lane].under, &execution)?;
        if self.op.sets_aside || !standing.is_empty() {
            return Ok(self.set_aside(execution, &terms, standing));
        }
        let mut draft = Draft::untouched(execution, self.now);
        draft.lease_to(&terms);
        let left = limits::CLAIM_REPLY_BYTES.saturating_sub(self.bytes);
        let payload = self.facts.payload(id)?.map_or(0, |payload| payload.len() as u64);
        if !self.claimed.tasks.is_empty() && payload + draft.execution.extras_bytes() > left as u64
        {
            return Ok(Confirmed::ReplyFull);
        }
        let Ok(task) = settled(task_of(self.facts, &draft.execution, left))? else {
            // A row beside it cannot be read.
            return Ok(Confirmed::PassedOver);
        };
        self.bytes += task.payload.len() + task.extras.bytes();
        self.claimed.tasks.push(task);
        self.changed.push(draft.finish());
        Ok(Confirmed::Taken)
    }
}

impl<F: Facts> Round<'_, F> {
    /// Sets an execution aside until its limits have been asked.
    fn set_aside(
        &mut self,
        execution: Arc<Execution>,
        terms: &LeaseTerms,
        standing: Standing,
    ) -> Confirmed {
        let place = execution.queue_place().map(|place| place.score);
        let (Some(score), Limited::SetAside) = (place, self.limited) else {
            return Confirmed::PassedOver;
        };
        self.claimed.applicants.push(Applicant::of(&execution, terms.lease_id, score, standing));
        self.changed.push(set_aside(execution, terms, self.now));
        Confirmed::Taken
    }
}

/// The task of the live lease; with at most so many bytes, unless its payload alone has more.
pub(super) fn task_of(
    facts: &impl Facts,
    execution: &Execution,
    most: usize,
) -> Result<Task, Halt> {
    let payload = facts.payload(execution.id)?.unwrap_or_default();
    let extras = extras(facts, execution, most.saturating_sub(payload.len()))??;
    Task::of(execution, payload, extras, facts.settings())
        .ok_or_else(|| Refusal::new(Code::InvariantViolation, "a task without a lease").into())
}

enum Confirmed {
    Taken,
    PassedOver,
    ReplyFull,
}

impl Draft {
    /// Makes the lease: a new attempt, or the open one continued.
    pub(super) fn lease_to(&mut self, terms: &LeaseTerms) {
        let Phase::Runnable(runnable) = &self.execution.phase else { return };
        let attempt = self.attempt_for(runnable.next, terms);
        let timeout = self.execution.policy().timeout.attempt_timeout_ms;
        let left = timeout.map(|timeout| timeout.saturating_sub(attempt.active_ms));
        let data = EventData::from([("attempt_type".to_owned(), attempt.kind.as_str().into())]);
        let execution = &mut self.execution;
        execution.attempt = Some(attempt);
        execution.lease_epoch += 1;
        execution.started_at.get_or_insert(self.now);
        execution.last_loss = None;
        execution.phase = Phase::Active(Lease {
            id: terms.lease_id,
            worker_id: terms.worker_id.clone(),
            worker_instance_id: terms.worker_instance_id.clone(),
            acquired_at: self.now,
            renewed_at: self.now,
            expires_at: self.now.after(terms.ttl_ms),
            ttl_ms: terms.ttl_ms,
            attempt_deadline_at: left.map(|left| self.now.after(left)),
            granted: terms.granted,
            slots: terms.slots.clone(),
            places: terms.places.clone(),
        });
        self.event_with(EventKind::Claimed, data);
    }

    fn attempt_for(&mut self, next: Next, terms: &LeaseTerms) -> Attempt {
        let current = self.execution.attempt.take();
        let kind = match (next, current) {
            (Next::Resume, Some(attempt)) => {
                return Attempt {
                    state: AttemptState::Started,
                    worker_id: terms.worker_id.clone(),
                    worker_instance_id: terms.worker_instance_id.clone(),
                    ..attempt
                };
            }
            (next, current) => {
                self.archived = current;
                next.opens()
            }
        };
        let index = self.execution.counts.attempts;
        self.execution.counts.attempts += 1;
        Attempt {
            index,
            id: terms.lease_id.into(),
            kind,
            state: AttemptState::Started,
            worker_id: terms.worker_id.clone(),
            worker_instance_id: terms.worker_instance_id.clone(),
            started_at: self.now,
            ended_at: None,
            active_ms: 0,
            failure_reason: None,
            failure_category: None,
            stream: None,
            stream_end: None,
            result_bytes: None,
        }
    }
}

impl Next {
    /// The type of the attempt that the next claim opens.
    pub const fn opens(self) -> AttemptType {
        match self {
            Self::First | Self::Resume => AttemptType::Initial,
            Self::Retry => AttemptType::Retry,
            Self::Replay => AttemptType::Replay,
            Self::Reclaim(_) => AttemptType::Reclaim,
        }
    }
}

impl Claim {
    /// The terms of its `index`-th task.
    pub fn terms(&self, index: u32) -> LeaseTerms {
        LeaseTerms {
            lease_id: LeaseId::from_seed(self.seed, index),
            worker_id: self.worker_id.clone(),
            worker_instance_id: self.worker_instance_id.clone(),
            ttl_ms: self.lease_ttl_ms,
            granted: false,
            slots: Vec::new(),
            places: Vec::new(),
        }
    }
}

impl Applicant {
    /// An execution that stands, or stood, at this place of its queue.
    pub fn of(execution: &Execution, lease_id: LeaseId, score: i64, standing: Standing) -> Self {
        let resumes = matches!(&execution.phase, Phase::Runnable(it) if it.next == Next::Resume);
        Self {
            execution_id: execution.id,
            lease_id,
            lease_epoch: execution.lease_epoch + 1,
            opens_attempt: !resumes,
            score,
            standing,
        }
    }
}

impl Task {
    /// What the worker is told of its lease; none without one.
    pub fn of(
        execution: &Execution,
        payload: Bytes,
        extras: Extras,
        settings: &Settings,
    ) -> Option<Self> {
        let lease = execution.phase.lease()?;
        let attempt = execution.attempt.as_ref()?;
        let (about, member) = (&execution.about, execution.member.as_deref());
        Some(Self {
            execution_id: execution.id,
            namespace: about.namespace.clone(),
            lane: about.lane.clone(),
            kind: about.kind.clone(),
            priority: execution.priority,
            payload,
            content_type: about.content_type.clone(),
            tags: execution.tags.clone(),
            attempt_index: attempt.index,
            attempt_id: attempt.id,
            attempt_type: attempt.kind,
            lease_id: lease.id,
            lease_epoch: execution.lease_epoch,
            expires_at: lease.expires_at,
            ttl_ms: lease.ttl_ms,
            handle: handle_of(execution, settings.store)?,
            retry_count: execution.counts.retries,
            reclaim_count: execution.counts.reclaims,
            previous_failure: execution.failure.as_ref().map(|failure| PreviousFailure {
                reason: failure.reason.clone(),
                category: failure.category.clone(),
            }),
            deadline_at: execution.deadline_at,
            attempt_deadline_at: lease.attempt_deadline_at,
            created_at: about.created_at,
            trace_context: about.trace_context.clone(),
            flow_id: member.map(|member| member.flow_id),
            member_name: member.and_then(|member| member.name.clone()),
            extras,
        })
    }
}

/// The handle of the live lease.
pub(super) fn handle_of(execution: &Execution, store: &str) -> Option<Handle> {
    let lease = execution.phase.lease()?;
    let attempt = execution.attempt.as_ref()?;
    Some(Handle {
        store: store.to_owned(),
        kind: handle_kind(lease, attempt),
        execution_id: execution.id,
        attempt_index: attempt.index,
        attempt_id: attempt.id,
        lease_id: lease.id,
        lease_epoch: execution.lease_epoch,
        ttl_ms: lease.ttl_ms,
        lane: execution.about.lane.clone(),
        worker_instance_id: lease.worker_instance_id.clone(),
    })
}

/// A lease that did not open its attempt continues it.
fn handle_kind(lease: &Lease, attempt: &Attempt) -> HandleKind {
    if attempt.id != AttemptId::from(lease.id) {
        HandleKind::Resumed
    } else if attempt.kind == AttemptType::Reclaim {
        HandleKind::Reclaimed
    } else {
        HandleKind::Fresh
    }
}
