//! What was said of namespaces, lanes and workers: facts of another home that steps and claims rest
//! on.
//!
//! A commit can only compare records of its own home, so these are taken as they were read, a second
//! ago at the most. What this process writes itself it knows at once. What lets a step pass may be
//! remembered; what refuses one is read anew first.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ff_core::error::{EngineError, Refusal};
use ff_core::id::{DocumentId, Home, LaneId, Namespace};
use ff_core::machine::{self, Gate, Need, Overlay};
use ff_core::operation::Claim;
use ff_core::recent::Recent;
use ff_core::shared_look::SharedLook;
use ff_core::state::Document;
use ff_core::time::TimestampMs;

use crate::read;
use crate::store::Shared;

/// How long a fact counts.
const FRESH: Duration = Duration::from_secs(1);

/// Facts of one generation.
const FACTS: usize = 4096;

/// When it was looked at, and what there was.
type Fact = (Instant, Option<Arc<Document>>);

#[derive(Debug)]
pub(crate) struct Near {
    facts: Mutex<Recent<DocumentId, Fact>>,
    /// Claims of a namespace that want to read wait for each other: one read serves all of a worker.
    turns: Mutex<Recent<Namespace, Arc<SharedLook>>>,
}

impl Near {
    pub(crate) fn new() -> Self {
        Self { facts: Mutex::new(Recent::new(FACTS)), turns: Mutex::new(Recent::new(FACTS)) }
    }

    /// What there is, or that there is nothing, if that was seen a moment ago.
    pub(crate) fn get(&self, id: &DocumentId) -> Option<Option<Arc<Document>>> {
        let now = Instant::now();
        self.seen_since(id, now.checked_sub(FRESH).unwrap_or(now))
    }

    fn seen_since(&self, id: &DocumentId, since: Instant) -> Option<Option<Arc<Document>>> {
        let (seen, found) = self.lock().get(id)?;
        (seen >= since).then_some(found)
    }

    /// Keeps what was there at this instant or later; only of homes that others rest on. A read that
    /// was under way while this process wrote may have seen what was there before.
    pub(crate) fn keep(&self, id: &DocumentId, found: Option<&Arc<Document>>, seen: Instant) {
        let Home::Namespace(_) = id.home else { return };
        let mut facts = self.lock();
        let revision =
            |found: Option<&Arc<Document>>| found.map_or(0, |document| document.revision);
        let is_newer = |(at, known): Fact| at > seen && revision(known.as_ref()) > revision(found);
        if !facts.get(id).is_some_and(is_newer) {
            facts.keep(id.clone(), (seen, found.cloned()));
        }
    }

    pub(crate) fn forget(&self, id: &DocumentId) {
        self.lock().forget(id);
    }

    fn turn_of(&self, namespace: &Namespace) -> Arc<SharedLook> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.get(namespace).unwrap_or_else(|| {
            let turn = Arc::<SharedLook>::default();
            turns.keep(namespace.clone(), Arc::clone(&turn));
            turn
        })
    }

    fn lock(&self) -> MutexGuard<'_, Recent<DocumentId, Fact>> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a step of one home asks for a document of another.
pub(crate) fn is_abroad<'a>(home: &Home, need: &'a Need) -> Option<&'a DocumentId> {
    match need {
        Need::Document(id) if id.home != *home => Some(id),
        _ => None,
    }
}

/// Adds what is remembered of other homes to the facts of a step; what was added is noted in `used`.
/// False: nothing was.
pub(crate) fn recall(
    shared: &Shared,
    home: &Home,
    needs: &[Need],
    overlay: &mut Overlay,
    used: &mut Vec<Need>,
) -> bool {
    let before = used.len();
    for need in needs {
        if let Some(id) = is_abroad(home, need)
            && let Some(found) = shared.near.get(id)
        {
            overlay.supply_document(id.clone(), found);
            used.push(need.clone());
        }
    }
    used.len() > before
}

/// What a claim may look at, and whether that was remembered.
pub(crate) async fn gate(shared: &Shared, claim: &Claim) -> Result<(Gate, bool), EngineError> {
    let begun = Instant::now();
    let since = begun.checked_sub(FRESH).unwrap_or(begun);
    match remembered(shared, claim, since) {
        Some(Ok(gate)) if gate.lanes.iter().all(Option::is_some) => Ok((gate, true)),
        _ => Ok((gate_since(shared, claim, begun).await?, false)),
    }
}

/// How much younger than the best known an entry of a lane may be that is taken along. Where priorities
/// age, scores are closer than that: it stays below one step, so that nothing of a lower priority
/// passes what is as old. Nothing, where it is not known whether they do.
pub(crate) fn slack_ms(shared: &Shared, namespace: &Namespace, lane: &LaneId) -> u32 {
    let slack_ms = shared.options.fifo_slack_ms;
    let Some(found) = shared.near.get(&DocumentId::lane(namespace, lane)) else { return 0 };
    let ageing_ms = found.as_deref().and_then(Document::lane).map_or(0, |it| it.priority_ageing_ms);
    match ageing_ms.checked_sub(1) {
        Some(below) => slack_ms.min(u32::try_from(below).unwrap_or(u32::MAX)),
        None => slack_ms,
    }
}

/// Whether the worker of a claim is known to take nothing more.
pub(crate) fn drains(shared: &Shared, claim: &Claim) -> bool {
    let now = Instant::now();
    let gate = remembered(shared, claim, now.checked_sub(FRESH).unwrap_or(now));
    matches!(gate, Some(Ok(gate)) if gate.drains)
}

/// The same, by what was read after this instant, by this caller or by another.
pub(crate) async fn gate_since(
    shared: &Shared,
    claim: &Claim,
    since: Instant,
) -> Result<Gate, EngineError> {
    let known = || remembered(shared, claim, since);
    let read = async { read_gate(shared, claim).await };
    Ok(shared.near.turn_of(&claim.namespace).ask(known, read).await??)
}

/// By what has been seen since; none: something has not.
fn remembered(shared: &Shared, claim: &Claim, since: Instant) -> Option<Result<Gate, Refusal>> {
    let now = shared.clock.estimate(&Home::Namespace(claim.namespace.clone()))?;
    let mut overlay = Overlay::new(Arc::clone(&shared.settings));
    for id in facts_of(claim, &overlay) {
        let found = shared.near.seen_since(&id, since)?;
        overlay.supply_document(id, found);
    }
    machine::gate(&overlay, claim, now).ok()
}

async fn read_gate(shared: &Shared, claim: &Claim) -> Result<Result<Gate, Refusal>, EngineError> {
    let home = Home::Namespace(claim.namespace.clone());
    let mut overlay = Overlay::new(Arc::clone(&shared.settings));
    let ids = facts_of(claim, &overlay);
    let begun = Instant::now();
    let (now, found) = read::documents(shared, &home, &ids).await?;
    for (id, found) in ids.into_iter().zip(found) {
        let found = found.map(|(document, _)| Arc::new(document));
        shared.near.keep(&id, found.as_ref(), begun);
        overlay.supply_document(id, found);
    }
    let lacks = |needs| EngineError::bug(format!("a claim still lacks {needs:?}"));
    machine::gate(&overlay, claim, now).map_err(lacks)
}

/// What a claim rests on: it asks for all of it at once.
fn facts_of(claim: &Claim, nothing: &Overlay) -> Vec<DocumentId> {
    let needs = machine::gate(nothing, claim, TimestampMs(0)).err().unwrap_or_default();
    let ids = needs.0.into_iter().filter_map(|need| match need {
        Need::Document(id) => Some(id),
        _ => None,
    });
    ids.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::samples;

    /// A document at a revision, of a home that others rest on.
    fn document(revision: u64) -> Arc<Document> {
        let mut document = Document::clone(&samples::document(revision));
        document.id.home = Home::Namespace(Namespace::default());
        Arc::new(document)
    }

    fn known(near: &Near) -> Option<u64> {
        near.get(&document(1).id).flatten().map(|document| document.revision)
    }

    #[test]
    fn a_read_from_before_a_write_of_this_process_changes_nothing() {
        let (near, begun) = (Near::new(), Instant::now());
        let later = |ms| begun + Duration::from_millis(ms);
        let id = &document(1).id;
        near.keep(id, Some(&document(7)), later(5));
        for late in [Some(&document(6)), None] {
            near.keep(id, late, begun);
            assert_eq!(known(&near), Some(7), "{late:?}");
        }
        near.keep(id, Some(&document(8)), begun);
        assert_eq!(known(&near), Some(8), "another process wrote meanwhile");
    }

    #[test]
    fn what_is_read_later_counts_whatever_its_revision() {
        let (near, begun) = (Near::new(), Instant::now());
        let id = &document(1).id;
        near.keep(id, Some(&document(7)), begun);
        near.keep(id, Some(&document(1)), begun + Duration::from_millis(1));
        assert_eq!(known(&near), Some(1), "it was removed and made anew");
        near.keep(id, None, begun + Duration::from_millis(2));
        assert_eq!(known(&near), None);
    }
}
