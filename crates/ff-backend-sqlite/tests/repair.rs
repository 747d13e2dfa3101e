//! Repair: what records decide is derived again, what belongs to no record goes, records stay.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::path::Path;
use std::time::Duration;

use ff_backend_sqlite::{SqliteOptions, SqliteStore};
use ff_core::backend::{BackendExt, Upkeep};
use ff_core::content::Content;
use ff_core::error::EngineError;
use ff_core::id::{ExecutionId, Kind, LaneId, Namespace, WorkerId, WorkerInstanceId};
use ff_core::operation::{
    AppendFrames, Claim, LaneOrder, LaneShare, NewFrame, RegisterWorker, Submit, Task,
};
use ff_core::read::{Audit, Describe};
use rusqlite::Connection;
use uuid::Uuid;

fn submit(store: &SqliteStore) -> Submit {
    let id = ExecutionId::solo(Uuid::now_v7(), &store.settings().partitions);
    let submit = Submit::new(id, LaneId::new("work").unwrap(), Kind::new("test").unwrap());
    Submit { payload: Content::new("a payload"), ..submit }
}

/// A claim of a worker that registers first.
async fn claim_from(store: &SqliteStore, wait: Duration) -> Result<Vec<Task>, EngineError> {
    let registration = RegisterWorker::for_claim(&claim(), "test", 86_400_000);
    store.call(registration).await?;
    store.claim(claim(), wait).await
}

fn claim() -> Claim {
    Claim {
        namespace: Namespace::default(),
        worker_id: WorkerId::new("w").unwrap(),
        worker_instance_id: WorkerInstanceId::new("w-1").unwrap(),
        lanes: vec![LaneShare::new(LaneId::new("work").unwrap())],
        order: LaneOrder::default(),
        capabilities: Default::default(),
        max: 1,
        lease_ttl_ms: 60_000,
        seed: Uuid::now_v7(),
        sets_aside: false,
    }
}

/// A store with one execution that runs and has output, and one that waits.
async fn make(path: &Path) -> [ExecutionId; 2] {
    let store = SqliteStore::open(SqliteOptions::file(path)).unwrap();
    let (runs, waits) = (submit(&store), submit(&store));
    let ids = [runs.execution_id, waits.execution_id];
    store.call(runs).await.unwrap();
    let task = claim_from(&store, Duration::ZERO).await.unwrap().remove(0);
    store.call(waits).await.unwrap();
    let frames = vec![NewFrame::new("stdout", Content::new("said"))];
    let (execution_id, fence) = (task.execution_id, task.fence());
    store.call(AppendFrames { execution_id, fence, frames }).await.unwrap();
    store.shutdown_prepare(Duration::from_secs(10)).await.unwrap();
    ids
}

async fn violations(store: &SqliteStore) -> Vec<&'static str> {
    let audited = store.ask(Audit).await.unwrap();
    let mut found: Vec<_> = audited.violations.iter().map(|v| v.invariant).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[tokio::test]
async fn damaged_lists_are_derived_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ff.db");
    let ids = make(&path).await;
    let store = SqliteStore::open(SqliteOptions::file(&path)).unwrap();
    let mut before = Vec::new();
    for id in ids {
        before.push(store.ask(Describe { execution_id: id }).await.unwrap());
    }
    assert_eq!(violations(&store).await, [""; 0]);
    store.shutdown_prepare(Duration::from_secs(10)).await.unwrap();

    Connection::open(&path)
        .unwrap()
        .execute_batch(
            "DELETE FROM ready; DELETE FROM timer;
             INSERT INTO timer VALUES (5, zeroblob(18));
             INSERT INTO payload VALUES (zeroblob(18), x'00');
             INSERT INTO frame VALUES (zeroblob(18), 0, 0, 1, 't', 'c', NULL, x'00');
             UPDATE execution SET state = 'skipped';",
        )
        .unwrap();

    let store = SqliteStore::open(SqliteOptions::file(&path)).unwrap();
    assert_eq!(violations(&store).await, ["I10", "I33", "I8", "I9"]);
    assert!(claim_from(&store, Duration::ZERO).await.unwrap().is_empty());
    let repaired = store.repair().await.unwrap();
    assert!(repaired.found.violations.len() >= 4, "{:?}", repaired.found);
    assert_eq!(repaired.left.violations, []);
    assert_eq!(violations(&store).await, [""; 0]);
    for (id, before) in ids.into_iter().zip(before) {
        assert_eq!(store.ask(Describe { execution_id: id }).await.unwrap(), before);
    }
    let task = claim_from(&store, Duration::ZERO).await.unwrap().remove(0);
    assert_eq!(task.execution_id, ids[1]);
}

#[tokio::test]
async fn a_hole_in_the_log_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ff.db");
    make(&path).await;
    let claimed = "DELETE FROM event WHERE number = 3;";
    Connection::open(&path).unwrap().execute_batch(claimed).unwrap();
    let store = SqliteStore::open(SqliteOptions::file(&path)).unwrap();
    assert_eq!(violations(&store).await, ["I31"]);
}

#[tokio::test]
async fn lost_frames_are_found_and_left_to_people() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ff.db");
    make(&path).await;
    Connection::open(&path).unwrap().execute_batch("DELETE FROM frame;").unwrap();
    let store = SqliteStore::open(SqliteOptions::file(&path)).unwrap();
    assert_eq!(violations(&store).await, ["I30"]);
    let repaired = store.repair().await.unwrap();
    assert_eq!(repaired.left.violations, repaired.found.violations);
}
