//! Facts that were loaded, with the changes of the steps run so far laid over them.
//!
//! A store that runs a batch keeps one overlay: each command sees the ones before it, and the
//! difference between what was loaded and what stands at the end is what must be written.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;

use super::facts::{
    Candidates, DedupKey, DedupRecord, DueList, Facts, Known, Need, Needs, QueueView, Settings,
};
use super::rows::{RowChange, RowKey};
use super::step::{Changed, Changes};
use crate::content::Content;
use crate::error::EngineError;
use crate::id::{DocumentId, ExecutionId, Home, Subject};
use crate::state::{Document, Execution, QueuePlace};
use crate::time::TimestampMs;
use crate::token::Keyring;

/// Loaded facts and what became of them.
#[derive(Debug)]
pub struct Overlay {
    settings: Arc<Settings>,
    loaded: Layer,
    queues: HashMap<QueueView, QueueFront>,
    due: HashMap<Option<Home>, DueFront>,
    changed: Layer,
    /// What stands in the store and cannot be read, and why.
    broken: HashMap<Subject, EngineError>,
    keyring: Option<Arc<Keyring>>,
    rotated: Option<Arc<Keyring>>,
    /// What was removed since it was loaded.
    purged: HashSet<Subject>,
    /// Executions that entered a queue, or moved in one, since they were loaded.
    queued: Vec<ExecutionId>,
}

#[derive(Debug, Default)]
struct Layer {
    executions: HashMap<ExecutionId, Option<Arc<Execution>>>,
    documents: HashMap<DocumentId, Option<Arc<Document>>>,
    results: HashMap<ExecutionId, Option<Content>>,
    payloads: HashMap<ExecutionId, Option<Bytes>>,
    dedups: HashMap<DedupKey, Option<DedupRecord>>,
    rows: HashMap<(Subject, RowKey), Option<Bytes>>,
}

/// The front of the queues of a view as the store has it: score and id, in order.
#[derive(Debug, Clone, Default)]
struct QueueFront {
    entries: Vec<(i64, ExecutionId)>,
    complete: bool,
}

#[derive(Debug, Clone, Default)]
struct DueFront {
    ids: Vec<Subject>,
    complete: bool,
}

impl Overlay {
    pub fn new(settings: Arc<Settings>) -> Self {
        Self {
            settings,
            loaded: Layer::default(),
            queues: HashMap::new(),
            due: HashMap::new(),
            changed: Layer::default(),
            broken: HashMap::new(),
            keyring: None,
            rotated: None,
            purged: HashSet::new(),
            queued: Vec::new(),
        }
    }

    pub fn supply_execution(&mut self, id: ExecutionId, execution: Option<Arc<Execution>>) {
        self.loaded.executions.insert(id, execution);
    }

    pub fn supply_payload(&mut self, id: ExecutionId, payload: Option<Bytes>) {
        self.loaded.payloads.insert(id, payload);
    }

    pub fn supply_dedup(&mut self, key: DedupKey, record: Option<DedupRecord>) {
        self.loaded.dedups.insert(key, record);
    }

    pub fn supply_document(&mut self, id: DocumentId, document: Option<Arc<Document>>) {
        self.loaded.documents.insert(id, document);
    }

    pub fn supply_result(&mut self, id: ExecutionId, result: Option<Content>) {
        self.loaded.results.insert(id, result);
    }

    pub fn supply_row(&mut self, of: Subject, key: RowKey, bytes: Option<Bytes>) {
        self.loaded.rows.insert((of, key), bytes);
    }

    pub fn supply_keyring(&mut self, keyring: Arc<Keyring>) {
        self.keyring = Some(keyring);
    }

    /// The front of a view's queues as stored; `complete` when nothing stands behind it.
    pub fn supply_queue(
        &mut self,
        view: QueueView,
        entries: Vec<(i64, ExecutionId)>,
        complete: bool,
    ) {
        self.queues.insert(view, QueueFront { entries, complete });
    }

    pub fn supply_due(&mut self, home: Option<Home>, ids: Vec<Subject>, complete: bool) {
        self.due.insert(home, DueFront { ids, complete });
    }

    /// A record that is there and cannot be read: it stays unknown, and who needs it gets nowhere.
    pub fn supply_broken(&mut self, of: Subject, why: EngineError) {
        self.broken.insert(of, why);
    }

    pub fn knows_execution(&self, id: ExecutionId) -> bool {
        self.loaded.executions.contains_key(&id) || self.is_broken(id)
    }

    pub fn knows_document(&self, id: &DocumentId) -> bool {
        self.loaded.documents.contains_key(id) || self.is_broken(id)
    }

    fn is_broken(&self, of: impl Into<Subject>) -> bool {
        !self.broken.is_empty() && self.broken.contains_key(&of.into())
    }

    /// Why loading again will not help, if some of what is lacking cannot be read.
    pub fn why_lost(&self, lacking: &Needs) -> Option<&EngineError> {
        lacking.0.iter().find_map(|need| match need {
            Need::Execution(id) | Need::Result(id) => self.broken.get(&(*id).into()),
            Need::Document(id) => self.broken.get(&id.into()),
            _ => None,
        })
    }

    pub fn knows_payload(&self, id: ExecutionId) -> bool {
        self.loaded.payloads.contains_key(&id)
    }

    /// What was loaded of an execution, before any step of this batch.
    pub fn loaded_execution(&self, id: ExecutionId) -> Option<&Arc<Execution>> {
        self.loaded.executions.get(&id).and_then(Option::as_ref)
    }

    /// How an execution stands after the steps so far, if one of them touched it.
    pub fn changed_executions(
        &self,
    ) -> impl Iterator<Item = (ExecutionId, Option<&Arc<Execution>>)> {
        self.changed.executions.iter().map(|(id, execution)| (*id, execution.as_ref()))
    }

    /// Takes over the changes of a step.
    pub fn absorb(&mut self, changes: &Changes) {
        for changed in &changes.executions {
            if changed.after.as_ref().is_some_and(|after| after.queue_place().is_some()) {
                self.queued.push(changed.id);
            }
            self.changed.executions.insert(changed.id, changed.after.clone());
            self.absorb_rows(&changed.id.into(), changed.after.is_none(), &changed.rows);
            if changed.after.is_none() || opens_attempt(changed) {
                self.changed.results.insert(changed.id, None);
            }
            if let Some(result) = &changed.result {
                self.changed.results.insert(changed.id, Some(result.clone()));
            }
            if changed.after.is_none() {
                self.changed.payloads.insert(changed.id, None);
            } else if let Some(payload) = &changed.payload {
                self.changed.payloads.insert(changed.id, Some(payload.clone()));
            }
        }
        for changed in &changes.documents {
            self.changed.documents.insert(changed.id.clone(), changed.after.clone());
            self.absorb_rows(&(&changed.id).into(), changed.after.is_none(), &changed.rows);
        }
        if let Some(keyring) = &changes.keyring {
            self.rotated = Some(Arc::clone(keyring));
        }
        if let Some((key, record)) = &changes.dedup {
            self.changed.dedups.insert(key.clone(), Some(record.clone()));
        }
    }

    fn absorb_rows(&mut self, of: &Subject, removed: bool, rows: &[RowChange]) {
        if removed {
            self.purged.insert(of.clone());
            self.changed.rows.retain(|(subject, _), _| subject != of);
        }
        for row in rows {
            self.changed.rows.insert((of.clone(), row.key.clone()), row.bytes.clone());
        }
    }

    /// Forgets all steps and keeps what was loaded: the batch is run again.
    pub fn rewind(&mut self) {
        self.changed = Layer::default();
        self.queued.clear();
        self.purged.clear();
        self.rotated = None;
    }

    /// Whether the stored entry still stands where the store has it.
    fn stands(&self, (score, id): (i64, ExecutionId)) -> bool {
        match self.changed.executions.get(&id) {
            None => true,
            Some(execution) => {
                execution.as_ref().and_then(|e| e.queue_place()).map(|p| p.score) == Some(score)
            }
        }
    }

    /// Entries of this view that the steps so far have added, in order.
    fn added(&self, view: &QueueView) -> Vec<(i64, ExecutionId)> {
        let mut seen = HashSet::new();
        let mut added: Vec<_> = self
            .queued
            .iter()
            .filter_map(|id| {
                let execution = self.changed.executions.get(id)?.as_ref()?;
                let place = execution.queue_place().filter(|place| view.sees(place))?;
                seen.insert(*id).then_some((place.score, *id))
            })
            .collect();
        added.sort_unstable();
        added
    }
}

/// Whether a change puts a new attempt in the place of the current one.
fn opens_attempt(changed: &Changed) -> bool {
    let attempt = |execution: &Option<Arc<Execution>>| {
        execution.as_ref().and_then(|execution| execution.attempt.as_ref()).map(|a| a.index)
    };
    attempt(&changed.before) != attempt(&changed.after)
}

impl QueueView {
    /// Whether a place is in one of its queues.
    pub(super) fn sees(&self, place: &QueuePlace<'_>) -> bool {
        *place.namespace == self.namespace
            && *place.lane == self.lane
            && self.capabilities.covers(place.class)
    }
}

impl Facts for Overlay {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn is_lost(&self, lacking: &Needs) -> bool {
        self.why_lost(lacking).is_some()
    }

    fn execution(&self, id: ExecutionId) -> Known<Arc<Execution>> {
        let layers = [&self.changed, &self.loaded];
        layers
            .iter()
            .find_map(|layer| layer.executions.get(&id))
            .cloned()
            .ok_or_else(|| Need::Execution(id).into())
    }

    fn document(&self, id: &DocumentId) -> Known<Arc<Document>> {
        let layers = [&self.changed, &self.loaded];
        layers
            .iter()
            .find_map(|layer| layer.documents.get(id))
            .cloned()
            .ok_or_else(|| Need::Document(id.clone()).into())
    }

    fn result(&self, id: ExecutionId) -> Known<Content> {
        let layers = [&self.changed, &self.loaded];
        layers
            .iter()
            .find_map(|layer| layer.results.get(&id))
            .cloned()
            .ok_or_else(|| Need::Result(id).into())
    }

    fn payload(&self, id: ExecutionId) -> Known<Bytes> {
        let layers = [&self.changed, &self.loaded];
        layers
            .iter()
            .find_map(|layer| layer.payloads.get(&id))
            .cloned()
            .ok_or_else(|| Need::Payload(id).into())
    }

    fn dedup(&self, key: &DedupKey) -> Known<DedupRecord> {
        let layers = [&self.changed, &self.loaded];
        layers
            .iter()
            .find_map(|layer| layer.dedups.get(key))
            .cloned()
            .ok_or_else(|| Need::Dedup(key.clone()).into())
    }

    fn row(&self, of: &Subject, key: &RowKey) -> Known<Bytes> {
        let name = (of.clone(), key.clone());
        if let Some(row) = self.changed.rows.get(&name) {
            return Ok(row.clone());
        }
        // What is new has only the rows that were written since.
        let is_new = match of {
            Subject::Execution(id) => matches!(self.loaded.executions.get(id), Some(None)),
            Subject::Document(id) => matches!(self.loaded.documents.get(id), Some(None)),
        };
        if is_new || self.purged.contains(of) {
            return Ok(None);
        }
        let (of, key) = name;
        self.loaded
            .rows
            .get(&(of.clone(), key.clone()))
            .cloned()
            .ok_or_else(|| Need::Row(of, key).into())
    }

    fn keyring(&self) -> Result<Arc<Keyring>, Needs> {
        let newest = self.rotated.as_ref().or(self.keyring.as_ref());
        newest.cloned().ok_or_else(|| Need::Keyring.into())
    }

    fn candidates(&self, view: &QueueView, at_least: usize) -> Result<Candidates, Needs> {
        let Some(front) = self.queues.get(view) else {
            return Err(Need::Queue(view.clone(), at_least).into());
        };
        let stored: Vec<_> = front.entries.iter().copied().filter(|e| self.stands(*e)).collect();
        let mut added = self.added(view);
        added.retain(|entry| stored.binary_search(entry).is_err());
        if !front.complete {
            // Behind the loaded front the store may hold entries that come before added ones.
            let last = front.entries.last().copied();
            added.retain(|entry| last.is_some_and(|last| *entry < last));
        }
        let mut entries = stored;
        entries.extend(added);
        entries.sort_unstable();
        if entries.len() < at_least && !front.complete {
            let missing = at_least - entries.len();
            return Err(Need::Queue(view.clone(), front.entries.len() + missing).into());
        }
        Ok(Candidates {
            ids: entries.into_iter().map(|(_, id)| id).collect(),
            complete: front.complete,
        })
    }

    fn due(&self, home: Option<&Home>, now: TimestampMs, most: usize) -> Result<DueList, Needs> {
        let home = home.cloned();
        let Some(front) = self.due.get(&home) else {
            return Err(Need::Due(home, now, most).into());
        };
        let mut ids = front.ids.clone();
        let complete = front.complete && ids.len() <= most;
        ids.truncate(most);
        Ok(DueList { ids, complete })
    }
}
