//! The timer loop: carries out what is due when it is due.

use std::sync::Arc;
use std::time::Duration;

use ff_core::backend::{Backend, BackendExt};
use ff_core::error::EngineError;
use ff_core::limits;
use ff_core::operation::Tick;
use ff_core::read::Due;
use ff_core::time::TimestampMs;

use crate::report::Report;
use crate::service::{Patience, Shutdown};

pub(crate) const NAME: &str = "timers";

/// Looks, ticks where something is due, and sleeps until the next timer or a sooner one.
pub(crate) async fn run(
    backend: Arc<dyn Backend>,
    report: Arc<Report>,
    interval: Duration,
    mut shutdown: Shutdown,
) {
    let mut patience = Patience::default();
    while !shutdown.is_requested() {
        let round = async {
            let next = fire_due(&*backend, &report).await?;
            wait(&*backend, next, interval).await
        };
        match shutdown.or(round).await {
            None => return,
            Some(Ok(())) => patience.reset(),
            Some(Err(error)) => {
                report.add_error(NAME);
                let (rest, first) = patience.failed();
                if first {
                    tracing::warn!(%error, "timers cannot be read; trying again");
                }
                let _ = shutdown.or(tokio::time::sleep(rest)).await;
            }
        }
    }
}

/// The earliest timer that is not due yet, and how far off it is.
struct NextTimer {
    at: TimestampMs,
    in_ms: u64,
}

/// Ticks until nothing is due any more.
async fn fire_due(
    backend: &dyn Backend,
    report: &Report,
) -> Result<Option<NextTimer>, EngineError> {
    loop {
        let dues = backend.ask(Due).await?;
        let mut next: Option<TimestampMs> = None;
        let mut fired = 0;
        for (partition, at) in dues.items {
            if at <= dues.now {
                let tick = Tick { partition, most: limits::TICK_ENTRIES };
                let ticked = backend.call(tick).await?;
                for (kind, count) in &ticked.fired {
                    report.add(kind.scanner(), *count);
                }
                fired += 1;
            } else {
                next = Some(next.map_or(at, |next| next.min(at)));
            }
        }
        if fired == 0 {
            return Ok(next.map(|at| NextTimer { at, in_ms: at.since(dues.now) }));
        }
    }
}

async fn wait(
    backend: &dyn Backend,
    next: Option<NextTimer>,
    interval: Duration,
) -> Result<(), EngineError> {
    let wait = match &next {
        Some(next) => interval.min(Duration::from_millis(next.in_ms)),
        None => interval,
    };
    backend.sooner_timer(next.map(|next| next.at), wait).await?;
    Ok(())
}
