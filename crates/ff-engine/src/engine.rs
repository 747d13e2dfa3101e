//! The engine: all background work of one process.

use std::sync::Arc;

use ff_core::backend::Backend;

use crate::options::EngineOptions;
use crate::report::Report;
use crate::service::{Shutdown, keep_running};
use crate::{timers, trimmer};

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
        let timers = keep_running(timers::NAME, shutdown.clone(), |shutdown| {
            let interval = options.timer_interval;
            timers::run(Arc::clone(&backend), Arc::clone(&report), interval, shutdown)
        });
        let trimmer = keep_running(trimmer::NAME, shutdown, |shutdown| {
            trimmer::run(Arc::clone(&backend), Arc::clone(&report), options.clone(), shutdown)
        });
        tokio::join!(timers, trimmer);
    }
}
