//! An audit of the whole store, with or without a repair.

use ff_core::backend::{Backend, BackendExt};
use ff_core::error::EngineError;
use ff_core::limits;
use ff_core::operation::Reconciled;
use ff_core::read::{Audit, Audited, Repaired};

use super::SlotCheck;

/// Compares every record with what belongs to it, and every lease with the slots that it holds, and on
/// demand makes right what can be derived again.
pub async fn audit(backend: &dyn Backend, repair: bool) -> Result<Repaired, EngineError> {
    let mut audited = if repair {
        backend.repair().await?
    } else {
        let found = backend.ask(Audit).await?;
        Repaired { left: found.clone(), found }
    };
    // A server audits its store as a whole.
    if backend.acts().is_some() {
        return Ok(audited);
    }
    let Reconciled { found, .. } = slots(backend, repair).await?;
    let left = if repair && !found.violations.is_empty() {
        slots(backend, false).await?.found
    } else {
        found.clone()
    };
    note(&mut audited.found, found);
    note(&mut audited.left, left);
    Ok(audited)
}

/// Compares all leases with their slots.
async fn slots(backend: &dyn Backend, repair: bool) -> Result<Reconciled, EngineError> {
    let (mut check, mut all) = (SlotCheck::default(), Reconciled::default());
    loop {
        let page = check.page(backend, limits::PAGE_MAX, repair).await?;
        all.found.violations.extend(page.found.violations);
        all.mended += page.mended;
        if page.next_cursor.is_none() {
            return Ok(all);
        }
    }
}

/// Leases are of records that were counted.
fn note(audited: &mut Audited, more: Audited) {
    for it in more.violations {
        audited.report(it.invariant, it.subject, it.detail);
    }
}
