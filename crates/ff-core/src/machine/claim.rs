//! The rule of claim: the store proposes candidates in order, the rule confirms them.

use super::draft::Draft;
use super::facts::{Candidates, Facts, Needs, QueueView, Settings};
use super::step::{Changed, Changes, Step};
use crate::event::{EventData, EventKind};
use crate::id::{ExecutionId, Handle, HandleKind, LeaseId};
use crate::limits;
use crate::operation::{Claim, PreviousFailure, Task};
use crate::rota::Rota;
use crate::state::{Attempt, AttemptState, AttemptType, Execution, Lease, Next, Phase};
use crate::time::TimestampMs;

/// Up to `max` tasks, best first.
pub fn claim(facts: &impl Facts, op: &Claim, now: TimestampMs) -> Result<Step<Vec<Task>>, Needs> {
    if let Err(refusal) = op.check() {
        return Ok(Step::refused(refusal));
    }
    let mut round = Round::new(facts, op, now);
    round.run()?;
    Ok(Step::done(round.tasks, Changes { executions: round.changed, dedup: None }))
}

/// One claim under way.
struct Round<'a, F> {
    facts: &'a F,
    op: &'a Claim,
    now: TimestampMs,
    rota: Rota,
    lanes: Vec<Front>,
    tasks: Vec<Task>,
    changed: Vec<Changed>,
    bytes: usize,
}

/// How far a claim has looked into one lane.
struct Front {
    view: QueueView,
    candidates: Candidates,
    seen: usize,
}

impl<'a, F: Facts> Round<'a, F> {
    fn new(facts: &'a F, op: &'a Claim, now: TimestampMs) -> Self {
        let lanes = op.lanes.iter().map(|share| Front {
            view: QueueView {
                namespace: op.namespace.clone(),
                lane: share.lane.clone(),
                capabilities: op.capabilities.clone(),
            },
            candidates: Candidates::default(),
            seen: 0,
        });
        Self {
            facts,
            op,
            now,
            rota: Rota::new(&op.lanes, op.order),
            lanes: lanes.collect(),
            tasks: Vec::new(),
            changed: Vec::new(),
            bytes: 0,
        }
    }

    fn run(&mut self) -> Result<(), Needs> {
        while self.tasks.len() < self.op.max as usize {
            let Some(lane) = self.rota.pick() else { break };
            let Some(id) = self.next_candidate(lane)? else {
                self.rota.mark_empty(lane);
                continue;
            };
            match self.confirm(id)? {
                Confirmed::Taken => self.rota.charge(lane),
                Confirmed::PassedOver => {}
                Confirmed::ReplyFull => break,
            }
        }
        Ok(())
    }

    fn next_candidate(&mut self, lane: usize) -> Result<Option<ExecutionId>, Needs> {
        let wanted = self.op.max as usize - self.tasks.len();
        let front = &mut self.lanes[lane];
        if front.seen == front.candidates.ids.len() {
            if front.candidates.complete {
                return Ok(None);
            }
            front.candidates = self.facts.candidates(&front.view, front.seen + wanted)?;
            let fresh = &front.candidates.ids[front.seen..];
            self.facts.want_tasks(&fresh[..wanted.min(fresh.len())])?;
        }
        let id = front.candidates.ids.get(front.seen).copied();
        front.seen += usize::from(id.is_some());
        Ok(id)
    }

    fn confirm(&mut self, id: ExecutionId) -> Result<Confirmed, Needs> {
        let Some(execution) = self.facts.execution(id)? else { return Ok(Confirmed::PassedOver) };
        let eligible =
            execution.queue_place().is_some_and(|place| self.op.capabilities.covers(place.class));
        if !eligible {
            return Ok(Confirmed::PassedOver);
        }
        let mut draft = Draft::of(execution, self.now);
        if draft.execution.deadline_at.is_some_and(|deadline| deadline <= self.now) {
            draft.expire(self.facts.settings());
            self.changed.push(draft.finish());
            return Ok(Confirmed::PassedOver);
        }
        let payload = self.facts.payload(id)?.unwrap_or_default();
        if !self.tasks.is_empty() && self.bytes + payload.len() > limits::CLAIM_REPLY_BYTES {
            return Ok(Confirmed::ReplyFull);
        }
        self.bytes += payload.len();
        #[expect(clippy::cast_possible_truncation, reason = "a claim has at most 1000 tasks")]
        let lease_id = LeaseId::from_seed(self.op.seed, self.tasks.len() as u32);
        let kind = draft.lease_to(self.op, lease_id);
        let task = task(&draft.execution, payload, kind, self.facts.settings());
        self.changed.push(draft.finish());
        self.tasks.extend(task);
        Ok(Confirmed::Taken)
    }
}

enum Confirmed {
    Taken,
    PassedOver,
    ReplyFull,
}

impl Draft {
    /// Makes the lease: a new attempt, or the open one continued.
    fn lease_to(&mut self, op: &Claim, lease_id: LeaseId) -> HandleKind {
        let Phase::Runnable(runnable) = &self.execution.phase else { return HandleKind::Fresh };
        let next = runnable.next;
        let kind = match next {
            Next::Resume => HandleKind::Resumed,
            Next::Reclaim(_) => HandleKind::Reclaimed,
            Next::First | Next::Retry | Next::Replay => HandleKind::Fresh,
        };
        let attempt = self.attempt_for(next, op, lease_id);
        let timeout = self.execution.policy().timeout.attempt_timeout_ms;
        let left = timeout.map(|timeout| timeout.saturating_sub(attempt.active_ms));
        let data = EventData::from([("attempt_type".to_owned(), attempt.kind.as_str().into())]);
        let execution = &mut self.execution;
        execution.attempt = Some(attempt);
        execution.lease_epoch += 1;
        execution.started_at.get_or_insert(self.now);
        execution.last_loss = None;
        execution.phase = Phase::Active(Lease {
            id: lease_id,
            worker_id: op.worker_id.clone(),
            worker_instance_id: op.worker_instance_id.clone(),
            acquired_at: self.now,
            renewed_at: self.now,
            expires_at: self.now.after(op.lease_ttl_ms),
            ttl_ms: op.lease_ttl_ms,
            attempt_deadline_at: left.map(|left| self.now.after(left)),
        });
        self.event_with(EventKind::Claimed, data);
        kind
    }

    fn attempt_for(&mut self, next: Next, op: &Claim, lease_id: LeaseId) -> Attempt {
        let current = self.execution.attempt.take();
        let kind = match (next, current) {
            (Next::Resume, Some(attempt)) => {
                return Attempt {
                    worker_id: op.worker_id.clone(),
                    worker_instance_id: op.worker_instance_id.clone(),
                    ..attempt
                };
            }
            (next, current) => {
                self.archived = current;
                match next {
                    Next::First | Next::Resume => AttemptType::Initial,
                    Next::Retry => AttemptType::Retry,
                    Next::Replay => AttemptType::Replay,
                    Next::Reclaim(_) => AttemptType::Reclaim,
                }
            }
        };
        let index = self.execution.counts.attempts;
        self.execution.counts.attempts += 1;
        Attempt {
            index,
            id: lease_id.into(),
            kind,
            state: AttemptState::Started,
            worker_id: op.worker_id.clone(),
            worker_instance_id: op.worker_instance_id.clone(),
            started_at: self.now,
            ended_at: None,
            active_ms: 0,
            failure_reason: None,
            failure_category: None,
        }
    }
}

/// What the worker is told of its lease.
fn task(
    execution: &Execution,
    payload: bytes::Bytes,
    kind: HandleKind,
    settings: &Settings,
) -> Option<Task> {
    let lease = execution.phase.lease()?;
    let attempt = execution.attempt.as_ref()?;
    let about = &execution.about;
    Some(Task {
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
        handle: Handle {
            store: settings.store.to_owned(),
            kind,
            execution_id: execution.id,
            attempt_index: attempt.index,
            attempt_id: attempt.id,
            lease_id: lease.id,
            lease_epoch: execution.lease_epoch,
            ttl_ms: lease.ttl_ms,
            lane: about.lane.clone(),
            worker_instance_id: lease.worker_instance_id.clone(),
        },
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
    })
}
