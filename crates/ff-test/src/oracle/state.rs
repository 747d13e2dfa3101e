//! Everything there is, in maps.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use ff_core::content::Content;
use ff_core::event::{Event, EventAbout};
use ff_core::id::{DocumentId, ExecutionId, Home, Kid, Subject};
use ff_core::machine::{
    Candidates, Changes, DedupKey, DedupRecord, DueList, Facts, FrameChange, Known, Needs,
    QueueView, RowChange, RowKey, Settings,
};
use ff_core::state::{Attempt, Document, Execution, Frame, FrameMode, MemberCounts, Recounted};
use ff_core::time::TimestampMs;
use ff_core::token::{Keyring, Secret};

#[derive(Debug, Clone)]
pub struct State {
    pub settings: Settings,
    pub executions: BTreeMap<ExecutionId, Arc<Execution>>,
    pub payloads: BTreeMap<ExecutionId, Bytes>,
    pub results: BTreeMap<(ExecutionId, u32), Content>,
    pub attempts: BTreeMap<(ExecutionId, u32), Attempt>,
    pub dedups: BTreeMap<DedupKey, DedupRecord>,
    pub documents: BTreeMap<DocumentId, Arc<Document>>,
    pub rows: BTreeMap<(Subject, RowKey), Bytes>,
    /// Output by attempt and mode, in order.
    pub frames: BTreeMap<(ExecutionId, u32, FrameMode), VecDeque<Frame>>,
    pub keyring: Arc<Keyring>,
    pub events: BTreeMap<u64, Event>,
    pub last_event: u64,
}

impl State {
    pub fn new(settings: Settings, secret: Secret) -> Self {
        Self {
            settings,
            executions: BTreeMap::new(),
            payloads: BTreeMap::new(),
            results: BTreeMap::new(),
            attempts: BTreeMap::new(),
            dedups: BTreeMap::new(),
            documents: BTreeMap::new(),
            rows: BTreeMap::new(),
            frames: BTreeMap::new(),
            keyring: Arc::new(Keyring::seeded(Kid::first(), secret)),
            events: BTreeMap::new(),
            last_event: 0,
        }
    }

    /// Performs the changes of a step whose events have their numbers.
    pub fn perform(&mut self, changes: &Changes) {
        for changed in &changes.executions {
            for event in &changed.events {
                self.events.insert(event.number, event.clone());
            }
            match &changed.after {
                Some(after) => {
                    self.executions.insert(changed.id, Arc::clone(after));
                    if let (Some(result), Some(attempt)) = (&changed.result, &after.attempt) {
                        self.results.insert((changed.id, attempt.index), result.clone());
                    }
                }
                None => self.remove(changed.id),
            }
            if let Some(payload) = &changed.payload {
                self.payloads.insert(changed.id, payload.clone());
            }
            if let Some(attempt) = &changed.archived {
                self.attempts.insert((changed.id, attempt.index), attempt.clone());
            }
            self.change_rows(&changed.id.into(), &changed.rows);
            if let Some(change) = &changed.frames {
                self.change_frames(changed.id, change);
            }
        }
        for changed in &changes.documents {
            for event in &changed.events {
                self.events.insert(event.number, event.clone());
            }
            let id = &changed.id;
            match &changed.after {
                Some(after) => {
                    self.documents.insert(id.clone(), Arc::clone(after));
                }
                None => {
                    self.documents.remove(id);
                    self.rows.retain(|(of, _), _| *of != Subject::from(id));
                }
            }
            self.change_rows(&id.into(), &changed.rows);
        }
        if let Some(keyring) = &changes.keyring {
            self.keyring = Arc::clone(keyring);
        }
        if let Some((key, record)) = &changes.dedup {
            self.dedups.insert(key.clone(), record.clone());
        }
    }

    /// What an event's record says now.
    pub fn about(&self, subject: &Subject) -> Option<EventAbout> {
        match subject {
            Subject::Execution(id) => self.executions.get(id).map(|found| (&**found).into()),
            Subject::Document(id) => self.documents.get(id).map(|found| (&**found).into()),
        }
    }

    fn change_rows(&mut self, of: &Subject, rows: &[RowChange]) {
        for row in rows {
            let name = (of.clone(), row.key.clone());
            match &row.bytes {
                Some(bytes) => self.rows.insert(name, bytes.clone()),
                None => self.rows.remove(&name),
            };
        }
    }

    /// How many members of a flow are in which state.
    pub fn member_counts(&self, id: &DocumentId) -> MemberCounts {
        let mut counts = MemberCounts::default();
        for execution in self.executions.values() {
            let Some(counted) = Recounted::between(None, Some(execution)) else { continue };
            if counted.flow == *id {
                counted.deltas().into_iter().for_each(|(field, delta)| counts.add(field, delta));
            }
        }
        counts
    }

    fn change_frames(&mut self, id: ExecutionId, change: &FrameChange) {
        for shelf in &change.shelves {
            let frames = self.frames.entry((id, change.attempt_index, shelf.mode)).or_default();
            frames.drain(..shelf.drops as usize);
        }
        for frame in &change.frames {
            let shelf = (id, change.attempt_index, frame.mode);
            self.frames.entry(shelf).or_default().push_back(frame.clone());
        }
    }

    /// The attempt of an index, current or earlier.
    pub fn attempt(&self, execution: &Execution, index: u32) -> Option<Attempt> {
        let current = execution.attempt.as_ref().filter(|attempt| attempt.index == index);
        current.or_else(|| self.attempts.get(&(execution.id, index))).cloned()
    }

    fn remove(&mut self, id: ExecutionId) {
        self.executions.remove(&id);
        self.payloads.remove(&id);
        self.results.retain(|(of, _), _| *of != id);
        self.attempts.retain(|(of, _), _| *of != id);
        self.rows.retain(|(of, _), _| of.execution_id() != Some(id));
        self.frames.retain(|(of, ..), _| *of != id);
    }

    /// The earliest due time.
    pub fn next_due(&self) -> Option<TimestampMs> {
        let executions = self.executions.values().filter_map(|execution| execution.due());
        let documents = self.documents.values().filter_map(|document| document.due());
        executions.chain(documents).map(|due| due.at).min()
    }

    /// Ids in the order in which a claim with this view must take them.
    pub fn queue(&self, view: &QueueView) -> Vec<(i64, ExecutionId)> {
        let mut entries: Vec<_> = self
            .executions
            .values()
            .filter_map(|execution| {
                let place = execution.queue_place()?;
                let seen = *place.namespace == view.namespace
                    && *place.lane == view.lane
                    && view.capabilities.covers(place.class);
                seen.then_some((place.score, execution.id))
            })
            .collect();
        entries.sort_unstable();
        entries
    }
}

impl Facts for State {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn is_lost(&self, _: &Needs) -> bool {
        false
    }

    fn execution(&self, id: ExecutionId) -> Known<Arc<Execution>> {
        Ok(self.executions.get(&id).cloned())
    }

    fn document(&self, id: &DocumentId) -> Known<Arc<Document>> {
        Ok(self.documents.get(id).cloned())
    }

    fn result(&self, id: ExecutionId) -> Known<Content> {
        let attempt = self.executions.get(&id).and_then(|execution| execution.attempt.as_ref());
        Ok(attempt.and_then(|attempt| self.results.get(&(id, attempt.index)).cloned()))
    }

    fn payload(&self, id: ExecutionId) -> Known<Bytes> {
        Ok(self.payloads.get(&id).cloned())
    }

    fn dedup(&self, key: &DedupKey) -> Known<DedupRecord> {
        Ok(self.dedups.get(key).cloned())
    }

    fn row(&self, of: &Subject, key: &RowKey) -> Known<Bytes> {
        Ok(self.rows.get(&(of.clone(), key.clone())).cloned())
    }

    fn keyring(&self) -> Result<Arc<Keyring>, Needs> {
        Ok(Arc::clone(&self.keyring))
    }

    fn candidates(&self, view: &QueueView, _at_least: usize) -> Result<Candidates, Needs> {
        let ids = self.queue(view).into_iter().map(|(_, id)| id).collect();
        Ok(Candidates { ids, complete: true })
    }

    fn due(&self, home: Option<&Home>, now: TimestampMs, most: usize) -> Result<DueList, Needs> {
        let executions = self.executions.values();
        let executions = executions.filter_map(|e| Some((e.due()?.at, Subject::Execution(e.id))));
        let documents = self.documents.values();
        let documents = documents.filter_map(|d| Some((d.due()?.at, Subject::from(&d.id))));
        let mut due: Vec<_> = executions
            .chain(documents)
            .filter(|(at, of)| *at <= now && home.is_none_or(|home| of.home() == *home))
            .collect();
        due.sort_unstable();
        let complete = due.len() <= most;
        due.truncate(most);
        Ok(DueList { ids: due.into_iter().map(|(_, id)| id).collect(), complete })
    }
}
