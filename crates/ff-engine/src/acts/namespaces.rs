//! Namespaces one after another.

use ff_core::backend::{Backend, BackendExt};
use ff_core::error::EngineError;
use ff_core::id::Namespace;
use ff_core::limits;
use ff_core::read::ListNamespaces;

/// The namespace behind another, or the first; with `only` that one alone.
pub(super) async fn following(
    backend: &dyn Backend,
    only: Option<&Namespace>,
    before: Option<Namespace>,
) -> Result<Option<Namespace>, EngineError> {
    if let Some(only) = only {
        return Ok(Some(only.clone()).filter(|_| before.is_none()));
    }
    let mut cursor = None;
    loop {
        let page = backend.ask(ListNamespaces { cursor, limit: limits::PAGE_MAX }).await?;
        let next = page.items.into_iter().find(|namespace| Some(namespace) > before.as_ref());
        cursor = page.next_cursor;
        if next.is_some() || cursor.is_none() {
            return Ok(next);
        }
    }
}
