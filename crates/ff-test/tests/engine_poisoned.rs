//! One execution among many cannot be acted on: whatever acts on all of them goes on with the others,
//! and tells of the one.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::Duration;

use ff_core::backend::{Backend, BackendExt};
use ff_core::capability::Capabilities;
use ff_core::each::Each;
use ff_core::error::EngineError;
use ff_core::id::{BudgetId, BulkId, ExecutionId, Namespace};
use ff_core::limits;
use ff_core::operation::{
    Attach, BlockForAdmission, Claim, Command, CreateBulk, RegisterWorker, SetLane, Task,
    WorkerGone,
};
use ff_core::partition::PartitionConfig;
use ff_core::read::{GetBulk, Query};
use ff_core::state::{
    BlockingReason, BulkAction, BulkTargets, HardAction, LaneState, LimitId, PublicState,
};
use ff_engine::{Engine, EngineOptions, Intervals, LimitCheck, RouteCheck, Shutdown, acts};
use ff_test::fleet::{block, mark_dead, register, set_lane};
use ff_test::limits::budget;
use ff_test::spoiled::{Asked, spoiled};
use ff_test::stages::SqliteStage;
use ff_test::world::{PATIENCE, World};

/// More than one page.
const MANY: u32 = limits::PAGE_MAX + 3;

fn world() -> World {
    World::new(SqliteStage::in_memory(PartitionConfig::default()))
}

/// The world's backend, on which nothing can be done to one execution.
fn poisoned(world: &World, id: ExecutionId) -> Arc<dyn Backend> {
    spoiled(Arc::clone(&world.backend), move |asked| match asked {
        Asked::Command(command) if command.execution_id() == Some(id) => {
            Err(EngineError::corruption("broken on purpose"))
        }
        _ => Ok(()),
    })
}

/// All but the one were reached.
#[track_caller]
fn only(each: &Each, bad: ExecutionId) {
    assert_eq!(each.done, MANY - 1);
    let broken: Vec<_> = each.broken.iter().map(|broken| broken.execution_id).collect();
    assert_eq!(broken, [bad]);
}

async fn kept_back(world: &World, count: u32) -> (BudgetId, Vec<ExecutionId>) {
    let budget_id = world.budget(budget(&[("tokens", 10, 0)])).await;
    let by = Some(LimitId::Budget(budget_id));
    let mut ids = Vec::new();
    for _ in 0..count {
        let id = world.submit(world.work()).await;
        world.act(BlockForAdmission { by, ..block(id, BlockingReason::WaitingForBudget) }).await;
        ids.push(id);
    }
    (budget_id, ids)
}

/// Many that one worker runs.
async fn running(world: &World) -> Vec<Task> {
    world.act(register("pool-1")).await;
    let submits = (0..MANY).map(|_| world.work()).collect();
    world.backend.submit_batch(submits).await.unwrap();
    world.claim(MANY).await
}

#[tokio::test]
async fn a_budget_with_room_lets_all_others_go() {
    let world = world();
    let (budget_id, ids) = kept_back(&world, MANY).await;
    let backend = poisoned(&world, ids[0]);
    let now = world.now().await;
    only(&acts::admit(&*backend, budget_id, &Namespace::default(), now).await.unwrap(), ids[0]);
    assert_eq!(world.public_state(ids[0]).await, PublicState::RateLimited);
    assert_eq!(world.public_state(ids[MANY as usize - 1]).await, PublicState::Waiting);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_net_under_limits_lets_all_others_go_and_skips_the_one() {
    let world = world();
    let (_, ids) = kept_back(&world, 3).await;
    world.act(register("w-1")).await;
    let backend = poisoned(&world, ids[0]);
    let checked = LimitCheck::default().round(&*backend).await.unwrap();
    assert_eq!((checked.let_go, checked.errors, checked.skipped), (2, 1, 0));

    let intervals = Intervals::all(Duration::from_millis(100));
    let engine = Engine::new(backend, EngineOptions { intervals, ..EngineOptions::default() });
    let (stop, shutdown) = Shutdown::channel();
    let report = engine.report();
    let engine = tokio::spawn(engine.run(shutdown));
    let skipped = async {
        loop {
            let status = report.status().into_iter().find(|status| status.name == "unblock");
            if let Some(status) = status.filter(|status| status.skipped > 0) {
                return status;
            }
            tokio::task::yield_now().await;
        }
    };
    let status = tokio::time::timeout(PATIENCE, skipped).await.unwrap();
    assert!(status.errors >= 3, "three times in a row: {status:?}");
    stop.send_replace(true);
    engine.await.unwrap();
}

#[tokio::test]
async fn a_limit_that_cannot_be_asked_keeps_back_whom_it_keeps_back() {
    let world = world();
    let (unread, ids) = kept_back(&world, 2).await;
    let (_, others) = kept_back(&world, 2).await;
    world.act(register("w-1")).await;
    let backend = spoiled(Arc::clone(&world.backend), move |asked| match asked {
        Asked::Query(Query::GetBudgetStatus(query)) if query.budget_id == unread => {
            Err(EngineError::corruption("broken on purpose"))
        }
        _ => Ok(()),
    });
    let checked = LimitCheck::default().round(&*backend).await.unwrap();
    assert_eq!((checked.let_go, checked.errors), (2, 1));
    assert_eq!(world.public_state(ids[0]).await, PublicState::RateLimited);
    assert_eq!(world.public_state(others[0]).await, PublicState::Waiting);
}

#[tokio::test]
async fn a_step_lets_a_hundred_go_behind_one_limit() {
    let world = world();
    kept_back(&world, 250).await;
    world.act(register("w-1")).await;
    let mut check = LimitCheck::default();
    for expected in [100, 100, 50, 0] {
        assert_eq!(check.round(&*world.backend).await.unwrap().let_go, expected);
    }
}

#[tokio::test]
async fn a_budget_that_is_used_up_ends_all_others() {
    let world = world();
    let budget_id = world.budget(budget(&[("tokens", 10, 0)])).await;
    let tasks = running(&world).await;
    let attach = Attach { budget_ids: Some(vec![budget_id]), ..Attach::default() };
    world.act(SetLane { attach, ..set_lane("work", LaneState::Active) }).await;
    let bad = tasks[0].execution_id;
    let (backend, now) = (poisoned(&world, bad), world.now().await);
    let act = (budget_id, HardAction::Cancel);
    only(&acts::enforce(&*backend, act, &Namespace::default(), now).await.unwrap(), bad);
    assert_eq!(world.public_state(bad).await, PublicState::Active);
    assert_eq!(world.leases_of("pool-1").await.len(), 1);
}

#[tokio::test]
async fn the_leases_of_a_lost_worker_are_taken_but_for_one() {
    let world = world();
    let tasks = running(&world).await;
    let bad = tasks[0].execution_id;
    let WorkerGone::Gone(lost) = world.act(mark_dead("pool-1")).await else { panic!("it was") };
    only(&acts::take_leases(&*poisoned(&world, bad), &lost).await.unwrap(), bad);
    assert_eq!(world.leases_of("pool-1").await.len(), 1);
}

#[tokio::test]
async fn a_bulk_operation_counts_the_one_as_failed() {
    let world = world();
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(world.submit(world.work()).await);
    }
    let create = CreateBulk {
        bulk_id: BulkId::mint(),
        namespace: Namespace::default(),
        action: BulkAction::Cancel,
        targets: BulkTargets::Ids(ids.clone()),
        reason: String::new(),
        matched: 0,
    };
    let bulk_id = create.bulk_id;
    acts::create_bulk(&*world.backend, create).await.unwrap();
    acts::carry_on(&*poisoned(&world, ids[0]), bulk_id).await.unwrap();
    let bulk = world.backend.ask(GetBulk { bulk_id }).await.unwrap().unwrap();
    assert_eq!((bulk.done, bulk.failed), (2, 1));
}

#[tokio::test]
async fn routes_are_blocked_and_let_go_but_for_one() {
    let world = world();
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(world.submit(world.needing(&["gpu"])).await);
    }
    let backend = poisoned(&world, ids[0]);
    let mut check = RouteCheck::default();
    check.round(&*backend).await.unwrap();
    world.advance(limits::ROUTE_PATIENCE_MS.cast_signed()).await;
    let blocked = check.round(&*backend).await.unwrap();
    assert_eq!((blocked.blocked, blocked.errors), (2, 1));
    world.act(block(ids[0], BlockingReason::WaitingForCapableWorker)).await;
    let able =
        Claim { capabilities: Capabilities::new(["gpu"]).unwrap(), ..world.claim_request(1) };
    let registered = RegisterWorker::for_claim(&able, "boot", 60_000);
    world.backend.apply(vec![Command::from(registered)]).await.pop().unwrap().unwrap();
    let freed = check.round(&*backend).await.unwrap();
    assert_eq!((freed.let_go, freed.errors), (2, 1));
}
