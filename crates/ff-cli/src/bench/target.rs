//! The store under test.

use std::sync::Arc;
use std::time::Duration;

use ff_backend_sqlite::{SqliteStore, Stats};
use ff_core::backend::{BackendExt, Upkeep};
use ff_core::content::Content;
use ff_core::error::EngineError;
use ff_core::id::{Authority, ExecutionId, Kind, LaneId, Namespace, WorkerId, WorkerInstanceId};
use ff_core::limits;
use ff_core::operation::{Claim, Complete, LaneOrder, LaneShare, Operation, Submit, Task};
use ff_core::read::Audit;
use uuid::Uuid;

use super::{Faults, Place, progress};

/// A run takes back no lease, however long it lasts.
const LEASE_TTL_MS: u64 = limits::LEASE_TTL_MAX_MS;
const CLOSING: Duration = Duration::from_secs(60);

/// An open store with a lane of its own, so that a run never meets the work of another.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) place: Arc<Place>,
    lane: LaneId,
    kind: Kind,
    worker: WorkerId,
    instance: WorkerInstanceId,
}

impl Target {
    pub(crate) fn open(place: Place) -> anyhow::Result<Self> {
        Ok(Self {
            store: Arc::new(SqliteStore::open(place.options.clone())?),
            place: Arc::new(place),
            lane: LaneId::new(format!("bench-{:08x}", Uuid::now_v7().as_u128() as u32))?,
            kind: Kind::new("bench")?,
            worker: WorkerId::new("bench")?,
            instance: WorkerInstanceId::new("bench-1")?,
        })
    }

    pub(crate) fn submit(&self, payload: &Content) -> Submit {
        let id = ExecutionId::solo(Uuid::now_v7(), &self.store.settings().partitions);
        let submit = Submit::new(id, self.lane.clone(), self.kind.clone());
        Submit { payload: payload.clone(), ..submit }
    }

    pub(crate) fn claim(&self, max: u32) -> Claim {
        Claim {
            namespace: Namespace::default(),
            worker_id: self.worker.clone(),
            worker_instance_id: self.instance.clone(),
            lanes: vec![LaneShare::new(self.lane.clone())],
            order: LaneOrder::default(),
            capabilities: Default::default(),
            max,
            lease_ttl_ms: LEASE_TTL_MS,
            seed: Uuid::now_v7(),
        }
    }

    /// Refuses sizes that every submit or claim of the run would be refused for.
    pub(crate) fn check(&self, payload: &Content, batch: u32) -> Result<(), EngineError> {
        self.submit(payload).check()?;
        Ok(self.claim(batch).check()?)
    }

    /// Submits `count` executions in the largest batches.
    pub(crate) async fn fill(
        &self,
        count: u64,
        payload: &Content,
        faults: &Faults,
    ) -> anyhow::Result<()> {
        let bar = progress::bar("submitting", count);
        let mut left = count;
        while left > 0 {
            let size = left.min(limits::BATCH_ITEMS as u64);
            let submits = (0..size).map(|_| self.submit(payload)).collect();
            for reply in self.store.submit_batch(submits).await? {
                if let Err(error) = reply {
                    faults.note(&error);
                }
            }
            left -= size;
            bar.inc(size);
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// Checks every invariant that the store can check on itself; gives the number of violations.
    pub(crate) async fn audit(&self) -> anyhow::Result<usize> {
        let spinner = progress::spinner("checking the invariants");
        let audited = self.store.ask(Audit).await?;
        spinner.finish_and_clear();
        if let Some(violation) = audited.violations.first() {
            tracing::error!(?violation, "the first violated invariant of this run");
        }
        Ok(audited.violations.len())
    }

    pub(crate) async fn close(&self) -> Result<(), EngineError> {
        self.store.shutdown_prepare(CLOSING).await
    }

    /// Commands of the store for each of `executions` since `before`.
    pub(crate) fn commands_per_execution(&self, before: Stats, executions: u64) -> f64 {
        (self.store.stats().commands - before.commands) as f64 / executions as f64
    }
}

/// Zeroes that nobody looks at.
pub(crate) fn payload(bytes: usize) -> Content {
    Content::new(vec![0; bytes])
}

pub(crate) fn complete(task: &Task) -> Complete {
    Complete {
        execution_id: task.execution_id,
        authority: Authority::Fence(task.fence()),
        result: None,
        next: None,
    }
}
