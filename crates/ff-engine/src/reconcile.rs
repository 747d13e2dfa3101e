//! Reconcilers: records are compared with what lists and counts them, page by page, and what records
//! decide by themselves is made right. What they find should not be possible, so it is told and counted.
//!
//! An edge has no state of its own, and what is left of a resolution, of a cancel or of a group that
//! decided is work in rows beside its flow, which the flow's timer leads to. So whatever could keep it
//! from being carried on shows in the flow: one look at flows is that of four scanners.

use std::time::{Duration, Instant};

use ff_core::backend::{Backend, Pending};
use ff_core::error::EngineError;
use ff_core::id::DocumentKind;
use ff_core::limits;
use ff_core::operation::{Part, Reconcile, Reconciled, ScannerFilter};
use ff_core::state::DueKind;

use crate::acts::{LedgerCheck, SlotCheck};
use crate::options::EngineOptions;
use crate::report::{EdgeCancel, Report};
use crate::scanner::{ScanResult, Scanner};

pub(crate) const BUDGETS: &str = "budget_reconciler";
pub(crate) const QUOTAS: &str = DueKind::QuotaReconciler.scanner();
pub(crate) const FLOWS: &str = DueKind::FlowProjector.scanner();
pub(crate) const EDGE_CANCELS: &str = "edge_cancel_reconciler";
pub(crate) const INDEXES: &str = "index_reconciler";

/// Scanners that a look at flows serves as well.
const OF_FLOWS: [&str; 3] =
    [DueKind::DependencyReconciler.scanner(), EDGE_CANCELS, DueKind::CancelReconciler.scanner()];

/// Violations of one page that are told one by one; all are counted.
const TOLD: usize = 10;

/// Goes through some parts of the store, one page a visit, and begins again at the end.
pub(crate) struct Reconciler {
    name: &'static str,
    /// Scanners whose work it does as well.
    others: &'static [&'static str],
    interval: Duration,
    filter: ScannerFilter,
    parts: &'static [Part],
    /// The part it is at, and where in it.
    at: usize,
    cursor: Option<String>,
    /// Beside its parts it compares leases with their slots, or budgets with their ledgers.
    slots: Option<SlotCheck>,
    ledgers: Option<LedgerCheck>,
}

impl Reconciler {
    pub(crate) fn of_budgets(options: &EngineOptions) -> Self {
        let parts = const { &[Part::Documents(DocumentKind::Budget)] };
        // A budget has no tags.
        let all = options.filter.tag.is_none();
        let ledgers = all.then(|| LedgerCheck::new(options.filter.namespace.clone()));
        Self { ledgers, ..Self::new(options, (BUDGETS, &[]), parts) }
    }

    pub(crate) fn of_quotas(options: &EngineOptions) -> Self {
        let parts = const { &[Part::Documents(DocumentKind::QuotaPolicy)] };
        // Of a lease it is not known whether a tag fits.
        let all = options.filter.tag.is_none();
        let slots = all.then(|| SlotCheck::new(options.filter.namespace.clone()));
        Self { slots, ..Self::new(options, (QUOTAS, &[]), parts) }
    }

    pub(crate) fn of_flows(options: &EngineOptions) -> Self {
        Self::new(options, (FLOWS, &OF_FLOWS), &[Part::Documents(DocumentKind::Flow)])
    }

    pub(crate) fn of_indexes(options: &EngineOptions) -> Self {
        let parts = const {
            &[
                Part::Executions,
                Part::Entries,
                Part::Documents(DocumentKind::Worker),
                Part::Documents(DocumentKind::Lane),
                Part::Documents(DocumentKind::Namespace),
            ]
        };
        Self::new(options, (INDEXES, &[]), parts)
    }

    /// As often as the most urgent of its names.
    fn new(
        options: &EngineOptions,
        (name, others): (&'static str, &'static [&'static str]),
        parts: &'static [Part],
    ) -> Self {
        let intervals = others.iter().map(|name| options.intervals.of(name));
        let interval = intervals.fold(options.intervals.of(name), Duration::min);
        let (filter, at, cursor) = (options.filter.clone(), 0, None);
        let (slots, ledgers) = (None, None);
        Self { name, others, interval, filter, parts, at, cursor, slots, ledgers }
    }

    async fn page(
        &mut self,
        backend: &dyn Backend,
        report: &Report,
    ) -> Result<ScanResult, EngineError> {
        let Some(part) = self.parts.get(self.at).copied() else { return Ok(ScanResult::default()) };
        let begun = Instant::now();
        let (filter, cursor) = (self.filter.clone(), self.cursor.take());
        let page = Reconcile { part, filter, cursor, limit: limits::RECONCILE_BATCH };
        let done = backend.reconcile(page).await;
        self.cursor = done.as_ref().ok().and_then(|done| done.next_cursor.clone());
        // A part that cannot be looked at does not keep the others from their turn.
        if self.cursor.is_none() {
            self.at = (self.at + 1) % self.parts.len();
        }
        let done = done?;
        self.tell(report, &done, begun.elapsed());
        tell_edge_cancels(report, part, &done);
        let mut checked = done.found.checked;
        if let Some(slots) = &mut self.slots {
            let done = slots.page(backend, limits::RECONCILE_BATCH, true).await?;
            checked += done.found.checked;
            self.tell(report, &done, Duration::ZERO);
        }
        if let Some(ledgers) = &mut self.ledgers {
            // Those that are looked at were counted as records.
            let done = ledgers.page(backend, limits::RECONCILE_BATCH, true).await?;
            self.tell(report, &done, Duration::ZERO);
        }
        let processed = u32::try_from(checked).unwrap_or(u32::MAX);
        Ok(ScanResult { processed, ..ScanResult::default() })
    }

    fn tell(&self, report: &Report, done: &Reconciled, lasted: Duration) {
        let found = &done.found.violations;
        for violation in found.iter().take(TOLD) {
            tracing::error!(scanner = self.name, ?violation, "an invariant does not hold");
        }
        if !found.is_empty() {
            let (found, mended) = (found.len(), done.mended);
            tracing::error!(scanner = self.name, found, mended, "records were listed wrongly");
        }
        report.add_violations(self.name, found);
        for name in self.others {
            report.add_cycle(name, lasted);
        }
    }
}

/// What the page came to for cancels that decided groups have left.
fn tell_edge_cancels(report: &Report, part: Part, done: &Reconciled) {
    match part {
        Part::Documents(DocumentKind::Flow) => {
            let mended = u64::from(done.mended);
            let sound = done.found.checked.saturating_sub(mended);
            report.add_edge_cancels(EdgeCancel::NoOp, sound);
            report.add_edge_cancels(EdgeCancel::CompletedDrain, mended);
        }
        Part::Entries => {
            let subjects = done.found.violations.iter().filter_map(|it| it.subject.as_deref());
            let flow = DocumentKind::Flow.as_str();
            let of_flows = subjects.filter(|of| of.split(':').next() == Some(flow));
            report.add_edge_cancels(EdgeCancel::RemovedStale, of_flows.count() as u64);
        }
        Part::Executions | Part::Documents(_) => {}
    }
}

impl Scanner for Reconciler {
    fn name(&self) -> &'static str {
        self.name
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
        report: &'a Report,
    ) -> Pending<'a, Result<ScanResult, EngineError>> {
        Box::pin(self.page(backend, report))
    }
}
