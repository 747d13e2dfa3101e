//! What this process knows of executions that it claimed or wrote, and of documents that it wrote.
//! Others may have changed them since, so nothing is answered on the strength of it: it only spares
//! the read before a commit, which checks it, or behind a claim, which has found the record that it
//! stands beside unchanged.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use ff_core::id::{DocumentId, DocumentKind, ExecutionId, Subject};
use ff_core::machine::{RowChange, RowKey};
use ff_core::recent::Recent;
use ff_core::state::Document;

use crate::net::{NetDocument, last_of_each};
use crate::read::Known;
use crate::record::Entry;
use crate::upsets::{UntilUpset, Upsets};

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

/// Rows of one generation beside one document; of a flow most are needed once.
const ROWS: usize = 32;
const ROWS_OF_FLOW: usize = 4;

#[derive(Debug)]
pub(crate) struct Entries {
    known: UntilUpset<Recent<ExecutionId, Remembered<Arc<Entry>>>>,
    /// What a commit found absent.
    absent: Mutex<Recent<ExecutionId, ()>>,
}

impl Entries {
    pub(crate) fn new(upsets: &Upsets) -> Self {
        Self {
            known: UntilUpset::new(upsets, || Recent::new(GENERATION)),
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
        self.known.with(|known| known.get(&id)).map(|remembered| remembered.record)
    }

    /// What is known beside a record of this revision.
    pub(crate) fn beside(&self, id: ExecutionId, revision: u64) -> Beside {
        let remembered = self.known.with(|known| known.get(&id));
        let current = remembered.filter(|r| r.record.execution.revision == revision);
        current.map(|r| Beside { rows: r.rows, ended: r.ended }).unwrap_or_default()
    }

    /// Keeps what the store has now: a change of the record of revision `since`, if there was one, and
    /// of rows beside it. Only what will be asked for again is worth it: what is leased or set aside,
    /// for its holder, and members that have not ended, for those before and behind them.
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
        let is_held = execution.phase.lease().is_some() || execution.phase.grant().is_some();
        if !is_open && !is_held {
            return self.forget(execution.id);
        }
        let known = since.map(|since| self.beside(execution.id, since)).unwrap_or_default();
        let remembered = Remembered::new(Arc::clone(entry), known.rows, changes);
        let remembered = Remembered { ended: ended.to_vec(), ..remembered };
        self.known.with(|known| known.keep(execution.id, remembered));
    }

    /// Keeps what a claim has made of a record.
    pub(crate) fn keep_claimed(&self, entry: &Arc<Entry>) {
        self.keep(entry, entry.execution.revision.checked_sub(1), Vec::new(), &[]);
    }

    pub(crate) fn forget(&self, id: ExecutionId) {
        self.known.with(|known| known.forget(&id));
    }
}

#[derive(Debug)]
pub(crate) struct Documents(UntilUpset<Recent<DocumentId, RememberedDocument>>);

/// A document, and rows beside it as they are at its revision.
#[derive(Debug, Clone)]
struct RememberedDocument {
    document: Arc<Document>,
    rows: Arc<Mutex<Recent<RowKey, Option<Bytes>>>>,
}

/// What a commit leaves known of the rows beside a document.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// The revision before the commit: what was known then and is not among these has not changed.
    before: Option<u64>,
    rows: Vec<(RowKey, Option<Bytes>)>,
    /// Changed, and not worth remembering: what was known of them is wrong from now on.
    outdated: Vec<RowKey>,
}

impl Rows {
    /// Those that were known, as the changes leave them. Of flows only small ones that were written:
    /// work that is left.
    pub(crate) fn known(changed: &NetDocument<'_>, known: &Known) -> Self {
        let before = changed.before.map(|before| before.revision);
        let changes = last_of_each(&changed.rows).map(|row| (row.key.clone(), row.bytes.clone()));
        if changed.id.kind == DocumentKind::Flow {
            let is_small = |bytes: &Bytes| bytes.len() <= ROW_BYTES_MOST;
            let (rows, large): (Vec<_>, Vec<_>) =
                changes.partition(|(_, bytes)| bytes.as_ref().is_none_or(is_small));
            let outdated = large.into_iter().map(|(key, _)| key).collect();
            return Self { before, rows, outdated };
        }
        let of = Subject::from(changed.id);
        let unchanged = known.rows_of(&of).map(|(key, bytes)| (key.clone(), bytes.clone()));
        Self { before, rows: unchanged.chain(changes).collect(), outdated: Vec::new() }
    }
}

impl Documents {
    pub(crate) fn new(upsets: &Upsets) -> Self {
        Self(UntilUpset::new(upsets, || Recent::new(DOCUMENTS)))
    }

    pub(crate) fn get(&self, id: &DocumentId) -> Option<Arc<Document>> {
        self.0.with(|known| known.get(id)).map(|remembered| remembered.document)
    }

    /// A row beside a document at its revision, if it is remembered whether there is one.
    pub(crate) fn row(&self, document: &Document, key: &RowKey) -> Option<Option<Bytes>> {
        let remembered = self.0.with(|known| known.get(&document.id))?;
        if remembered.document.revision != document.revision {
            return None;
        }
        remembered.rows.lock().unwrap_or_else(PoisonError::into_inner).get(key)
    }

    /// Keeps what the store has now.
    pub(crate) fn keep(&self, document: Arc<Document>, known: Rows) {
        self.0.with(|documents| {
            let before = documents.get(&document.id);
            let before = before.filter(|before| Some(before.document.revision) == known.before);
            let rows = before.map_or_else(|| rows_beside(&document), |before| before.rows);
            let mut kept = rows.lock().unwrap_or_else(PoisonError::into_inner);
            known.outdated.iter().for_each(|key| kept.forget(key));
            known.rows.into_iter().for_each(|(key, bytes)| kept.keep(key, bytes));
            drop(kept);
            documents.keep(document.id.clone(), RememberedDocument { document, rows });
        });
    }

    pub(crate) fn forget(&self, id: &DocumentId) {
        self.0.with(|documents| documents.forget(id));
    }
}

/// Room for the rows of a document of which none is known.
fn rows_beside(document: &Document) -> Arc<Mutex<Recent<RowKey, Option<Bytes>>>> {
    let is_flow = document.id.kind == DocumentKind::Flow;
    Arc::new(Mutex::new(Recent::new(if is_flow { ROWS_OF_FLOW } else { ROWS })))
}

#[cfg(test)]
mod tests {
    use ff_core::machine::Family;

    use super::*;
    use crate::document::samples::document;

    #[test]
    fn rows_are_remembered_as_long_as_nobody_else_writes() {
        let documents = Documents::new(&Upsets::default());
        let key = |n| RowKey::numbered(Family::Slot, n);
        let row = |n: u32| (key(n), Some(Bytes::from(vec![n as u8])));
        let rows = |before, rows| Rows { before, rows, outdated: Vec::new() };
        documents.keep(document(1), rows(None, vec![row(1), (key(2), None)]));
        assert_eq!(documents.row(&document(1), &key(1)), Some(row(1).1));
        assert_eq!(documents.row(&document(1), &key(2)), Some(None));
        assert_eq!(documents.row(&document(1), &key(3)), None);
        assert_eq!(documents.row(&document(2), &key(1)), None, "another revision");
        documents.keep(document(3), rows(Some(1), vec![row(2)]));
        assert_eq!(documents.row(&document(3), &key(1)), Some(row(1).1));
        assert_eq!(documents.row(&document(3), &key(2)), Some(row(2).1));
        let outdated = vec![key(1)];
        documents.keep(document(4), Rows { outdated, ..rows(Some(3), Vec::new()) });
        assert_eq!(documents.row(&document(4), &key(1)), None, "it is another now");
        assert_eq!(documents.row(&document(4), &key(2)), Some(row(2).1));
        documents.keep(document(6), rows(Some(5), vec![row(3)]));
        assert_eq!(documents.row(&document(6), &key(2)), None, "another has written");
        assert_eq!(documents.row(&document(6), &key(3)), Some(row(3).1));
    }
}
