//! What scanners do while something cannot be read: what a limit keeps back stays blocked, and what is
//! to be mended stays as it is, until it can be read again. Routes are let through, and homes, errands
//! and namespaces that fail are left alone: `engine_scanners.rs`.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::Duration;

use ff_core::backend::Backend;
use ff_core::error::EngineError;
use ff_core::id::ExecutionId;
use ff_core::operation::{BlockForAdmission, Command, ScannerFilter, Submit};
use ff_core::policy::Policy;
use ff_core::read::Query;
use ff_core::state::{LimitId, PublicState};
use ff_engine::acts::LedgerCheck;
use ff_engine::{LimitCheck, RouteCheck};
use ff_test::fleet::block;
use ff_test::limits::{budget, cap, spend};
use ff_test::spoiled::{Asked, spoiled};
use ff_test::stages;
use ff_test::world::{World, capabilities};

/// One that a limit with room keeps back, in a namespace with a worker.
async fn kept_back(world: &World, by: LimitId) -> ExecutionId {
    assert!(world.claim(1).await.is_empty());
    let id = world.submit(world.work()).await;
    let reason = by.reason().blocking_reason();
    world.act(BlockForAdmission { by: Some(by), ..block(id, reason) }).await;
    id
}

/// The store, but for what `is_unreadable` says.
fn blind(
    world: &World,
    is_unreadable: impl Fn(&Query) -> bool + Send + Sync + 'static,
) -> Arc<dyn Backend> {
    spoiled(Arc::clone(&world.backend), move |asked| match asked {
        Asked::Query(query) if is_unreadable(query) => Err(EngineError::bug("it is blind")),
        _ => Ok(()),
    })
}

async fn stays_blocked_until_it_can_be_read(world: World, by: LimitId, blind: Arc<dyn Backend>) {
    let id = kept_back(&world, by).await;
    let unseen = LimitCheck::default().round(&*blind).await;
    let let_go = unseen.map(|checked| checked.let_go).unwrap_or_default();
    assert_eq!(let_go, 0);
    assert_eq!(world.public_state(id).await, PublicState::RateLimited);
    let seen = LimitCheck::default().round(&*world.backend).await.unwrap();
    assert_eq!((seen.let_go, seen.errors), (1, 0));
    assert_eq!(world.public_state(id).await, PublicState::Waiting);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_budget_keeps_back_stays_blocked_while_it_cannot_be_read() {
    for world in [stages::sqlite_memory().await, stages::valkey_standalone().await] {
        let by = LimitId::Budget(world.budget(budget(&[("tokens", 9, 0)])).await);
        let blind = blind(&world, |query| matches!(query, Query::GetBudgetStatus(_)));
        stays_blocked_until_it_can_be_read(world, by, blind).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_quota_keeps_back_stays_blocked_while_it_cannot_be_read() {
    for world in [stages::sqlite_memory().await, stages::valkey_standalone().await] {
        let by = LimitId::Quota(world.quota(cap(1)).await);
        let blind = blind(&world, |query| matches!(query, Query::DescribeQuotaPolicy(_)));
        stays_blocked_until_it_can_be_read(world, by, blind).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_stays_as_it_is_while_ledgers_cannot_be_read() {
    let world = stages::sqlite_memory().await;
    assert!(world.claim(1).await.is_empty());
    let id = world.budget(budget(&[("tokens", 9, 0)])).await;
    world.act(spend(id, world.somebody(), &[("tokens", 3)])).await;
    let before = world.status(id).await;
    let blind = spoiled(Arc::clone(&world.backend), |asked| match asked {
        Asked::Command(Command::RecountBudget(_)) => Err(EngineError::bug("it is blind")),
        _ => Ok(()),
    });
    assert!(LedgerCheck::default().page(&*blind, 100, true).await.is_err());
    assert_eq!(world.status(id).await, before);
    let done = LedgerCheck::default().page(&*world.backend, 100, true).await.unwrap();
    assert_eq!((done.found.checked, done.mended), (1, 0));
}

/// Nothing is blocked for want of a worker while what waits cannot be listed.
#[tokio::test(flavor = "multi_thread")]
async fn what_waits_stays_eligible_while_routes_cannot_be_read() {
    let world = stages::sqlite_memory().await;
    let required_capabilities = capabilities(&["gpu"]);
    let policy = Arc::new(Policy { required_capabilities, ..Policy::default() });
    let id = world.submit(Submit { policy, ..world.work() }).await;
    let blind = blind(&world, |query| matches!(query, Query::ListRoutes(_)));
    let mut check = RouteCheck::new(Duration::ZERO, ScannerFilter::default());
    for _ in 0..3 {
        let blocked = check.round(&*blind).await.map(|checked| checked.blocked);
        assert_eq!(blocked.unwrap_or_default(), 0);
    }
    assert_eq!(world.claim_as(world.claim_request(1)).await.len(), 0, "nobody can run it");
    assert_eq!(world.public_state(id).await, PublicState::Waiting);
}
