//! Usage of budgets: what is counted, what is refused, what is told, and what is given back.

use ff_core::error::Code;
use ff_core::event::{Detail, EventKind};
use ff_core::id::{BudgetId, ExecutionId};
use ff_core::limits;
use ff_core::operation::{
    CreateBudget, RecordSpend, ReleaseBudget, ReportUsage, ReportUsageAdmin, Settled, UsageReported,
};
use ff_core::state::{BreachKind, EnforcementMode, SoftAction};
use uuid::Uuid;

use crate::limits::{amounts, breach, budget, dimension, key, number, spend, usage, worked};
use crate::world::World;

const REFUSE: Option<EnforcementMode> = Some(EnforcementMode::Refuse);
const RECORD: Option<EnforcementMode> = Some(EnforcementMode::Record);

/// Attributed and unattributed usage of a dimension.
async fn parts(world: &World, id: BudgetId, name: &str) -> (u64, u64) {
    let counter = world.status(id).await.unwrap().dimensions[&dimension(name)];
    assert_eq!(counter.used, counter.attributed + counter.unattributed);
    (counter.attributed, counter.unattributed)
}

async fn kinds(world: &World, id: BudgetId) -> Vec<EventKind> {
    world.budget_events(id).await.into_iter().map(|event| event.kind).collect()
}

pub async fn a_report_adds_to_every_dimension_that_it_names(world: &World) {
    let id = world.budget(budget(&[("tokens", 100, 0), ("calls", 10, 0)])).await;
    assert_eq!(world.act(usage(id, &[("tokens", 5), ("calls", 1)])).await, UsageReported::Ok);
    assert_eq!(world.act(usage(id, &[("tokens", 7)])).await, UsageReported::Ok);
    assert_eq!(world.used(id).await, amounts(&[("tokens", 12), ("calls", 1)]));
    assert_eq!(kinds(world, id).await, [], "usage within the limits is no event");
}

pub async fn a_dimension_without_a_limit_is_counted_too(world: &World) {
    let id = world.budget(budget(&[("tokens", 0, 0)])).await;
    let report = usage(id, &[("tokens", limits::AMOUNT_MAX), ("wall_ms", 5)]);
    assert_eq!(world.act(report).await, UsageReported::Ok);
    let expected = amounts(&[("tokens", limits::AMOUNT_MAX), ("wall_ms", 5)]);
    assert_eq!(world.used(id).await, expected);
    assert_eq!(world.status(id).await.unwrap().blocked_by, None);
}

pub async fn a_total_above_a_limit_is_told_and_counted(world: &World) {
    let id = world.budget(budget(&[("tokens", 10, 5)])).await;
    let report = |delta| usage(id, &[("tokens", delta)]);
    assert_eq!(world.act(report(5)).await, UsageReported::Ok, "at the soft limit");
    let soft = |current| UsageReported::SoftBreach(breach("tokens", current, 5));
    let hard = |current| UsageReported::HardBreach(breach("tokens", current, 10));
    assert_eq!(world.act(report(1)).await, soft(6));
    assert_eq!(world.act(report(4)).await, soft(10), "at the hard limit");
    assert_eq!(world.act(report(1)).await, hard(11));
    assert_eq!(world.act(report(9)).await, hard(20));
    assert_eq!(world.act(report(0)).await, hard(20), "it still is");
    assert_eq!(world.used(id).await, amounts(&[("tokens", 20)]));
    let status = world.status(id).await.unwrap();
    assert_eq!((status.breach_count, status.soft_breach_count), (3, 2));
}

pub async fn hard_comes_before_soft_and_then_the_name(world: &World) {
    let dimensions = [("a", 100, 1), ("b", 100, 1), ("x", 1, 0), ("y", 1, 0)];
    let id = world.budget(budget(&dimensions)).await;
    let soft = world.act(usage(id, &[("b", 2), ("a", 2)])).await;
    assert_eq!(soft, UsageReported::SoftBreach(breach("a", 2, 1)));
    let hard = world.act(usage(id, &[("y", 2), ("x", 3), ("a", 1)])).await;
    assert_eq!(hard, UsageReported::HardBreach(breach("x", 3, 1)));
    // What a report does not name it does not tell of.
    assert_eq!(world.act(usage(id, &[("z", 1)])).await, UsageReported::Ok);
}

pub async fn a_soft_limit_above_the_hard_one_is_allowed(world: &World) {
    let id = world.budget(budget(&[("tokens", 5, 50)])).await;
    let hard = world.act(usage(id, &[("tokens", 60)])).await;
    assert_eq!(hard, UsageReported::HardBreach(breach("tokens", 60, 5)));
    assert_eq!(kinds(world, id).await, [EventKind::BudgetHardLimit]);
}

pub async fn the_last_breach_is_kept(world: &World) {
    let id = world.budget(budget(&[("a", 10, 5), ("b", 10, 0)])).await;
    world.act(usage(id, &[("a", 6)])).await;
    let last = world.status(id).await.unwrap().last_breach.unwrap();
    let (at, a) = (world.now().await, dimension("a"));
    assert_eq!((last.at, last.kind, last.dimension), (at, BreachKind::Soft, a));
    world.advance(7).await;
    world.act(usage(id, &[("b", 11)])).await;
    world.advance(7).await;
    world.act(usage(id, &[("c", 1)])).await;
    let last = world.status(id).await.unwrap().last_breach.unwrap();
    let b = dimension("b");
    assert_eq!((last.at, last.kind, last.dimension), (at.after(7), BreachKind::Hard, b));
}

pub async fn mode_refuse_adds_nothing_above_a_hard_limit(world: &World) {
    let create = CreateBudget {
        enforcement_mode: EnforcementMode::Refuse,
        ..budget(&[("tokens", 10, 5), ("calls", 0, 1)])
    };
    let id = world.budget(create).await;
    let report = |delta| ReportUsageAdmin {
        dedup_key: key("r1"),
        ..usage(id, &[("tokens", delta), ("calls", 2)])
    };
    world.act(usage(id, &[("tokens", 4)])).await;
    let refused = UsageReported::HardBreach(breach("tokens", 4, 10));
    assert_eq!(world.act(report(7)).await, refused, "the total as it stays");
    assert_eq!(world.used(id).await, amounts(&[("tokens", 4), ("calls", 0)]));
    assert_eq!(world.status(id).await.unwrap().breach_count, 1, "it was a breach all the same");
    assert_eq!(kinds(world, id).await, [EventKind::BudgetHardLimit], "nothing passed a soft limit");
    // The key was not remembered; a soft limit refuses nothing.
    let soft = UsageReported::SoftBreach(breach("calls", 2, 1));
    assert_eq!(world.act(report(6)).await, soft);
    assert_eq!(world.act(report(6)).await, UsageReported::AlreadyApplied);
    assert_eq!(world.used(id).await, amounts(&[("tokens", 10), ("calls", 2)]));
}

pub async fn the_reports_mode_wins_over_the_budgets(world: &World) {
    let refusing =
        CreateBudget { enforcement_mode: EnforcementMode::Refuse, ..budget(&[("tokens", 1, 0)]) };
    for (create, mode, used) in [
        (refusing.clone(), None, 0),
        (CreateBudget { budget_id: BudgetId::mint(), ..refusing }, RECORD, 2),
        (budget(&[("tokens", 1, 0)]), None, 2),
        (budget(&[("tokens", 1, 0)]), REFUSE, 0),
    ] {
        let id = world.budget(create).await;
        let someone = world.somebody();
        let report = ReportUsage { mode, ..worked(id, someone, &[("tokens", 2)]) };
        let told = UsageReported::HardBreach(breach("tokens", used, 1));
        assert_eq!(world.act(report).await, told);
        assert_eq!(world.used(id).await, amounts(&[("tokens", used)]));
    }
}

pub async fn spend_is_in_the_budgets_own_mode(world: &World) {
    let create =
        CreateBudget { enforcement_mode: EnforcementMode::Refuse, ..budget(&[("tokens", 1, 0)]) };
    let id = world.budget(create).await;
    let told = world.act(spend(id, world.somebody(), &[("tokens", 2)])).await;
    assert_eq!(told, UsageReported::HardBreach(breach("tokens", 0, 1)));
}

pub async fn a_key_counts_once_whichever_form_brings_it(world: &World) {
    let id = world.budget(budget(&[])).await;
    let someone = world.somebody();
    let spent = || RecordSpend { idempotency_key: key("r1"), ..spend(id, someone, &[("a", 1)]) };
    assert_eq!(world.act(spent()).await, UsageReported::Ok);
    assert_eq!(world.act(spent()).await, UsageReported::AlreadyApplied);
    let admin = ReportUsageAdmin { dedup_key: key("r1"), ..usage(id, &[("a", 9), ("b", 9)]) };
    assert_eq!(world.act(admin).await, UsageReported::AlreadyApplied, "whatever it says");
    let work = || ReportUsage { dedup_key: key("r2"), ..worked(id, someone, &[("a", 1)]) };
    assert_eq!(world.act(work()).await, UsageReported::Ok);
    assert_eq!(world.act(work()).await, UsageReported::AlreadyApplied);
    assert_eq!(world.used(id).await, amounts(&[("a", 2)]));
    let other = world.budget(budget(&[])).await;
    let elsewhere = ReportUsage { budget_id: other, ..work() };
    assert_eq!(world.act(elsewhere).await, UsageReported::Ok, "each budget has its own keys");
}

pub async fn without_a_key_every_report_counts(world: &World) {
    let id = world.budget(budget(&[])).await;
    for n in 1..=3 {
        world.act(usage(id, &[("a", 1)])).await;
        assert_eq!(world.used(id).await, amounts(&[("a", n)]));
    }
}

pub async fn a_key_is_remembered_for_a_day(world: &World) {
    let id = world.budget(budget(&[])).await;
    let report = || ReportUsageAdmin { dedup_key: key("r1"), ..usage(id, &[("a", 1)]) };
    let day = limits::USAGE_DEDUP_MS.cast_signed();
    for n in 1..=3 {
        assert_eq!(world.act(report()).await, UsageReported::Ok);
        world.pass(day - 1).await;
        assert_eq!(world.act(report()).await, UsageReported::AlreadyApplied);
        assert_eq!(world.used(id).await, amounts(&[("a", n)]));
        world.pass(1).await;
    }
}

pub async fn many_keys_are_remembered(world: &World) {
    let id = world.budget(budget(&[])).await;
    let report =
        |n: usize| ReportUsageAdmin { dedup_key: key(&format!("r{n}")), ..usage(id, &[("a", 1)]) };
    let all = || (0..150).map(|n| report(n).into()).collect();
    assert!(world.backend.apply(all()).await.iter().all(Result::is_ok));
    assert!(world.backend.apply(all()).await.iter().all(Result::is_ok));
    assert_eq!(world.used(id).await, amounts(&[("a", 150)]));
}

pub async fn totals_stay_exact_numbers(world: &World) {
    let id = world.budget(budget(&[("a", 5, 0)])).await;
    let most = limits::AMOUNT_MAX;
    world.act(usage(id, &[("a", 1)])).await;
    let report =
        |delta| ReportUsageAdmin { dedup_key: key("r1"), ..usage(id, &[("a", delta), ("b", 1)]) };
    world.refuses_on(id, report(most), Code::InvalidInput).await;
    world.refuses_on(id, report(most + 1), Code::InvalidInput).await;
    world.refuses_on(id, report(u64::MAX), Code::InvalidInput).await;
    world.act(report(most - 1)).await;
    assert_eq!(world.used(id).await, amounts(&[("a", most), ("b", 1)]));
}

pub async fn a_malformed_report_is_refused(world: &World) {
    let id = world.budget(budget(&[])).await;
    let many: Vec<_> = (0..=limits::BUDGET_DIMENSIONS).map(|n| format!("d{n}")).collect();
    let many: Vec<_> = many.iter().map(|name| (name.as_str(), 1)).collect();
    world.refuses_on(id, usage(id, &[]), Code::InvalidInput).await;
    world.refuses_on(id, usage(id, &many), Code::InvalidInput).await;
    assert_eq!(world.act(usage(id, &many[1..])).await, UsageReported::Ok);
    let partition = world.backend.settings().partitions.flow;
    let nowhere = ExecutionId::new(partition, Uuid::now_v7());
    world.refuses_on(id, spend(id, nowhere, &[("d1", 1)]), Code::InvalidInput).await;
    world.refuses_on(id, worked(id, nowhere, &[("d1", 1)]), Code::InvalidInput).await;
    let release = ReleaseBudget { budget_id: id, execution_id: nowhere };
    world.refuses_on(id, release, Code::InvalidInput).await;
}

pub async fn usage_is_of_an_execution_or_of_nobody(world: &World) {
    let id = world.budget(budget(&[])).await;
    let (one, two) = (world.somebody(), world.somebody());
    world.act(usage(id, &[("a", 1)])).await;
    world.act(worked(id, one, &[("a", 10)])).await;
    world.act(spend(id, two, &[("a", 100)])).await;
    let named = ReportUsageAdmin { execution_id: Some(two), ..usage(id, &[("a", 1_000)]) };
    world.act(named).await;
    assert_eq!(parts(world, id, "a").await, (1_110, 1));
}

pub async fn a_release_gives_back_what_the_execution_used(world: &World) {
    let id = world.budget(budget(&[("a", 100, 0)])).await;
    let (one, two) = (world.somebody(), world.somebody());
    world.act(usage(id, &[("a", 1)])).await;
    world.act(worked(id, one, &[("a", 60), ("b", 2)])).await;
    world.act(spend(id, one, &[("a", 40)])).await;
    world.act(spend(id, two, &[("a", 7)])).await;
    assert_eq!(world.status(id).await.unwrap().blocked_by, Some(breach("a", 108, 100)));
    let release = |execution_id| ReleaseBudget { budget_id: id, execution_id };
    assert_eq!(world.act(release(one)).await, Settled::Done);
    assert_eq!(world.used(id).await, amounts(&[("a", 8), ("b", 0)]));
    assert_eq!(world.status(id).await.unwrap().blocked_by, None);
    assert_eq!(world.act(release(one)).await, Settled::AlreadySatisfied);
    assert_eq!(world.act(release(world.somebody())).await, Settled::AlreadySatisfied);
    assert_eq!(parts(world, id, "a").await, (7, 1));
    world.act(spend(id, one, &[("a", 3)])).await;
    world.act(release(one)).await;
    assert_eq!(parts(world, id, "a").await, (7, 1), "only what came since");
}

pub async fn ledgers_of_many_add_up(world: &World) {
    let id = world.budget(budget(&[])).await;
    let all: Vec<_> = (0..150).map(|_| world.somebody()).collect();
    let spends = all.iter().map(|one| spend(id, *one, &[("a", 3)]).into()).collect();
    assert!(world.backend.apply(spends).await.iter().all(Result::is_ok));
    assert_eq!(parts(world, id, "a").await, (450, 0));
    let release = |one: &ExecutionId| ReleaseBudget { budget_id: id, execution_id: *one }.into();
    let releases = all.iter().step_by(2).map(release).collect();
    assert!(world.backend.apply(releases).await.iter().all(Result::is_ok));
    assert_eq!(parts(world, id, "a").await, (225, 0));
}

pub async fn a_breach_is_an_event_that_tells_its_numbers(world: &World) {
    let id = world.budget(budget(&[("a", 10, 5), ("b", 0, 1)])).await;
    world.act(usage(id, &[("a", 6)])).await;
    world.act(usage(id, &[("a", 6), ("b", 2)])).await;
    let events = world.budget_events(id).await;
    let told: Vec<_> = events
        .iter()
        .map(|event| {
            let name = event.data.get("dimension").cloned().unwrap();
            (event.kind, name, number(event, "current"), number(event, "limit"))
        })
        .collect();
    let text = |name: &str| Detail::from(name);
    assert_eq!(
        told,
        [
            (EventKind::BudgetSoftLimit, text("a"), 6, 5),
            (EventKind::BudgetHardLimit, text("a"), 12, 10),
            (EventKind::BudgetSoftLimit, text("b"), 2, 1),
        ]
    );
    assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3]);
}

pub async fn an_ignored_soft_limit_is_no_event(world: &World) {
    let create = CreateBudget { on_soft_limit: SoftAction::Ignore, ..budget(&[("a", 10, 5)]) };
    let id = world.budget(create).await;
    let told = world.act(usage(id, &[("a", 6)])).await;
    assert_eq!(told, UsageReported::SoftBreach(breach("a", 6, 5)), "the reply tells it");
    assert_eq!(kinds(world, id).await, []);
    world.act(usage(id, &[("a", 6)])).await;
    assert_eq!(kinds(world, id).await, [EventKind::BudgetHardLimit]);
}
