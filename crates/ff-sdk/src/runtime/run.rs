//! The loop of claims, and its end.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ff_core::limits;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::call::DataMap;
use super::kinds::Kinds;
use super::work::Shop;
use crate::error::SdkError;
use crate::outage::Pauses;
use crate::worker::FlowFabricWorker;

/// A claim that finds nothing sooner than this was not waited for: no permit was free, or nothing
/// is to be waited for.
const NO_WAIT: Duration = Duration::from_millis(20);
/// Turns that a claim leaves to other tasks of the process while there is a backlog.
const GATHERING: usize = 4;
/// What handlers get that were dropped, to be gone.
const GONE: Duration = Duration::from_secs(1);

/// What the worker gets to leave, and the store to be closed.
const LEAVING: Duration = Duration::from_secs(5);

/// A runtime at work.
pub(super) struct Runtime {
    shop: Arc<Shop>,
    slots: Arc<Semaphore>,
    running: TaskTracker,
    grace: Duration,
    /// A runtime that is dropped while it runs takes its handlers with it.
    _ends_all: DropGuard,
}

impl Runtime {
    pub(super) fn new(
        worker: FlowFabricWorker,
        kinds: Kinds,
        data: DataMap,
        slots: usize,
        grace: Duration,
        stop_grace: Duration,
        at_once: CancellationToken,
    ) -> Self {
        let data = Arc::new(data);
        let ends_all = at_once.clone().drop_guard();
        let (more, completing) = (AtomicBool::new(false), AtomicUsize::new(0));
        let shop = Shop { worker, kinds, data, stop_grace, at_once, more, completing };
        Self {
            shop: Arc::new(shop),
            slots: Arc::new(Semaphore::new(slots)),
            running: TaskTracker::new(),
            grace,
            _ends_all: ends_all,
        }
    }

    fn worker(&self) -> &FlowFabricWorker {
        &self.shop.worker
    }

    pub(super) async fn run(
        self,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), SdkError> {
        let mut shutdown = pin!(shutdown);
        let (claimed, told) = tokio::select! {
            claimed = self.claim() => (claimed, false),
            () = &mut shutdown => (Ok(()), true),
        };
        self.worker().drain();
        self.running.close();
        if claimed.is_ok() && !told {
            // An operator's drain has no deadline of its own.
            tokio::select! {
                () = self.running.wait() => {}
                () = &mut shutdown => {}
            }
        }
        self.stop_tasks().await;
        let left = self.worker().shutdown(LEAVING).await;
        claimed.and(left)
    }

    /// Claims until the worker is drained, or a claim is refused for good.
    async fn claim(&self) -> Result<(), SdkError> {
        let worker = self.worker();
        let mut pauses = Pauses::default();
        while let Some(slots) = self.free_slots().await {
            let asked = slots.num_permits();
            let begun = Instant::now();
            let pause = match worker.claim(asked, worker.claim_wait()).await {
                Ok(tasks) if tasks.is_empty() => {
                    self.shop.more.store(false, Ordering::Relaxed);
                    (begun.elapsed() < NO_WAIT).then(|| pauses.next())
                }
                Ok(tasks) => {
                    pauses.begin_anew();
                    self.shop.more.store(tasks.len() == asked, Ordering::Relaxed);
                    self.begin(tasks, slots);
                    None
                }
                Err(error) if error.is_retryable() => Some(pauses.next()),
                Err(error) => {
                    tracing::error!(%error, "the worker cannot claim");
                    return Err(error);
                }
            };
            if let Some(pause) = pause {
                tokio::select! {
                    () = sleep(pause) => {}
                    () = worker.drained() => {}
                }
            }
        }
        Ok(())
    }

    /// All slots that are free, and at least one of them; none when the worker is drained.
    async fn free_slots(&self) -> Option<OwnedSemaphorePermit> {
        let worker = self.worker();
        if worker.is_draining() {
            return None;
        }
        let one = match Arc::clone(&self.slots).try_acquire_owned() {
            Ok(slot) => slot,
            Err(TryAcquireError::Closed) => return None,
            Err(TryAcquireError::NoPermits) => {
                worker.note_at_capacity();
                tokio::select! {
                    slot = Arc::clone(&self.slots).acquire_owned() => slot.ok()?,
                    () = worker.drained() => return None,
                }
            }
        };
        // Tasks that complete together leave their slots one after the other, moments apart.
        for _ in 0..if self.shop.more.load(Ordering::Relaxed) { GATHERING } else { 0 } {
            tokio::task::yield_now().await;
        }
        let more = self.slots.available_permits().min(limits::CLAIM_TASKS as usize - 1);
        let more = u32::try_from(more).unwrap_or(0);
        let mut slots = one;
        if let Ok(others) = Arc::clone(&self.slots).try_acquire_many_owned(more) {
            slots.merge(others);
        }
        Some(slots)
    }

    fn begin(&self, tasks: Vec<crate::task::ClaimedTask>, mut slots: OwnedSemaphorePermit) {
        for task in tasks {
            let slot = slots.split(1);
            let shop = Arc::clone(&self.shop);
            self.running.spawn(async move {
                shop.work(task).await;
                drop(slot);
            });
        }
    }

    /// Lets running tasks end, then tells them to, then ends them.
    async fn stop_tasks(&self) {
        let at_once = &self.shop.at_once;
        let ended = tokio::select! {
            ended = timeout(self.grace, self.running.wait()) => ended.is_ok(),
            () = at_once.cancelled() => false,
        };
        if ended {
            return;
        }
        let left = self.running.len();
        tracing::warn!(left, "tasks are told to stop: the runtime ends");
        self.worker().leases().stop_all();
        tokio::select! {
            _ = timeout(self.shop.stop_grace, self.running.wait()) => {}
            () = at_once.cancelled() => {}
        }
        at_once.cancel();
        if timeout(GONE, self.running.wait()).await.is_err() {
            let left = self.running.len();
            tracing::error!(left, "handlers block their threads and cannot be stopped");
        }
    }
}
