//! Derives again what records decide by themselves.

use std::sync::Arc;

use ff_core::error::EngineError;
use ff_core::read::Repaired;

use crate::audit::{Findings, audit};
use crate::commit::{self, Committed};
use crate::read;
use crate::store::Shared;

/// Tries for one execution that others keep changing.
const TRIES: usize = 20;

/// Each execution is a commit of its own, which rests on its record being as it was read.
pub(crate) async fn repair(shared: &Arc<Shared>) -> Result<Repaired, EngineError> {
    let Findings { audited: found, mislisted } = audit(shared).await?;
    if mislisted.is_empty() {
        return Ok(Repaired { left: found.clone(), found });
    }
    for (id, places) in mislisted {
        for _ in 0..TRIES {
            let (now, mut entries) = read::executions(shared, id.partition(), &[id]).await?;
            let entry = entries.pop().flatten().map(Arc::new);
            let item = commit::relist(shared, id, entry.as_ref(), &places, now)?;
            let wires = [Arc::clone(&item.wire)];
            let outcome = commit::send(shared, &wires, true).await?.pop();
            if let Some(Committed::Done(number)) = outcome {
                shared.committed(item, number);
                break;
            }
        }
    }
    let left = audit(shared).await?.audited;
    Ok(Repaired { found, left })
}
