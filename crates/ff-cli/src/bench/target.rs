//! The store under test.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ff_core::backend::{Backend, BackendExt as _};
use ff_core::content::Content;
use ff_core::error::EngineError;
use ff_core::id::{Authority, ExecutionId, Kind, LaneId, Namespace, WorkerId, WorkerInstanceId};
use ff_core::limits;
use ff_core::operation::{
    Claim, Complete, LaneOrder, LaneShare, Operation, RegisterWorker, Submit, Task,
};
use ff_core::read::Audit;
use uuid::Uuid;

use super::store::Counts;
use super::{Faults, Latencies, Measured, Place, progress};
use crate::stores::Store;

/// A run takes back no lease, however long it lasts.
const LEASE_TTL_MS: u64 = limits::LEASE_TTL_MAX_MS;
/// How long the worker of a run stays registered; the next run refreshes it.
pub(super) const REGISTERED_MS: u64 = 86_400_000;
const CLOSING: Duration = Duration::from_secs(60);

/// An open store with a lane of its own, so that a run never meets the work of another.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) store: Store,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) place: Arc<Place>,
    lane: LaneId,
    kind: Kind,
    worker: WorkerId,
    instance: WorkerInstanceId,
}

impl Target {
    pub(crate) async fn open(place: Place) -> anyhow::Result<Self> {
        let store = Store::open(&place.options).await?;
        let target = Self {
            backend: store.backend(),
            store,
            place: Arc::new(place),
            lane: own_lane()?,
            kind: Kind::new("bench")?,
            worker: WorkerId::new("bench")?,
            instance: WorkerInstanceId::new("bench-1")?,
        };
        target.register().await
    }

    /// The same store, with another lane and worker.
    pub(crate) async fn elsewhere(&self) -> anyhow::Result<Self> {
        let instance = WorkerInstanceId::new("bench-2")?;
        Self { lane: own_lane()?, instance, ..self.clone() }.register().await
    }

    async fn register(self) -> anyhow::Result<Self> {
        let registration = RegisterWorker::for_claim(&self.claim(1), "bench", REGISTERED_MS);
        self.backend.call(registration).await?;
        Ok(self)
    }

    pub(crate) const fn lane(&self) -> &LaneId {
        &self.lane
    }

    pub(crate) fn submit(&self, payload: &Content) -> Submit {
        let id = ExecutionId::mint(&self.backend.settings().partitions);
        let submit = Submit::new(id, self.lane.clone(), self.kind.clone());
        Submit { payload: payload.clone(), ..submit }
    }

    /// Submits for one call.
    pub(crate) fn submits(&self, count: u64, payload: &Content) -> Vec<Submit> {
        (0..count).map(|_| self.submit(payload)).collect()
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
            sets_aside: false,
        }
    }

    /// Refuses sizes that every submit or claim of the run would be refused for.
    pub(crate) fn check(&self, payload: &Content, batch: u32) -> Result<(), EngineError> {
        self.submit(payload).check()?;
        Ok(self.claim(batch).check()?)
    }

    /// Refuses a size that every completion of the run would be refused for.
    pub(crate) fn check_result(&self, result: Option<Content>) -> Result<(), EngineError> {
        let execution_id = ExecutionId::solo(Uuid::nil(), &self.backend.settings().partitions);
        let authority = Authority::Override;
        Ok(Complete { execution_id, authority, result, next: None }.check()?)
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
            let submits = self.submits(size, payload);
            for reply in self.backend.submit_batch(submits).await? {
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
        let audited = self.backend.ask(Audit).await?;
        spinner.finish_and_clear();
        if let Some(violation) = audited.violations.first() {
            tracing::error!(?violation, "the first violated invariant of this run");
        }
        Ok(audited.violations.len())
    }

    pub(crate) async fn close(&self) -> Result<(), EngineError> {
        self.backend.shutdown_prepare(CLOSING).await
    }

    /// Measures samples that are taken one after the other, one execution each.
    pub(crate) async fn timed(
        &self,
        samples: u64,
        sampling: impl Future<Output = anyhow::Result<Latencies>>,
    ) -> anyhow::Result<Measured> {
        let before = self.store.counts().await?;
        let begun = Instant::now();
        let latencies = sampling.await?;
        let duration = begun.elapsed();
        Ok(Measured {
            duration,
            throughput_per_s: Some(samples as f64 / duration.as_secs_f64()),
            latency: latencies.percentiles(),
            commands_per_execution: Some(self.commands_per_execution(before, samples).await?),
            ..Measured::default()
        })
    }

    /// Commands of the store for each of `executions` since `before`.
    pub(crate) async fn commands_per_execution(
        &self,
        before: Counts,
        executions: u64,
    ) -> Result<f64, EngineError> {
        let commands = self.store.counts().await?.commands - before.commands;
        Ok(commands as f64 / executions as f64)
    }
}

fn own_lane() -> anyhow::Result<LaneId> {
    Ok(LaneId::new(format!("bench-{:08x}", Uuid::now_v7().as_u128() as u32))?)
}

/// Zeroes that nobody looks at.
pub(crate) fn payload(bytes: usize) -> Content {
    Content::new(vec![0; bytes])
}

/// Without a result.
pub(crate) fn complete(task: &Task) -> Complete {
    Complete {
        execution_id: task.execution_id,
        authority: Authority::Fence(task.fence()),
        result: None,
        next: None,
    }
}
