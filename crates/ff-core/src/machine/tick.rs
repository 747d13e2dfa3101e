//! What time does: the tick, and its parts for one execution.

use std::collections::BTreeSet;

use super::document::Fired as FiredDocument;
use super::draft::{Draft, Halt};
use super::facts::Settings;
use super::step::{Changes, Step};
use super::{Facts, Needs, budget, bulk, flow, quota, worker};
use crate::event::EventKind;
use crate::id::{DocumentId, DocumentKind, ExecutionId, Subject};
use crate::operation::{
    ExpireExecution, Fired, MarkLeaseExpired, NotDue, PromoteDelayed, Tick, Ticked,
};
use crate::state::{Body, DueKind, LostBy, Phase};
use crate::time::TimestampMs;

pub(super) fn tick(facts: &impl Facts, op: &Tick, now: TimestampMs) -> Result<Step<Ticked>, Halt> {
    let due = facts.due(op.home.as_ref(), now, op.most as usize)?;
    want(facts, &due.ids)?;
    // One that is broken holds up nothing: the others are carried out without it.
    let mut broken = BTreeSet::new();
    let (mut ticked, mut changes) = loop {
        match carry_out(facts, &due.ids, &broken, now) {
            Ok(done) => break done,
            Err((of, Halt::Refused(_))) if broken.insert(of) => {}
            Err((_, halt)) => return Err(halt),
        }
    };
    ticked.broken += u32::try_from(broken.len()).unwrap_or(u32::MAX);
    // One transition a step: what is due after this one is found by the next tick.
    ticked.more = !due.complete || is_due(&changes, now);
    ticked.errands = changes.errands();
    changes.told = true;
    Ok(Step::done(ticked, changes))
}

/// Carries out what is due of some, in their order; or says of which it could not be done.
fn carry_out(
    facts: &impl Facts,
    due: &[Subject],
    broken: &BTreeSet<usize>,
    now: TimestampMs,
) -> Result<(Ticked, Changes), (usize, Halt)> {
    let mut ticked = Ticked::default();
    let mut scene = flow::Scene::new(facts, now);
    let mut documents = Vec::new();
    let mut needs = Needs::default();
    for (at, of) in due.iter().enumerate().filter(|(at, _)| !broken.contains(at)) {
        // What came before in this tick may have changed what is due.
        let fired = match of {
            Subject::Execution(id) => fire(&mut scene, *id),
            Subject::Document(id) if id.kind == DocumentKind::Flow => scene.work_if_due(id),
            Subject::Document(id) => match fire_document(facts, id, now) {
                // What a document lacks is loaded together with what the others lack.
                Err(Halt::Needs(lacking)) => {
                    needs.merge(lacking);
                    Ok(None)
                }
                fired => fired.map(|fired| {
                    fired.map(|(kind, changed)| {
                        documents.push(changed);
                        kind
                    })
                }),
            },
        };
        if let Some(kind) = fired.map_err(|halt| (at, halt))? {
            ticked.count(kind);
        }
    }
    needs.into_result().map_err(|needs| (due.len(), needs.into()))?;
    let mut changes = scene.finish();
    changes.documents.append(&mut documents);
    Ok((ticked, changes))
}

/// Whether something that a step has changed is due at once.
fn is_due(changes: &Changes, now: TimestampMs) -> bool {
    let executions = changes.executions.iter().filter_map(|changed| changed.after.as_ref()?.due());
    let documents = changes.documents.iter().filter_map(|changed| changed.after.as_ref()?.due());
    executions.chain(documents).any(|due| due.at <= now)
}

fn want(facts: &impl Facts, ids: &[Subject]) -> Result<(), Needs> {
    let mut needs = Needs::default();
    for id in ids {
        match id {
            Subject::Execution(id) => needs.note(facts.execution(*id)),
            Subject::Document(id) => needs.note(facts.document(id)),
        }
    }
    needs.into_result()
}

/// Carries out what is due of a document that stands for itself.
fn fire_document(
    facts: &impl Facts,
    id: &DocumentId,
    now: TimestampMs,
) -> Result<FiredDocument, Halt> {
    let Some(document) = facts.document(id)? else { return Ok(None) };
    match &document.body {
        Body::Flow(_) => Ok(None),
        Body::Budget(_) => budget::fire(facts, document, now),
        Body::QuotaPolicy(_) => quota::fire(facts, document, now),
        Body::Worker(_) => worker::fire(document, now),
        Body::Bulk(_) => bulk::fire(document, now),
        Body::Lane(_) | Body::NamespaceRecord(_) | Body::ApiKey(_) => Ok(None),
    }
}

/// Carries out the earliest thing that is due of an execution.
fn fire<F: Facts>(
    scene: &mut flow::Scene<'_, F>,
    id: ExecutionId,
) -> Result<Option<DueKind>, Halt> {
    let (settings, now) = (scene.facts.settings(), scene.now);
    let Some(execution) = scene.view(id)? else { return Ok(None) };
    let Some(due) = execution.due().filter(|due| due.at <= now) else { return Ok(None) };
    let Some(draft) = scene.draft(id)? else { return Ok(None) };
    match due.kind {
        DueKind::ExecutionDeadline => draft.expire(settings),
        DueKind::AttemptTimeout => draft.time_out_attempt(settings),
        DueKind::LeaseExpiry => draft.lose_lease(LostBy::Time, None, settings),
        DueKind::SuspensionTimeout => draft.time_out_suspension(settings),
        // A draft begins with it.
        DueKind::PendingWaitpointExpiry => {}
        DueKind::DelayedPromoter => draft.promote(),
        DueKind::GrantExpiry => draft.lapse_grant(),
        DueKind::Outbox => draft.remind(),
        DueKind::RetentionTrimmer => scene.remove(id)?,
        // Work of documents.
        DueKind::FlowBuilder
        | DueKind::DependencyReconciler
        | DueKind::EdgeCancelDispatcher
        | DueKind::CancelReconciler
        | DueKind::FlowProjector
        | DueKind::BudgetReset
        | DueKind::QuotaReconciler
        | DueKind::WorkerTtl
        | DueKind::BulkRunner => return Ok(None),
    }
    scene.settle_one(&execution)?;
    Ok(Some(due.kind))
}

impl Draft {
    /// The delay is over.
    fn promote(&mut self) {
        if let Phase::Runnable(runnable) = &mut self.execution.phase {
            runnable.causes.delay = None;
            runnable.since = self.now;
        }
        self.event(EventKind::Eligible);
    }
}

pub(super) fn expire(
    facts: &impl Facts,
    op: &ExpireExecution,
    now: TimestampMs,
) -> Result<Step<Fired>, Halt> {
    fire_one(facts, op.execution_id, now, Draft::expire_if_due)
}

pub(super) fn promote(
    facts: &impl Facts,
    op: &PromoteDelayed,
    now: TimestampMs,
) -> Result<Step<Fired>, Halt> {
    fire_one(facts, op.execution_id, now, |draft, _| {
        let due = match &draft.execution.phase {
            Phase::Runnable(runnable) => {
                runnable.causes.running_delay().is_some_and(|delay| delay.until <= now)
            }
            _ => false,
        };
        if due {
            draft.promote();
        }
        due
    })
}

pub(super) fn mark_lease_expired(
    facts: &impl Facts,
    op: &MarkLeaseExpired,
    now: TimestampMs,
) -> Result<Step<Fired>, Halt> {
    fire_one(facts, op.execution_id, now, Draft::lose_lease_if_over)
}

/// One kind of due work on one execution; says why there is none.
fn fire_one(
    facts: &impl Facts,
    id: ExecutionId,
    now: TimestampMs,
    fire: impl FnOnce(&mut Draft, &Settings) -> bool,
) -> Result<Step<Fired>, Halt> {
    let nothing = |why| Ok(Step::unchanged(Fired::AlreadySatisfied(why)));
    let Some(execution) = facts.execution(id)? else { return nothing(NotDue::ExecutionNotFound) };
    if execution.is_terminal() {
        return nothing(NotDue::AlreadyTerminal);
    }
    let mut draft = Draft::of(execution, now);
    if fire(&mut draft, facts.settings()) {
        Ok(Step::done(Fired::Done, draft.finish().into()))
    } else {
        nothing(NotDue::NotYetDue)
    }
}
