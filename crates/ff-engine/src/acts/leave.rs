//! A worker is gone, and its leases with it.

use ff_core::act;
use ff_core::backend::{Backend, BackendExt};
use ff_core::each::{Each, each};
use ff_core::error::EngineError;
use ff_core::limits;
use ff_core::operation::{
    Command, DeregisterWorker, LoseLease, LostWorker, MarkWorkerDead, Reply, Settled, WorkerGone,
};
use ff_core::read::{DescribeWorker, LeasesOf, ListedLease};

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

/// Takes the leases of a lost worker away and strikes out the note of it.
///
/// The note is the worker's document: should this stop half way, a tick tells of it again.
pub async fn take_leases(backend: &dyn Backend, lost: &LostWorker) -> Result<Each, EngineError> {
    let (mut taken, mut cursor) = (Each::default(), None);
    loop {
        let page = backend
            .ask(LeasesOf {
                namespace: lost.namespace.clone(),
                worker_instance_id: Some(lost.worker_instance_id.clone()),
                cursor,
                limit: limits::PAGE_MAX,
            })
            .await?;
        taken.add(take(backend, lost, page.items).await?);
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

/// Takes those of the listed leases that are lost. Under the name of the lost worker another boot may
/// live since it was told of: that is looked up after its leases were listed, so none of them is taken.
async fn take(
    backend: &dyn Backend,
    lost: &LostWorker,
    mut leases: Vec<ListedLease>,
) -> Result<Each, EngineError> {
    leases.retain(|lease| lost.takes(lease.acquired_at).is_some());
    if leases.is_empty() {
        return Ok(Each::default());
    }
    let next_boot = backend.ask(DescribeWorker {
        namespace: lost.namespace.clone(),
        worker_instance_id: lost.worker_instance_id.clone(),
        counted: false,
    });
    if let Some(next_boot) = next_boot.await? {
        leases.retain(|lease| lease.acquired_at < next_boot.registered_at);
    }
    let of_it = |lease: &ListedLease| {
        let by = lost.takes(lease.acquired_at)?;
        let (execution_id, lease_id) = (lease.execution_id, lease.lease_id);
        Some(Command::from(LoseLease { execution_id, lease_id, by }))
    };
    let is_done = |reply: &Reply| matches!(reply, Reply::LoseLease(Settled::Done));
    each(backend, leases.iter().filter_map(of_it).collect(), is_done).await
}
