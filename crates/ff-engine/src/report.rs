//! What the engine has done so far.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Counters by scanner name.
#[derive(Debug, Default)]
pub struct Report {
    processed: Mutex<BTreeMap<&'static str, u64>>,
    errors: Mutex<BTreeMap<&'static str, u64>>,
}

impl Report {
    pub fn processed(&self) -> BTreeMap<&'static str, u64> {
        self.processed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn errors(&self) -> BTreeMap<&'static str, u64> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn add(&self, scanner: &'static str, count: u32) {
        let mut processed = self.processed.lock().unwrap_or_else(PoisonError::into_inner);
        *processed.entry(scanner).or_default() += u64::from(count);
    }

    pub(crate) fn add_error(&self, scanner: &'static str) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        *errors.entry(scanner).or_default() += 1;
    }
}
