//! Decoded records of executions and documents that were touched lately. The writer is the only one that writes,
//! so what it keeps is what the store has.

use std::sync::Arc;

use ff_core::id::{DocumentId, ExecutionId};
use ff_core::recent::Recent;
use ff_core::state::{Document, Execution};
use ff_relational::Writes;

/// Records of one generation; about twice as many are kept.
const GENERATION: usize = 8192;

/// Documents of one generation.
const DOCUMENTS: usize = 1024;

#[derive(Debug)]
pub(crate) struct Records {
    executions: Recent<ExecutionId, Arc<Execution>>,
    /// Also which are not there: most lanes have no document, and every claim asks for its own.
    documents: Recent<DocumentId, Option<Arc<Document>>>,
}

impl Default for Records {
    fn default() -> Self {
        Self { executions: Recent::new(GENERATION), documents: Recent::new(DOCUMENTS) }
    }
}

impl Records {
    pub(crate) fn get(&mut self, id: ExecutionId) -> Option<Arc<Execution>> {
        self.executions.get(&id)
    }

    /// None: not known whether there is one.
    pub(crate) fn document(&mut self, id: &DocumentId) -> Option<Option<Arc<Document>>> {
        self.documents.get(id)
    }

    /// Keeps what the store was found to have.
    pub(crate) fn keep_document(&mut self, id: DocumentId, found: Option<Arc<Document>>) {
        self.documents.keep(id, found);
    }

    /// Keeps a record that stands in the store.
    pub(crate) fn keep(&mut self, execution: Arc<Execution>) {
        self.executions.keep(execution.id, execution);
    }

    /// Takes over what a committed batch wrote. What has ended is not asked for again soon.
    pub(crate) fn committed(&mut self, writes: &Writes) {
        for write in &writes.executions {
            match &write.after {
                Some(after) if !after.is_terminal() => self.keep(Arc::clone(after)),
                _ => self.executions.forget(&write.id),
            }
        }
        for write in &writes.documents {
            self.documents.keep(write.id.clone(), write.after.clone());
        }
    }
}
