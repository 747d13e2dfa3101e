//! The engine: all background work of one process.

use std::sync::Arc;

use ff_core::backend::Backend;
use tokio::sync::Notify;

use crate::options::EngineOptions;
use crate::report::Report;
use crate::service::{Shutdown, keep_running};
use crate::{errands, routes, timers, trimmer};

/// Background work on one backend.
pub struct Engine {
    backend: Arc<dyn Backend>,
    options: EngineOptions,
    report: Arc<Report>,
}

impl Engine {
    pub fn new(backend: Arc<dyn Backend>, options: EngineOptions) -> Self {
        Self { backend, options, report: Arc::default() }
    }

    /// What it has done so far; stays readable while it runs.
    pub fn report(&self) -> Arc<Report> {
        Arc::clone(&self.report)
    }

    /// Runs until the wish to stop. A step that is under way is carried out to its end.
    pub async fn run(self, shutdown: Shutdown) {
        let Self { backend, options, report } = self;
        let (found, told) = errands::channel();
        let gone = Arc::new(Notify::new());
        let timers = keep_running(timers::NAME, shutdown.clone(), |shutdown| {
            let interval = options.timer_interval;
            timers::run(
                Arc::clone(&backend),
                Arc::clone(&report),
                interval,
                found.clone(),
                shutdown,
            )
        });
        let errands = keep_running(errands::NAME, shutdown.clone(), |shutdown| {
            let (backend, report) = (Arc::clone(&backend), Arc::clone(&report));
            errands::run(backend, report, told.clone(), Arc::clone(&gone), shutdown)
        });
        let routes = keep_running(routes::NAME, shutdown.clone(), |shutdown| {
            let (backend, report) = (Arc::clone(&backend), Arc::clone(&report));
            routes::run(backend, report, options.route_interval, Arc::clone(&gone), shutdown)
        });
        let trimmer = keep_running(trimmer::NAME, shutdown, |shutdown| {
            trimmer::run(Arc::clone(&backend), Arc::clone(&report), options.clone(), shutdown)
        });
        tokio::join!(timers, errands, routes, trimmer);
    }
}
