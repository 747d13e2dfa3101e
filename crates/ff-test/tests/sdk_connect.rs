//! Connecting by URL, and what happens when it cannot be.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::Duration;

use ff_core::backend::{Backend, BackendExt as _};
use ff_core::id::{ExecutionId, Kind};
use ff_core::operation::Submit;
use ff_core::partition::PartitionConfig;
use ff_sdk::{Client, FlowFabricWorker, SdkError, WorkerConfig};
use ff_test::http::Site;
use ff_test::servers::{Server, ServerOptions};
use ff_test::stages::SqliteStage;
use ff_test::world::{PATIENCE, lane};
use uuid::Uuid;

async fn work(backend: &Arc<dyn Backend>) -> ExecutionId {
    let id = ExecutionId::solo(Uuid::now_v7(), &backend.settings().partitions);
    let submit = Submit::new(id, lane("default"), Kind::new("k").unwrap());
    backend.call(submit).await.unwrap();
    id
}

#[tokio::test]
async fn an_embedded_store_needs_no_server() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("ff.db").display());
    let worker = FlowFabricWorker::connect(WorkerConfig::new("w").url(&url)).await.unwrap();
    let (id, completion) = (work(worker.backend()).await, worker.completion_backend());
    let task = worker.claim(1, PATIENCE).await.unwrap().pop().unwrap();
    assert_eq!((task.execution_id(), completion.is_some()), (id, true));
    // The engine runs beside it: what is put aside comes back by itself.
    task.delay_for(Duration::from_millis(30)).await.unwrap();
    let task = worker.claim(1, PATIENCE).await.unwrap().pop().unwrap();
    task.complete(None).await.unwrap();
    worker.shutdown(Duration::from_secs(1)).await.unwrap();
    worker.shutdown(Duration::ZERO).await.unwrap();

    let client = Client::connect(&url).await.unwrap();
    let left = client.backend().ask(ff_core::read::Describe { execution_id: id }).await.unwrap();
    assert!(left.is_some(), "it was kept");
    client.close().await.unwrap();
    client.close().await.unwrap();
}

#[test]
fn completion_backend_accessor_signature() {
    let _: fn(&FlowFabricWorker) -> Option<Arc<dyn Backend>> = FlowFabricWorker::completion_backend;
}

#[tokio::test]
async fn urls_that_name_nothing_are_refused() {
    for url in ["", "nonsense", "ftp://x", "postgre://x", "sqlite", "valkey://", "sqlite:"] {
        let refused = FlowFabricWorker::connect(WorkerConfig::new("w").url(url)).await.err();
        let Some(SdkError::Config { field: "url", message, .. }) = refused else {
            panic!("{url:?}: {refused:?}")
        };
        assert!(!message.is_empty());
    }
    let secret = WorkerConfig::new("w").url("valkey://user:hunter2@:x").token("t0ken");
    assert!(!format!("{secret:?}").contains("t0ken"));
    let refused = FlowFabricWorker::connect(secret).await.err().unwrap();
    assert!(!format!("{refused:?} {refused}").contains("hunter2"), "{refused:?}");
}

#[tokio::test]
async fn a_store_that_is_not_there_is_told() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "").unwrap();
    let url = format!("sqlite:{}/file/ff.db", directory.path().display());
    let refused = FlowFabricWorker::connect(WorkerConfig::new("w").url(&url)).await.err().unwrap();
    assert!(matches!(refused, SdkError::BackendContext { .. }), "{refused:?}");
    let url = format!("valkey://127.0.0.1:{}", free_port());
    let begun = std::time::Instant::now();
    let refused = FlowFabricWorker::connect(WorkerConfig::new("w").url(&url)).await.err().unwrap();
    assert!(matches!(refused, SdkError::BackendContext { .. }), "{refused:?}");
    assert!(refused.to_string().starts_with("connect: "), "{refused}");
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_reached_by_its_url() {
    let site = Site::on(SqliteStage::in_memory(PartitionConfig::default())).await;
    let url = format!("http://{}", site.addr);
    let worker = FlowFabricWorker::connect(WorkerConfig::new("w").url(&url)).await.unwrap();
    let id = work(worker.backend()).await;
    let task = worker.claim(1, PATIENCE).await.unwrap().pop().unwrap();
    assert_eq!(task.execution_id(), id);
    task.complete(None).await.unwrap();
    worker.shutdown(Duration::from_secs(1)).await.unwrap();
    let both = WorkerConfig::new("w").url(&url).engine(true);
    let refused = FlowFabricWorker::connect(both).await.err().unwrap();
    assert!(matches!(refused, SdkError::Config { field: "engine", .. }), "{refused}");
    site.stop().await;
    let refused = FlowFabricWorker::connect(WorkerConfig::new("w").url(&url)).await.err().unwrap();
    assert!(matches!(refused, SdkError::BackendContext { .. }), "{refused:?}");
    let refused = Client::connect("https://").await.err().unwrap();
    assert!(matches!(refused, SdkError::Config { field: "url", .. }), "{refused:?}");
}

/// Nobody listens there.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_outlives_its_store() {
    let server = Server::start(ServerOptions::default());
    let config = WorkerConfig::new("w").url(server.url()).engine(true).lease_ttl_ms(60_000);
    let worker = FlowFabricWorker::connect(config.max_concurrent_tasks(2)).await.unwrap();
    let id = work(worker.backend()).await;
    let task = worker.claim(1, PATIENCE).await.unwrap().pop().unwrap();
    server.pause();
    let failed = worker.claim(1, Duration::ZERO).await.unwrap_err();
    assert!(failed.is_retryable(), "{failed}");
    let ending = task.complete(Some("kept".into()));
    let again = async {
        server.resume();
    };
    let (ended, ()) = tokio::join!(ending, again);
    ended.unwrap();
    let next = work(worker.backend()).await;
    assert_eq!(worker.claim(1, PATIENCE).await.unwrap()[0].execution_id(), next);
    let read = ff_core::read::ReadResult { execution_id: id, attempt_index: None };
    assert_eq!(&worker.backend().ask(read).await.unwrap().bytes[..], b"kept");
}
