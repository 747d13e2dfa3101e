//! A worker makes itself known, says that it lives, and hears what is new.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ff_core::backend::{Backend, BackendExt as _};
use ff_core::error::{Code, EngineError};
use ff_core::id::LaneId;
use ff_core::limits;
use ff_core::operation::{DeregisterWorker, RegisterWorker, WorkerRegistered};
use ff_core::time::TimestampMs;
use ff_engine::acts::{self, Beat, Heartbeat, News, Stopped, StoppedBy};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::config::Checked;
use crate::error::{SdkError, is_fault};
use crate::leases::{Leases, StopReason, lock};
use crate::outage::{Outage, Pauses};

/// A reading of the store's clock counts for so long, unless a tighter one comes.
const READING_LASTS: Duration = Duration::from_secs(60);

/// The registration of one process.
pub(crate) struct Presence {
    backend: Arc<dyn Backend>,
    leases: Arc<Leases>,
    outage: Arc<Outage>,
    me: Checked,
    boot_id: String,
    /// The worker claims nothing more: by its own wish or an operator's.
    draining: CancellationToken,
    paused_lanes: watch::Sender<Vec<LaneId>>,
    clock: Mutex<Option<Reading>>,
    /// Nobody says any more that the worker lives.
    silent: CancellationToken,
    /// Where the news before ended: nothing is missed between two heartbeats.
    cursor: Mutex<Option<String>>,
}

/// The store's clock showed `store` at `local` or later.
#[derive(Clone, Copy)]
struct Reading {
    local: Instant,
    store: TimestampMs,
}

impl Presence {
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        leases: Arc<Leases>,
        outage: Arc<Outage>,
        me: Checked,
    ) -> Self {
        Self {
            backend,
            leases,
            outage,
            me,
            boot_id: Uuid::now_v7().simple().to_string(),
            draining: CancellationToken::new(),
            paused_lanes: watch::Sender::default(),
            clock: Mutex::default(),
            silent: CancellationToken::new(),
            cursor: Mutex::default(),
        }
    }

    pub(crate) fn draining(&self) -> &CancellationToken {
        &self.draining
    }

    pub(crate) fn paused_lanes(&self) -> Vec<LaneId> {
        self.paused_lanes.borrow().clone()
    }

    pub(crate) fn paused_lanes_changed(&self) -> watch::Receiver<Vec<LaneId>> {
        self.paused_lanes.subscribe()
    }

    /// Silent for so long the worker is dead.
    fn ttl(&self) -> Duration {
        (self.me.lease_ttl * 2).max(Duration::from_millis(limits::WORKER_TTL_MIN_MS))
    }

    /// Makes this process known. Another one that lives under the same name is an error.
    pub(crate) async fn register(&self) -> Result<(), SdkError> {
        let ttl_ms = millis(self.ttl());
        let register = RegisterWorker {
            namespace: self.me.namespace.clone(),
            worker_id: self.me.worker_id.clone(),
            worker_instance_id: self.me.worker_instance_id.clone(),
            boot_id: self.boot_id.clone(),
            lanes: self.me.lanes.iter().map(|share| share.lane.clone()).collect(),
            capabilities: self.me.capabilities.clone(),
            ttl_ms,
            max_concurrent: u32::try_from(self.me.permits).unwrap_or(u32::MAX),
        };
        let sent = Instant::now();
        let reply = self.backend.call(register).await;
        self.outage.heard(&reply);
        match reply {
            Ok(
                WorkerRegistered::Registered { next_expiry }
                | WorkerRegistered::Refreshed { next_expiry },
            ) => {
                self.read_clock(sent, next_expiry.before(ttl_ms));
                Ok(())
            }
            Err(error) if error.code() == Code::InstanceInUse => {
                let id = &self.me.worker_instance_id;
                let message = format!("a live worker is called {id} already: {error}");
                Err(SdkError::config("worker_instance_id", message))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Says that the worker lives until it is gone. What it returns may be dropped before it runs:
    /// whoever deregisters is told of that too.
    pub(crate) fn keep(self: Arc<Self>, closing: CancellationToken) -> impl Future<Output = ()> {
        let silent = self.silent.clone().drop_guard();
        async move {
            let _silent = silent;
            self.go_on_beating(closing).await;
        }
    }

    async fn go_on_beating(&self, closing: CancellationToken) {
        let mut pauses = Pauses::default();
        loop {
            let beat = tokio::select! {
                biased;
                () = closing.cancelled() => return,
                beat = self.beat(self.wait()) => beat,
            };
            self.outage.heard(&beat);
            let pause = match beat {
                Ok(Beat::Refreshed(news)) => {
                    self.told(news);
                    pauses.begin_anew();
                    continue;
                }
                Ok(Beat::NotRegistered) => match self.register().await {
                    Ok(()) => continue,
                    Err(error) => {
                        tracing::warn!(%error, "the worker could not be registered again");
                        pauses.next()
                    }
                },
                Err(error) => {
                    // A place that the log does not know any more; tasks learn by their renewals.
                    lock(&self.cursor).take_if(|_| !is_fault(&error));
                    tracing::debug!(%error, "a heartbeat failed");
                    pauses.next()
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = closing.cancelled() => return,
            }
        }
    }

    /// Takes the place in the log behind which news are heard. Until then a cancel would reach a task
    /// only with the renewal of its lease.
    pub(crate) async fn listen(&self) -> Result<(), SdkError> {
        let moment = Duration::from_millis(1);
        if let Beat::Refreshed(news) = self.beat(moment).await? {
            self.told(news);
        }
        Ok(())
    }

    /// How long a heartbeat waits for news.
    fn wait(&self) -> Duration {
        (self.ttl() / 3).min(Duration::from_millis(limits::HEARTBEAT_WAIT_MS))
    }

    async fn beat(&self, wait: Duration) -> Result<Beat, EngineError> {
        let heartbeat = Heartbeat {
            namespace: self.me.namespace.clone(),
            worker_instance_id: self.me.worker_instance_id.clone(),
            boot_id: self.boot_id.clone(),
            leases: Vec::new(),
            after: lock(&self.cursor).clone(),
        };
        let sent = Instant::now();
        let beat = acts::heartbeat(&*self.backend, &heartbeat, wait).await?;
        if let Beat::Refreshed(news) = &beat {
            self.read_clock(sent, news.next_expiry.before(millis(self.ttl())));
        }
        Ok(beat)
    }

    fn told(&self, news: News) {
        for Stopped { execution_id, lease_epoch, by } in news.stopped {
            let reason = match by {
                StoppedBy::Cancel { reason } => StopReason::Cancelled { reason },
                StoppedBy::Loss => StopReason::LeaseLost { code: Code::StaleLease },
            };
            self.leases.stop(execution_id, lease_epoch, reason);
        }
        *lock(&self.cursor) = news.cursor;
        if news.drain && !self.draining.is_cancelled() {
            tracing::info!("an operator drains this worker: it claims nothing more");
            self.draining.cancel();
        }
        self.paused_lanes.send_if_modified(|known| {
            let is_new = *known != news.paused_lanes;
            *known = news.paused_lanes;
            is_new
        });
    }

    /// Leaves; what the worker still held is claimable when this answers. Comes when the worker
    /// closes: a registration that is on its way arrives before.
    pub(crate) async fn deregister(&self) -> Result<(), SdkError> {
        self.silent.cancelled().await;
        let deregister = DeregisterWorker {
            namespace: self.me.namespace.clone(),
            worker_instance_id: self.me.worker_instance_id.clone(),
        };
        acts::deregister(&*self.backend, deregister).await?;
        Ok(())
    }

    fn read_clock(&self, sent: Instant, store: TimestampMs) {
        let new = Reading { local: sent, store };
        let mut known = lock(&self.clock);
        let keep = known.filter(|known| {
            let young = new.local.saturating_duration_since(known.local) < READING_LASTS;
            young && known.local_of(new.store) >= new.local
        });
        *known = Some(keep.unwrap_or(new));
    }

    /// The local moment that is not later than this one of the store's clock.
    pub(crate) fn local_of(&self, moment: TimestampMs) -> Option<Instant> {
        lock(&self.clock).map(|reading| reading.local_of(moment))
    }
}

impl Reading {
    fn local_of(self, moment: TimestampMs) -> Instant {
        let ahead = u64::try_from(moment.0 - self.store.0).unwrap_or(0);
        self.local + Duration::from_millis(ahead)
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
