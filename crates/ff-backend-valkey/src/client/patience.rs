//! How long an opening waits for servers that are not there yet, or do not answer.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::backoff::Backoff;
use crate::error::OpenError;
use crate::options::ValkeyOptions;

/// The time that all steps of one opening share.
pub(crate) struct Patience {
    deadline: Instant,
    /// What a try has, however little is left.
    call_timeout: Duration,
    backoff: Backoff,
    /// What was said last.
    told: String,
}

impl Patience {
    pub(crate) fn new(options: &ValkeyOptions) -> Self {
        Self {
            deadline: Instant::now() + options.connect_patience,
            call_timeout: options.call_timeout,
            backoff: Backoff::new(),
            told: String::new(),
        }
    }

    /// When a try that begins now is over.
    pub(super) fn of_a_try(&self) -> Instant {
        self.deadline.max(Instant::now() + self.call_timeout)
    }

    /// Waits a while, and says why; false: the time is over.
    pub(super) async fn pause(&mut self, reason: &OpenError) -> bool {
        let now = Instant::now();
        if now >= self.deadline {
            return false;
        }
        let reason = reason.to_string();
        if reason != self.told {
            tracing::warn!(%reason, "waiting for valkey");
            self.told = reason;
        }
        sleep_until(self.deadline.min(now + self.backoff.pause())).await;
        true
    }

    /// Carries out a step of an opening that may be repeated, again while its server does not answer.
    pub(crate) async fn until_answered<T, F: Future<Output = Result<T, OpenError>>>(
        &mut self,
        step: impl Fn() -> F,
    ) -> Result<T, OpenError> {
        loop {
            match step().await {
                Err(error @ OpenError::Unreachable { .. }) => {
                    if !self.pause(&error).await {
                        return Err(error);
                    }
                }
                done => return done,
            }
        }
    }
}
