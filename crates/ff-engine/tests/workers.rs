//! The engine on a real store with the real clock: what a lost worker held is claimable again.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use ff_backend_sqlite::{SqliteOptions, SqliteStore};
use ff_core::backend::{Backend, BackendExt, Upkeep};
use ff_core::id::{ExecutionId, Kind, LaneId, Namespace, WorkerId, WorkerInstanceId};
use ff_core::operation::{
    Claim, DeregisterWorker, LaneOrder, LaneShare, RegisterWorker, Submit, Task,
};
use ff_engine::{Engine, EngineOptions, Intervals, Shutdown};
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(20);
const LEASE_MS: u64 = 600_000;

fn lane() -> LaneId {
    LaneId::new("work").unwrap()
}

fn claim(instance: &str) -> Claim {
    Claim {
        namespace: Namespace::default(),
        worker_id: WorkerId::new("w").unwrap(),
        worker_instance_id: WorkerInstanceId::new(instance).unwrap(),
        lanes: vec![LaneShare::new(lane())],
        order: LaneOrder::Weighted,
        capabilities: Default::default(),
        max: 1,
        lease_ttl_ms: LEASE_MS,
        seed: Uuid::now_v7(),
        sets_aside: false,
    }
}

/// Registers for so long and takes a task.
async fn take(store: &SqliteStore, instance: &str, ttl_ms: u64) -> Task {
    let claim = claim(instance);
    store.call(RegisterWorker::for_claim(&claim, "boot", ttl_ms)).await.unwrap();
    store.claim(claim, PATIENCE).await.unwrap().pop().expect("a task")
}

/// A task of `w-1`, which `lose` loses, is taken up by `w-2`.
async fn is_taken_up<F: Future<Output = ()>>(
    ttl_ms: u64,
    lose: impl FnOnce(Arc<SqliteStore>) -> F,
) {
    let store = Arc::new(SqliteStore::open(SqliteOptions::memory()).unwrap());
    let backend = Arc::clone(&store) as Arc<dyn Backend>;
    // Nothing may depend on the safety interval: it is longer than the patience of the test.
    let intervals = Intervals::all(PATIENCE * 2);
    let options = EngineOptions { intervals, ..EngineOptions::default() };
    let (stop, shutdown) = Shutdown::channel();
    let engine = tokio::spawn(Engine::new(backend, options).run(shutdown));
    let id = ExecutionId::solo(Uuid::now_v7(), &store.settings().partitions);
    store.call(Submit::new(id, lane(), Kind::new("test").unwrap())).await.unwrap();
    let first = take(&store, "w-1", ttl_ms).await;
    let begun = Instant::now();
    lose(Arc::clone(&store)).await;
    let second = take(&store, "w-2", LEASE_MS).await;
    assert_eq!((first.execution_id, second.execution_id), (id, id));
    assert_eq!((second.lease_epoch, second.reclaim_count), (2, 1));
    let most = Duration::from_millis(if ttl_ms < LEASE_MS { ttl_ms } else { 0 });
    assert!(begun.elapsed() < most + Duration::from_secs(5), "pushed, not found by the interval");
    stop.send_replace(true);
    tokio::time::timeout(PATIENCE, engine).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_silent_worker_held_is_taken_up() {
    is_taken_up(1_000, |_| async {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_worker_that_left_held_is_taken_up() {
    // Whoever deregisters it stops right after the word.
    is_taken_up(LEASE_MS, |store| async move {
        let namespace = Namespace::default();
        let worker_instance_id = WorkerInstanceId::new("w-1").unwrap();
        store.call(DeregisterWorker { namespace, worker_instance_id }).await.unwrap();
    })
    .await;
}
