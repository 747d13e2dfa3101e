//! Opening a store: what is kept over a restart, and what is refused.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::path::Path;
use std::time::Duration;

use ff_backend_sqlite::{Clock, ManualClock, OpenError, SqliteOptions, SqliteStore};
use ff_core::backend::{BackendExt, Upkeep};
use ff_core::content::Content;
use ff_core::error::{Code, EngineError};
use ff_core::id::{ExecutionId, Kind, LaneId, Namespace, WorkerId, WorkerInstanceId};
use ff_core::operation::{Claim, LaneOrder, LaneShare, RegisterWorker, Submit, Task};
use ff_core::partition::{GivenPartitions, PartitionConfig};
use ff_core::read::{Describe, EventFilter, Follow, From, ReadContext};
use ff_core::time::TimestampMs;
use uuid::Uuid;

const GRACE: Duration = Duration::from_secs(10);

fn submit(store: &SqliteStore) -> Submit {
    let id = ExecutionId::solo(Uuid::now_v7(), &store.settings().partitions);
    Submit::new(id, LaneId::new("work").unwrap(), Kind::new("test").unwrap())
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
        order: LaneOrder::Weighted,
        capabilities: Default::default(),
        max: 10,
        lease_ttl_ms: 30_000,
        seed: Uuid::now_v7(),
        sets_aside: false,
    }
}

fn open(path: &Path) -> Result<SqliteStore, OpenError> {
    SqliteStore::open(SqliteOptions::file(path))
}

#[tokio::test]
async fn everything_is_still_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("made/on/the/way/ff.db");
    let store = open(&path).unwrap();
    let work = Submit { payload: Content::new("hello"), ..submit(&store) };
    let id = work.execution_id;
    store.call(work).await.unwrap();
    let before = store.ask(Describe { execution_id: id }).await.unwrap();
    let follow =
        Follow { filter: EventFilter::default(), from: From::Start, limit: 10, each: false };
    let first = store.events(follow.clone(), Duration::ZERO).await.unwrap();
    store.shutdown_prepare(GRACE).await.unwrap();

    let store = open(&path).unwrap();
    assert_eq!(store.ask(Describe { execution_id: id }).await.unwrap(), before);
    let context = store.ask(ReadContext { execution_id: id }).await.unwrap().unwrap();
    assert_eq!(context.payload, "hello");
    assert_eq!(claim_from(&store, Duration::ZERO).await.unwrap().len(), 1, "its queue too");
    let follow = Follow { from: From::Cursor(first.cursor), ..follow };
    let rest = store.events(follow, Duration::ZERO).await.unwrap();
    let of_it = rest.items.iter().filter(|envelope| envelope.event.subject == id);
    let seqs: Vec<_> = of_it.map(|envelope| envelope.event.seq).collect();
    assert_eq!(seqs, [2], "the cursor goes on over a restart");
}

#[tokio::test]
async fn a_second_owner_is_refused_with_the_pid_of_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ff.db");
    let first = open(&path).unwrap();
    match open(&path).err() {
        Some(OpenError::Owned { owner, .. }) => assert_eq!(owner, std::process::id().to_string()),
        other => panic!("{other:?}"),
    }
    first.shutdown_prepare(GRACE).await.unwrap();
    open(&path).unwrap();
}

#[tokio::test]
async fn a_dropped_store_frees_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ff.db");
    drop(open(&path).unwrap());
    let store = open(&path).unwrap();
    store.call(submit(&store)).await.unwrap();
}

#[tokio::test]
async fn partition_counts_are_fixed_at_the_first_boot() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ff.db");
    let with = |flow| SqliteOptions {
        partitions: Some(PartitionConfig { flow, budget: 16, quota: 16 }).into(),
        ..SqliteOptions::file(&path)
    };
    drop(SqliteStore::open(with(8)).unwrap());
    let error = SqliteStore::open(with(9)).err().unwrap();
    let text = error.to_string();
    assert!(text.contains("partition_mismatch"), "{text}");
    assert!(text.contains('8') && text.contains('9'), "names both values: {text}");
    assert_eq!(open(&path).unwrap().settings().partitions.flow, 8, "absent: as stored");
    for bad in [0, 4097] {
        assert!(matches!(SqliteStore::open(with(bad)), Err(OpenError::Refused(_))), "{bad}");
    }
}

#[tokio::test]
async fn each_partition_count_is_given_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ff.db");
    let with = |partitions| SqliteOptions { partitions, ..SqliteOptions::file(&path) };
    let none = GivenPartitions::default();
    let fresh = SqliteStore::open(with(GivenPartitions { flow: Some(32), ..none })).unwrap();
    let counts = PartitionConfig { flow: 32, ..PartitionConfig::default() };
    assert_eq!(fresh.settings().partitions, counts, "defaults for the others");
    drop(fresh);
    let budget = GivenPartitions { budget: Some(16), ..none };
    assert_eq!(SqliteStore::open(with(budget)).unwrap().settings().partitions, counts);
    let other = SqliteStore::open(with(GivenPartitions { quota: Some(8), ..none })).err().unwrap();
    assert!(other.to_string().contains("num_quota_partitions is 8"), "{other}");
}

#[tokio::test]
async fn a_store_of_a_newer_build_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ff.db");
    drop(open(&path).unwrap());
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 1000).unwrap();
    drop(connection);
    assert!(matches!(open(&path), Err(OpenError::TooNew { found: 1000, .. })));
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ff.db");
    std::fs::write(&path, "this is not a database, however long it may be ".repeat(50)).unwrap();
    let error = open(&path).err().unwrap();
    assert!(error.is_corruption() && error.to_string().contains("ff.db"), "{error}");
}

#[tokio::test]
async fn a_database_of_another_application_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    for version in [0, 3, 1000] {
        let path = directory.path().join(format!("other-{version}.db"));
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch("CREATE TABLE meta (a); CREATE TABLE song (title)").unwrap();
        connection.pragma_update(None, "user_version", version).unwrap();
        drop(connection);
        let before = std::fs::read(&path).unwrap();
        let error = open(&path).err().unwrap();
        assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
        assert!(SqliteStore::schema(&SqliteOptions::file(&path)).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 3, "and nothing lies beside it");
    let empty = directory.path().join("empty.db");
    std::fs::write(&empty, "").unwrap();
    open(&empty).unwrap();
}

#[tokio::test]
async fn time_does_not_go_back_over_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ff.db");
    let at = |ms| SqliteOptions {
        clock: Clock::Manual(ManualClock::at(TimestampMs(ms))),
        ..SqliteOptions::file(&path)
    };
    let store = SqliteStore::open(at(2_000_000)).unwrap();
    store.call(submit(&store)).await.unwrap();
    drop(store);
    let store = SqliteStore::open(at(1_000_000)).unwrap();
    assert_eq!(store.server_time_ms().await.unwrap(), TimestampMs(2_000_000));
}

#[tokio::test]
async fn a_damaged_record_is_reported_and_harms_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ff.db");
    let store = open(&path).unwrap();
    let (bad, good) = (submit(&store), submit(&store));
    let (bad_id, good_id) = (bad.execution_id, good.execution_id);
    store.call(bad).await.unwrap();
    store.call(good).await.unwrap();
    store.shutdown_prepare(GRACE).await.unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    let damage = "UPDATE execution SET core = x'01ffffffff' WHERE id = ?1";
    connection.execute(damage, [bad_id.to_bytes()]).unwrap();
    drop(connection);

    let store = open(&path).unwrap();
    let error = store.ask(Describe { execution_id: bad_id }).await.unwrap_err();
    assert_eq!(error.code(), Code::Corruption);
    assert!(store.ask(Describe { execution_id: good_id }).await.unwrap().is_some());
    store.call(submit(&store)).await.unwrap();
}

#[tokio::test]
async fn a_closed_store_says_so_and_ends_waiting_claims() {
    let store = std::sync::Arc::new(SqliteStore::open(SqliteOptions::memory()).unwrap());
    claim_from(&store, Duration::ZERO).await.unwrap();
    let waiting = {
        let store = std::sync::Arc::clone(&store);
        tokio::spawn(async move { store.claim(claim(), Duration::from_secs(60)).await })
    };
    // The claim is parked once the writer has answered something that came after it.
    tokio::task::yield_now().await;
    store.ping().await.unwrap();
    store.shutdown_prepare(GRACE).await.unwrap();
    let answer = tokio::time::timeout(GRACE, waiting).await.unwrap().unwrap();
    assert!(answer.is_ok_and(|tasks| tasks.is_empty()));
    assert_eq!(store.call(submit(&store)).await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(store.ping().await.unwrap_err().code(), Code::Unavailable);
}
