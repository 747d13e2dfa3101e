//! Namespaces one after another, and in each of them pages of something.

use ff_core::backend::{Backend, BackendExt};
use ff_core::error::EngineError;
use ff_core::id::Namespace;
use ff_core::limits;
use ff_core::read::ListNamespaces;

/// A walk over pages of something that each namespace has.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// Only in this one.
    only: Option<Namespace>,
    /// The namespace that it is at, and where in it.
    at: Option<(Namespace, Option<String>)>,
}

impl Pages {
    pub(super) fn new(only: Option<Namespace>) -> Self {
        Self { only, at: None }
    }

    /// Where the next page begins: a namespace, and the cursor in it. None: there are no namespaces.
    pub(super) async fn next(
        &mut self,
        backend: &dyn Backend,
    ) -> Result<Option<(Namespace, Option<String>)>, EngineError> {
        match self.at.take() {
            Some(at) => Ok(Some(at)),
            None => Ok(following(backend, self.only.as_ref(), None).await?.map(|it| (it, None))),
        }
    }

    /// The page of that namespace has been read, and ended with a cursor or without.
    pub(super) async fn passed(
        &mut self,
        backend: &dyn Backend,
        namespace: Namespace,
        cursor: Option<String>,
    ) -> Result<(), EngineError> {
        self.at = match cursor {
            Some(cursor) => Some((namespace, Some(cursor))),
            None => following(backend, self.only.as_ref(), Some(namespace))
                .await?
                .map(|next| (next, None)),
        };
        Ok(())
    }

    /// Where it goes on, for whoever asks whether it does.
    pub(super) fn place(&self) -> Option<String> {
        self.at.as_ref().map(|(namespace, _)| namespace.to_string())
    }
}

/// The namespace behind another, or the first; with `only` that one alone.
async fn following(
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
