//! A store that does not answer: said once, and once more when it does again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ff_core::error::EngineError;

use crate::error::is_fault;
use crate::leases::lock;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Whether the store answers, as far as this process knows.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    is_on: AtomicBool,
    since: Mutex<Option<Instant>>,
}

impl Outage {
    /// A call has failed.
    pub(crate) fn noticed(&self, error: &EngineError) {
        if is_fault(error) && !self.is_on.swap(true, Ordering::AcqRel) {
            *lock(&self.since) = Some(Instant::now());
            tracing::warn!(%error, "the store does not answer; waiting for it");
        }
    }

    /// A call has been answered.
    pub(crate) fn over(&self) {
        if self.is_on.load(Ordering::Acquire) && self.is_on.swap(false, Ordering::AcqRel) {
            let lasted = lock(&self.since).take().map(|since| since.elapsed());
            let seconds = lasted.unwrap_or_default().as_secs_f64();
            tracing::info!(seconds, "the store answers again");
        }
    }

    /// Notes how a call went.
    pub(crate) fn heard<T>(&self, result: &Result<T, EngineError>) {
        match result {
            Err(error) if is_fault(error) => self.noticed(error),
            _ => self.over(),
        }
    }
}

/// Pauses between tries: 50 ms at first, twice as long each time, up to a second.
#[derive(Debug)]
pub(crate) struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(FIRST_PAUSE)
    }
}

impl Pauses {
    pub(crate) fn next(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(LONGEST_PAUSE);
        pause
    }

    /// The next pause is the first again.
    pub(crate) fn begin_anew(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_second() {
        let mut pauses = Pauses::default();
        let ms: Vec<_> = (0..7).map(|_| pauses.next().as_millis()).collect();
        assert_eq!(ms, [50, 100, 200, 400, 800, 1000, 1000]);
        pauses.begin_anew();
        assert_eq!(pauses.next().as_millis(), 50);
    }

    #[test]
    fn an_outage_is_one_until_an_answer_comes() {
        let outage = Outage::default();
        outage.noticed(&EngineError::bug("not the store's"));
        assert!(!outage.is_on.load(Ordering::Relaxed));
        outage.noticed(&EngineError::unavailable("gone"));
        outage.noticed(&EngineError::unavailable("gone"));
        assert!(outage.is_on.load(Ordering::Relaxed));
        outage.heard(&Ok(()));
        assert!(!outage.is_on.load(Ordering::Relaxed));
    }
}
