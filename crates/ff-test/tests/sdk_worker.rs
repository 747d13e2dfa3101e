//! Workers of the SDK: connecting, claiming, leaving.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::time::Duration;

use ff_core::state::PublicState;
use ff_sdk::SdkError;
use ff_test::sdk::Workshop;

ff_test::on_every_way! {
    a_worker_claims_and_completes
    an_instance_lives_once
    no_permit_means_no_claim
}

async fn a_worker_claims_and_completes(workshop: &Workshop) {
    let (worker, task) = workshop.started(workshop.work()).await;
    let id = task.execution_id();
    assert_eq!(worker.running_tasks(), 1);
    assert_eq!((task.attempt_index(), task.lease_epoch()), (0, 1));
    assert_eq!(&task.input_payload()[..], br#"{"n":1}"#);
    task.complete(Some("done".into())).await.unwrap();
    assert_eq!(worker.running_tasks(), 0);
    let record = workshop.describe(id).await;
    assert_eq!(record.state.public_state, PublicState::Completed);
    assert!(worker.claim_next().await.unwrap().is_none());
    worker.shutdown(Duration::from_secs(1)).await.unwrap();
}

async fn an_instance_lives_once(workshop: &Workshop) {
    let config = workshop.config().worker_instance_id("w-1");
    let worker = workshop.worker_with(config.clone()).await;
    let again =
        ff_sdk::FlowFabricWorker::connect_with(config.clone(), workshop.backend.clone(), None);
    let refused = again.await.err().unwrap();
    assert!(matches!(refused, SdkError::Config { field: "worker_instance_id", .. }), "{refused}");
    worker.shutdown(Duration::ZERO).await.unwrap();
    workshop.worker_with(config).await;
}

async fn no_permit_means_no_claim(workshop: &Workshop) {
    let worker = workshop.worker_with(workshop.config().max_concurrent_tasks(1)).await;
    let task = workshop.start(&worker, workshop.work()).await;
    workshop.submit(workshop.work()).await;
    assert!(worker.claim_next().await.unwrap().is_none());
    task.complete(None).await.unwrap();
    assert!(worker.claim_next().await.unwrap().is_some());
}
