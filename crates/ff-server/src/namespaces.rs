//! The guard of executions: one of another namespace, or of a lane that the caller's key is not for, is
//! not there.
//!
//! Operations go by id, so the guard stands here, before them. A worker's write shows a fence that
//! nobody else knows, so for it what is remembered is enough and no read is added; everything
//! else is read anew, since an id that was removed may be given again by somebody else.

use std::sync::{Mutex, PoisonError};

use ff_core::backend::{Backend, BackendExt as _};
use ff_core::error::{Code, EngineError, Refusal};
use ff_core::id::{BudgetId, ExecutionId, LaneId, Namespace};
use ff_core::read::{BudgetStatus, Describe, GetBudgetStatus, Record};
use ff_core::recent::Recent;

use crate::caller::Caller;

/// Executions of one generation that are remembered.
const REMEMBERED: usize = 50_000;

pub(crate) struct Namespaces(Mutex<Recent<ExecutionId, (Namespace, LaneId)>>);

impl Default for Namespaces {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(REMEMBERED)))
    }
}

/// The answer for what does not exist, and for what is somebody else's.
pub(crate) fn not_found() -> EngineError {
    Refusal::new(Code::ExecutionNotFound, "there is no such execution").into()
}

/// What was found, if it is of this namespace.
pub(crate) fn own<T>(
    found: Option<T>,
    namespace: &Namespace,
    of: impl Fn(&T) -> &Namespace,
    missing: (Code, &str),
) -> Result<T, EngineError> {
    let found = found.filter(|found| of(found) == namespace);
    found.ok_or_else(|| Refusal::new(missing.0, format!("there is no such {}", missing.1)).into())
}

/// A budget of this namespace.
pub(crate) async fn budget(
    backend: &dyn Backend,
    namespace: &Namespace,
    budget_id: BudgetId,
) -> Result<Box<BudgetStatus>, EngineError> {
    let found = backend.ask(GetBudgetStatus { budget_id }).await?;
    own(found, namespace, |budget| &budget.namespace, (Code::BudgetNotFound, "budget"))
}

impl Namespaces {
    /// Notes where an execution belongs, as a submit or a claim has told.
    pub(crate) fn note(&self, id: ExecutionId, namespace: &Namespace, lane: &LaneId) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.keep(id, (namespace.clone(), lane.clone()));
    }

    /// Passes a call that shows a fence.
    pub(crate) async fn check(
        &self,
        backend: &dyn Backend,
        caller: &Caller,
        namespace: &Namespace,
        id: ExecutionId,
    ) -> Result<(), EngineError> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&id);
        match known {
            Some((known, lane)) if known == *namespace && caller.serves(&lane) => Ok(()),
            _ => self.record(backend, caller, namespace, id).await.map(|_| ()),
        }
    }

    /// The record of an execution of this namespace, on a lane of the caller's.
    pub(crate) async fn record(
        &self,
        backend: &dyn Backend,
        caller: &Caller,
        namespace: &Namespace,
        id: ExecutionId,
    ) -> Result<Box<Record>, EngineError> {
        let record = backend.ask(Describe { execution_id: id }).await?.ok_or_else(not_found)?;
        if record.namespace != *namespace || !caller.serves(&record.lane) {
            return Err(not_found());
        }
        self.note(id, namespace, &record.lane);
        Ok(record)
    }
}
