//! The route check: what no live worker can run is blocked, and let go once one can.
//!
//! Nobody writes down what workers offered that have left, so the engine looks often while it waits, and
//! forgets what it has blocked: whatever stands there afterwards may have been let go by a worker.
//!
//! Claims take only what their worker covers, so a block holds nothing up that could run: it tells
//! people and lists what is lacking. A round blocks first and lets go afterwards, over what is
//! registered by then: a worker that came in between has not found the block, and is found here.
//! Whoever stops half way leaves the rest to the next round of any engine.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ff_core::backend::{Backend, BackendExt, Pending};
use ff_core::each::each;
use ff_core::error::EngineError;
use ff_core::id::Namespace;
use ff_core::limits;
use ff_core::operation::{BlockForAdmission, Command, Reply, ScannerFilter, Settled};
use ff_core::read::{ListFleets, ListOffers, ListQueued, ListRoutes, Nearest, Offer};
use ff_core::routes;
use ff_core::state::{AdmissionReason, Route};
use ff_core::time::TimestampMs;
use tokio::sync::Notify;

use crate::errands::tell_of;
use crate::options::EngineOptions;
use crate::report::Report;
use crate::scanner::{ScanResult, Scanner};
use crate::strikes::{Strikes, Turn};
use crate::unblock as unblocking;

pub(crate) const NAME: &str = "route_check";

/// Routes that are remembered as uncovered. Those beyond have their turn when these are blocked.
const REMEMBERED: usize = 10_000;

/// Workers of one namespace that are looked at; with more, its routes are not judged.
const OFFERS_MOST: usize = 10_000;

/// Bytes of what is lacking that a block's detail names.
const DETAIL_BYTES: usize = 512;

/// What the rounds of one engine remember: since when nobody covers which routes, and which namespaces
/// fail. A process that forgets it begins to wait again.
#[derive(Debug)]
pub struct RouteCheck {
    filter: ScannerFilter,
    uncovered: HashMap<Route, TimestampMs>,
    looked_at: TimestampMs,
    /// Namespaces whose routes cannot be judged or blocked.
    unjudged: Strikes<Namespace>,
    /// Namespaces in which nothing can be let go.
    stuck: Strikes<Namespace>,
}

/// What a round did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checked {
    pub blocked: u32,
    pub let_go: u32,
    /// Namespaces that could not be looked at, and executions that are broken.
    pub errors: u32,
    /// Those that keep failing and were passed over.
    pub skipped: u32,
    /// When there is more to do, should that be soon.
    pub next_in_ms: Option<u64>,
}

/// Looks every `interval`, when a worker is `gone`, and when a route has waited long enough.
pub(crate) struct Routes {
    interval: Duration,
    check: RouteCheck,
    gone: Arc<Notify>,
}

impl Routes {
    pub(crate) fn new(options: &EngineOptions, gone: Arc<Notify>) -> Self {
        let interval = options.intervals.of(NAME);
        Self { interval, check: RouteCheck::new(interval, options.filter.clone()), gone }
    }
}

impl Scanner for Routes {
    fn name(&self) -> &'static str {
        NAME
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    fn filter(&self) -> &ScannerFilter {
        &self.check.filter
    }

    fn is_for_one(&self) -> bool {
        true
    }

    fn visit<'a>(
        &'a mut self,
        backend: &'a dyn Backend,
        report: &'a Report,
    ) -> Pending<'a, Result<ScanResult, EngineError>> {
        Box::pin(async move {
            let Checked { blocked, let_go, errors, skipped, next_in_ms } =
                self.check.round(backend).await?;
            report.add(unblocking::NAME, let_go);
            let next_in = next_in_ms.map(Duration::from_millis);
            Ok(ScanResult { processed: blocked, errors, skipped, next_in })
        })
    }

    fn wait<'a>(&'a mut self, _: &'a dyn Backend, at_most: Duration) -> Pending<'a, ()> {
        Box::pin(async move {
            let _ = tokio::time::timeout(at_most, self.gone.notified()).await;
        })
    }
}

impl Default for RouteCheck {
    fn default() -> Self {
        Self::new(Duration::from_millis(limits::ROUTE_PATIENCE_MS), ScannerFilter::default())
    }
}

impl RouteCheck {
    /// A round follows every `interval`, over what the filter lets through.
    pub fn new(interval: Duration, filter: ScannerFilter) -> Self {
        let (unjudged, stuck) = (Strikes::new(interval), Strikes::new(interval));
        let (uncovered, looked_at) = (HashMap::new(), TimestampMs(0));
        Self { filter, uncovered, looked_at, unjudged, stuck }
    }

    /// Blocks what nobody could run for a while, and lets go what somebody can run again.
    pub async fn round(&mut self, backend: &dyn Backend) -> Result<Checked, EngineError> {
        let mut checked = Checked::default();
        self.block(backend, &mut checked).await?;
        self.let_go(backend, &mut checked).await?;
        Ok(checked)
    }

    async fn block(
        &mut self,
        backend: &dyn Backend,
        checked: &mut Checked,
    ) -> Result<(), EngineError> {
        let now = backend.server_time_ms().await?;
        let before = self.seen_until(now);
        let mut fleets = Fleets::new(&self.filter, &mut self.unjudged);
        let (mut uncovered, mut cursor) = (HashMap::new(), None);
        loop {
            let page = backend.ask(ListRoutes { cursor, limit: limits::PAGE_MAX }).await?;
            for route in page.items {
                // What cannot be judged stays eligible.
                let Some(offers) = fleets.of(backend, &route.namespace, checked).await else {
                    continue;
                };
                if offers.iter().any(|offer| offer.covers(&route)) {
                    continue;
                }
                let since = before.get(&route).copied().unwrap_or(now);
                let is_left = match limits::ROUTE_PATIENCE_MS.saturating_sub(now.since(since)) {
                    0 => match block_front(backend, &route, offers, checked).await {
                        Ok(is_left) => is_left,
                        Err(error) => {
                            fleets.failed(&route.namespace, &error, checked);
                            true
                        }
                    },
                    left => {
                        checked.look_in(left.min(limits::ROUTE_LOOK_MS));
                        true
                    }
                };
                if is_left && uncovered.len() < REMEMBERED {
                    uncovered.insert(route, since);
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        fleets.end();
        self.uncovered = uncovered;
        Ok(())
    }

    /// Since when nobody covers which routes, as far as this engine has seen it. A round that fails has
    /// not, and whoever has not looked for long does not know what another engine has.
    fn seen_until(&mut self, now: TimestampMs) -> HashMap<Route, TimestampMs> {
        let before = std::mem::take(&mut self.uncovered);
        let looked_at = std::mem::replace(&mut self.looked_at, now);
        match now.since(looked_at) <= limits::ROUTE_PATIENCE_MS {
            true => before,
            false => HashMap::new(),
        }
    }

    /// Lets go what waits on routes that are covered, wherever there are workers.
    async fn let_go(
        &mut self,
        backend: &dyn Backend,
        checked: &mut Checked,
    ) -> Result<(), EngineError> {
        let mut cursor = None;
        loop {
            let page = backend.ask(ListFleets { cursor, limit: limits::PAGE_MAX }).await?;
            for namespace in &page.items {
                if !is_its_turn((&self.filter, &self.stuck), namespace, checked) {
                    continue;
                }
                // One that fails leaves the others their turn.
                match let_go_in(backend, namespace, checked).await {
                    Ok(let_go) => {
                        self.stuck.succeeded(namespace);
                        checked.let_go += let_go;
                        checked.look_on_after(let_go);
                    }
                    Err(error) => {
                        self.stuck.failed(namespace, &error, Instant::now());
                        checked.errors += 1;
                    }
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(());
            }
        }
    }
}

/// Whether a namespace is looked at in this round.
fn is_its_turn(
    (filter, strikes): (&ScannerFilter, &Strikes<Namespace>),
    namespace: &Namespace,
    checked: &mut Checked,
) -> bool {
    // A route has no tags: with a filter by tag it cannot be checked.
    if !filter.admits(namespace, None) {
        return false;
    }
    let turn = strikes.turn(namespace, Instant::now());
    checked.skipped += u32::from(turn == Turn::Skip);
    turn == Turn::Try
}

/// What live workers offer, read once for each namespace of a round.
struct Fleets<'a> {
    filter: &'a ScannerFilter,
    strikes: &'a mut Strikes<Namespace>,
    /// None: it is not judged in this round.
    known: HashMap<Namespace, Option<Vec<Offer>>>,
}

impl<'a> Fleets<'a> {
    fn new(filter: &'a ScannerFilter, strikes: &'a mut Strikes<Namespace>) -> Self {
        Self { filter, strikes, known: HashMap::new() }
    }

    /// None: it is not their turn, they could not be read, or there are too many.
    async fn of(
        &mut self,
        backend: &dyn Backend,
        namespace: &Namespace,
        checked: &mut Checked,
    ) -> Option<&[Offer]> {
        let offers = match self.known.entry(namespace.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let mut found = None;
                if is_its_turn((self.filter, self.strikes), namespace, checked) {
                    match offers(backend, namespace).await {
                        Ok(offers) => found = offers,
                        Err(error) => {
                            self.strikes.failed(namespace, &error, Instant::now());
                            checked.errors += 1;
                        }
                    }
                }
                unknown.insert(found)
            }
        };
        offers.as_deref()
    }

    /// Nothing more of this namespace is judged in this round.
    fn failed(&mut self, namespace: &Namespace, error: &EngineError, checked: &mut Checked) {
        self.strikes.failed(namespace, error, Instant::now());
        self.known.insert(namespace.clone(), None);
        checked.errors += 1;
    }

    fn end(self) {
        let judged = self.known.iter().filter(|(_, offers)| offers.is_some());
        judged.for_each(|(namespace, _)| self.strikes.succeeded(namespace));
    }
}

impl Checked {
    pub(crate) fn look_in(&mut self, ms: u64) {
        self.next_in_ms = Some(self.next_in_ms.map_or(ms, |next| next.min(ms)));
    }

    /// A full batch may not be all of it.
    pub(crate) fn look_on_after(&mut self, batch: u32) {
        if batch >= limits::ROUTE_BATCH {
            self.look_in(0);
        }
    }
}

/// Blocks the front of a queue; the next round follows at once if there is more behind it. Says whether
/// there may be.
async fn block_front(
    backend: &dyn Backend,
    route: &Route,
    offers: &[Offer],
    checked: &mut Checked,
) -> Result<bool, EngineError> {
    let limit = limits::ROUTE_BATCH;
    let queued = backend.ask(ListQueued { route: route.clone(), limit }).await?;
    let detail = lacking(route, offers);
    let block = |&execution_id| {
        let (reason, detail) = (AdmissionReason::Route.blocking_reason(), detail.clone());
        Command::from(BlockForAdmission { execution_id, reason, detail, by: None })
    };
    let is_done = |reply: &Reply| matches!(reply, Reply::BlockForAdmission(Settled::Done));
    let blocked = each(backend, queued.iter().map(block).collect(), is_done).await?;
    checked.blocked += blocked.done;
    checked.errors += tell_of(&blocked.broken);
    checked.look_on_after(blocked.done);
    let is_left = queued.len() >= limit as usize;
    if is_left {
        checked.look_in(limits::ROUTE_LOOK_MS);
    }
    Ok(is_left)
}

/// What is lacking, in words.
fn lacking(route: &Route, offers: &[Offer]) -> String {
    match Nearest::among(offers, route) {
        Some(Nearest { worker_instance_id, missing }) => {
            format!("{worker_instance_id:?} is nearest and lacks {}", named(missing.tokens()))
        }
        None => {
            format!("no worker serves the lane; {} is required", named(route.required.tokens()))
        }
    }
}

/// As many of these as fit, and how many there are besides.
fn named<'a>(tokens: impl Iterator<Item = &'a str>) -> String {
    let (mut text, mut more) = (String::new(), 0_u32);
    for token in tokens {
        if text.len() + token.len() > DETAIL_BYTES {
            more += 1;
            continue;
        }
        text.push_str(if text.is_empty() { "" } else { ", " });
        text.push_str(token);
    }
    match (more, text.is_empty()) {
        (0, _) => text,
        (more, true) => format!("{more} tokens"),
        (more, false) => format!("{text} and {more} more"),
    }
}

async fn let_go_in(
    backend: &dyn Backend,
    namespace: &Namespace,
    checked: &mut Checked,
) -> Result<u32, EngineError> {
    if !routes::is_any_unrouted(backend, namespace).await? {
        return Ok(0);
    }
    // Without a look at the workers all of it is let through: claims ask for capabilities anyway.
    let offers = offers(backend, namespace).await;
    checked.errors += u32::from(offers.is_err());
    let offers = offers.ok().flatten();
    let covers = |route: &Route| {
        offers.as_ref().is_none_or(|offers| offers.iter().any(|offer| offer.covers(route)))
    };
    let let_go = routes::let_go(backend, namespace, None, limits::ROUTE_BATCH, covers).await?;
    checked.errors += tell_of(&let_go.broken);
    Ok(let_go.done)
}

/// What the live workers of a namespace offer; none: there are too many to look at.
async fn offers(
    backend: &dyn Backend,
    namespace: &Namespace,
) -> Result<Option<Vec<Offer>>, EngineError> {
    let (mut offers, mut cursor) = (Vec::new(), None);
    while offers.len() < OFFERS_MOST {
        let (namespace, limit) = (namespace.clone(), limits::PAGE_MAX);
        let page = backend.ask(ListOffers { namespace, cursor, limit }).await?;
        offers.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(Some(offers));
        }
    }
    Ok(None)
}
