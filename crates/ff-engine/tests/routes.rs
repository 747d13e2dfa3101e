//! The engine on a real store with the real clock: what nobody can run is told, and let go at once
//! when somebody can.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use ff_backend_sqlite::{SqliteOptions, SqliteStore};
use ff_core::backend::{Backend, BackendExt, Upkeep};
use ff_core::capability::Capabilities;
use ff_core::event::EventKind;
use ff_core::id::{ExecutionId, Kind, LaneId, Namespace, WorkerId, WorkerInstanceId};
use ff_core::limits;
use ff_core::operation::{Claim, LaneOrder, LaneShare, RegisterWorker, Submit};
use ff_core::policy::Policy;
use ff_core::read::{EventFilter, Follow, From};
use ff_engine::{Engine, EngineOptions, Shutdown};
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(30);

fn gpu() -> Capabilities {
    Capabilities::new(["gpu"]).unwrap()
}

fn lane() -> LaneId {
    LaneId::new("work").unwrap()
}

fn claim() -> Claim {
    Claim {
        namespace: Namespace::default(),
        worker_id: WorkerId::new("w").unwrap(),
        worker_instance_id: WorkerInstanceId::new("w-1").unwrap(),
        lanes: vec![LaneShare::new(lane())],
        order: LaneOrder::Weighted,
        capabilities: gpu(),
        max: 1,
        lease_ttl_ms: 60_000,
        seed: Uuid::now_v7(),
        sets_aside: false,
    }
}

/// Something that requires a gpu.
async fn submit(store: &SqliteStore) -> ExecutionId {
    let id = ExecutionId::solo(Uuid::now_v7(), &store.settings().partitions);
    let policy = Policy { required_capabilities: gpu(), ..Policy::default() };
    let submit = Submit::new(id, lane(), Kind::new("test").unwrap());
    store.call(Submit { policy: Arc::new(policy), ..submit }).await.unwrap();
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_can_run_is_told_and_let_go() {
    let store = Arc::new(SqliteStore::open(SqliteOptions::memory()).unwrap());
    let backend = Arc::clone(&store) as Arc<dyn Backend>;
    let begun = Instant::now();
    let id = submit(&store).await;
    let (stop, shutdown) = Shutdown::channel();
    let engine = Engine::new(backend, EngineOptions::default());
    let report = engine.report();
    let engine = tokio::spawn(engine.run(shutdown));
    let kinds_of_event = vec![EventKind::Blocked];
    let filter = EventFilter { kinds_of_event, ..EventFilter::default() };
    let follow = Follow { filter, from: From::Start, limit: 1, each: false };
    let blocked = store.events(follow, PATIENCE).await.unwrap().items;
    assert_eq!(blocked[0].event.subject, id);
    assert!(begun.elapsed() >= Duration::from_millis(limits::ROUTE_PATIENCE_MS));
    store.call(RegisterWorker::for_claim(&claim(), "boot", 60_000)).await.unwrap();
    let tasks = store.claim(claim(), Duration::ZERO).await.unwrap();
    assert_eq!(tasks[0].execution_id, id, "at once, not with the engine's next look");
    let counted = async {
        while report.processed()["route_check"] != 1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, counted).await.expect("the round counts what it blocked");
    stop.send_replace(true);
    tokio::time::timeout(PATIENCE, engine).await.unwrap().unwrap();
}
