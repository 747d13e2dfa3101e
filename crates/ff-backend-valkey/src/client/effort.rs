//! How long, and how often, one call is tried.

use std::future::Future;
use std::time::Duration;

use ff_core::error::EngineError;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::backoff::Backoff;
use super::connection::Failure;
use super::ground::Ground;

/// Redirections that are followed at once: from a node with an old view to one with a newer.
const REDIRECTIONS_AT_ONCE: u32 = 3;
/// A library that is gone again after this many repairs has somebody else who removes it.
const REPAIRS_MAX: u32 = 3;

/// For the answer to a try that was sent at the very end: what became of it is worth a moment.
const LAST_WORD: Duration = Duration::from_millis(500);

/// What one call may spend before it is given up, all its tries together.
pub(super) struct Effort {
    limit: Duration,
    deadline: Instant,
    backoff: Backoff,
    redirections: u32,
    repairs: u32,
}

impl Effort {
    pub(super) fn new(ground: &Ground) -> Self {
        let limit = ground.call_timeout;
        Self {
            limit,
            deadline: Instant::now() + limit,
            backoff: Backoff::new(),
            redirections: 0,
            repairs: 0,
        }
    }

    /// When the time of the call is over.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The answer to another try, which has no more time than is left.
    pub(super) async fn attempt<T>(
        &self,
        answer: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let answer = timeout_at(self.deadline + LAST_WORD, answer).await;
        answer.unwrap_or_else(|_| Err(Failure::unknown("valkey did not answer in time")))
    }

    /// Waits a little longer each time.
    pub(super) async fn pause(&mut self, why: &str) -> Result<(), EngineError> {
        let until = Instant::now() + self.backoff.pause();
        if until > self.deadline {
            return Err(self.given_up(why));
        }
        sleep_until(until).await;
        Ok(())
    }

    /// Waits for something that ends the reason.
    pub(super) async fn wait<T>(
        &self,
        why: &str,
        end: impl Future<Output = T>,
    ) -> Result<T, EngineError> {
        timeout_at(self.deadline, end).await.map_err(|_| self.given_up(why))
    }

    pub(super) async fn redirect(&mut self, why: &str) -> Result<(), EngineError> {
        self.redirections += 1;
        if self.redirections <= REDIRECTIONS_AT_ONCE { Ok(()) } else { self.pause(why).await }
    }

    pub(super) fn repair(&mut self, why: &str) -> Result<(), EngineError> {
        self.repairs += 1;
        if self.repairs <= REPAIRS_MAX { Ok(()) } else { Err(EngineError::unavailable(why)) }
    }

    /// Nothing was carried out, or there would be no other try.
    fn given_up(&self, why: &str) -> EngineError {
        let detail = format!("{why}; given up after {:?}", self.limit);
        EngineError::Transport { outcome_unknown: false, detail }
    }
}
