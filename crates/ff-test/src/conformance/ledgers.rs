//! Usage of budgets against the ledgers of executions, whose sum it is.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::id::{BudgetId, ExecutionId, LaneId, Namespace};
use ff_core::limits::{DISOWN_BATCH, LEDGER_ATTEMPTS};
use ff_core::operation::{
    Attach, Command, Delete, DisownUsage, RecountBudget, ReleaseBudget, ReportUsage, ResetBudget,
    SetLane, SetNamespace, Settled, Spender, Task, Verdict,
};
use ff_core::read::{LedgerRead, ReadLaneStanding, ReadLedger};
use ff_core::state::{Attached, LaneState, Standing};
use ff_engine::acts::LedgerCheck;

use crate::fleet::set_lane;
use crate::limits::{amounts, budget, spend, under, usage, worked};
use crate::sound;
use crate::world::World;

/// More than one step takes.
const MANY: usize = 600;

async fn step(world: &World, budget_id: BudgetId) -> Verdict {
    world.act(RecountBudget { budget_id, repair: false }).await.verdict
}

/// Until it is decided.
async fn recounted(world: &World, id: BudgetId) -> Verdict {
    loop {
        match step(world, id).await {
            Verdict::More => {}
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
    assert_eq!(step(world, id).await, Verdict::Sound, "nothing is used");
    let (first, second) = (world.somebody(), world.submit(world.work()).await);
    world.act(spend(id, first, &[("tokens", 5), ("calls", 1)])).await;
    world.act(worked(id, second, &[("tokens", 7)])).await;
    world.act(usage(id, &[("tokens", 11)])).await;
    assert_eq!(step(world, id).await, Verdict::Sound);
    let release = ReleaseBudget { budget_id: id, execution_id: first };
    assert_eq!(world.act(release).await, Settled::Done);
    assert_eq!(step(world, id).await, Verdict::Sound);
    world.act(ResetBudget { budget_id: id }).await;
    assert_eq!(step(world, id).await, Verdict::Sound, "earlier ledgers are void");
    world.act(spend(id, second, &[("tokens", 2)])).await;
    assert_eq!(step(world, id).await, Verdict::Sound);
    assert_eq!(world.used(id).await, amounts(&[("calls", 0), ("tokens", 2)]));
}

pub async fn what_is_counted_meanwhile_is_no_difference(world: &World) {
    let id = world.budget(budget(&[("tokens", 0, 0)])).await;
    let spenders: Vec<_> = (0..MANY).map(|_| world.somebody()).collect();
    spend_all(world, id, &spenders).await;
    assert_eq!(step(world, id).await, Verdict::More, "they are more than a step takes");
    let (passed, ahead) = (spenders[0], spenders[MANY - 1]);
    // More of both, some of both given back, and some that are new.
    spend_all(world, id, &[passed, ahead, world.somebody()]).await;
    for execution_id in [spenders[1], spenders[MANY - 2]] {
        world.act(ReleaseBudget { budget_id: id, execution_id }).await;
    }
    assert_eq!(recounted(world, id).await, Verdict::Sound);
    assert_eq!(world.used(id).await, amounts(&[("tokens", MANY as u64 + 1)]));
    assert_eq!(recounted(world, id).await, Verdict::Sound, "and from the beginning");
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
            assert_eq!(recounted(world, id).await, Verdict::Sound);
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

/// Three budgets: one that nothing is under, that of lane `work` and that of the namespace.
async fn budgets(world: &World) -> [BudgetId; 3] {
    let mut made = Vec::new();
    for _ in 0..3 {
        made.push(world.budget(budget(&[("tokens", 0, 0)])).await);
    }
    let attach = |id| Attach { budget_ids: Some(vec![id]), quota_policy_id: None };
    let lane = set_lane("work", LaneState::Active);
    world.act(SetLane { attach: attach(made[1]), ..lane }).await;
    let (namespace, attach) = (Namespace::default(), attach(made[2]));
    let (retention, expected_revision) = (None, None);
    world.act(SetNamespace { namespace, attach, retention, expected_revision }).await;
    made.try_into().expect("three")
}

pub async fn a_lane_stands_under_its_namespaces_limits_and_its_own(world: &World) {
    let [_, of_lane, of_namespace] = budgets(world).await;
    for (lane, expected) in
        [("work", vec![of_namespace, of_lane]), ("elsewhere", vec![of_namespace])]
    {
        let lane = LaneId::new(lane).expect("a lane");
        let question = ReadLaneStanding { namespace: Namespace::default(), lane };
        let standing = world.backend.ask(question).await.expect("an answer");
        assert_eq!(standing, Standing { budget_ids: expected, ..Standing::default() });
    }
}

/// It names the execution no more, and counts what it used.
async fn is_nobodys(world: &World, budget_id: BudgetId, gone: ExecutionId, used: u64) {
    assert_eq!(ledger(world, budget_id, gone).await, LedgerRead::default());
    let release = ReleaseBudget { budget_id, execution_id: gone };
    assert_eq!(
        world.act(release).await,
        Settled::AlreadySatisfied,
        "there is nothing to give back"
    );
    assert_eq!(world.used(budget_id).await, amounts(&[("tokens", used)]));
}

pub async fn what_a_removed_execution_used_is_nobodys(world: &World) {
    let budgets = budgets(world).await;
    let other = world.submit(world.work_on("elsewhere")).await;
    let task = world.start(under(world, &budgets[..1], None)).await;
    for id in budgets {
        world.act(worked(id, task.execution_id, &[("tokens", 3)])).await;
        world.act(worked(id, other, &[("tokens", 4)])).await;
    }
    world.complete(&task).await.expect("completed");
    let Task { execution_id, .. } = task;
    assert_eq!(ledger(world, budgets[0], execution_id).await.usage, amounts(&[("tokens", 3)]));
    world.act(Delete { execution_id }).await;
    for id in budgets {
        is_nobodys(world, id, execution_id, 7).await;
        assert_eq!(ledger(world, id, other).await.usage, amounts(&[("tokens", 4)]));
    }
}

pub async fn what_was_used_is_told_whatever_has_become_of_it(world: &World) {
    let id = world.budget(budget(&[("tokens", 0, 0)])).await;
    let Task { execution_id, .. } = world.finish(world.work()).await;
    world.act(Delete { execution_id }).await;
    world.act(worked(id, execution_id, &[("tokens", 1)])).await;
    assert_eq!(world.used(id).await, amounts(&[("tokens", 1)]));
    let page = LedgerCheck::default().page(&*world.backend, 10, true).await.expect("a page");
    assert_eq!(page.mended, 0);
    is_nobodys(world, id, execution_id, 1).await;
}

pub async fn what_members_of_a_removed_flow_used_is_nobodys(world: &World) {
    let [of_flow, of_lane, _] = budgets(world).await;
    let mut drawing = world.draw(&["a", "b", "c"], &["a>b", "b>c"]);
    drawing.submit.flow.attached = Attached::new([of_flow], None);
    let drawn = world.submit_flow(drawing).await;
    for name in ["a", "b", "c"] {
        world.run(&drawn, name).await;
        for id in [of_flow, of_lane] {
            world.act(worked(id, drawn.id(name), &[("tokens", 2)])).await;
        }
    }
    world.act(Delete { execution_id: drawn.id("b") }).await;
    is_nobodys(world, of_flow, drawn.id("b"), 6).await;
    assert_eq!(ledger(world, of_flow, drawn.id("c")).await.usage, amounts(&[("tokens", 2)]));
    world.backend.delete_flow(drawn.flow_id).await.expect("removed");
    for id in [of_flow, of_lane] {
        for name in ["a", "b", "c"] {
            is_nobodys(world, id, drawn.id(name), 6).await;
        }
    }
}

pub async fn what_time_removes_is_nobodys(world: &World) {
    let [_, of_lane, of_namespace] = budgets(world).await;
    let mut ended = Vec::new();
    for _ in 0..5 {
        let task = world.finish(world.work_with(r#"{"retention":{"success_ms":1000}}"#)).await;
        for id in [of_lane, of_namespace] {
            world.act(worked(id, task.execution_id, &[("tokens", 2)])).await;
        }
        ended.push(task.execution_id);
    }
    world.pass(1_001).await;
    for execution_id in ended {
        assert_eq!(world.find(execution_id).await, None);
        for id in [of_lane, of_namespace] {
            is_nobodys(world, id, execution_id, 10).await;
        }
    }
}

pub async fn a_step_disowns_so_many_and_no_more(world: &World) {
    let id = world.budget(budget(&[("tokens", 0, 0)])).await;
    let spenders: Vec<_> = (0..DISOWN_BATCH + 1).map(|_| world.somebody()).collect();
    spend_all(world, id, &spenders).await;
    let disown = |some: &[ExecutionId]| {
        let execution_ids = some.to_vec();
        DisownUsage { budget_id: id, execution_ids }
    };
    for many in [&spenders[..0], &spenders] {
        world.refuses_on(id, disown(many), Code::InvalidInput).await;
    }
    let (most, last) = spenders.split_at(DISOWN_BATCH);
    for (some, ledgers) in [(most, DISOWN_BATCH), (most, 0), (last, 1)] {
        assert_eq!(world.act(disown(some)).await.ledgers as usize, ledgers);
    }
    assert_eq!(step(world, id).await, Verdict::Sound);
    assert_eq!(world.used(id).await, amounts(&[("tokens", spenders.len() as u64)]));
}

pub async fn what_is_left_of_strangers_is_found(world: &World) {
    let id = world.budget(budget(&[("tokens", 0, 0)])).await;
    let known = world.submit(world.work()).await;
    // More than a step looks at, and nobody removes them.
    let mut spenders: Vec<_> = (0..MANY).map(|_| world.somebody()).collect();
    spend_all(world, id, &spenders).await;
    world.act(worked(id, known, &[("tokens", 1)])).await;
    let looked = sound::ledgers(&*world.backend, false).await.expect("a look");
    assert_eq!(looked.found.violations, []);
    assert_eq!(ledger(world, id, spenders[9]).await.usage, amounts(&[("tokens", 1)]));
    let page = LedgerCheck::default().page(&*world.backend, 10, true).await.expect("a page");
    assert_eq!((page.mended, page.next_cursor), (0, None), "it goes on while it finds some");
    for gone in spenders.drain(..).step_by(50) {
        is_nobodys(world, id, gone, MANY as u64 + 1).await;
    }
    assert_eq!(ledger(world, id, known).await.usage, amounts(&[("tokens", 1)]));
}

pub async fn a_page_ends_when_it_has_looked_at_many(world: &World) {
    let spenders: Vec<_> = (0..MANY).map(|_| world.somebody()).collect();
    for _ in 0..3 {
        let id = world.budget(budget(&[("tokens", 0, 0)])).await;
        spend_all(world, id, &spenders).await;
    }
    let (mut check, mut pages) = (LedgerCheck::default(), 0);
    loop {
        pages += 1;
        let page = check.page(&*world.backend, 100, false).await.expect("a page");
        assert_eq!(page.found.violations, []);
        if page.next_cursor.is_none() {
            break;
        }
    }
    assert_eq!(pages, 2, "the first leaves the third budget and what is left of the others");
}
