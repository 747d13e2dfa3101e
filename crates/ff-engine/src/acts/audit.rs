//! An audit of the whole store, with or without a repair.

use ff_core::backend::{Backend, BackendExt};
use ff_core::error::EngineError;
use ff_core::read::{Audit, Repaired};

/// Compares every record with what belongs to it, and on demand makes right what can be derived
/// again.
pub async fn audit(backend: &dyn Backend, repair: bool) -> Result<Repaired, EngineError> {
    if repair {
        return backend.repair().await;
    }
    let found = backend.ask(Audit).await?;
    Ok(Repaired { left: found.clone(), found })
}
