//! The engine: all background work of one process.

use std::sync::Arc;

use ff_core::backend::Backend;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::errands::{self, Outbox};
use crate::options::EngineOptions;
use crate::reconcile::Reconciler;
use crate::report::{Report, ScannerStatus};
use crate::routes::Routes;
use crate::scanner::{self, Scanner};
use crate::service::{RESTART_AFTER, Shutdown, keep_running};
use crate::spread::scan_cursor_seed;
use crate::timers::Timers;
use crate::trimmer::Trimmer;
use crate::unblock::UnblockScanner;

/// Background work on one backend.
pub struct Engine {
    backend: Arc<dyn Backend>,
    options: EngineOptions,
    report: Arc<Report>,
    /// Who it is among the engines of a store.
    id: Uuid,
}

/// What makes a scanner, and makes it again after it broke.
type Make = Box<dyn Fn() -> Box<dyn Scanner> + Send + Sync>;

impl Engine {
    pub fn new(backend: Arc<dyn Backend>, options: EngineOptions) -> Self {
        Self { backend, options, report: Arc::default(), id: Uuid::now_v7() }
    }

    /// What it has done so far; stays readable while it runs.
    pub fn report(&self) -> Arc<Report> {
        Arc::clone(&self.report)
    }

    /// Every scanner, and how it fares.
    pub fn status(&self) -> Vec<ScannerStatus> {
        self.report.status()
    }

    /// Runs until the wish to stop. A step that is under way is carried out to its end.
    pub async fn run(self, shutdown: Shutdown) {
        let mut loops = JoinSet::new();
        for make in self.scanners() {
            let (backend, report) = (Arc::clone(&self.backend), Arc::clone(&self.report));
            let (name, kept) = (make().name(), (Arc::clone(&report), RESTART_AFTER));
            let by = self.id;
            loops.spawn(keep_running(name, kept, shutdown.clone(), move |shutdown| {
                scanner::run(make(), Arc::clone(&backend), Arc::clone(&report), by, shutdown)
            }));
        }
        loops.join_all().await;
    }

    /// What has a loop of its own. Scanners that are timed are the work of the first.
    fn scanners(&self) -> Vec<Make> {
        let (found, told) = errands::channel();
        let gone = Arc::new(Notify::new());
        let partitions = self.backend.settings().partitions.flow;
        let begin = scan_cursor_seed(&self.id.to_string(), usize::from(partitions));
        vec![
            self.makes(move |options| Timers::new(options, (partitions, begin), found.clone())),
            self.makes({
                let gone = Arc::clone(&gone);
                move |options| Outbox::new(options, Arc::clone(&told), Arc::clone(&gone))
            }),
            self.makes(move |options| Routes::new(options, Arc::clone(&gone))),
            self.makes(UnblockScanner::of),
            self.makes(Trimmer::new),
            self.makes(Reconciler::of_budgets),
            self.makes(Reconciler::of_quotas),
            self.makes(Reconciler::of_flows),
            self.makes(Reconciler::of_indexes),
        ]
    }

    fn makes<S: Scanner + 'static>(
        &self,
        make: impl Fn(&EngineOptions) -> S + Send + Sync + 'static,
    ) -> Make {
        let options = self.options.clone();
        Box::new(move || Box::new(make(&options)))
    }
}
