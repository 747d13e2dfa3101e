//! Audits of a store that is at work: what changes while it is read is no violation, and is left alone.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::Duration;

use ff_backend_valkey::ValkeyStore;
use ff_core::backend::{BackendExt, Upkeep};
use ff_core::id::{ExecutionId, Kind};
use ff_core::operation::{Claim, Submit};
use ff_core::read::Audit;
use ff_test::registered::registration_of;
use ff_test::servers::{Server, ServerOptions};
use ff_test::sound;
use ff_test::workload;
use ff_test::world::complete;
use tokio::task::JoinSet;
use uuid::Uuid;

const WORKERS: usize = 4;
const TASKS: usize = 400;

fn claim() -> Claim {
    Claim { max: 3, ..workload::claim(0) }
}

/// Submits, claims and completes, one after another.
async fn work(store: Arc<ValkeyStore>) {
    for _ in 0..TASKS {
        let id = ExecutionId::solo(Uuid::now_v7(), &store.settings().partitions);
        let lane = claim().lanes[0].lane.clone();
        store.call(Submit::new(id, lane, Kind::new("audit").unwrap())).await.unwrap();
        for task in store.claim(claim(), Duration::ZERO).await.unwrap() {
            store.call(complete(&task)).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_at_work_is_sound_and_nothing_is_repaired() {
    let server = Server::start(ServerOptions::default());
    let store = Arc::new(ValkeyStore::open(server.url().parse().unwrap()).await.unwrap());
    store.call(registration_of(&claim())).await.unwrap();
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        workers.spawn(work(Arc::clone(&store)));
    }
    while !workers.is_empty() {
        assert_eq!(store.ask(Audit).await.unwrap().violations, []);
        let repaired = store.repair().await.unwrap();
        assert_eq!((repaired.found.violations, repaired.left.violations), (vec![], vec![]));
        while let Some(worked) = workers.try_join_next() {
            worked.unwrap();
        }
    }
    assert_eq!(sound::violations(&*store).await.unwrap(), []);
}
