//! Decoded records of executions that were touched lately. The writer is the only one that writes,
//! so what it keeps is what the store has.

use std::sync::Arc;

use ff_core::id::ExecutionId;
use ff_core::recent::Recent;
use ff_core::state::Execution;
use ff_relational::Writes;

/// Records of one generation; about twice as many are kept.
const GENERATION: usize = 8192;

#[derive(Debug)]
pub(crate) struct Records(Recent<ExecutionId, Arc<Execution>>);

impl Default for Records {
    fn default() -> Self {
        Self(Recent::new(GENERATION))
    }
}

impl Records {
    pub(crate) fn get(&mut self, id: ExecutionId) -> Option<Arc<Execution>> {
        self.0.get(&id)
    }

    /// Keeps a record that stands in the store.
    pub(crate) fn keep(&mut self, execution: Arc<Execution>) {
        self.0.keep(execution.id, execution);
    }

    /// Takes over what a committed batch wrote. What has ended is not asked for again soon.
    pub(crate) fn committed(&mut self, writes: &Writes) {
        for write in &writes.executions {
            match &write.after {
                Some(after) if !after.is_terminal() => self.keep(Arc::clone(after)),
                _ => self.0.forget(&write.id),
            }
        }
    }
}
