//! Errors of a run: all are counted, the first is told.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(crate) struct Faults(AtomicU64);

impl Faults {
    pub(crate) fn note(&self, error: &impl Display) {
        if self.0.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::error!(%error, "the first error of this run");
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
