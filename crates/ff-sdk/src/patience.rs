//! Calls that may take their time and no longer, and calls that are sent again.

use std::time::Duration;

use ff_core::error::EngineError;
use tokio::time::{Instant, timeout};

use crate::connection::CALL;
use crate::error::is_fault;
use crate::outage::Pauses;

/// How long an operation that may be repeated is sent again while the store does not answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// One call, up to the time that a call may take.
pub(crate) async fn within<T>(
    name: &str,
    pending: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, EngineError> {
    within_time(CALL, name, pending).await
}

/// One call that may take longer than others.
pub(crate) async fn within_time<T>(
    time: Duration,
    name: &str,
    pending: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, EngineError> {
    let late = || EngineError::Timeout { detail: format!("no answer to {name}") };
    timeout(time, pending).await.unwrap_or_else(|_| Err(late()))
}

/// Tries again while the store or the way to it fails, up to `patience`.
pub(crate) async fn insist<T, F>(
    patience: Duration,
    mut attempt: impl FnMut() -> F,
) -> Result<T, EngineError>
where
    F: Future<Output = Result<T, EngineError>>,
{
    let (begun, mut pauses) = (Instant::now(), Pauses::default());
    loop {
        match attempt().await {
            Err(error) if is_fault(&error) => {
                let left = patience.saturating_sub(begun.elapsed());
                if left.is_zero() {
                    return Err(error);
                }
                tokio::time::sleep(pauses.next().min(left)).await;
            }
            decided => return decided,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use ff_core::error::{Code, Refusal};

    use super::*;

    async fn tried(patience: Duration, answers: &[Option<EngineError>]) -> (bool, usize) {
        let calls = Cell::new(0);
        let ended = insist(patience, || {
            let answer = answers.get(calls.get()).cloned().flatten();
            calls.set(calls.get() + 1);
            async { answer.map_or(Ok(()), Err) }
        })
        .await;
        (ended.is_ok(), calls.get())
    }

    #[tokio::test]
    async fn faults_are_tried_again_and_refusals_are_not() {
        let fault = || Some(EngineError::unavailable("gone"));
        let refusal = Some(Refusal::new(Code::InvalidToken, "no").into());
        assert_eq!(tried(PATIENCE, &[fault(), fault(), None]).await, (true, 3));
        assert_eq!(tried(PATIENCE, &[fault(), refusal]).await, (false, 2));
        assert_eq!(tried(Duration::ZERO, &[fault(), None]).await, (false, 1));
    }
}
