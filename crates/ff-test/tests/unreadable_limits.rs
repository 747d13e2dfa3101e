//! A limit that cannot be asked keeps back who stands under it, for a moment, and nobody else.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::Duration;

use ff_backend_sqlite::{SqliteOptions, SqliteStore};
use ff_core::backend::{Backend, BackendExt, Pending, Upkeep};
use ff_core::error::EngineError;
use ff_core::id::{BudgetId, ExecutionId, Kind};
use ff_core::layer::{Layer, Layered};
use ff_core::operation::{Claim, Submit};
use ff_core::policy::Policy;
use ff_core::read::{Answer, Query, ReadState};
use ff_core::state::{Attached, PublicState};
use ff_test::limits::budget;
use ff_test::registered::registration_of;
use ff_test::workload;
use uuid::Uuid;

/// A store that cannot read one of its budgets.
struct Blind {
    inner: SqliteStore,
    to: BudgetId,
}

impl Layer for Blind {
    fn inner(&self) -> &dyn Backend {
        &self.inner
    }

    fn query(&self, query: Query) -> Pending<'_, Result<Answer, EngineError>> {
        match &query {
            Query::GetBudgetStatus(asked) if asked.budget_id == self.to => {
                Box::pin(async { Err(EngineError::unavailable("it is away")) })
            }
            _ => self.inner.query(query),
        }
    }
}

fn claim(max: u32) -> Claim {
    Claim { max, ..workload::claim(0) }
}

async fn submit(store: &Layered<Blind>, priority: i64, budgets: &[BudgetId]) -> ExecutionId {
    let id = ExecutionId::solo(Uuid::now_v7(), &store.settings().partitions);
    let attached = Attached::new(budgets.iter().copied(), None);
    let policy = Arc::new(Policy { attached, ..Policy::default() });
    let work = Submit::new(id, claim(1).lanes[0].lane.clone(), Kind::new("test").unwrap());
    store.call(Submit { priority, policy, ..work }).await.unwrap();
    id
}

#[tokio::test]
async fn others_are_claimed_meanwhile() {
    let (away, there) = (budget(&[("tokens", 10, 0)]), budget(&[("tokens", 10, 0)]));
    let inner = SqliteStore::open(SqliteOptions::memory()).unwrap();
    let store = Layered(Blind { inner, to: away.budget_id });
    let budgets = [away.budget_id, there.budget_id];
    store.call(away).await.unwrap();
    store.call(there).await.unwrap();
    store.call(registration_of(&claim(1))).await.unwrap();
    let unknown = submit(&store, 9, &budgets[..1]).await;
    let known = submit(&store, 5, &budgets[1..]).await;
    let free = submit(&store, 1, &[]).await;
    let mut claimed = Vec::new();
    for _ in 0..3 {
        let tasks = store.claim(claim(1), Duration::ZERO).await.unwrap();
        claimed.extend(tasks.into_iter().map(|task| task.execution_id));
    }
    assert_eq!(claimed, [known, free], "the first is passed over");
    let state = store.ask(ReadState { execution_id: unknown }).await.unwrap().unwrap();
    assert_eq!(state.public_state, PublicState::Waiting, "it is not blocked for good");
}
