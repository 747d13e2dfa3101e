//! What this process knows of executions that it claimed or wrote. Others may have changed them
//! since, so nothing is answered on the strength of it: it only spares the read before a commit,
//! which checks it.

use std::sync::{Arc, Mutex, PoisonError};

use ff_core::id::ExecutionId;
use ff_core::recent::Recent;

use crate::record::Entry;

/// Records of one generation; about twice as many are kept.
const GENERATION: usize = 8192;

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
