//! Many callers at once, on every store: the invariants hold afterwards.

use std::sync::Arc;

use ff_test::differential::crowd;
use ff_test::history;
use ff_test::stages;
use ff_test::world::World;

async fn check(world: World, seed: u64) {
    let world = Arc::new(world);
    crowd(Arc::clone(&world), seed, 16, 60).await;
    world.settle().await;
    world.audit().await;
    let events = history::read_all(&*world.backend).await;
    assert!(events.len() > 500, "only {} events", events.len());
    let violations = history::violations(&events);
    assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_on_a_file() {
    for seed in 0..5 {
        check(stages::sqlite_file().await, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_in_memory() {
    for seed in 0..5 {
        check(stages::sqlite_memory().await, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn oracle() {
    check(stages::oracle().await, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn valkey_on_one_node() {
    for seed in 0..3 {
        check(stages::valkey_standalone().await, seed).await;
        check(stages::valkey_by_memory().await, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn valkey_in_a_cluster() {
    for seed in 0..3 {
        check(stages::valkey_cluster().await, seed).await;
        check(stages::valkey_cluster_by_memory().await, seed).await;
    }
}
