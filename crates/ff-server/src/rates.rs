//! How many requests a key may send.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ff_core::recent::Recent;

use crate::bucket::Bucket;
use crate::caller::{Caller, Who};

/// Keys of one generation that are remembered. Who is forgotten begins with a full second.
const REMEMBERED: usize = 10_000;

pub(crate) struct Rates {
    per_second: Option<u32>,
    buckets: Mutex<Recent<String, Bucket>>,
}

impl Rates {
    pub(crate) fn new(per_second: Option<u32>) -> Self {
        Self { per_second, buckets: Mutex::new(Recent::new(REMEMBERED)) }
    }

    /// Counts a request, or says how long its key must wait. Who has no key is not counted: the limit
    /// is one of keys.
    pub(crate) fn count(&self, caller: &Caller) -> Result<(), Duration> {
        let counted = matches!(caller.who, Who::ApiToken | Who::Key { .. });
        let Some(rate) = self.per_second.filter(|_| counted) else { return Ok(()) };
        let (label, now) = (caller.label(), Instant::now());
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let known = buckets.get(&label.to_owned());
        let mut bucket = known.unwrap_or_else(|| Bucket::full(rate, now));
        let taken = bucket.take(rate, now);
        buckets.keep(label.to_owned(), bucket);
        taken
    }
}
