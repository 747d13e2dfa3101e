//! Why an execution is where it is: what its records tell, and what only the workers know.

use crate::backend::{Backend, BackendExt};
use crate::error::EngineError;
use crate::id::{ExecutionId, Namespace};
use crate::limits;
use crate::read::{Explain, Explanation, ListWorkers, WorkerSnapshot};

pub(crate) async fn explain<B: Backend + ?Sized>(
    backend: &B,
    execution_id: ExecutionId,
) -> Result<Option<Explanation>, EngineError> {
    let Some(explained) = backend.ask(Explain { execution_id }).await? else { return Ok(None) };
    let (workers, all) = match &explained.route {
        Some(route) => workers(backend, &route.namespace).await?,
        None => (Vec::new(), true),
    };
    Ok(Some(explained.among(&workers, all)))
}

/// The live workers of a namespace, up to a bound, and whether these are all.
async fn workers<B: Backend + ?Sized>(
    backend: &B,
    namespace: &Namespace,
) -> Result<(Vec<WorkerSnapshot>, bool), EngineError> {
    let (mut workers, mut cursor) = (Vec::new(), None);
    while workers.len() < limits::EXPLAIN_WORKERS {
        let (namespace, limit) = (namespace.clone(), limits::PAGE_MAX);
        let page = backend.ask(ListWorkers { namespace, within: None, cursor, limit }).await?;
        workers.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok((workers, true));
        }
    }
    Ok((workers, false))
}
