//! A store that was emptied under a process that goes on: by `FLUSHALL`, by a server that came back
//! without its data, or in part by a failover.
//!
//! What stood in it is gone, and every answer says so. What only a boot writes is put back as this
//! process knows it: the partition counts, the keys that sign tokens, and the register of homes, which
//! is where it is noticed; the counts are put back in their time also where nothing was entered yet.
//! Whoever waits behind the end of a log or stream that is shorter now begins anew.
//!
//! Another process may have booted first and made it a store with other partition counts. Ids have
//! other places in that, so this process answers nothing any more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, Weak};
use std::time::Duration;

use ff_core::error::EngineError;

use crate::error::OpenError;
use crate::store::Shared;
use crate::upsets::Upsets;
use crate::{keyring, partitions};

/// How often the partition counts are compared.
const LOOK: Duration = Duration::from_secs(5);

/// What is known of such a loss.
#[derive(Debug)]
pub(crate) struct Emptied {
    /// How often it was noticed that logs are shorter than they were.
    times: AtomicU64,
    upsets: Upsets,
    /// Why this store is no longer the one that was opened.
    strange: RwLock<Option<String>>,
}

impl Emptied {
    pub(crate) fn new(upsets: &Upsets) -> Self {
        Self { times: AtomicU64::new(0), upsets: upsets.clone(), strange: RwLock::default() }
    }

    /// Refuses to go on in a store with other partitions.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        let strange = self.strange.read().unwrap_or_else(PoisonError::into_inner);
        strange.as_ref().map_or(Ok(()), |why| Err(EngineError::unavailable(why.as_str())))
    }

    fn judge(&self, why: Option<String>) {
        if let Some(why) = &why
            && self.check().is_ok()
        {
            tracing::error!(%why, "this process answers nothing any more");
        }
        *self.strange.write().unwrap_or_else(PoisonError::into_inner) = why;
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
    agree(shared).await?;
    keyring::restore(shared).await
}

/// Puts back partition counts that are gone, and compares those that are there.
async fn agree(shared: &Shared) -> Result<(), EngineError> {
    let counts = shared.settings.partitions;
    match partitions::agree(&shared.client, &shared.keys, Some(counts)).await {
        Ok(_) => shared.emptied.judge(None),
        Err(OpenError::Refused(refusal)) => shared.emptied.judge(Some(format!(
            "the store was emptied and is another one now: {refusal}; start this process again"
        ))),
        Err(error) => return Err(EngineError::unavailable(error.to_string())),
    }
    shared.emptied.check()
}

/// Compares the partition counts from time to time, as long as the store is open.
pub(crate) async fn watch(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(shared) = shared.upgrade().filter(|shared| !shared.is_closing()) else { return };
        if let Err(error) = agree(&shared).await {
            tracing::debug!(%error, "the partition counts could not be agreed on");
        }
    }
}
