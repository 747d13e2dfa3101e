//! The rules of workers.

use std::sync::Arc;

use super::document::{DocumentDraft, Fired};
use super::draft::{Draft, Halt, existing};
use super::step::Step;
use super::{Facts, Needs};
use crate::error::{Code, Refusal};
use crate::event::{EventData, EventKind};
use crate::id::{DocumentId, LaneId, Namespace, WorkerInstanceId};
use crate::limits;
use crate::operation::{
    Claim, DeregisterWorker, DrainWorker, HeartbeatWorker, LoseLease, LostWorker, MarkWorkerDead,
    NoteCancellations, RegisterWorker, SettleWorkerLoss, Settled, WorkerBeat, WorkerGone,
    WorkerRegistered,
};
use crate::state::{Document, Lane, LostBy, Registration, Worker, WorkerLoss};
use crate::time::TimestampMs;

pub(super) fn register(
    facts: &impl Facts,
    op: &RegisterWorker,
    now: TimestampMs,
) -> Result<Step<WorkerRegistered>, Halt> {
    let mut draft = DocumentDraft::under(facts, &op.namespace, &op.worker_instance_id, now)?;
    if let Some(live) = draft.body.live(now) {
        check_same(live, op)?;
        let fresh = Registration {
            registered_at: live.registered_at,
            draining_since: live.draining_since,
            said: live.said + 1,
            cancelled: live.cancelled.clone(),
            untold: live.untold,
            ..registration(op, now)
        };
        let next_expiry = fresh.expires_at();
        draft.body.registration = Some(fresh);
        let reply = WorkerRegistered::Refreshed { next_expiry };
        return Ok(draft.settle(reply));
    }
    if draft.body.registration.is_some() {
        draft.lose(LostBy::Time, "ttl", None);
    }
    // Leases from now on are this boot's, also those of this very millisecond.
    for loss in &mut draft.body.losses {
        loss.acquired_before = loss.acquired_before.min(now);
    }
    let fresh = registration(op, now);
    let next_expiry = fresh.expires_at();
    draft.body.registration = Some(fresh);
    let data = EventData::from([("worker_id".to_owned(), op.worker_id.as_str().into())]);
    draft.event(EventKind::WorkerJoined, data);
    Ok(draft.settle(WorkerRegistered::Registered { next_expiry }))
}

/// The name is taken while a registration lives.
fn check_same(live: &Registration, op: &RegisterWorker) -> Result<(), Refusal> {
    if live.worker_id != op.worker_id {
        let detail = format!("instance_id reassigned: it belongs to worker {:?}", live.worker_id);
        return Err(Refusal::invalid("worker_id", detail));
    }
    if live.boot_id != op.boot_id {
        let until = live.expires_at();
        let detail = format!("another process has this name until {until} unless it is refreshed");
        return Err(Refusal::at(Code::InstanceInUse, "worker_instance_id", detail));
    }
    Ok(())
}

fn registration(op: &RegisterWorker, now: TimestampMs) -> Registration {
    Registration {
        worker_id: op.worker_id.clone(),
        boot_id: op.boot_id.clone(),
        lanes: op.lanes.clone(),
        capabilities: op.capabilities.clone(),
        ttl_ms: op.ttl_ms,
        max_concurrent: op.max_concurrent,
        registered_at: now,
        heartbeat_at: now,
        draining_since: None,
        said: 1,
        cancelled: Vec::new(),
        untold: false,
    }
}

pub(super) fn heartbeat(
    facts: &impl Facts,
    op: &HeartbeatWorker,
    now: TimestampMs,
) -> Result<Step<WorkerBeat>, Halt> {
    let mut draft = DocumentDraft::under(facts, &op.namespace, &op.worker_instance_id, now)?;
    let live = draft.body.live(now).filter(|live| live.boot_id == op.boot_id);
    let Some(live) = live.cloned() else { return Ok(Step::unchanged(WorkerBeat::NotRegistered)) };
    let lanes = lanes(facts, &op.namespace, &live.lanes)?;
    let changes = lanes.iter().map(|lane| lane.changed_at).chain(live.draining_since);
    let news = live.untold || changes.max().is_some_and(|at| at >= live.heartbeat_at);
    let mut refreshed = Registration { heartbeat_at: now, untold: false, ..live };
    refreshed.forget_cancelled(now);
    let paused = lanes.into_iter().filter(|lane| !lane.state.gives_claims());
    let reply = WorkerBeat::Refreshed {
        next_expiry: refreshed.expires_at(),
        drain: refreshed.drains(),
        paused_lanes: paused.map(|lane| lane.name).collect(),
        ttl_ms: refreshed.ttl_ms,
        news,
        cancelled: refreshed.cancelled.clone(),
    };
    draft.body.registration = Some(refreshed);
    Ok(draft.settle(reply))
}

/// Nobody is left to be told of a worker that is gone.
pub(super) fn note_cancellations(
    facts: &impl Facts,
    op: &NoteCancellations,
    now: TimestampMs,
) -> Result<Step<Settled>, Halt> {
    let mut draft = DocumentDraft::under(facts, &op.namespace, &op.worker_instance_id, now)?;
    if draft.body.live(now).is_none() {
        return Ok(Step::unchanged(Settled::AlreadySatisfied));
    }
    if let Some(registration) = &mut draft.body.registration {
        registration.forget_cancelled(now);
        registration.note_cancelled(&op.notices);
    }
    Ok(draft.settle(Settled::Done))
}

/// Those of the lanes that somebody has said something of.
fn lanes(facts: &impl Facts, namespace: &Namespace, names: &[LaneId]) -> Result<Vec<Lane>, Needs> {
    let mut needs = Needs::default();
    let mut lanes = Vec::new();
    for name in names {
        match facts.document(&DocumentId::lane(namespace, name)) {
            Ok(found) => lanes.extend(found.as_ref().and_then(|found| found.lane()).cloned()),
            Err(lacking) => needs.merge(lacking),
        }
    }
    needs.into_result().map(|()| lanes)
}

pub(super) fn drain(
    facts: &impl Facts,
    op: &DrainWorker,
    now: TimestampMs,
) -> Result<Step<Settled>, Halt> {
    let mut draft = DocumentDraft::under(facts, &op.namespace, &op.worker_instance_id, now)?;
    if draft.body.live(now).is_none() {
        let detail = format!("no worker instance {:?} is registered", op.worker_instance_id);
        return Err(Refusal::at(Code::WorkerNotFound, "worker_instance_id", detail).into());
    }
    let Some(registration) = draft.body.registration.as_mut().filter(|r| !r.drains()) else {
        return Ok(Step::unchanged(Settled::AlreadySatisfied));
    };
    registration.draining_since = Some(now);
    let reason = Some(op.reason.as_str()).filter(|reason| !reason.is_empty());
    let data = reason.map(|reason| ("reason".to_owned(), reason.into())).into_iter().collect();
    draft.event(EventKind::WorkerDraining, data);
    Ok(draft.settle(Settled::Done))
}

pub(super) fn deregister(
    facts: &impl Facts,
    op: &DeregisterWorker,
    now: TimestampMs,
) -> Result<Step<WorkerGone>, Halt> {
    leave(facts, &op.namespace, &op.worker_instance_id, now, "deregistered", None)
}

pub(super) fn mark_dead(
    facts: &impl Facts,
    op: &MarkWorkerDead,
    now: TimestampMs,
) -> Result<Step<WorkerGone>, Halt> {
    let reason = Some(op.reason.as_str()).filter(|reason| !reason.is_empty());
    leave(facts, &op.namespace, &op.worker_instance_id, now, "marked_dead", reason)
}

/// Ends a registration by a word, not by time.
fn leave(
    facts: &impl Facts,
    namespace: &Namespace,
    instance: &WorkerInstanceId,
    now: TimestampMs,
    how: &str,
    reason: Option<&str>,
) -> Result<Step<WorkerGone>, Halt> {
    let mut draft = DocumentDraft::under(facts, namespace, instance, now)?;
    if draft.body.live(now).is_none() {
        return Ok(Step::unchanged(WorkerGone::NotRegistered));
    }
    draft.lose(LostBy::Revocation, how, reason);
    let gone = WorkerGone::Gone(draft.body.lost());
    Ok(draft.settle(gone))
}

pub(super) fn settle_loss(
    facts: &impl Facts,
    op: &SettleWorkerLoss,
    now: TimestampMs,
) -> Result<Step<Settled>, Halt> {
    let mut draft = DocumentDraft::under(facts, &op.namespace, &op.worker_instance_id, now)?;
    let before = draft.body.losses.len();
    // What lies ahead may still be claimed on an old read.
    let settled = op.acquired_before.min(now);
    draft.body.losses.retain(|loss| loss.acquired_before > settled);
    if draft.body.losses.len() == before {
        return Ok(Step::unchanged(Settled::AlreadySatisfied));
    }
    Ok(draft.settle(Settled::Done))
}

pub(super) fn lose_lease(
    facts: &impl Facts,
    op: &LoseLease,
    now: TimestampMs,
) -> Result<Step<Settled>, Halt> {
    let execution = existing(facts, op.execution_id)?;
    if execution.phase.lease().is_none_or(|lease| lease.id != op.lease_id) {
        return Ok(Step::unchanged(Settled::AlreadySatisfied));
    }
    let mut draft = Draft::of(execution, now);
    let reason = match op.by {
        LostBy::Time => None,
        LostBy::Revocation => Some("worker_gone"),
    };
    draft.lose_lease(op.by, reason, facts.settings());
    Ok(Step::done(Settled::Done, draft.finish().into()))
}

/// The registration of an instance that claims; a name that is not registered, or not for this
/// worker, is refused.
pub(super) fn registered(
    facts: &impl Facts,
    op: &Claim,
    now: TimestampMs,
) -> Result<Result<Registration, Refusal>, Needs> {
    let instance = &op.worker_instance_id;
    let document = facts.document(&DocumentId::worker(&op.namespace, instance))?;
    let worker = document.as_ref().and_then(|document| document.worker());
    let refuse = |field, detail| Err(Refusal::at(Code::WorkerNotRegistered, field, detail));
    Ok(match worker.and_then(|worker| worker.live(now)) {
        Some(live) if live.worker_id == op.worker_id => Ok(live.clone()),
        Some(live) => {
            let owner = &live.worker_id;
            let detail = format!("worker instance {instance:?} is registered for {owner:?}");
            refuse("worker_id", detail)
        }
        None => {
            let detail = format!("worker instance {instance:?} is not registered, or was silent");
            refuse("worker_instance_id", detail)
        }
    })
}

/// A silent worker is dead. What it leaves is told with every look until it has been settled.
pub(super) fn fire(document: Arc<Document>, now: TimestampMs) -> Result<Fired, Halt> {
    let Some(due) = document.due().filter(|due| due.at <= now) else { return Ok(None) };
    let mut draft = DocumentDraft::<Worker>::of(document, now)?;
    if draft.body.registration.as_ref().is_some_and(|registration| registration.is_over(now)) {
        draft.lose(LostBy::Time, "ttl", None);
    }
    for loss in &mut draft.body.losses {
        loss.due_at = loss.due_at.max(now.after(limits::WORKER_LOSS_RETRY_MS));
    }
    Ok(Some((due.kind, draft.finish())))
}

impl DocumentDraft<Worker> {
    /// What is known under an instance's name.
    fn under(
        facts: &impl Facts,
        namespace: &Namespace,
        instance: &WorkerInstanceId,
        now: TimestampMs,
    ) -> Result<Self, Halt> {
        let id = DocumentId::worker(namespace, instance);
        Self::open(facts, id, || Worker::new(namespace, instance), now)
    }

    /// The registration ends, and its leases must go. A note that says the same with an earlier
    /// instant is part of the new one.
    fn lose(&mut self, by: LostBy, how: &str, reason: Option<&str>) {
        let now = self.now;
        self.body.registration = None;
        self.body.losses.pop_if(|loss| loss.by == by);
        let acquired_before = now.after(limits::WORKER_LOSS_RETRY_MS);
        let loss = WorkerLoss { by, acquired_before, due_at: now };
        self.body.losses.push(loss);
        let mut data = EventData::from([("by".to_owned(), how.into())]);
        data.extend(reason.map(|reason| ("reason".to_owned(), reason.into())));
        self.event(EventKind::WorkerLost, data);
    }

    /// Nothing is kept under a name of which nothing is known.
    fn settle<R>(mut self, reply: R) -> Step<R> {
        self.removed = self.body.is_empty();
        self.answer(reply)
    }
}

impl Worker {
    pub(super) fn lost(&self) -> LostWorker {
        LostWorker {
            namespace: self.namespace.clone(),
            worker_instance_id: self.worker_instance_id.clone(),
            losses: self.losses.clone(),
        }
    }
}
