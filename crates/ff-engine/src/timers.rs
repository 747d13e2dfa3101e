//! The timer loop: carries out what is due when it is due.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ff_core::backend::{Backend, BackendExt};
use ff_core::error::EngineError;
use ff_core::id::Home;
use ff_core::limits;
use ff_core::operation::Tick;
use ff_core::read::Due;
use ff_core::state::DueKind;
use ff_core::time::TimestampMs;

use crate::brake::Brake;
use crate::errands;
use crate::report::Report;
use crate::service::{Patience, Shutdown};

pub(crate) const NAME: &str = "timers";

/// How soon to look again at a part of the store that has lost too many leases.
const BRAKED: Duration = Duration::from_millis(100);

/// Ticks of one part of the store in a row. A flow that carries on with what it has left is due again
/// after each.
const TICKS_MOST: u32 = 32;

/// Looks, ticks where something is due, and sleeps until the next timer or a sooner one.
pub(crate) async fn run(
    backend: Arc<dyn Backend>,
    report: Arc<Report>,
    interval: Duration,
    found: errands::Found,
    mut shutdown: Shutdown,
) {
    let mut patience = Patience::default();
    let mut brake = Brake::new(backend.settings().partitions.flow);
    while !shutdown.is_requested() {
        let round = async {
            match fire_due(&*backend, &report, &mut brake, &found).await? {
                Fired::Braked => {
                    tokio::time::sleep(BRAKED).await;
                    Ok(())
                }
                Fired::Until(next) => wait(&*backend, next, interval).await,
            }
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

/// How a round ended.
enum Fired {
    /// Nothing is due any more before this timer.
    Until(Option<NextTimer>),
    /// What is due has to wait.
    Braked,
}

/// Ticks until nothing is due any more, or what is due has to wait for the brake.
async fn fire_due(
    backend: &dyn Backend,
    report: &Report,
    brake: &mut Brake,
    found: &errands::Found,
) -> Result<Fired, EngineError> {
    loop {
        let dues = backend.ask(Due).await?;
        let mut next: Option<TimestampMs> = None;
        let (mut fired, mut braked) = (0, false);
        for (home, at) in dues.items {
            if at > dues.now {
                next = Some(next.map_or(at, |next| next.min(at)));
                continue;
            }
            let (ticks, held) = tick(backend, report, (&mut *brake, found), home).await?;
            fired += ticks;
            braked |= held;
        }
        if fired == 0 {
            let next = next.map(|at| NextTimer { at, in_ms: at.since(dues.now) });
            return Ok(if braked { Fired::Braked } else { Fired::Until(next) });
        }
    }
}

/// Ticks one part of the store until nothing of it is due, or it is the turn of the others: how often,
/// and whether what is due has to wait for the brake.
async fn tick(
    backend: &dyn Backend,
    report: &Report,
    (brake, found): (&mut Brake, &errands::Found),
    home: Option<Home>,
) -> Result<(u32, bool), EngineError> {
    for ticks in 0..TICKS_MOST {
        let most = brake.left(&home, Instant::now()).min(limits::TICK_ENTRIES);
        if most == 0 {
            return Ok((ticks, true));
        }
        let ticked = backend.call(Tick { home: home.clone(), most }).await?;
        for (kind, count) in &ticked.fired {
            report.add(kind.scanner(), *count);
            if *kind == DueKind::LeaseExpiry {
                brake.note(&home, *count, Instant::now());
            }
        }
        errands::tell(found, ticked.errands);
        if !ticked.more || ticked.fired.is_empty() {
            return Ok((ticks + 1, false));
        }
    }
    Ok((TICKS_MOST, false))
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
