//! All that is due, carried out now.

use ff_core::backend::{Backend, BackendExt};
use ff_core::error::EngineError;
use ff_core::limits;
use ff_core::operation::Tick;

use super::carry_out;

/// Carries out all that is due, as a running engine does: for whoever moves a store's clock by hand.
pub async fn settle(backend: &dyn Backend) -> Result<(), EngineError> {
    loop {
        let ticked = backend.call(Tick { home: None, most: limits::TICK_ENTRIES }).await?;
        for errand in &ticked.errands {
            carry_out(backend, errand).await?;
        }
        if !ticked.more {
            return Ok(());
        }
    }
}
