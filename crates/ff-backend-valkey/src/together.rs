//! One asks for all who want to know the same.

use std::time::Instant;

use ff_core::error::EngineError;
use tokio::sync::Mutex;

/// Whose turn it is to ask, and the last time that nobody answered.
#[derive(Debug, Default)]
pub(crate) struct Together(Mutex<Option<(Instant, EngineError)>>);

impl Together {
    /// What is known, or else what is asked for. Who waits while another asks has that one's answer, and
    /// also its failure: asking a store that is away one after another, each would wait longer than the
    /// one before.
    pub(crate) async fn ask<T>(
        &self,
        known: impl Fn() -> Option<T>,
        asking: impl Future<Output = Result<T, EngineError>>,
    ) -> Result<T, EngineError> {
        if let Some(known) = known() {
            return Ok(known);
        }
        let begun = Instant::now();
        let mut failed = self.0.lock().await;
        if let Some(known) = known() {
            return Ok(known);
        }
        if let Some((at, error)) = &*failed
            && *at >= begun
        {
            return Err(error.clone());
        }
        let answer = asking.await;
        if let Err(error @ (EngineError::Transport { .. } | EngineError::Unavailable { .. })) =
            &answer
        {
            *failed = Some((Instant::now(), error.clone()));
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Barrier;

    use super::*;

    #[tokio::test]
    async fn who_waits_shares_a_failure_and_who_comes_later_asks() {
        let (together, asked) = (Arc::new(Together::default()), Arc::new(AtomicUsize::new(0)));
        let all_there = Arc::new(Barrier::new(3));
        let ask = || {
            let (together, asked) = (Arc::clone(&together), Arc::clone(&asked));
            let all_there = Arc::clone(&all_there);
            async move {
                let asking = async {
                    asked.fetch_add(1, Ordering::Relaxed);
                    all_there.wait().await;
                    Err::<(), _>(EngineError::unavailable("away"))
                };
                together.ask(|| None, asking).await
            }
        };
        let first = tokio::spawn(ask());
        let second = tokio::spawn(ask());
        while asked.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        let third = tokio::spawn(ask());
        tokio::task::yield_now().await;
        tokio::join!(all_there.wait(), all_there.wait());
        for waiting in [first, second, third] {
            assert!(waiting.await.unwrap().is_err());
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        let later = together.ask(|| None, async { Ok(7) }).await;
        assert_eq!(later, Ok(7));
    }
}
