//! A worker says that it lives, renews what it runs, and hears what is new.

use std::time::{Duration, Instant};

use ff_core::act::{self, Beat, Cancellation, HearNews, Heartbeat, News, Stopped, StoppedBy};
use ff_core::backend::{Backend, BackendExt};
use ff_core::error::{Code, EngineError, Refusal};
use ff_core::event::{Detail, Envelope, Event, EventKind};
use ff_core::id::{DocumentId, Subject, WorkerInstanceId};
use ff_core::limits;
use ff_core::operation::{Command, HeartbeatWorker, Operation, Renew, Renewed, WorkerBeat};
use ff_core::read::{Describe, EventFilter, Follow, From};
use ff_core::state::PublicState;

/// What was cancelled just before a worker began to wait is noted for it a moment later, at the latest
/// so long.
const NOTE_MS: u64 = 500;

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
    if let Some(acts) = backend.acts() {
        return act::whole(acts, HearNews { heartbeat: heartbeat.clone(), wait }).await;
    }
    let deadline = Instant::now() + wait;
    // The place in the log comes before the look: nothing can happen in between.
    let mut watch = Watch::begin(backend, heartbeat, wait).await?;
    // Who goes on from a place in the log has missed nothing.
    let mut pause_ms = if heartbeat.after.is_some() { u64::MAX } else { NOTE_MS };
    loop {
        let look = look(backend, heartbeat).await?;
        let left = deadline.saturating_duration_since(Instant::now());
        let is_news = |watch: &Watch| look.is_news || !watch.stopped.is_empty();
        let goes_on = |watch: &&mut Watch| !is_news(watch) && !left.is_zero();
        let Some(watching) = watch.as_mut().filter(goes_on) else {
            // What has come may stand in the log as well, and goes along at once.
            if let Some(behind) = watch.as_mut().filter(|it| look.is_news && it.stopped.is_empty())
            {
                behind.wait(backend, Duration::ZERO).await?;
            }
            return Ok(with_stopped(look.beat, watch));
        };
        // Whoever waits here is alive, and must not be called dead meanwhile.
        let refresh_in = Duration::from_millis(pause_ms.min(look.ttl_ms / 3));
        pause_ms = u64::MAX;
        let told = watching.wait(backend, left.min(refresh_in)).await?;
        if !told && refresh_in >= left {
            return Ok(with_stopped(look.beat, watch));
        }
    }
}

fn with_stopped(mut beat: Beat, watch: Option<Watch>) -> Beat {
    if let (Beat::Refreshed(news), Some(watch)) = (&mut beat, watch) {
        // The log may be faster than the note of it.
        news.add(watch.cancelled);
        news.stopped = watch.stopped;
        news.cursor = Some(watch.cursor);
    }
    beat
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
    let WorkerBeat::Refreshed { next_expiry, drain, paused_lanes, ttl_ms, news, cancelled } = beat
    else {
        return Ok(Look { beat: Beat::NotRegistered, ttl_ms: 0, is_news: true });
    };
    let refused = cancellations(backend, heartbeat, &leases).await?;
    let cancellations = cancelled.into_iter().map(Cancellation::from).collect();
    let (stopped, cursor) = (Vec::new(), None);
    let mut told =
        News { next_expiry, cancellations, paused_lanes, drain, leases, stopped, cursor };
    let is_news = news || !refused.is_empty();
    told.add(refused);
    Ok(Look { beat: Beat::Refreshed(told), ttl_ms, is_news })
}

/// Which leases could not be renewed because their execution was cancelled lately: what was to note
/// it for the worker may have been stopped.
async fn cancellations(
    backend: &dyn Backend,
    heartbeat: &Heartbeat,
    leases: &[Result<Renewed, EngineError>],
) -> Result<Vec<Cancellation>, EngineError> {
    let ended = |result: &Result<Renewed, EngineError>| {
        result.as_ref().is_err_and(|error| error.code() == Code::ExecutionNotActive)
    };
    let all = heartbeat.leases.iter().zip(leases);
    let ended: Vec<_> = all.filter(|(_, result)| ended(result)).map(|(lease, _)| lease).collect();
    if ended.is_empty() {
        return Ok(Vec::new());
    }
    let questions =
        ended.iter().map(|lease| Describe { execution_id: lease.execution_id }).collect();
    let records = backend.ask_all(questions).await;
    let now = backend.server_time_ms().await?;
    let mut found = Vec::new();
    for (lease, record) in ended.into_iter().zip(records) {
        let Some(record) = record? else { continue };
        let lately =
            record.completed_at.is_some_and(|at| now.since(at) < limits::CANCELLATION_NEWS_MS);
        // The epoch says that no other lease came after this one.
        let its_own = record.lease_epoch == lease.fence.lease_epoch;
        if record.state.public_state == PublicState::Cancelled && lately && its_own {
            let reason = record.cancellation_reason.unwrap_or_default();
            let (execution_id, lease_id) = (lease.execution_id, lease.fence.lease_id);
            found.push(Cancellation { execution_id, lease_id, reason });
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
    stopped: Vec<Stopped>,
    cancelled: Vec<Cancellation>,
}

impl Watch {
    const KINDS: [EventKind; 7] = [
        EventKind::Cancelled,
        EventKind::Expired,
        EventKind::LaneChanged,
        EventKind::LeaseExpired,
        EventKind::LeaseRevoked,
        EventKind::WorkerDraining,
        EventKind::WorkerLost,
    ];

    /// None for a heartbeat that neither waits nor goes on.
    async fn begin(
        backend: &dyn Backend,
        heartbeat: &Heartbeat,
        wait: Duration,
    ) -> Result<Option<Self>, EngineError> {
        if wait.is_zero() && heartbeat.after.is_none() {
            return Ok(None);
        }
        let instance = heartbeat.worker_instance_id.clone();
        let mut watch = Self {
            worker: DocumentId::worker(&heartbeat.namespace, &instance).into(),
            instance,
            filter: EventFilter {
                kinds_of_event: Self::KINDS.to_vec(),
                namespace: Some(heartbeat.namespace.clone()),
                ..EventFilter::default()
            },
            cursor: heartbeat.after.clone().unwrap_or_default(),
            stopped: Vec::new(),
            cancelled: Vec::new(),
        };
        if heartbeat.after.is_none() {
            let follow =
                Follow { filter: watch.filter.clone(), from: From::Now, limit: 1, each: false };
            watch.cursor = backend.events(follow, Duration::ZERO).await?.cursor;
        } else if wait.is_zero() {
            watch.wait(backend, Duration::ZERO).await?;
        }
        Ok(Some(watch))
    }

    /// Whether something came that makes another look worth it.
    async fn wait(&mut self, backend: &dyn Backend, wait: Duration) -> Result<bool, EngineError> {
        let deadline = Instant::now() + wait;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let from = From::Cursor(self.cursor.clone());
            let filter = self.filter.clone();
            let follow = Follow { filter, from, limit: limits::PAGE_MAX, each: false };
            let after = backend.events(follow, left).await?;
            self.cursor = after.cursor;
            let mut concerns = after.gap;
            for Envelope { event, .. } in &after.items {
                let stopped = self.stopped_by(event);
                concerns |= stopped.is_some() || self.concerns(event);
                self.cancelled.extend(stopped.as_ref().and_then(|it| cancellation(it, event)));
                self.stopped.extend(stopped);
            }
            if concerns {
                return Ok(true);
            }
            if left.is_zero() {
                return Ok(false);
            }
        }
    }

    fn concerns(&self, event: &Event) -> bool {
        event.kind == EventKind::LaneChanged || event.subject == self.worker
    }

    /// The task of this worker that an event has stopped.
    fn stopped_by(&self, event: &Event) -> Option<Stopped> {
        let Subject::Execution(execution_id) = event.subject else { return None };
        if event.worker_instance_id.as_ref() != Some(&self.instance) {
            return None;
        }
        let by = match (event.kind, event.data.get("reason")) {
            (EventKind::Cancelled, Some(Detail::Text(reason))) => {
                StoppedBy::Cancel { reason: reason.clone() }
            }
            (EventKind::Cancelled, _) => StoppedBy::Cancel { reason: String::new() },
            _ => StoppedBy::Loss,
        };
        Some(Stopped { execution_id, lease_epoch: event.lease_epoch?, by })
    }
}

/// The cancellation that an event tells of, if its lease is named.
fn cancellation(stopped: &Stopped, event: &Event) -> Option<Cancellation> {
    let StoppedBy::Cancel { reason } = &stopped.by else { return None };
    let Some(Detail::Text(lease_id)) = event.data.get("lease_id") else { return None };
    let lease_id = lease_id.parse().ok()?;
    Some(Cancellation { execution_id: stopped.execution_id, lease_id, reason: reason.clone() })
}
