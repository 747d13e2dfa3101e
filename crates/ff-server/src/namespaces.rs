//! The namespace guard: a thing of another namespace is not there.
//!
//! Operations go by id, so the guard stands here, before them. A worker's write shows a fence that
//! nobody else knows, so for it a remembered namespace is enough and no read is added; everything
//! else is read anew, since an id that was removed may be given again by somebody else.

use std::sync::{Mutex, PoisonError};

use ff_core::backend::{Backend, BackendExt as _};
use ff_core::error::{Code, EngineError, Refusal};
use ff_core::id::{ExecutionId, Namespace};
use ff_core::read::{Describe, Record};
use ff_core::recent::Recent;

/// Executions of one generation that are remembered.
const REMEMBERED: usize = 50_000;

pub(crate) struct Namespaces(Mutex<Recent<ExecutionId, Namespace>>);

impl Default for Namespaces {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(REMEMBERED)))
    }
}

/// The answer for what does not exist, and for what is somebody else's.
pub(crate) fn not_found() -> EngineError {
    Refusal::new(Code::ExecutionNotFound, "there is no such execution").into()
}

impl Namespaces {
    /// Notes where an execution belongs, as a submit or a claim has told.
    pub(crate) fn note(&self, id: ExecutionId, namespace: &Namespace) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.keep(id, namespace.clone());
    }

    /// Passes a call that shows a fence.
    pub(crate) async fn check(
        &self,
        backend: &dyn Backend,
        namespace: &Namespace,
        id: ExecutionId,
    ) -> Result<(), EngineError> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&id);
        match known {
            Some(known) if known == *namespace => Ok(()),
            _ => self.record(backend, namespace, id).await.map(|_| ()),
        }
    }

    /// The record of an execution of this namespace.
    pub(crate) async fn record(
        &self,
        backend: &dyn Backend,
        namespace: &Namespace,
        id: ExecutionId,
    ) -> Result<Box<Record>, EngineError> {
        let record = backend.ask(Describe { execution_id: id }).await?.ok_or_else(not_found)?;
        if record.namespace != *namespace {
            return Err(not_found());
        }
        self.note(id, namespace);
        Ok(record)
    }
}
