//! What this process knows of executions that it claimed or wrote, and of documents that it wrote.
//! Others may have changed them since, so nothing is answered on the strength of it: it only spares
//! the read before a commit, which checks it, or behind a claim, which has found the record that it
//! stands beside unchanged.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use ff_core::id::{DocumentId, ExecutionId};
use ff_core::machine::{RowChange, RowKey};
use ff_core::recent::Recent;
use ff_core::state::Document;

use crate::record::Entry;

/// Records of one generation; about twice as many are kept.
const GENERATION: usize = 8192;

/// Documents of one generation.
const DOCUMENTS: usize = 1024;

/// Rows that are remembered beside a record, the newest, and the bytes of one: edges of members with
/// few of them, work that a flow has left.
const ROWS_MOST: usize = 4;
const ROW_BYTES_MOST: usize = 512;

/// A record, and rows that are known to stand beside it. They change only together with the record,
/// so they are right as long as it is.
#[derive(Debug, Clone)]
struct Remembered<T> {
    record: T,
    rows: Vec<(RowKey, Bytes)>,
    /// Executions that had ended when the record was last written, and were written with it.
    ended: Vec<Arc<Entry>>,
}

/// What is known beside a record.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    pub(crate) rows: Vec<(RowKey, Bytes)>,
    pub(crate) ended: Vec<Arc<Entry>>,
}

impl<T> Remembered<T> {
    /// A record that has taken the place of one with these rows.
    fn new(record: T, mut rows: Vec<(RowKey, Bytes)>, changes: Vec<RowChange>) -> Self {
        for RowChange { key, bytes } in changes {
            rows.retain(|(other, _)| *other != key);
            rows.extend(bytes.filter(|b| b.len() <= ROW_BYTES_MOST).map(|bytes| (key, bytes)));
        }
        rows.drain(..rows.len().saturating_sub(ROWS_MOST));
        Self { record, rows, ended: Vec::new() }
    }
}

#[derive(Debug)]
pub(crate) struct Entries {
    known: Mutex<Recent<ExecutionId, Remembered<Arc<Entry>>>>,
    /// What a commit found absent.
    absent: Mutex<Recent<ExecutionId, ()>>,
}

impl Entries {
    pub(crate) fn new() -> Self {
        Self {
            known: Mutex::new(Recent::new(GENERATION)),
            absent: Mutex::new(Recent::new(GENERATION)),
        }
    }

    /// Notes that there are no such executions: members of a large graph come one after another.
    pub(crate) fn note_absent(&self, ids: impl Iterator<Item = ExecutionId>) {
        let mut absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        ids.for_each(|id| absent.keep(id, ()));
    }

    /// Whether there was no such execution; forgets it.
    pub(crate) fn take_absent(&self, id: ExecutionId) -> bool {
        let mut absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        let found = absent.get(&id).is_some();
        absent.forget(&id);
        found
    }

    pub(crate) fn get(&self, id: ExecutionId) -> Option<Arc<Entry>> {
        self.lock().get(&id).map(|remembered| remembered.record)
    }

    /// What is known beside a record of this revision.
    pub(crate) fn beside(&self, id: ExecutionId, revision: u64) -> Beside {
        let remembered = self.lock().get(&id);
        let current = remembered.filter(|r| r.record.execution.revision == revision);
        current.map(|r| Beside { rows: r.rows, ended: r.ended }).unwrap_or_default()
    }

    /// Keeps what the store has now: a change of the record of revision `since`, if there was one, and
    /// of rows beside it. Only what will be asked for again is worth it: what is leased, for its
    /// holder, and members that have not ended, for those before and behind them.
    ///
    /// `ended` are executions that were written with it: as long as it is unchanged, what it waited for
    /// is too.
    pub(crate) fn keep(
        &self,
        entry: &Arc<Entry>,
        since: Option<u64>,
        changes: Vec<RowChange>,
        ended: &[Arc<Entry>],
    ) {
        let execution = &entry.execution;
        if since.is_none() {
            self.take_absent(execution.id);
        } else if self.get(execution.id).is_some_and(|e| e.execution.revision > execution.revision)
        {
            // A claim was faster than the reply of the commit that made it possible.
            return;
        }
        let is_open = execution.member.is_some() && !execution.is_terminal();
        if !is_open && execution.phase.lease().is_none() {
            return self.forget(execution.id);
        }
        let known = since.map(|since| self.beside(execution.id, since)).unwrap_or_default();
        let remembered = Remembered::new(Arc::clone(entry), known.rows, changes);
        self.lock().keep(execution.id, Remembered { ended: ended.to_vec(), ..remembered });
    }

    /// Keeps what a claim has made of a record.
    pub(crate) fn keep_claimed(&self, entry: &Arc<Entry>) {
        self.keep(entry, entry.execution.revision.checked_sub(1), Vec::new(), &[]);
    }

    pub(crate) fn forget(&self, id: ExecutionId) {
        self.lock().forget(&id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Recent<ExecutionId, Remembered<Arc<Entry>>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(crate) struct Documents(Mutex<Recent<DocumentId, Remembered<Arc<Document>>>>);

impl Documents {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Recent::new(DOCUMENTS)))
    }

    pub(crate) fn get(&self, id: &DocumentId) -> Option<Arc<Document>> {
        self.lock().get(id).map(|remembered| remembered.record)
    }

    /// Rows beside a record of this revision.
    pub(crate) fn rows(&self, id: &DocumentId, revision: u64) -> Vec<(RowKey, Bytes)> {
        let current = self.lock().get(id).filter(|r| r.record.revision == revision);
        current.map(|remembered| remembered.rows).unwrap_or_default()
    }

    /// Keeps what the store has now, as [`Entries::keep`] does.
    pub(crate) fn keep(
        &self,
        document: &Arc<Document>,
        since: Option<u64>,
        changes: Vec<RowChange>,
    ) {
        let rows = since.map(|since| self.rows(&document.id, since)).unwrap_or_default();
        let remembered = Remembered::new(Arc::clone(document), rows, changes);
        self.lock().keep(document.id.clone(), remembered);
    }

    pub(crate) fn forget(&self, id: &DocumentId) {
        self.lock().forget(id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Recent<DocumentId, Remembered<Arc<Document>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
