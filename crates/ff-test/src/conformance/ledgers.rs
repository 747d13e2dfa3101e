//! Usage of budgets against the ledgers of executions, whose sum it is.

use ff_core::backend::BackendExt;
use ff_core::id::{BudgetId, ExecutionId};
use ff_core::limits::LEDGER_ATTEMPTS;
use ff_core::operation::{
    BudgetRecounted, Command, RecountBudget, ReleaseBudget, ReportUsage, ResetBudget, Settled,
    Spender,
};
use ff_core::read::{LedgerRead, ReadLedger};

use crate::limits::{amounts, budget, spend, usage, worked};
use crate::world::World;

/// More than one step takes.
const MANY: usize = 600;

async fn step(world: &World, budget_id: BudgetId) -> BudgetRecounted {
    world.act(RecountBudget { budget_id, repair: false }).await
}

/// Until it is decided.
async fn recounted(world: &World, id: BudgetId) -> BudgetRecounted {
    loop {
        match step(world, id).await {
            BudgetRecounted::More => {}
            decided => return decided,
        }
    }
}

async fn spend_all(world: &World, id: BudgetId, spenders: &[ExecutionId]) {
    for some in spenders.chunks(100) {
        let spends = some.iter().map(|one| Command::from(spend(id, *one, &[("tokens", 1)])));
        for reply in world.backend.apply(spends.collect()).await {
            reply.expect("counted");
        }
    }
}

pub async fn usage_is_the_sum_of_ledgers(world: &World) {
    let id = world.budget(budget(&[("tokens", 0, 0)])).await;
    assert_eq!(step(world, id).await, BudgetRecounted::Sound, "nothing is used");
    let (first, second) = (world.somebody(), world.submit(world.work()).await);
    world.act(spend(id, first, &[("tokens", 5), ("calls", 1)])).await;
    world.act(worked(id, second, &[("tokens", 7)])).await;
    world.act(usage(id, &[("tokens", 11)])).await;
    assert_eq!(step(world, id).await, BudgetRecounted::Sound);
    let release = ReleaseBudget { budget_id: id, execution_id: first };
    assert_eq!(world.act(release).await, Settled::Done);
    assert_eq!(step(world, id).await, BudgetRecounted::Sound);
    world.act(ResetBudget { budget_id: id }).await;
    assert_eq!(step(world, id).await, BudgetRecounted::Sound, "earlier ledgers are void");
    world.act(spend(id, second, &[("tokens", 2)])).await;
    assert_eq!(step(world, id).await, BudgetRecounted::Sound);
    assert_eq!(world.used(id).await, amounts(&[("calls", 0), ("tokens", 2)]));
}

pub async fn what_is_counted_meanwhile_is_no_difference(world: &World) {
    let id = world.budget(budget(&[("tokens", 0, 0)])).await;
    let spenders: Vec<_> = (0..MANY).map(|_| world.somebody()).collect();
    spend_all(world, id, &spenders).await;
    assert_eq!(step(world, id).await, BudgetRecounted::More, "they are more than a step takes");
    let (passed, ahead) = (spenders[0], spenders[MANY - 1]);
    // More of both, some of both given back, and some that are new.
    spend_all(world, id, &[passed, ahead, world.somebody()]).await;
    for execution_id in [spenders[1], spenders[MANY - 2]] {
        world.act(ReleaseBudget { budget_id: id, execution_id }).await;
    }
    assert_eq!(recounted(world, id).await, BudgetRecounted::Sound);
    assert_eq!(world.used(id).await, amounts(&[("tokens", MANY as u64 + 1)]));
    assert_eq!(recounted(world, id).await, BudgetRecounted::Sound, "and from the beginning");
}

pub async fn many_who_report_at_once_are_no_difference(world: &World) {
    let id = world.budget(budget(&[("tokens", 0, 0)])).await;
    let spenders: Vec<_> = (0..40).map(|_| world.somebody()).collect();
    let (some, others) = spenders.split_at(20);
    let reports = async |spenders: &[ExecutionId]| {
        for _ in 0..10 {
            spend_all(world, id, spenders).await;
        }
    };
    let looks = async {
        for _ in 0..40 {
            assert_eq!(recounted(world, id).await, BudgetRecounted::Sound);
        }
    };
    tokio::join!(reports(some), reports(others), looks);
    assert_eq!(world.used(id).await, amounts(&[("tokens", 400)]));
}

async fn ledger(world: &World, budget_id: BudgetId, execution_id: ExecutionId) -> LedgerRead {
    let found = world.backend.ask(ReadLedger { budget_id, execution_id }).await;
    *found.expect("an answer").expect("a budget")
}

/// What a worker reports of an attempt.
fn of_attempt(id: BudgetId, execution_id: ExecutionId, attempt_index: u32) -> ReportUsage {
    let spender = Spender { execution_id, attempt_index };
    ReportUsage { spender, ..worked(id, execution_id, &[("tokens", 1)]) }
}

pub async fn what_each_attempt_used_is_told(world: &World) {
    let id = world.budget(budget(&[("tokens", 0, 0)])).await;
    // The records of executions are not asked: what was used was used.
    let (one, two) = (world.submit(world.work()).await, world.submit(world.work()).await);
    assert_eq!(ledger(world, id, one).await, LedgerRead::default());
    world.act(of_attempt(id, one, 1)).await;
    // Of an attempt that lost its lease, and is over.
    world.act(of_attempt(id, one, 0)).await;
    world.act(of_attempt(id, one, 1)).await;
    world.act(spend(id, one, &[("tokens", 5), ("calls", 1)])).await;
    world.act(of_attempt(id, two, 0)).await;
    let tokens = |n| amounts(&[("tokens", n)]);
    let expected = LedgerRead {
        reset_count: 0,
        usage: amounts(&[("calls", 1), ("tokens", 8)]),
        attempts: [(0, tokens(1)), (1, tokens(2))].into(),
        other: amounts(&[("calls", 1), ("tokens", 5)]),
    };
    assert_eq!(ledger(world, id, one).await, expected);
    assert_eq!(ledger(world, id, two).await.attempts, [(0, tokens(1))].into());
    world.act(ResetBudget { budget_id: id }).await;
    let fresh = LedgerRead { reset_count: 1, ..LedgerRead::default() };
    assert_eq!(ledger(world, id, one).await, fresh);
    let nowhere = ReadLedger { budget_id: BudgetId::mint(), execution_id: one };
    assert_eq!(world.backend.ask(nowhere).await.expect("an answer"), None);
}

pub async fn the_newest_attempts_are_told_apart(world: &World) {
    let id = world.budget(budget(&[("tokens", 0, 0)])).await;
    let (one, most) = (world.submit(world.work()).await, LEDGER_ATTEMPTS as u32);
    for attempt in 0..most + 3 {
        world.act(of_attempt(id, one, attempt)).await;
    }
    world.act(of_attempt(id, one, 1)).await;
    let found = ledger(world, id, one).await;
    assert_eq!(found.usage, amounts(&[("tokens", u64::from(most) + 4)]), "nothing is lost");
    assert_eq!(
        found.attempts.keys().copied().collect::<Vec<_>>(),
        (3..most + 3).collect::<Vec<_>>()
    );
    assert_eq!(found.other, amounts(&[("tokens", 4)]));
}
