//! A backend that fails as a test says.

use std::sync::Arc;

use ff_core::backend::{Backend, Pending};
use ff_core::error::EngineError;
use ff_core::layer::{Layer, Layered};
use ff_core::operation::{Command, Reply};
use ff_core::read::{Answer, Query};

/// What a backend is asked.
pub enum Asked<'a> {
    Command(&'a Command),
    Query(&'a Query),
}

/// Does as a test says with what it is asked.
struct Spoiled<F> {
    inner: Arc<dyn Backend>,
    spoil: F,
}

impl<F> Layer for Spoiled<F>
where
    F: Fn(Asked<'_>) -> Result<(), EngineError> + Send + Sync + 'static,
{
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn apply(&self, commands: Vec<Command>) -> Pending<'_, Vec<Result<Reply, EngineError>>> {
        Box::pin(async move {
            let mut replies = Vec::new();
            for command in commands {
                replies.extend(match (self.spoil)(Asked::Command(&command)) {
                    Ok(()) => self.inner.apply(vec![command]).await.pop(),
                    Err(error) => Some(Err(error)),
                });
            }
            replies
        })
    }

    fn query(&self, query: Query) -> Pending<'_, Result<Answer, EngineError>> {
        Box::pin(async move {
            (self.spoil)(Asked::Query(&query))?;
            self.inner.query(query).await
        })
    }
}

/// The backend, but for what `spoil` answers with an error.
pub fn spoiled<F>(inner: Arc<dyn Backend>, spoil: F) -> Arc<dyn Backend>
where
    F: Fn(Asked<'_>) -> Result<(), EngineError> + Send + Sync + 'static,
{
    Arc::new(Layered(Spoiled { inner, spoil }))
}
