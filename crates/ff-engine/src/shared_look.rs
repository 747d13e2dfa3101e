//! Looks at a store that many want at once.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use ff_core::error::EngineError;

/// One at a time looks, and whoever waited meanwhile shares what came of it, a failure too: while a
/// store does not answer, nobody waits for it longer than for one look that began after they came.
#[derive(Debug, Default)]
pub struct SharedLook {
    /// When a look failed last, and why.
    failed: Mutex<Option<(Instant, EngineError)>>,
    turn: tokio::sync::Mutex<()>,
}

impl SharedLook {
    /// What is `known`, which is asked again after a wait, or else what `look` finds. It keeps what
    /// it has found itself, where `known` finds it.
    pub async fn ask<T>(
        &self,
        known: impl Fn() -> Option<T>,
        look: impl Future<Output = Result<T, EngineError>>,
    ) -> Result<T, EngineError> {
        if let Some(known) = known() {
            return Ok(known);
        }
        let came = Instant::now();
        let _turn = self.turn.lock().await;
        if let Some(known) = known() {
            return Ok(known);
        }
        if let Some(error) = self.failed_since(came) {
            return Err(error);
        }
        let found = look.await;
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) =
            found.as_ref().err().map(|error| (Instant::now(), error.clone()));
        found
    }

    fn failed_since(&self, came: Instant) -> Option<EngineError> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.as_ref().filter(|(at, _)| *at >= came).map(|(_, error)| error.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn away() -> EngineError {
        EngineError::Unavailable { detail: "it is away".to_owned() }
    }

    #[tokio::test]
    async fn who_waited_shares_a_failure_and_who_comes_later_looks() {
        let (shared, looks) = (SharedLook::default(), AtomicU32::new(0));
        let ask = || {
            shared.ask(|| None::<()>, async {
                looks.fetch_add(1, Ordering::Relaxed);
                // All who ask have come before it fails.
                tokio::task::yield_now().await;
                Err(away())
            })
        };
        let asked = tokio::join!(ask(), ask(), ask());
        assert_eq!(asked, (Err(away()), Err(away()), Err(away())));
        assert_eq!(looks.load(Ordering::Relaxed), 1);
        assert_eq!(ask().await, Err(away()));
        assert_eq!(looks.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn who_waited_takes_what_was_found() {
        let (shared, found) = (SharedLook::default(), AtomicU32::new(0));
        let known = || Some(found.load(Ordering::Relaxed)).filter(|found| *found > 0);
        let ask = async |number: u32| {
            let look = async {
                tokio::task::yield_now().await;
                found.store(number, Ordering::Relaxed);
                Ok(number)
            };
            shared.ask(known, look).await
        };
        assert_eq!(tokio::join!(ask(1), ask(2)), (Ok(1), Ok(1)));
    }
}
