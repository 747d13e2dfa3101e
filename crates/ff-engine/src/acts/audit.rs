//! An audit of the whole store, with or without a repair.

use ff_core::backend::{Backend, BackendExt};
use ff_core::error::EngineError;
use ff_core::limits;
use ff_core::read::{Audit, Audited, Repaired, Violation};

use super::{LedgerCheck, SlotCheck};

/// Compares every record with what belongs to it, every lease with the slots that it holds and every
/// budget with its ledgers, and on demand makes right what can be derived again.
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
    let found = violations(backend, repair).await?;
    let left =
        if repair && !found.is_empty() { violations(backend, false).await? } else { found.clone() };
    note(&mut audited.found, found);
    note(&mut audited.left, left);
    Ok(audited)
}

/// Compares all leases with their slots, and all budgets with their ledgers.
async fn violations(backend: &dyn Backend, repair: bool) -> Result<Vec<Violation>, EngineError> {
    let (mut slots, mut ledgers) = (SlotCheck::default(), LedgerCheck::default());
    let mut found = Vec::new();
    let mut more = true;
    while more {
        let page = slots.page(backend, limits::PAGE_MAX, repair).await?;
        found.extend(page.found.violations);
        more = page.next_cursor.is_some();
    }
    more = true;
    while more {
        let page = ledgers.page(backend, limits::PAGE_MAX, repair).await?;
        found.extend(page.found.violations);
        more = page.next_cursor.is_some();
    }
    Ok(found)
}

/// Leases and budgets are of records that were counted.
fn note(audited: &mut Audited, more: Vec<Violation>) {
    for it in more {
        audited.report(it.invariant, it.subject, it.detail);
    }
}
