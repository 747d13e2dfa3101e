//! A store that was emptied under a process that goes on: by `FLUSHALL`, by a server that came back
//! without its data, or in part by a failover.
//!
//! What stood in it is gone, and every answer says so. What only a boot writes is put back as this
//! process knows it: the partition counts, the keys that sign tokens, and the register of homes, which
//! is where it is noticed. Whoever waits behind the end of a log or stream that is shorter now begins
//! anew.

use std::sync::atomic::{AtomicU64, Ordering};

use ff_core::error::EngineError;

use crate::store::Shared;
use crate::upsets::Upsets;
use crate::{keyring, partitions};

/// Counts how often it was noticed that logs are shorter than they were.
#[derive(Debug)]
pub(crate) struct Emptied {
    times: AtomicU64,
    upsets: Upsets,
}

impl Emptied {
    pub(crate) fn new(upsets: &Upsets) -> Self {
        Self { times: AtomicU64::new(0), upsets: upsets.clone() }
    }

    pub(crate) fn times(&self) -> u64 {
        self.times.load(Ordering::Relaxed)
    }

    pub(crate) fn note(&self) {
        self.times.fetch_add(1, Ordering::Relaxed);
        self.upsets.note();
    }
}

/// Puts back what only a boot writes. Other processes may do so at the same time.
pub(crate) async fn restore(shared: &Shared) -> Result<(), EngineError> {
    tracing::error!(
        "the store has lost what stood in it, or part of it; what it lacks is put back"
    );
    shared.emptied.note();
    let counts = shared.settings.partitions;
    let agreed = partitions::agree(&shared.client, &shared.keys, Some(counts)).await;
    agreed.map_err(|error| {
        let why = format!("the store was emptied: {error}; this process has to be started again");
        EngineError::unavailable(why)
    })?;
    keyring::restore(shared).await
}
