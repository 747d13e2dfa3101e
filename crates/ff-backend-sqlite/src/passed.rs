//! What is due of broken records: told, passed over for a while, and then tried again.
//!
//! It stays due, and stands before all that is due later. So whoever asks what is due leaves out what rests
//! here: broken records, however many, neither fill a tick nor make it look as if there were always
//! something to do at once.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use ff_core::error::EngineError;
use ff_core::id::Subject;
use ff_core::time::TimestampMs;

/// How long it rests before it is tried, and told of, again.
pub(crate) const REST_MS: u64 = 10_000;

/// What rests, and until when.
#[derive(Debug, Default)]
pub(crate) struct PassedOver(Mutex<HashMap<Subject, TimestampMs>>);

impl PassedOver {
    /// Tells of what a tick could not carry out, and lets it rest.
    pub(crate) fn note(&self, passed: Vec<(Subject, EngineError)>, now: TimestampMs) {
        let Ok(mut resting) = self.0.lock() else { return };
        resting.retain(|_, until| *until > now);
        for (subject, error) in passed {
            tracing::error!(%subject, %error, "what is due of a broken record is passed over");
            resting.insert(subject, now.after(REST_MS));
        }
    }

    /// Records have been mended: all is tried again.
    pub(crate) fn forget(&self) {
        if let Ok(mut resting) = self.0.lock() {
            resting.clear();
        }
    }

    pub(crate) fn resting(&self, now: TimestampMs) -> HashSet<Subject> {
        let Ok(resting) = self.0.lock() else { return HashSet::new() };
        let at_rest = resting.iter().filter(|(_, until)| **until > now);
        at_rest.map(|(subject, _)| subject.clone()).collect()
    }
}
