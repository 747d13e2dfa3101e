//! Workers of the SDK: connecting, claiming, leaving.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::collections::BTreeMap;
use std::time::Duration;

use ff_core::backend::BackendExt as _;
use ff_core::error::Code;
use ff_core::id::LaneId;
use ff_core::operation::{DrainWorker, MarkWorkerDead, Submit};
use ff_core::state::{LaneState, PublicState};
use ff_engine::acts;
use ff_sdk::{FlowFabricWorker, SdkError, StopReason, WorkerConfig};
use ff_test::fleet::set_lane;
use ff_test::sdk::Workshop;
use ff_test::world::{PATIENCE, lane, policy};
use tokio::task::JoinSet;
use tokio::time::timeout;

ff_test::on_every_way! {
    a_worker_claims_and_completes
    accessors_show_what_a_worker_is
    an_instance_lives_once
    a_name_is_free_when_its_worker_is_silent_for_too_long
    no_permit_means_no_claim
    a_claim_takes_no_more_than_there_are_permits
    a_claim_waits_for_work
    the_highest_priority_comes_first
    lanes_take_turns_by_their_weights
    a_worker_gets_what_it_can_do
    a_drained_worker_claims_nothing
    an_operator_drains_a_worker
    paused_lanes_are_shown
    a_worker_that_was_forgotten_registers_again
    shutdown_lets_tasks_end
    shutdown_stops_what_does_not_end
    who_has_left_stays_away
}

async fn a_worker_claims_and_completes(workshop: &Workshop) {
    let (worker, task) = workshop.started(workshop.work()).await;
    let id = task.execution_id();
    assert_eq!(worker.running_tasks(), 1);
    assert_eq!((task.attempt_index(), task.lease_epoch()), (0, 1));
    assert_eq!(&task.input_payload()[..], br#"{"n":1}"#);
    task.complete(Some("done".into())).await.unwrap();
    assert_eq!(worker.running_tasks(), 0);
    assert_eq!(workshop.state(id).await, PublicState::Completed);
    assert!(worker.claim_next().await.unwrap().is_none());
    worker.shutdown(Duration::from_secs(1)).await.unwrap();
}

async fn accessors_show_what_a_worker_is(workshop: &Workshop) {
    let config = workshop.config().worker_instance_id("w-7");
    let worker = workshop.worker_with(config.clone()).await;
    assert_eq!((worker.config(), worker.worker_instance_id()), (&config, "w-7"));
    assert_eq!(worker.partition_config(), workshop.backend.settings().partitions);
    assert_eq!(worker.backend().backend_label(), workshop.backend.backend_label());
    assert_eq!(worker.client().namespace().to_string(), "default");
    assert_eq!(worker.claim_wait(), Duration::from_secs(30));
    let other = workshop.config();
    let backend = workshop.backend.clone();
    let without = FlowFabricWorker::connect_with(other, backend, None).await.unwrap();
    assert!(without.completion_backend().is_none() && worker.completion_backend().is_some());
    assert!(without.worker_instance_id().starts_with("w-"), "a name of its own");
}

async fn an_instance_lives_once(workshop: &Workshop) {
    let config = workshop.config().worker_instance_id("w-1");
    let worker = workshop.worker_with(config.clone()).await;
    let again = FlowFabricWorker::connect_with(config.clone(), workshop.backend.clone(), None);
    let refused = again.await.err().unwrap();
    assert!(matches!(refused, SdkError::Config { field: "worker_instance_id", .. }), "{refused}");
    worker.shutdown(Duration::ZERO).await.unwrap();
    workshop.worker_with(config).await;
}

async fn a_name_is_free_when_its_worker_is_silent_for_too_long(workshop: &Workshop) {
    let config = workshop.config().worker_instance_id("w-1").lease_ttl_ms(400);
    drop(workshop.worker_with(config.clone()).await);
    workshop.pass(999).await;
    let again = FlowFabricWorker::connect_with(config.clone(), workshop.backend.clone(), None);
    assert!(matches!(again.await, Err(SdkError::Config { field: "worker_instance_id", .. })));
    // A heartbeat that was on its way may have counted until now.
    workshop.pass(1_001).await;
    workshop.worker_with(config).await;
}

async fn no_permit_means_no_claim(workshop: &Workshop) {
    let worker = workshop.worker_with(workshop.config().max_concurrent_tasks(1)).await;
    let task = workshop.start(&worker, workshop.work()).await;
    workshop.submit(workshop.work()).await;
    assert!(worker.claim_next().await.unwrap().is_none());
    assert!(worker.claim(5, PATIENCE).await.unwrap().is_empty(), "it does not wait for a permit");
    task.complete(None).await.unwrap();
    assert!(worker.claim_next().await.unwrap().is_some());
}

async fn a_claim_takes_no_more_than_there_are_permits(workshop: &Workshop) {
    let worker = workshop.worker_with(workshop.config().max_concurrent_tasks(3)).await;
    for _ in 0..5 {
        workshop.submit(workshop.work()).await;
    }
    assert_eq!(worker.claim(2, Duration::ZERO).await.unwrap().len(), 2, "dropped, and given back");
    let tasks = worker.claim(10, Duration::ZERO).await.unwrap();
    assert_eq!(tasks.len(), 3);
    assert_eq!(worker.running_tasks(), 3);
}

async fn a_claim_waits_for_work(workshop: &Workshop) {
    let worker = workshop.worker().await;
    let begun = worker.claim(4, PATIENCE);
    let (tasks, id) = tokio::join!(begun, workshop.submit(workshop.work()));
    let tasks = tasks.unwrap();
    assert_eq!(tasks[0].execution_id(), id);
    assert!(worker.claim(4, Duration::from_millis(20)).await.unwrap().is_empty());
}

async fn the_highest_priority_comes_first(workshop: &Workshop) {
    let worker = workshop.worker().await;
    let mut ids = BTreeMap::new();
    for priority in [5, 9_000, 0, 70] {
        let id = workshop.submit(Submit { priority, ..workshop.work() }).await;
        ids.insert(priority, id);
    }
    for (_, id) in ids.iter().rev() {
        let task = worker.claim_next().await.unwrap().unwrap();
        assert_eq!(task.execution_id(), *id);
        task.complete(None).await.unwrap();
    }
}

async fn lanes_take_turns_by_their_weights(workshop: &Workshop) {
    let config = WorkerConfig::new("w").weighted_lane("heavy", 3).lane("light");
    let worker = workshop.worker_with(config).await;
    for _ in 0..8 {
        for name in ["heavy", "light"] {
            workshop.submit(Submit { lane: lane(name), ..workshop.work() }).await;
        }
    }
    let mut taken = Vec::new();
    for _ in 0..8 {
        let task = worker.claim_next().await.unwrap().unwrap();
        taken.push(task.lane_id().to_string());
        task.complete(None).await.unwrap();
    }
    let light = taken.iter().filter(|lane| *lane == "light").count();
    assert_eq!(light, 2, "{taken:?}");
    assert!(taken[..4].contains(&"light".to_owned()), "smoothly: {taken:?}");
}

async fn a_worker_gets_what_it_can_do(workshop: &Workshop) {
    let needs = r#"{"routing_requirements":{"required_capabilities":["gpu"]}}"#;
    let gpu = workshop.submit(Submit { policy: policy(needs), ..workshop.work() }).await;
    let plain = workshop.submit(workshop.work()).await;
    let worker = workshop.worker().await;
    let task = worker.claim_next().await.unwrap().unwrap();
    assert_eq!(task.execution_id(), plain, "the other one stays for others");
    assert!(worker.claim_next().await.unwrap().is_none());
    let able = workshop.worker_with(workshop.config().capability("gpu")).await;
    assert_eq!(able.claim_next().await.unwrap().unwrap().execution_id(), gpu);
}

async fn a_drained_worker_claims_nothing(workshop: &Workshop) {
    let (worker, task) = workshop.started(workshop.work()).await;
    workshop.submit(workshop.work()).await;
    let waiting = workshop.worker().await;
    let claim = waiting.claim(0, PATIENCE);
    assert!(claim.await.unwrap().is_empty(), "nothing was wanted");
    worker.drain();
    assert!(worker.is_draining());
    assert!(worker.claim_next().await.unwrap().is_none());
    task.complete(None).await.unwrap();
}

async fn an_operator_drains_a_worker(workshop: &Workshop) {
    let worker = workshop.worker_with(workshop.config().worker_instance_id("w-1")).await;
    let waiting = worker.claim(1, 2 * PATIENCE);
    let drain = async {
        let worker_instance_id = "w-1".parse().unwrap();
        let (namespace, reason) = Default::default();
        let drain = DrainWorker { namespace, worker_instance_id, reason };
        workshop.store().call(drain).await.unwrap();
        worker.drained().await;
    };
    let (claimed, ()) = timeout(PATIENCE, async { tokio::join!(waiting, drain) }).await.unwrap();
    assert!(claimed.unwrap().is_empty() && worker.is_draining(), "claims end with it");
}

async fn paused_lanes_are_shown(workshop: &Workshop) {
    let worker = workshop.worker().await;
    assert_eq!(worker.paused_lanes(), Vec::<LaneId>::new());
    let mut paused = worker.paused_lanes_changed();
    workshop.store().call(set_lane("work", LaneState::Paused)).await.unwrap();
    timeout(PATIENCE, paused.changed()).await.unwrap().unwrap();
    assert_eq!(worker.paused_lanes(), [lane("work")]);
}

async fn a_worker_that_was_forgotten_registers_again(workshop: &Workshop) {
    let worker = workshop.worker_with(workshop.config().worker_instance_id("w-1")).await;
    let mark = MarkWorkerDead {
        namespace: Default::default(),
        worker_instance_id: "w-1".parse().unwrap(),
        reason: "no news".to_owned(),
    };
    acts::mark_dead(&*workshop.store(), mark).await.unwrap();
    let id = workshop.submit(workshop.work()).await;
    assert_eq!(worker.claim_next().await.unwrap().unwrap().execution_id(), id);
}

async fn shutdown_lets_tasks_end(workshop: &Workshop) {
    let (worker, task) = workshop.started(workshop.work()).await;
    let id = task.execution_id();
    let token = task.cancellation();
    let leave = worker.shutdown(PATIENCE);
    let end = async {
        worker.drained().await;
        task.complete(None).await.unwrap();
    };
    let (left, ()) = tokio::join!(leave, end);
    left.unwrap();
    assert!(!token.is_cancelled(), "nobody was hurried");
    assert_eq!(workshop.state(id).await, PublicState::Completed);
}

/// A heartbeat that hears of the end does not take it for a registry that has forgotten the worker.
async fn who_has_left_stays_away(workshop: &Workshop) {
    let mut leaving = JoinSet::new();
    for _ in 0..30 {
        let worker = workshop.worker().await;
        leaving.spawn(async move { worker.shutdown(Duration::ZERO).await });
    }
    while let Some(left) = leaving.join_next().await {
        left.unwrap().unwrap();
    }
    assert_eq!(workshop.client().list_workers(None).await.unwrap().items, []);
}

async fn shutdown_stops_what_does_not_end(workshop: &Workshop) {
    let (worker, task) = workshop.started(workshop.work()).await;
    let id = task.execution_id();
    worker.shutdown(Duration::from_millis(10)).await.unwrap();
    assert!(task.is_cancelled());
    assert_eq!(task.stop_reason(), Some(StopReason::ShuttingDown));
    let other = workshop.worker().await;
    let taken = other.claim_next().await.unwrap().unwrap();
    assert_eq!((taken.execution_id(), taken.lease_epoch()), (id, 2), "claimable at once");
    let late = task.complete(None).await.unwrap_err();
    assert!(late.task.is_none(), "{late:?}");
    assert!(matches!(late.error.code(), Some(Code::StaleLease | Code::LeaseRevoked)), "{late}");
}
