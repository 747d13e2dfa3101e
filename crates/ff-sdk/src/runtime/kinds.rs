//! The handlers by kind, and how many of each may run.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ff_core::id::Kind;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::options::TaskService;
use crate::leases::lock;

/// A task is given back for no shorter than this: sooner, it would only come and go.
const SHORTEST: Duration = Duration::from_millis(50);
/// And for no longer: what a handler takes is only guessed.
const LONGEST: Duration = Duration::from_secs(30);
/// How long a handler takes of which nothing is known.
const UNKNOWN: Duration = Duration::from_secs(1);

pub(super) type Kinds = HashMap<Kind, Served>;

/// A kind that has a handler.
pub(super) struct Served {
    pub(super) service: TaskService,
    limit: Option<Arc<Limit>>,
}

impl Served {
    pub(super) fn new(service: TaskService, concurrency: Option<usize>) -> Self {
        Self { service, limit: concurrency.map(|most| Arc::new(Limit::new(most))) }
    }

    /// A turn to run; or, when as many run as may, how long the task should stay away.
    pub(super) fn turn(&self) -> Result<Turn, Duration> {
        let Some(limit) = &self.limit else { return Ok(Turn(None)) };
        match Arc::clone(&limit.permits).try_acquire_owned() {
            Ok(permit) => Ok(Turn(Some((Arc::clone(limit), Instant::now(), permit)))),
            Err(_) => Err(limit.away(Instant::now())),
        }
    }
}

/// The right to run a task of a kind; dropped when it has run.
pub(super) struct Turn(Option<(Arc<Limit>, Instant, OwnedSemaphorePermit)>);

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some((limit, begun, _)) = &self.0 {
            limit.took(begun.elapsed());
        }
    }
}

struct Limit {
    permits: Arc<Semaphore>,
    concurrency: u32,
    /// What a run took of late, in microseconds; 0: nothing is known.
    usual_us: AtomicU64,
    /// When the last task that was given back has its turn.
    last: Mutex<Option<Instant>>,
}

impl Limit {
    fn new(concurrency: usize) -> Self {
        let permits = concurrency.min(Semaphore::MAX_PERMITS);
        Self {
            permits: Arc::new(Semaphore::new(permits)),
            concurrency: u32::try_from(permits).unwrap_or(u32::MAX),
            usual_us: AtomicU64::new(0),
            last: Mutex::new(None),
        }
    }

    fn took(&self, run: Duration) {
        let run = u64::try_from(run.as_micros()).unwrap_or(u64::MAX).max(1);
        let known = self.usual_us.load(Ordering::Relaxed);
        let usual = if known == 0 { run } else { known - known / 8 + run / 8 };
        self.usual_us.store(usual.max(1), Ordering::Relaxed);
    }

    /// Those that are given back stand in a line that moves as fast as the handler works.
    fn away(&self, now: Instant) -> Duration {
        let usual = match self.usual_us.load(Ordering::Relaxed) {
            0 => UNKNOWN,
            us => Duration::from_micros(us),
        };
        let mut last = lock(&self.last);
        let ahead = last.map_or(Duration::ZERO, |last| last.saturating_duration_since(now));
        let away = (ahead + usual / self.concurrency.max(1)).min(LONGEST);
        *last = Some(now + away);
        away.max(SHORTEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_moves_as_fast_as_the_handler_works() {
        let (limit, now) = (Limit::new(2), Instant::now());
        let away = |times: usize| {
            let all: Vec<_> = (0..times).map(|_| limit.away(now).as_millis()).collect();
            all
        };
        assert_eq!(away(3), [500, 1_000, 1_500], "a second each until it is known");
        for _ in 0..100 {
            limit.took(Duration::from_millis(200));
        }
        let then = limit.away(now).as_millis();
        assert!((1_590..=1_600).contains(&then), "{then}");
        assert_eq!(away(1_000).last(), Some(&LONGEST.as_millis()));
        let later = limit.away(now + Duration::from_secs(60)).as_millis();
        assert!((50..=100).contains(&later), "{later}");
    }

    #[test]
    fn turns_come_back() {
        let handler = tower::service_fn(|_| async { Ok(super::super::Outcome::None) });
        let served = Served::new(TaskService::new(handler), Some(1));
        let turn = served.turn().ok();
        assert!(turn.is_some() && served.turn().is_err());
        drop(turn);
        assert!(served.turn().is_ok());
    }
}
