//! Administrative calls of the SDK to a server.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::time::Duration;

use ff_core::backend::BackendExt as _;
use ff_core::id::{ExecutionId, Namespace};
use ff_core::operation::{ClaimForWorker, IssuedReclaimGrant};
use ff_core::partition::PartitionConfig;
use ff_sdk::{FlowFabricAdminClient, FlowFabricWorker, SdkError, Submission, WorkerConfig};
use ff_test::grants::issue_reclaim;
use ff_test::http::Site;
use ff_test::stages::SqliteStage;
use ff_test::world::{lane, revoke};
use uuid::Uuid;

/// A server, its URL, and a worker of it.
async fn site() -> (Site, String, FlowFabricWorker) {
    let site = Site::on(SqliteStage::in_memory(PartitionConfig::default())).await;
    let url = format!("http://{}", site.addr);
    let config = WorkerConfig::new("pool").worker_instance_id("pool-1").lane("work").url(&url);
    let worker = FlowFabricWorker::connect(config.max_concurrent_tasks(4)).await.unwrap();
    (site, url, worker)
}

fn claim() -> ClaimForWorker {
    ClaimForWorker {
        namespace: Namespace::default(),
        lane: lane("work"),
        worker_id: "pool".parse().unwrap(),
        worker_instance_id: "pool-1".parse().unwrap(),
        capabilities: Default::default(),
        grant_ttl_ms: 5_000,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grants_come_from_the_server() {
    let (site, url, worker) = site().await;
    let admin = FlowFabricAdminClient::new(&url).await.unwrap();
    assert_eq!(admin.claim_for_worker(claim()).await.unwrap(), None);
    let submitted = worker.client().submit(Submission::new("k").lane("work")).await.unwrap();
    let grant = admin.claim_for_worker(claim()).await.unwrap().unwrap();
    assert_eq!(grant.execution_id, submitted.id());
    let task = worker.claim_from_grant(&lane("work"), &grant).await.unwrap();
    site.backend.call(revoke(task.execution_id())).await.unwrap();
    let issued = admin.issue_reclaim_grant(issue_reclaim(task.execution_id())).await.unwrap();
    assert!(matches!(issued, IssuedReclaimGrant::Granted(_)), "{issued:?}");
    drop(task);
    worker.shutdown(Duration::ZERO).await.unwrap();
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_rotated_over_http() {
    let (site, url, worker) = site().await;
    let admin = FlowFabricAdminClient::new(&url).await.unwrap();
    let secret = "5e".repeat(32);
    let rotated = admin.rotate_waitpoint_secret("next", &secret, None).await.unwrap();
    assert_eq!((rotated.current_kid.as_str(), rotated.rotated), ("next", true));
    let again = admin.rotate_waitpoint_secret("next", &secret, None).await.unwrap();
    assert!(!again.rotated);
    let bad = admin.rotate_waitpoint_secret("next", "xyz", None).await.unwrap_err();
    assert!(matches!(bad, SdkError::Config { field: "new_secret_hex", .. }), "{bad}");
    let other = admin.rotate_waitpoint_secret("next", &"11".repeat(32), None).await.unwrap_err();
    assert!(!format!("{other:?} {other}").contains("1111"), "no secret in an error");
    worker.client().submit(Submission::new("k").lane("work")).await.unwrap();
    let task = worker.claim_next().await.unwrap().unwrap();
    let ticket = task.create_pending_waitpoint("gate", None).await.unwrap();
    assert_eq!(ticket.token.kid().as_str(), "next");
    let read = admin.read_waitpoint_token(task.execution_id(), ticket.key.clone()).await.unwrap();
    assert_eq!(read.unwrap().waitpoint_id, ticket.waitpoint_id);
    task.complete(None).await.unwrap();
    worker.shutdown(Duration::ZERO).await.unwrap();
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_come_as_the_server_told_them() {
    let (site, url, worker) = site().await;
    let admin = FlowFabricAdminClient::new(&url).await.unwrap();
    let nobody = ExecutionId::solo(Uuid::now_v7(), &site.backend.settings().partitions);
    let refused = admin.issue_reclaim_grant(issue_reclaim(nobody)).await.unwrap_err();
    let SdkError::AdminApi { status, code, retryable, body, .. } = &refused else {
        panic!("{refused:?}")
    };
    assert_eq!((*status, &code[..], *retryable), (404, "execution_not_found", false));
    assert!(body.contains("\"code\":\"execution_not_found\""), "{body}");
    assert!(!refused.is_retryable());
    let waitpoint: ff_core::id::WaitpointKey = "gate".parse().unwrap();
    assert!(admin.read_waitpoint_token(nobody, waitpoint).await.unwrap().is_none());
    worker.shutdown(Duration::ZERO).await.unwrap();
    site.stop().await;
    let gone = admin.claim_for_worker(claim()).await.unwrap_err();
    assert!(matches!(gone, SdkError::Http { .. }) && gone.is_retryable(), "{gone:?}");
}
