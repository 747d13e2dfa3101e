//! What this process knows of executions that it claimed or wrote, and of documents that it wrote.
//! Others may have changed them since, so nothing is answered on the strength of it: it only spares the read before a commit,
//! which checks it.

use std::sync::{Arc, Mutex, PoisonError};

use ff_core::id::{DocumentId, ExecutionId};
use ff_core::recent::Recent;
use ff_core::state::Document;

use crate::record::Entry;

/// Records of one generation; about twice as many are kept.
const GENERATION: usize = 8192;

/// Documents of one generation.
const DOCUMENTS: usize = 1024;

#[derive(Debug)]
pub(crate) struct Entries(Mutex<Recent<ExecutionId, Arc<Entry>>>);

impl Entries {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Recent::new(GENERATION)))
    }

    pub(crate) fn get(&self, id: ExecutionId) -> Option<Arc<Entry>> {
        self.lock().get(&id)
    }

    /// Keeps what the store has now. Only what is leased is worth it: its holder will be back.
    pub(crate) fn keep(&self, entry: &Arc<Entry>) {
        let id = entry.execution.id;
        if entry.execution.phase.lease().is_some() {
            self.lock().keep(id, Arc::clone(entry));
        } else {
            self.forget(id);
        }
    }

    pub(crate) fn forget(&self, id: ExecutionId) {
        self.lock().forget(&id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Recent<ExecutionId, Arc<Entry>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(crate) struct Documents(Mutex<Recent<DocumentId, Arc<Document>>>);

impl Documents {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Recent::new(DOCUMENTS)))
    }

    pub(crate) fn get(&self, id: &DocumentId) -> Option<Arc<Document>> {
        self.lock().get(id)
    }

    /// Keeps what the store has now.
    pub(crate) fn keep(&self, document: Arc<Document>) {
        self.lock().keep(document.id.clone(), document);
    }

    pub(crate) fn forget(&self, id: &DocumentId) {
        self.lock().forget(id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Recent<DocumentId, Arc<Document>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
