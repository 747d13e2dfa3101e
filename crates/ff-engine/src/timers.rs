//! The timer loop: carries out what is due when it is due.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use ff_core::backend::{Backend, BackendExt, Pending};
use ff_core::error::EngineError;
use ff_core::id::Home;
use ff_core::limits;
use ff_core::operation::{ScannerFilter, Tick};
use ff_core::read::Due;
use ff_core::state::DueKind;
use ff_core::time::TimestampMs;

use crate::brake::Brake;
use crate::errands;
use crate::options::EngineOptions;
use crate::report::Report;
use crate::scanner::{ScanResult, Scanner};
use crate::strikes::{Strikes, Turn};
use crate::table::SCANNERS;

pub(crate) const NAME: &str = "timers";

/// How soon to look again at a part of the store that has lost too many leases.
const BRAKED: Duration = Duration::from_millis(100);

/// Ticks of one part of the store in a row. A flow that carries on with what it has left is due again
/// after each.
const TICKS_MOST: u32 = 32;

/// Homes that one visit ticks. Then it looks again: another engine may have ticked the others.
const HOMES_MOST: usize = 8;

/// Looks, ticks where something is due, and sleeps until the next timer or a sooner one. A home that
/// fails is left for a while; the others have their turn.
pub(crate) struct Timers {
    interval: Duration,
    filter: ScannerFilter,
    brake: Brake,
    strikes: Strikes<Option<Home>>,
    found: errands::Found,
    /// With which of the homes that are due to begin.
    begin: usize,
    /// The earliest timer that was not due yet.
    next: Option<TimestampMs>,
}

/// What one visit has done so far.
#[derive(Default)]
struct Round {
    result: ScanResult,
    /// Homes in which something was carried out.
    homes: usize,
    /// What is due somewhere has to wait for the brake.
    is_braked: bool,
    /// How late the oldest thing of each kind was. Of one home it is not known which was the oldest,
    /// so what was carried out together counts as equally late.
    late: HashMap<DueKind, Duration>,
}

impl Timers {
    /// `begin`: among many homes that are due, engines begin apart.
    pub(crate) fn new(
        options: &EngineOptions,
        (partitions, begin): (u16, usize),
        found: errands::Found,
    ) -> Self {
        let interval = options.intervals.of_timers();
        Self {
            interval,
            filter: ScannerFilter::default(),
            brake: Brake::new(partitions),
            strikes: Strikes::new(interval),
            found,
            begin,
            next: None,
        }
    }

    async fn fire_due(
        &mut self,
        backend: &dyn Backend,
        report: &Report,
    ) -> Result<ScanResult, EngineError> {
        let begun = Instant::now();
        let dues = backend.ask(Due).await?;
        let mut round = Round::default();
        let (mut due, later): (Vec<_>, Vec<_>) =
            dues.items.into_iter().partition(|(_, at)| *at <= dues.now);
        self.next = later.iter().map(|(_, at)| *at).min();
        let begin = self.begin.checked_rem(due.len()).unwrap_or(0);
        due.rotate_left(begin);
        for (home, at) in due {
            if round.homes == HOMES_MOST {
                break;
            }
            let late = Duration::from_millis(dues.now.since(at));
            self.tick_in_turn(backend, report, (home, late), &mut round).await?;
        }
        self.begin = self.begin.wrapping_add(round.homes);
        let next_in = self.next.map(|at| Duration::from_millis(at.since(dues.now)));
        round.result.next_in = match (round.homes, round.is_braked) {
            (1.., _) => Some(Duration::ZERO),
            (0, true) => Some(BRAKED),
            (0, false) => next_in,
        };
        round.report(report, begun.elapsed());
        Ok(round.result)
    }

    /// An error only where the store is one home: nobody waits behind it, and it is tried again soon.
    async fn tick_in_turn(
        &mut self,
        backend: &dyn Backend,
        report: &Report,
        (home, late): (Option<Home>, Duration),
        round: &mut Round,
    ) -> Result<(), EngineError> {
        let turn = self.strikes.turn(&home, Instant::now());
        round.result.skipped += u32::from(turn == Turn::Skip);
        if turn != Turn::Try {
            return Ok(());
        }
        match self.tick(backend, report, (&home, late), round).await {
            Ok(()) => self.strikes.succeeded(&home),
            Err(error) if home.is_none() => return Err(error),
            Err(error) => {
                self.strikes.failed(&home, &error, Instant::now());
                round.result.errors += 1;
                let home = home.map(|home| home.to_string());
                tracing::warn!(%error, ?home, "what is due here is left for a moment");
            }
        }
        Ok(())
    }

    /// Ticks one part of the store until nothing of it is due, or it is the turn of the others.
    async fn tick(
        &mut self,
        backend: &dyn Backend,
        report: &Report,
        (home, late): (&Option<Home>, Duration),
        round: &mut Round,
    ) -> Result<(), EngineError> {
        for tick in 0..TICKS_MOST {
            let most = self.brake.left(home, Instant::now()).min(limits::TICK_ENTRIES);
            if most == 0 {
                round.is_braked = true;
                return Ok(());
            }
            let ticked = backend.call(Tick { home: home.clone(), most }).await?;
            // What is broken rests from now on, and what stands behind it has its turn.
            let goes_on = !ticked.fired.is_empty() || ticked.broken > 0;
            round.homes += usize::from(tick == 0 && goes_on);
            round.result.errors += ticked.broken;
            for (kind, count) in &ticked.fired {
                report.add(kind.scanner(), *count);
                round.result.processed += count;
                if tick == 0 {
                    round.note_late(*kind, late);
                }
                if *kind == DueKind::LeaseExpiry {
                    self.brake.note(home, *count, Instant::now());
                }
            }
            errands::tell(&self.found, ticked.errands);
            if !ticked.more || !goes_on {
                return Ok(());
            }
        }
        Ok(())
    }
}

impl Round {
    fn note_late(&mut self, kind: DueKind, late: Duration) {
        let oldest = self.late.entry(kind).or_default();
        *oldest = late.max(*oldest);
    }

    /// One look serves all that the tick does.
    fn report(&self, report: &Report, lasted: Duration) {
        for timed in SCANNERS.iter().filter(|known| known.is_timed) {
            report.add_cycle(timed.name, lasted);
        }
        for kind in DueKind::ALL {
            report.set_lag(kind.scanner(), self.late.get(&kind).copied().unwrap_or_default());
        }
        report.set_lag(NAME, self.late.values().copied().max().unwrap_or_default());
    }
}

impl Scanner for Timers {
    fn name(&self) -> &'static str {
        NAME
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    fn filter(&self) -> &ScannerFilter {
        &self.filter
    }

    fn visit<'a>(
        &'a mut self,
        backend: &'a dyn Backend,
        report: &'a Report,
    ) -> Pending<'a, Result<ScanResult, EngineError>> {
        Box::pin(self.fire_due(backend, report))
    }

    fn wait<'a>(&'a mut self, backend: &'a dyn Backend, at_most: Duration) -> Pending<'a, ()> {
        Box::pin(async move {
            if at_most.is_zero() {
                return tokio::task::yield_now().await;
            }
            // Who cannot be told looks when the time is over.
            if backend.sooner_timer(self.next, at_most).await.is_err() {
                tokio::time::sleep(at_most).await;
            }
        })
    }
}
