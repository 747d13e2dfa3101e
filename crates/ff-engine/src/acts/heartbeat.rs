//! A worker says that it lives, renews what it runs, and hears what is new.

use std::time::{Duration, Instant};

use ff_core::backend::{Backend, BackendExt};
use ff_core::error::{Code, EngineError, Refusal};
use ff_core::event::{Event, EventKind};
use ff_core::id::{DocumentId, ExecutionId, LaneId, LeaseId, Namespace, Subject, WorkerInstanceId};
use ff_core::limits;
use ff_core::operation::{Command, HeartbeatWorker, Operation, Renew, Renewed, WorkerBeat};
use ff_core::read::{Describe, EventFilter, Follow, From};
use ff_core::state::PublicState;
use ff_core::time::TimestampMs;

/// One heartbeat of a worker instance.
#[derive(Debug, Clone)]
pub struct Heartbeat {
    pub namespace: Namespace,
    pub worker_instance_id: WorkerInstanceId,
    pub boot_id: String,
    /// The leases that it holds; renewed with it.
    pub leases: Vec<Renew>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Beat {
    Refreshed(News),
    /// Not at all, or under another boot: register again.
    NotRegistered,
}

/// What a worker is told.
#[derive(Debug, Clone, PartialEq)]
pub struct News {
    pub next_expiry: TimestampMs,
    /// Told again with every heartbeat that lists the lease, for a minute.
    pub cancellations: Vec<Cancellation>,
    pub paused_lanes: Vec<LaneId>,
    pub drain: bool,
    /// What became of each lease, in the order in which they were listed.
    pub leases: Vec<Result<Renewed, EngineError>>,
}

/// A task that nobody wants any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancellation {
    pub execution_id: ExecutionId,
    pub lease_id: LeaseId,
    pub reason: String,
}

/// A look at everything, and how long the worker lives without the next.
struct Look {
    beat: Beat,
    ttl_ms: u64,
    is_news: bool,
}

/// Refreshes and renews, and waits up to `wait` for something that the worker does not know yet.
pub async fn heartbeat(
    backend: &dyn Backend,
    heartbeat: &Heartbeat,
    wait: Duration,
) -> Result<Beat, EngineError> {
    check(heartbeat, wait)?;
    let deadline = Instant::now() + wait;
    // The place in the log comes before the look: nothing can happen in between.
    let mut watch = if wait.is_zero() { None } else { Some(Watch::now(backend, heartbeat).await?) };
    loop {
        let look = look(backend, heartbeat).await?;
        let left = deadline.saturating_duration_since(Instant::now());
        let Some(watch) = watch.as_mut().filter(|_| !look.is_news && !left.is_zero()) else {
            return Ok(look.beat);
        };
        // Whoever waits here is alive, and must not be called dead meanwhile.
        let refresh_in = Duration::from_millis(look.ttl_ms / 3);
        let told = watch.wait(backend, left.min(refresh_in)).await?;
        if !told && refresh_in >= left {
            return Ok(look.beat);
        }
    }
}

fn check(heartbeat: &Heartbeat, wait: Duration) -> Result<(), Refusal> {
    if wait > Duration::from_millis(limits::HEARTBEAT_WAIT_MS) {
        let most = limits::HEARTBEAT_WAIT_MS;
        return Err(Refusal::invalid("wait_ms", format!("allowed is 0 to {most}")));
    }
    if heartbeat.leases.len() > limits::BATCH_ITEMS {
        let most = limits::BATCH_ITEMS;
        return Err(Refusal::invalid("leases", format!("at most {most} leases")));
    }
    Ok(())
}

/// Refreshes the registration and renews the leases.
async fn look(backend: &dyn Backend, heartbeat: &Heartbeat) -> Result<Look, EngineError> {
    let refresh = HeartbeatWorker {
        namespace: heartbeat.namespace.clone(),
        worker_instance_id: heartbeat.worker_instance_id.clone(),
        boot_id: heartbeat.boot_id.clone(),
    };
    let renewals = heartbeat.leases.iter().cloned().map(Command::from);
    let commands = std::iter::once(refresh.into()).chain(renewals).collect();
    let mut replies = backend.apply(commands).await.into_iter();
    let first = replies.next().unwrap_or_else(|| Err(EngineError::bug("no reply to a command")));
    let beat = HeartbeatWorker::reply(first?)?;
    let leases: Vec<_> = replies.map(|reply| Renew::reply(reply?)).collect();
    let WorkerBeat::Refreshed { next_expiry, drain, paused_lanes, ttl_ms, news } = beat else {
        return Ok(Look { beat: Beat::NotRegistered, ttl_ms: 0, is_news: true });
    };
    let cancellations = cancellations(backend, heartbeat, &leases).await?;
    let is_news = news || !cancellations.is_empty();
    let news = News { next_expiry, cancellations, paused_lanes, drain, leases };
    Ok(Look { beat: Beat::Refreshed(news), ttl_ms, is_news })
}

/// Which leases could not be renewed because their execution was cancelled lately.
async fn cancellations(
    backend: &dyn Backend,
    heartbeat: &Heartbeat,
    leases: &[Result<Renewed, EngineError>],
) -> Result<Vec<Cancellation>, EngineError> {
    let ended = |result: &Result<Renewed, EngineError>| {
        result.as_ref().is_err_and(|error| error.code() == Code::ExecutionNotActive)
    };
    let mut found = Vec::new();
    for (lease, _) in heartbeat.leases.iter().zip(leases).filter(|(_, result)| ended(result)) {
        let execution_id = lease.execution_id;
        let Some(record) = backend.ask(Describe { execution_id }).await? else { continue };
        let now = backend.server_time_ms().await?;
        let lately =
            record.completed_at.is_some_and(|at| now.since(at) < limits::CANCELLATION_NEWS_MS);
        // The epoch says that no other lease came after this one.
        let its_own = record.lease_epoch == lease.fence.lease_epoch;
        if record.state.public_state == PublicState::Cancelled && lately && its_own {
            let reason = record.cancellation_reason.unwrap_or_default();
            found.push(Cancellation { execution_id, lease_id: lease.fence.lease_id, reason });
        }
    }
    Ok(found)
}

/// Watches the log for what may concern the worker.
struct Watch {
    worker: Subject,
    instance: WorkerInstanceId,
    filter: EventFilter,
    cursor: String,
}

impl Watch {
    async fn now(backend: &dyn Backend, heartbeat: &Heartbeat) -> Result<Self, EngineError> {
        let kinds = [
            EventKind::Cancelled,
            EventKind::LaneChanged,
            EventKind::WorkerDraining,
            EventKind::WorkerLost,
        ];
        let filter = EventFilter {
            kinds_of_event: kinds.to_vec(),
            namespace: Some(heartbeat.namespace.clone()),
            ..EventFilter::default()
        };
        let follow = Follow { filter: filter.clone(), from: From::Now, limit: 1 };
        let cursor = backend.events(follow, Duration::ZERO).await?.cursor;
        let instance = heartbeat.worker_instance_id.clone();
        Ok(Self {
            worker: DocumentId::worker(&heartbeat.namespace, &instance).into(),
            instance,
            filter,
            cursor,
        })
    }

    /// Whether something came that makes another look worth it.
    async fn wait(&mut self, backend: &dyn Backend, wait: Duration) -> Result<bool, EngineError> {
        let deadline = Instant::now() + wait;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let from = From::Cursor(self.cursor.clone());
            let filter = self.filter.clone();
            let follow = Follow { filter, from, limit: limits::PAGE_MAX };
            let after = backend.events(follow, left).await?;
            self.cursor = after.cursor;
            let concerns = |event: &Event| match event.kind {
                EventKind::Cancelled => event.worker_instance_id.as_ref() == Some(&self.instance),
                EventKind::LaneChanged => true,
                _ => event.subject == self.worker,
            };
            if after.gap || after.items.iter().any(|envelope| concerns(&envelope.event)) {
                return Ok(true);
            }
            if left.is_zero() {
                return Ok(false);
            }
        }
    }
}
