//! What a store finds wrong with itself.

use ff_core::backend::{Backend, BackendExt};
use ff_core::error::EngineError;
use ff_core::id::DocumentKind;
use ff_core::limits;
use ff_core::operation::{Part, Reconcile, Reconciled, ScannerFilter};
use ff_core::read::{Audit, Violation};
use ff_engine::acts::LedgerCheck;

/// All that an audit finds, and all that a check page by page does.
pub async fn violations(backend: &dyn Backend) -> Result<Vec<Violation>, EngineError> {
    let mut found = backend.ask(Audit).await?.violations;
    found.extend(reconcile(backend, limits::PAGE_MAX).await?.found.violations);
    // A server compares them itself.
    if backend.acts().is_none() {
        found.extend(ledgers(backend, false).await?.found.violations);
    }
    Ok(found)
}

/// Every budget with its ledgers.
pub async fn ledgers(backend: &dyn Backend, repair: bool) -> Result<Reconciled, EngineError> {
    let (mut check, mut all) = (LedgerCheck::default(), Reconciled::default());
    loop {
        let page = check.page(backend, limits::PAGE_MAX, repair).await?;
        all.found.checked += page.found.checked;
        all.found.violations.extend(page.found.violations);
        all.mended += page.mended;
        if page.next_cursor.is_none() {
            return Ok(all);
        }
    }
}

/// Every part of a store from its beginning to its end, in pages of at most so many.
pub async fn reconcile(backend: &dyn Backend, limit: u32) -> Result<Reconciled, EngineError> {
    let documents = DocumentKind::ALL.into_iter().map(Part::Documents);
    let mut all = Reconciled::default();
    for part in documents.chain([Part::Executions, Part::Entries]) {
        let mut cursor = None;
        loop {
            let filter = ScannerFilter::default();
            let page = backend.reconcile(Reconcile { part, filter, cursor, limit }).await?;
            all.found.checked += page.found.checked;
            all.found.violations.extend(page.found.violations);
            all.mended += page.mended;
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
    }
    Ok(all)
}
