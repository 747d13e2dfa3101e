//! The leases that this process holds: renewed together, and told when they are over.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use ff_core::backend::Backend;
use ff_core::error::{Code, EngineError};
use ff_core::id::{ExecutionId, LeaseFence, LeaseId};
use ff_core::limits;
use ff_core::operation::{Command, Operation as _, Renew, Renewed};
use ff_core::state::Outcome;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::outage::Outage;

/// So many renewals in a row may fail before a lease counts as ill.
pub(crate) const UNHEALTHY_AFTER: u32 = 3;

/// Why a task should stop.
///
/// ```
/// use ff_sdk::StopReason;
///
/// /// Whether work that is half done should be put away for another attempt.
/// fn another_goes_on(reason: &StopReason) -> bool {
///     match reason {
///         StopReason::Cancelled { .. } => false,
///         StopReason::LeaseLost { .. } | StopReason::ShuttingDown => true,
///     }
/// }
/// assert!(another_goes_on(&StopReason::ShuttingDown));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// Nobody wants its outcome any more.
    Cancelled {
        /// As whoever cancelled it said.
        reason: String,
    },
    /// Another worker may have the task by now: whatever this one writes is refused.
    LeaseLost {
        /// How it was noticed.
        code: Code,
    },
    /// The worker shuts down, and the time that its tasks had for that is over.
    ShuttingDown,
}

/// One lease, as the task and the loop that renews it see it.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) execution_id: ExecutionId,
    pub(crate) fence: LeaseFence,
    ttl: Duration,
    stopped: CancellationToken,
    reason: OnceLock<StopReason>,
    failures: AtomicU32,
    /// A renewal is under way.
    renewing: AtomicBool,
    times: Mutex<Times>,
}

#[derive(Debug, Clone, Copy)]
struct Times {
    /// When there is something to do: a renewal, or the end.
    due: Instant,
    /// Past this it is lost, whatever the store says: measured from before the call that made or
    /// renewed it, so it is never later than the store's own.
    deadline: Instant,
}

impl Lease {
    pub(crate) fn stopped(&self) -> &CancellationToken {
        &self.stopped
    }

    pub(crate) fn reason(&self) -> Option<&StopReason> {
        self.reason.get()
    }

    pub(crate) fn failures(&self) -> u32 {
        self.failures.load(Ordering::Relaxed)
    }

    pub(crate) fn deadline(&self) -> Instant {
        lock(&self.times).deadline
    }

    fn stop(&self, reason: StopReason) {
        let _ = self.reason.set(reason);
        self.stopped.cancel();
    }

    /// How long after it was made or renewed it is renewed again.
    fn interval(&self) -> Duration {
        (self.ttl / 3).max(Duration::from_millis(1))
    }

    /// Who is due so much later is renewed with those that are due now: so the leases of a process
    /// travel in a handful of calls, however they were claimed.
    fn slack(&self) -> Duration {
        self.ttl / 12
    }

    fn renewal(&self) -> Renew {
        Renew { execution_id: self.execution_id, fence: self.fence, ttl_ms: None }
    }

    /// The store has answered a renewal that was sent at `sent`.
    fn renewed(&self, sent: Instant) {
        self.failures.store(0, Ordering::Relaxed);
        let mut times = lock(&self.times);
        times.deadline = times.deadline.max(sent + self.ttl);
    }
}

/// Leases by execution, and in the order in which they are due.
#[derive(Default)]
struct Held {
    by_execution: HashMap<ExecutionId, Arc<Lease>>,
    by_due: BTreeMap<(Instant, LeaseId), Arc<Lease>>,
}

/// All leases of a worker.
pub(crate) struct Leases {
    backend: Arc<dyn Backend>,
    outage: Arc<Outage>,
    call_timeout: Duration,
    held: Mutex<Held>,
    sooner: Notify,
}

impl Leases {
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        outage: Arc<Outage>,
        call_timeout: Duration,
    ) -> Self {
        Self { backend, outage, call_timeout, held: Mutex::default(), sooner: Notify::new() }
    }

    /// Keeps a lease alive from now on. Its `deadline` is the local moment before which it is the
    /// worker's for sure.
    pub(crate) fn hold(
        &self,
        execution_id: ExecutionId,
        fence: LeaseFence,
        ttl: Duration,
        deadline: Instant,
    ) -> Arc<Lease> {
        let mut lease = Lease {
            execution_id,
            fence,
            ttl,
            stopped: CancellationToken::new(),
            reason: OnceLock::new(),
            failures: AtomicU32::new(0),
            renewing: AtomicBool::new(false),
            times: Mutex::new(Times { due: deadline, deadline }),
        };
        // A reply that was long on its way leaves less time.
        let due = deadline.checked_sub(lease.ttl - lease.interval()).unwrap_or_else(Instant::now);
        lease.times = Mutex::new(Times { due, deadline });
        let lease = Arc::new(lease);
        let mut held = lock(&self.held);
        let first = held.by_due.first_key_value().map(|((due, _), _)| *due);
        held.by_due.insert((due, fence.lease_id), Arc::clone(&lease));
        // A task that comes back to this worker has a new lease; the old one is over.
        if let Some(old) = held.by_execution.insert(execution_id, Arc::clone(&lease)) {
            held.forget_due(&old);
            old.stop(StopReason::LeaseLost { code: Code::StaleLease });
        }
        drop(held);
        if first.is_none_or(|first| due < first) {
            self.sooner.notify_one();
        }
        lease
    }

    pub(crate) fn has(&self, execution_id: ExecutionId, fence: LeaseFence) -> bool {
        let held = lock(&self.held);
        held.by_execution.get(&execution_id).is_some_and(|lease| lease.fence == fence)
    }

    /// The task has ended, or is given up.
    pub(crate) fn release(&self, lease: &Lease) {
        lock(&self.held).forget(lease);
    }

    /// A task was taken from this worker; nothing if it has another lease by now.
    pub(crate) fn stop(&self, execution_id: ExecutionId, lease_epoch: u64, reason: StopReason) {
        let lease = lock(&self.held).by_execution.get(&execution_id).cloned();
        if let Some(lease) = lease.filter(|lease| lease.fence.lease_epoch == lease_epoch) {
            self.end(&lease, reason);
        }
    }

    /// The time of a shutdown is over.
    pub(crate) fn stop_all(&self) {
        let all: Vec<_> = lock(&self.held).by_execution.values().cloned().collect();
        for lease in all {
            lease.stop(StopReason::ShuttingDown);
        }
    }

    pub(crate) fn len(&self) -> usize {
        lock(&self.held).by_execution.len()
    }

    fn end(&self, lease: &Lease, reason: StopReason) {
        self.release(lease);
        lease.stop(reason);
    }

    /// Renews until the worker is gone.
    pub(crate) async fn keep(self: Arc<Self>, closing: CancellationToken) {
        loop {
            let first = lock(&self.held).by_due.first_key_value().map(|((due, _), _)| *due);
            let wait = async {
                match first {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = wait => self.attend(),
                () = self.sooner.notified() => {}
                () = closing.cancelled() => return,
            }
        }
    }

    /// Renews what is due, and with it what soon will be.
    fn attend(self: &Arc<Self>) {
        let now = Instant::now();
        let (mut lost, mut renewals) = (Vec::new(), Vec::new());
        {
            let mut held = lock(&self.held);
            let due: Vec<_> = held
                .by_due
                .values()
                .take_while(|lease| lock(&lease.times).due <= now + lease.slack())
                .cloned()
                .collect();
            for lease in due {
                held.forget_due(&lease);
                let mut times = lock(&lease.times);
                if now >= times.deadline {
                    held.by_execution.remove(&lease.execution_id);
                    drop(times);
                    lost.push(lease);
                    continue;
                }
                times.due = (now + lease.interval()).min(times.deadline);
                held.by_due.insert((times.due, lease.fence.lease_id), Arc::clone(&lease));
                drop(times);
                if !lease.renewing.swap(true, Ordering::Relaxed) {
                    renewals.push(lease);
                }
            }
        }
        for lease in lost {
            lease.stop(StopReason::LeaseLost { code: Code::LeaseExpired });
        }
        for batch in renewals.chunks(limits::BATCH_ITEMS) {
            tokio::spawn(Arc::clone(self).renew(batch.to_vec()));
        }
    }

    /// Sends one batch. The loop goes on meanwhile: a store that is slow must not keep it from
    /// noticing that a lease is over.
    async fn renew(self: Arc<Self>, leases: Vec<Arc<Lease>>) {
        let sent = Instant::now();
        let commands = leases.iter().map(|lease| Command::from(lease.renewal())).collect();
        let replies = timeout(self.call_timeout, self.backend.apply(commands)).await;
        let late = || EngineError::Timeout { detail: "no answer to a renewal".to_owned() };
        let replies = replies.unwrap_or_else(|_| leases.iter().map(|_| Err(late())).collect());
        for (lease, reply) in leases.iter().zip(replies) {
            lease.renewing.store(false, Ordering::Relaxed);
            self.heard(lease, sent, reply.and_then(Renew::reply));
        }
    }

    /// What the store said to a renewal.
    pub(crate) fn heard(&self, lease: &Lease, sent: Instant, reply: Result<Renewed, EngineError>) {
        match reply {
            Ok(_) => {
                self.outage.over();
                lease.renewed(sent);
            }
            Err(error) if is_terminal_renewal_error(&error) => {
                let code = error.code();
                let reason = match error.refusal().and_then(|refusal| refusal.current.as_ref()) {
                    Some(current) if current.terminal_outcome == Some(Outcome::Cancelled) => {
                        StopReason::Cancelled { reason: String::new() }
                    }
                    _ => StopReason::LeaseLost { code },
                };
                self.end(lease, reason);
            }
            Err(error) => {
                let failures = lease.failures.fetch_add(1, Ordering::Relaxed) + 1;
                self.outage.noticed(&error);
                let execution_id = lease.execution_id;
                tracing::debug!(%execution_id, failures, %error, "a lease was not renewed");
            }
        }
    }
}

impl Held {
    fn forget(&mut self, lease: &Lease) {
        self.forget_due(lease);
        let current = self.by_execution.get(&lease.execution_id);
        if current.is_some_and(|current| current.fence == lease.fence) {
            self.by_execution.remove(&lease.execution_id);
        }
    }

    fn forget_due(&mut self, lease: &Lease) {
        let due = lock(&lease.times).due;
        self.by_due.remove(&(due, lease.fence.lease_id));
    }
}

/// Whether there is no use in renewing any more.
pub(crate) fn is_terminal_renewal_error(error: &EngineError) -> bool {
    matches!(
        error.code(),
        Code::StaleLease
            | Code::LeaseExpired
            | Code::LeaseRevoked
            | Code::ExecutionNotActive
            | Code::ExecutionNotFound
    )
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
