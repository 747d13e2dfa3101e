//! Oracle against store: random operations, every reply and the whole state compared.
//!
//! `FF_DIFFERENTIAL_OPERATIONS` makes the run longer and `FF_DIFFERENTIAL_SEED` another one:
//! `FF_DIFFERENTIAL_OPERATIONS=200000 cargo test --release -p ff-test --test differential`

use ff_core::partition::PartitionConfig;
use ff_test::differential::{Coverage, Plan, run};
use ff_test::stages::{SqliteStage, ValkeyStage};
use ff_test::world::World;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

fn plan(operations: u64) -> Plan {
    Plan {
        seed: number("FF_DIFFERENTIAL_SEED", 1),
        operations: number("FF_DIFFERENTIAL_OPERATIONS", operations) as usize,
        length: 150,
    }
}

/// Mostly enough to meet every pair of state and operation, which sequences do the same on every store.
const MANY: u64 = 200_000;

/// Where some pair was not met: so many operations more, so often.
const FURTHER: (usize, u32) = (40_000, 5);

/// On a store where each operation is a round trip.
const FEWER: u64 = 40_000;

/// Few, so that the parts of a batch meet.
const PARTITIONS: PartitionConfig = PartitionConfig { flow: 4, budget: 1, quota: 1 };

async fn sqlite() -> World {
    World::new(SqliteStage::in_memory(PARTITIONS))
}

async fn valkey_standalone() -> World {
    World::new(ValkeyStage::standalone(PARTITIONS).await)
}

async fn valkey_cluster() -> World {
    World::new(ValkeyStage::cluster(PARTITIONS).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_answers_as_the_oracle_does() {
    let mut plan = plan(MANY);
    let mut coverage = Coverage::default();
    for _ in 0..=FURTHER.1 {
        let found = run(plan, sqlite).await.unwrap_or_else(|difference| panic!("{difference}"));
        coverage.merge(found);
        if coverage.missing().is_empty() {
            break;
        }
        plan = plan.following(FURTHER.0);
    }
    let missing = coverage.missing();
    assert!(missing.is_empty(), "never met in {} operations: {missing:?}", coverage.operations);
}

#[tokio::test(flavor = "multi_thread")]
async fn valkey_answers_as_the_oracle_does() {
    let outcome = run(plan(FEWER), valkey_standalone).await;
    outcome.unwrap_or_else(|difference| panic!("{difference}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_valkey_cluster_answers_as_the_oracle_does() {
    let outcome = run(plan(FEWER), valkey_cluster).await;
    outcome.unwrap_or_else(|difference| panic!("{difference}"));
}
