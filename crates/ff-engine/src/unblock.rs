//! The net under limits: what they keep back is let go once they have room, or apply no more.
//!
//! Whatever makes room tells at once: a budget that is reset or raised, a slot that is given back, a
//! window that opens. This finds whom it missed, such as one that was kept back a moment later. Who
//! stands behind which limit is a list, so a round asks each limit once, however many it keeps back.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ff_core::backend::{Backend, BackendExt, Pending};
use ff_core::each::Broken;
use ff_core::error::EngineError;
use ff_core::id::{ExecutionId, Namespace, QuotaPolicyId};
use ff_core::limits;
use ff_core::operation::ScannerFilter;
use ff_core::read::{DescribeQuotaPolicy, GetBudgetStatus, Limited, ListFleets, ReadStanding};
use ff_core::state::LimitId;
use ff_core::time::TimestampMs;
use ff_core::unblock;

use crate::errands::tell_of;
use crate::options::EngineOptions;
use crate::report::Report;
use crate::routes::Checked;
use crate::scanner::{ScanResult, Scanner};
use crate::strikes::{Strikes, Turn};
use crate::table::Intervals;

pub(crate) const NAME: &str = "unblock";

/// Limits that one round asks; the next goes on behind them.
const LIMITS_MOST: u32 = 256;

/// Executions that are looked at again because a limit has kept them back for long, in one round.
const LOOKED_AT_AGAIN: u32 = 10;

/// Where the rounds of one engine go on.
#[derive(Debug)]
pub struct LimitCheck {
    /// Only in this one.
    namespace: Option<Namespace>,
    stopped_at: Option<(Namespace, LimitId)>,
    /// Those that could not be let go.
    strikes: Strikes<ExecutionId>,
}

/// Looks every `interval`, and at once again while there is more.
#[derive(Debug)]
pub struct UnblockScanner {
    interval: Duration,
    filter: ScannerFilter,
    check: LimitCheck,
}

impl UnblockScanner {
    /// Executions that one step lets go behind one limit.
    pub const BATCH_SIZE: u32 = limits::UNBLOCK_BATCH;

    /// Looks in all namespaces.
    pub fn new(interval: Duration) -> Self {
        Self::with_filter(interval, ScannerFilter::default())
    }

    /// Looks in the namespace of the filter. With a tag it looks at nothing: those who stand behind a
    /// limit are many, and it cannot be told by one whether the tag fits.
    pub fn with_filter(interval: Duration, filter: ScannerFilter) -> Self {
        Self { interval, check: LimitCheck::new(interval, filter.namespace.clone()), filter }
    }

    pub(crate) fn of(options: &EngineOptions) -> Self {
        Self::with_filter(options.intervals.of(NAME), options.filter.clone())
    }
}

impl Scanner for UnblockScanner {
    fn name(&self) -> &'static str {
        NAME
    }

    fn interval(&self) -> Duration {
        self.interval
    }

    fn filter(&self) -> &ScannerFilter {
        &self.filter
    }

    fn is_for_one(&self) -> bool {
        true
    }

    fn visit<'a>(
        &'a mut self,
        backend: &'a dyn Backend,
        _: &'a Report,
    ) -> Pending<'a, Result<ScanResult, EngineError>> {
        Box::pin(async move {
            if self.filter.tag.is_some() {
                return Ok(ScanResult::default());
            }
            let Checked { let_go, errors, skipped, next_in_ms, .. } =
                self.check.round(backend).await?;
            let next_in = next_in_ms.map(Duration::from_millis);
            Ok(ScanResult { processed: let_go, errors, skipped, next_in })
        })
    }
}

impl Default for LimitCheck {
    fn default() -> Self {
        Self::new(Intervals::default().of(NAME), None)
    }
}

impl LimitCheck {
    fn new(interval: Duration, namespace: Option<Namespace>) -> Self {
        Self { namespace, stopped_at: None, strikes: Strikes::new(interval) }
    }

    /// Lets go whom limits keep back without need, wherever there are workers.
    pub async fn round(&mut self, backend: &dyn Backend) -> Result<Checked, EngineError> {
        let mut checked = Checked::default();
        let mut left = LIMITS_MOST;
        let stopped_at = self.stopped_at.take();
        let mut cursor = None;
        loop {
            let page = backend.ask(ListFleets { cursor, limit: limits::PAGE_MAX }).await?;
            for namespace in &page.items {
                if self.namespace.as_ref().is_some_and(|only| only != namespace) {
                    continue;
                }
                let behind = match &stopped_at {
                    Some((before, _)) if namespace < before => continue,
                    Some((before, limit)) if namespace == before => Some(*limit),
                    _ => None,
                };
                // One that fails leaves the others their turn.
                let looked = self.look_in(backend, namespace, behind, &mut left, &mut checked);
                match looked.await {
                    Ok(None) => {}
                    Ok(Some(limit)) => {
                        self.stopped_at = Some((namespace.clone(), limit));
                        checked.look_in(0);
                        return Ok(checked);
                    }
                    Err(_) => checked.errors += 1,
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(checked);
            }
        }
    }

    /// Looks at the limits of a namespace: at which it stopped, should there be more.
    async fn look_in(
        &mut self,
        backend: &dyn Backend,
        namespace: &Namespace,
        mut behind: Option<LimitId>,
        left: &mut u32,
        checked: &mut Checked,
    ) -> Result<Option<LimitId>, EngineError> {
        while let Some(first) = unblock::next_limited(backend, namespace, behind).await? {
            if *left == 0 {
                return Ok(behind);
            }
            *left -= 1;
            behind = Some(first.by);
            // One that cannot be asked keeps back whom it keeps back.
            match self.let_go(backend, namespace, first, checked).await {
                Ok(let_go) => {
                    checked.let_go += let_go;
                    checked.look_on_after(let_go);
                }
                Err(_) => checked.errors += 1,
            }
        }
        Ok(None)
    }

    /// Lets go whom one limit keeps back without need: how many. `first` has waited longest.
    async fn let_go(
        &mut self,
        backend: &dyn Backend,
        namespace: &Namespace,
        first: Limited,
        checked: &mut Checked,
    ) -> Result<u32, EngineError> {
        let most = most(backend, first).await?;
        let (now, skipped) = (Instant::now(), AtomicU32::new(0));
        let passes = |id| {
            let turn = self.strikes.turn(&id, now);
            skipped.fetch_add(u32::from(turn == Turn::Skip), Ordering::Relaxed);
            turn != Turn::Try
        };
        let let_go = unblock::let_go(backend, namespace, first.by, most, passes).await?;
        checked.skipped += skipped.into_inner();
        checked.errors += tell_of(&let_go.broken);
        for Broken { execution_id, error } in &let_go.broken {
            self.strikes.failed(execution_id, error, now);
        }
        Ok(let_go.done)
    }
}

/// How many of those that one limit keeps back may go.
async fn most(backend: &dyn Backend, first: Limited) -> Result<u32, EngineError> {
    let now = backend.server_time_ms().await?;
    let room = match first.by {
        LimitId::Budget(budget_id) => {
            let status = backend.ask(GetBudgetStatus { budget_id }).await?;
            if status.is_none_or(|it| it.blocked_by.is_none()) {
                UnblockScanner::BATCH_SIZE
            } else {
                0
            }
        }
        LimitId::Quota(id) => free(backend, id, now).await?,
    };
    Ok(match room {
        0 if !applies(backend, first).await? => UnblockScanner::BATCH_SIZE,
        0 if now.since(first.blocked_at) >= limits::LIMIT_PATIENCE_MS => LOOKED_AT_AGAIN,
        room => room.min(UnblockScanner::BATCH_SIZE),
    })
}

/// How many a quota policy has room for whom nobody in its line would take it from.
async fn free(
    backend: &dyn Backend,
    quota_policy_id: QuotaPolicyId,
    now: TimestampMs,
) -> Result<u32, EngineError> {
    let question = DescribeQuotaPolicy { quota_policy_id, holders_from: 0, limit: 1 };
    let Some(found) = backend.ask(question).await? else { return Ok(u32::MAX) };
    let closed = found.policy.window_opens_at.is_some_and(|at| at > now);
    if closed || found.policy.waiting > 0 {
        return Ok(0);
    }
    let spec = found.policy.spec;
    let free = spec.max_concurrent.saturating_sub(found.policy.slots);
    Ok(if spec.limits_concurrency() { free } else { u32::MAX })
}

/// Whether the limit that keeps it back still applies to it.
async fn applies(backend: &dyn Backend, kept: Limited) -> Result<bool, EngineError> {
    let found = backend.ask(ReadStanding { execution_id: kept.execution_id }).await?;
    Ok(found.is_some_and(|found| found.applicant.standing.contains(kept.by)))
}
