//! A worker is gone, and its leases with it.

use ff_core::act;
use ff_core::backend::{Backend, BackendExt};
use ff_core::error::{Code, EngineError};
use ff_core::limits;
use ff_core::operation::{
    Command, DeregisterWorker, LoseLease, LostWorker, MarkWorkerDead, Operation, Settled,
    WorkerGone,
};
use ff_core::read::{LeasesOf, ListedLease};

/// The worker leaves; what it still holds is claimable when this answers.
pub async fn deregister(
    backend: &dyn Backend,
    deregister: DeregisterWorker,
) -> Result<WorkerGone, EngineError> {
    if let Some(acts) = backend.acts() {
        return act::whole(acts, deregister).await;
    }
    let gone = backend.call(deregister).await?;
    follow_up(backend, gone).await
}

/// An operator knows that a worker is dead; what it held is claimable when this answers.
pub async fn mark_dead(
    backend: &dyn Backend,
    mark: MarkWorkerDead,
) -> Result<WorkerGone, EngineError> {
    if let Some(acts) = backend.acts() {
        return act::whole(acts, mark).await;
    }
    let gone = backend.call(mark).await?;
    follow_up(backend, gone).await
}

async fn follow_up(backend: &dyn Backend, gone: WorkerGone) -> Result<WorkerGone, EngineError> {
    if let WorkerGone::Gone(lost) = &gone {
        take_leases(backend, lost).await?;
    }
    Ok(gone)
}

/// Takes the leases of a lost worker away and strikes out the note of it. Says how many there were.
///
/// The note is the worker's document: should this stop half way, a tick tells of it again.
pub async fn take_leases(backend: &dyn Backend, lost: &LostWorker) -> Result<u32, EngineError> {
    let (mut taken, mut cursor) = (0, None);
    loop {
        let page = backend
            .ask(LeasesOf {
                namespace: lost.namespace.clone(),
                worker_instance_id: Some(lost.worker_instance_id.clone()),
                cursor,
                limit: limits::PAGE_MAX,
            })
            .await?;
        taken += take(backend, lost, &page.items).await?;
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    if let Some(settle) = lost.settle() {
        backend.call(settle).await?;
    }
    Ok(taken)
}

async fn take(
    backend: &dyn Backend,
    lost: &LostWorker,
    leases: &[ListedLease],
) -> Result<u32, EngineError> {
    let of_it = |lease: &ListedLease| {
        let by = lost.takes(lease.acquired_at)?;
        let (execution_id, lease_id) = (lease.execution_id, lease.lease_id);
        Some(Command::from(LoseLease { execution_id, lease_id, by }))
    };
    let commands: Vec<_> = leases.iter().filter_map(of_it).collect();
    if commands.is_empty() {
        return Ok(0);
    }
    let mut taken = 0;
    for reply in backend.apply(commands).await {
        match reply.and_then(LoseLease::reply) {
            Ok(Settled::Done) => taken += 1,
            Ok(Settled::AlreadySatisfied) => {}
            Err(error) if error.code() == Code::ExecutionNotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(taken)
}
