//! Something is removed by one process and made again under the same id: another process that remembers
//! the first one acts on the second, or is refused.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::time::Duration;

use ff_backend_valkey::ValkeyStore;
use ff_core::backend::{BackendExt, Upkeep};
use ff_core::error::Code;
use ff_core::id::{ExecutionId, Kind};
use ff_core::operation::{Claim, CreateBudget, Delete, DeleteBudget, Submit, Task};
use ff_core::read::{Describe, GetBudgetStatus};
use ff_test::limits::{budget, dimension, limits_of, usage};
use ff_test::registered::registration_of;
use ff_test::servers::{Server, ServerOptions};
use ff_test::workload;
use ff_test::world::{cancel, complete};
use uuid::Uuid;

async fn open(server: &Server) -> ValkeyStore {
    ValkeyStore::open(server.url().parse().unwrap()).await.unwrap()
}

fn submit(execution_id: ExecutionId, kind: &str) -> Submit {
    let lane = workload::claim(0).lanes[0].lane.clone();
    Submit::new(execution_id, lane, Kind::new(kind).unwrap())
}

async fn take(store: &ValkeyStore) -> Task {
    let claim = Claim { max: 1, lease_ttl_ms: 600_000, ..workload::claim(0) };
    store.call(registration_of(&claim)).await.unwrap();
    store.claim(claim, Duration::ZERO).await.unwrap().remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_of_a_deleted_execution_ends_nothing_of_the_next_one() {
    let server = Server::start(ServerOptions::default());
    let (first, second) = (open(&server).await, open(&server).await);
    let id = ExecutionId::solo(Uuid::now_v7(), &first.settings().partitions);
    first.call(submit(id, "old")).await.unwrap();
    let lost = take(&first).await;
    second.call(cancel(id)).await.unwrap();
    second.call(Delete { execution_id: id }).await.unwrap();
    second.call(submit(id, "new")).await.unwrap();
    let held = take(&second).await;
    assert_eq!((held.execution_id, held.lease_epoch), (id, lost.lease_epoch));

    let refused = first.call(complete(&lost)).await.unwrap_err();
    assert_eq!(refused.code(), Code::StaleLease, "{refused}");
    let record = first.ask(Describe { execution_id: id }).await.unwrap().unwrap();
    assert_eq!(record.kind.as_str(), "new");
    second.call(complete(&held)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_goes_to_the_budget_that_is_there() {
    let server = Server::start(ServerOptions::default());
    let (first, second) = (open(&server).await, open(&server).await);
    let old = budget(&[("a", 100, 0)]);
    let budget_id = old.budget_id;
    let dimensions = limits_of(&[("a", 1000, 0)]);
    let new = CreateBudget { dimensions, ..old.clone() };
    first.call(old).await.unwrap();
    first.call(usage(budget_id, &[("a", 60)])).await.unwrap();
    second.call(DeleteBudget { budget_id }).await.unwrap();
    second.call(new).await.unwrap();
    second.call(usage(budget_id, &[("a", 1)])).await.unwrap();

    first.call(usage(budget_id, &[("a", 7)])).await.unwrap();
    let status = second.ask(GetBudgetStatus { budget_id }).await.unwrap().unwrap();
    let found = &status.dimensions[&dimension("a")];
    assert_eq!((found.used, found.limits.hard), (8, 1000));
}
