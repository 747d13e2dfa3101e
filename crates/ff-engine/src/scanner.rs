//! A scanner: background work of one kind, visit by visit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ff_core::backend::{Backend, Pending};
use ff_core::error::EngineError;
use ff_core::operation::ScannerFilter;
use uuid::Uuid;

use crate::report::Report;
use crate::service::{Patience, Shutdown};
use crate::spread::Standing;

/// Background work of one kind. It keeps nothing that others need: should it break, a new one begins.
pub trait Scanner: Send {
    /// The stable label of logs, metrics and settings.
    fn name(&self) -> &'static str;

    /// How long it rests at most between two visits.
    fn interval(&self) -> Duration;

    /// What it is limited to.
    fn filter(&self) -> &ScannerFilter;

    /// Whether one engine of a store is enough for it.
    fn is_for_one(&self) -> bool {
        false
    }

    /// One bounded visit. A bad item is counted and ends nothing; an error means that there was
    /// nothing to be seen at all. Work under other names is added to the report.
    fn visit<'a>(
        &'a mut self,
        backend: &'a dyn Backend,
        report: &'a Report,
    ) -> Pending<'a, Result<ScanResult, EngineError>>;

    /// Waits for a reason to visit again, at most so long.
    fn wait<'a>(&'a mut self, _: &'a dyn Backend, at_most: Duration) -> Pending<'a, ()> {
        Box::pin(tokio::time::sleep(at_most))
    }
}

/// What one visit did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScanResult {
    pub processed: u32,
    /// Items that failed; they are tried again.
    pub errors: u32,
    /// Items that were passed over because they keep failing.
    pub skipped: u32,
    /// When there is more to do, should that be before the interval is over.
    pub next_in: Option<Duration>,
}

/// Visits until the wish to stop, if it is the turn of this engine.
pub(crate) async fn run(
    mut scanner: Box<dyn Scanner>,
    backend: Arc<dyn Backend>,
    report: Arc<Report>,
    by: Uuid,
    mut shutdown: Shutdown,
) {
    let (name, interval) = (scanner.name(), scanner.interval());
    let mut standing = scanner.is_for_one().then(|| Standing::new(name, by, interval));
    let mut patience = Patience::default();
    while !shutdown.is_requested() {
        let visit = visit_in_turn(&mut *scanner, &mut standing, &*backend, &report);
        let Some(visit) = shutdown.or(visit).await else { break };
        let rest = match visit {
            Ok(next_in) => {
                patience.reset();
                next_in.map_or(interval, |next| next.min(interval))
            }
            // It is repeated soon, and not later than the next one.
            Err(error) => {
                report.add_errors(name, 1);
                let (rest, is_first) = patience.failed();
                if is_first {
                    tracing::warn!(scanner = name, %error, "a visit failed; trying again");
                }
                rest.min(interval)
            }
        };
        let _ = shutdown.or(scanner.wait(&*backend, rest)).await;
    }
    if let Some(standing) = standing {
        standing.leave(&*backend).await;
    }
}

/// One visit, unless another engine makes it: when the next is to follow, should that be soon.
async fn visit_in_turn(
    scanner: &mut dyn Scanner,
    standing: &mut Option<Standing>,
    backend: &dyn Backend,
    report: &Report,
) -> Result<Option<Duration>, EngineError> {
    let name = scanner.name();
    if let Some(standing) = standing
        && !standing.take(backend).await?
    {
        report.add_left_to_others(name);
        return Ok(None);
    }
    let begun = Instant::now();
    let visit = scanner.visit(backend, report).await;
    report.add_cycle(name, begun.elapsed());
    let result = visit?;
    report.add(name, result.processed);
    report.add_errors(name, result.errors);
    report.add_skipped(name, result.skipped);
    Ok(result.next_in)
}
