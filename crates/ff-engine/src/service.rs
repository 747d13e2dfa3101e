//! A loop that works until it is told to stop, and comes back if it breaks.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::report::Report;

/// How long a broken loop rests before it begins again.
pub(crate) const RESTART_AFTER: Duration = Duration::from_secs(5);

/// A wish to stop that many can wait for. It is fulfilled once and for ever, also when whoever
/// could express it is gone.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    /// The wish, and the hand that expresses it.
    pub fn channel() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    pub fn is_requested(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    pub async fn requested(&mut self) {
        let _ = self.0.wait_for(|stop| *stop).await;
    }

    /// Waits for `work`, unless the wish comes first.
    pub async fn or<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        tokio::select! {
            () = self.requested() => None,
            done = &mut work => Some(done),
        }
    }
}

/// Runs `make` again whenever it panics, until the wish to stop.
pub(crate) async fn keep_running<F>(
    name: &'static str,
    (report, rest): (Arc<Report>, Duration),
    mut shutdown: Shutdown,
    make: impl Fn(Shutdown) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    while !shutdown.is_requested() {
        match tokio::spawn(make(shutdown.clone())).await {
            Ok(()) => return,
            Err(error) => {
                report.add_restart(name);
                tracing::error!(scanner = name, %error, "a scanner broke; it begins again");
                let _ = shutdown.or(tokio::time::sleep(rest)).await;
            }
        }
    }
}

/// Waits longer after each failure in a row, up to a second.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    failures: u32,
}

impl Patience {
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// How long to rest after one more failure; the first one of a row is worth telling.
    pub(crate) fn failed(&mut self) -> (Duration, bool) {
        let rest = Duration::from_millis(50 << self.failures.min(5)).min(Duration::from_secs(1));
        self.failures += 1;
        (rest, self.failures == 1)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn restarts(report: &Report, name: &str) -> u64 {
        let status = report.status().into_iter().find(|status| status.name == name);
        status.map_or(0, |status| status.restarts)
    }

    #[tokio::test]
    async fn a_loop_that_breaks_begins_again_and_is_counted() {
        let (report, begun) = (Arc::new(Report::default()), Arc::new(AtomicU32::new(0)));
        let (_stop, shutdown) = Shutdown::channel();
        keep_running("outbox", (Arc::clone(&report), Duration::ZERO), shutdown, |_| {
            let begun = Arc::clone(&begun);
            async move { assert!(begun.fetch_add(1, Ordering::SeqCst) == 2, "not yet") }
        })
        .await;
        assert_eq!(begun.load(Ordering::SeqCst), 3);
        assert_eq!((restarts(&report, "outbox"), restarts(&report, "unblock")), (2, 0));
    }

    #[tokio::test]
    async fn a_broken_loop_does_not_hold_up_the_end() {
        let (stop, shutdown) = Shutdown::channel();
        let report = Arc::new(Report::default());
        let day = Duration::from_secs(86_400);
        let stop = &stop;
        let running = keep_running("outbox", (report, day), shutdown, |_| {
            stop.send_replace(true);
            async { panic!("broken") }
        });
        tokio::time::timeout(Duration::from_secs(20), running).await.expect("it ends at once");
    }
}
