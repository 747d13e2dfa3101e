//! Budgets: made, changed, reset by hand and by time, removed, listed.

use std::collections::BTreeMap;

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::event::EventKind;
use ff_core::id::{BudgetId, Home, LaneId, Namespace};
use ff_core::limits;
use ff_core::operation::{
    BudgetCreated, BudgetReset, CreateBudget, DeleteBudget, ReleaseBudget, ReportUsageAdmin,
    ResetBudget, Settled, UpdateBudget, UsageReported,
};
use ff_core::read::{BudgetFilter, ListBudgets};
use ff_core::state::{BudgetScope, DueKind, EnforcementMode, HardAction, Limits, SoftAction};

use crate::graphs::create_flow;
use crate::limits::{
    amounts, breach, budget, dimension, key, limits_of, number, spend, tick, usage,
};
use crate::world::{World, code, namespace};

pub async fn a_budget_is_what_it_was_made_as(world: &World) {
    let create = CreateBudget {
        enforcement_mode: EnforcementMode::Refuse,
        on_hard_limit: HardAction::Cancel,
        on_soft_limit: SoftAction::Ignore,
        reset_interval_ms: 60_000,
        ..budget(&[("tokens", 100, 80), ("usd.cents", 0, 5)])
    };
    assert_eq!(world.act(create.clone()).await, BudgetCreated::Created);
    let now = world.now().await;
    let status = *world.status(create.budget_id).await.unwrap();
    assert_eq!((status.budget_id, status.namespace), (create.budget_id, create.namespace));
    assert_eq!((status.scope, status.enforcement_mode), (create.scope, EnforcementMode::Refuse));
    assert_eq!(status.on_hard_limit, HardAction::Cancel);
    assert_eq!(status.on_soft_limit, SoftAction::Ignore);
    let limits = status.dimensions.iter().map(|(name, counter)| (name.clone(), counter.limits));
    assert_eq!(limits.collect::<BTreeMap<_, _>>(), create.dimensions);
    assert!(status.dimensions.values().all(|counter| counter.used == 0));
    assert_eq!((status.breach_count, status.soft_breach_count, status.reset_count), (0, 0, 0));
    assert_eq!((status.last_breach, status.blocked_by), (None, None));
    assert_eq!((status.created_at, status.next_reset_at), (now, Some(now.after(60_000))));
}

pub async fn every_scope_is_kept(world: &World) {
    let flow = create_flow();
    world.act(flow.clone()).await;
    let scopes = [
        BudgetScope::Flow(flow.flow_id),
        BudgetScope::Lane(LaneId::new("mail").unwrap()),
        BudgetScope::Namespace(Namespace::default()),
        BudgetScope::Custom("x".repeat(limits::SCOPE_ID_BYTES)),
    ];
    for scope in scopes {
        let parsed = BudgetScope::parse(scope.scope_type(), &scope.scope_id());
        assert_eq!(parsed.as_ref(), Ok(&scope));
        let id = world.budget(CreateBudget { scope: scope.clone(), ..budget(&[]) }).await;
        assert_eq!(world.status(id).await.unwrap().scope, scope);
    }
}

pub async fn an_unknown_scope_is_refused(world: &World) {
    for (scope_type, scope_id) in
        [("", "a"), ("execution", "a"), ("flow", "a"), ("lane", ""), ("namespace", "A")]
    {
        let refusal = BudgetScope::parse(scope_type, scope_id).unwrap_err();
        assert_eq!(refusal.code, Code::InvalidBudgetScope, "{scope_type} {scope_id}");
    }
    let scopes = [
        BudgetScope::Namespace(namespace("other")),
        BudgetScope::Custom(String::new()),
        BudgetScope::Custom("x".repeat(limits::SCOPE_ID_BYTES + 1)),
        BudgetScope::Custom("a\nb".to_owned()),
    ];
    for scope in scopes {
        let create = CreateBudget { scope, ..budget(&[]) };
        world.refuses_on(create.budget_id, create, Code::InvalidBudgetScope).await;
    }
}

pub async fn what_a_budget_is_told_has_limits(world: &World) {
    let over = limits::AMOUNT_MAX + 1;
    let many: Vec<_> = (0..=limits::BUDGET_DIMENSIONS).map(|n| format!("d{n}")).collect();
    let limited = |count: usize| {
        let named: Vec<_> = many.iter().take(count).map(|name| (name.as_str(), 1, 1)).collect();
        limits_of(&named)
    };
    let bad = [
        budget(&[("a", over, 0)]),
        budget(&[("a", 0, over)]),
        CreateBudget { reset_interval_ms: limits::DURATION_MAX_MS + 1, ..budget(&[]) },
        CreateBudget { dimensions: limited(limits::BUDGET_DIMENSIONS + 1), ..budget(&[]) },
    ];
    for create in bad {
        world.refuses_on(create.budget_id, create, Code::InvalidInput).await;
    }
    let most = CreateBudget {
        reset_interval_ms: limits::DURATION_MAX_MS,
        dimensions: limited(limits::BUDGET_DIMENSIONS),
        ..budget(&[])
    };
    let id = world.budget(most).await;
    let change = || UpdateBudget::new(id);
    let bad = [
        UpdateBudget { dimensions: limits_of(&[("one_more", 1, 1)]), ..change() },
        UpdateBudget { dimensions: limits_of(&[("d0", over, 1)]), ..change() },
        UpdateBudget { reset_interval_ms: Some(limits::DURATION_MAX_MS + 1), ..change() },
    ];
    for update in bad {
        world.refuses_on(id, update, Code::InvalidInput).await;
    }
    world.refuses_on(id, usage(id, &[("one_more", 1)]), Code::InvalidInput).await;
    let largest = limits_of(&[("d0", limits::AMOUNT_MAX, limits::AMOUNT_MAX)]);
    world.act(UpdateBudget { dimensions: largest, ..change() }).await;
}

pub async fn made_again_it_is_the_same_or_a_conflict(world: &World) {
    let create = budget(&[("tokens", 10, 5)]);
    let id = world.budget(create.clone()).await;
    assert_eq!(world.act(create.clone()).await, BudgetCreated::AlreadySatisfied);
    let others = [
        CreateBudget { dimensions: limits_of(&[("tokens", 11, 5)]), ..create.clone() },
        CreateBudget { namespace: namespace("other"), ..create.clone() },
        CreateBudget { scope: BudgetScope::Custom("else".to_owned()), ..create.clone() },
        CreateBudget { enforcement_mode: EnforcementMode::Refuse, ..create.clone() },
        CreateBudget { reset_interval_ms: 1, ..create.clone() },
    ];
    for other in others {
        world.refuses_on(id, other, Code::BudgetAttachConflict).await;
    }
    // A create that is sent again is the same whatever happened to the budget since.
    world.act(usage(id, &[("tokens", 7)])).await;
    let dimensions = limits_of(&[("tokens", 20, 0)]);
    world.act(UpdateBudget { dimensions, ..UpdateBudget::new(id) }).await;
    assert_eq!(world.act(create).await, BudgetCreated::AlreadySatisfied);
    assert_eq!(world.used(id).await, amounts(&[("tokens", 7)]));
}

pub async fn an_update_replaces_what_it_names(world: &World) {
    let id = world.budget(budget(&[("a", 10, 5), ("b", 20, 10)])).await;
    let dimensions = limits_of(&[("a", 0, 7), ("c", 3, 0)]);
    let update =
        UpdateBudget { dimensions, on_hard_limit: Some(HardAction::Fail), ..UpdateBudget::new(id) };
    assert_eq!(world.act(update.clone()).await, Settled::Done);
    assert_eq!(world.act(update).await, Settled::AlreadySatisfied);
    assert_eq!(world.act(UpdateBudget::new(id)).await, Settled::AlreadySatisfied);
    let status = world.status(id).await.unwrap();
    let limits = |name| status.dimensions[&dimension(name)].limits;
    assert_eq!(limits("a"), Limits { hard: 0, soft: 7 });
    assert_eq!(limits("b"), Limits { hard: 20, soft: 10 });
    assert_eq!(limits("c"), Limits { hard: 3, soft: 0 });
    assert_eq!((status.on_hard_limit, status.on_soft_limit), (HardAction::Fail, SoftAction::Warn));
}

pub async fn a_raised_limit_blocks_no_more(world: &World) {
    let id = world.budget(budget(&[("a", 10, 0), ("b", 10, 0)])).await;
    world.act(usage(id, &[("a", 9)])).await;
    assert_eq!(world.status(id).await.unwrap().blocked_by, None);
    world.act(usage(id, &[("a", 1), ("b", 10)])).await;
    let blocked_by = || async { world.status(id).await.unwrap().blocked_by };
    assert_eq!(blocked_by().await, Some(breach("a", 10, 10)), "at the limit is enough");
    let raise = |name, hard| UpdateBudget {
        dimensions: limits_of(&[(name, hard, 0)]),
        ..UpdateBudget::new(id)
    };
    world.act(raise("a", 11)).await;
    assert_eq!(blocked_by().await, Some(breach("b", 10, 10)));
    world.act(raise("b", 0)).await;
    assert_eq!(blocked_by().await, None, "0 is no limit");
}

pub async fn another_interval_counts_from_now(world: &World) {
    let create = CreateBudget { reset_interval_ms: 60_000, ..budget(&[]) };
    let id = world.budget(create).await;
    let made = world.now().await;
    world.advance(10_000).await;
    let every = |ms| UpdateBudget { reset_interval_ms: Some(ms), ..UpdateBudget::new(id) };
    for (ms, next) in [
        (60_000, Some(made.after(60_000))),
        (30_000, Some(made.after(40_000))),
        (0, None),
        (5, Some(made.after(10_005))),
    ] {
        world.act(every(ms)).await;
        assert_eq!(world.status(id).await.unwrap().next_reset_at, next, "{ms}");
    }
}

pub async fn a_reset_begins_a_new_period(world: &World) {
    let create = CreateBudget { reset_interval_ms: 60_000, ..budget(&[("tokens", 5, 0)]) };
    let id = world.budget(create).await;
    let spender = world.somebody();
    world.act(spend(id, spender, &[("tokens", 4)])).await;
    world.act(usage(id, &[("tokens", 3), ("calls", 1)])).await;
    world.advance(1_000).await;
    let next_reset_at = Some(world.now().await.after(60_000));
    let reset = world.act(ResetBudget { budget_id: id }).await;
    assert_eq!(reset, BudgetReset { reset_count: 1, next_reset_at });
    assert_eq!(world.used(id).await, amounts(&[("calls", 0), ("tokens", 0)]));
    let status = world.status(id).await.unwrap();
    assert_eq!((status.reset_count, status.next_reset_at), (1, next_reset_at));
    assert_eq!((status.last_breach, status.breach_count), (None, 1), "counts are for ever");
    let release = ReleaseBudget { budget_id: id, execution_id: spender };
    assert_eq!(world.act(release).await, Settled::AlreadySatisfied, "ledgers are void");
    let last = world.budget_events(id).await.pop().unwrap();
    assert_eq!(last.kind, EventKind::BudgetReset);
    assert_eq!(number(&last, "reset_count"), 1);
    assert_eq!(Some(number(&last, "next_reset_at")), next_reset_at.map(|at| at.0));
}

pub async fn a_budget_resets_itself_at_its_time(world: &World) {
    let create = CreateBudget { reset_interval_ms: 10_000, ..budget(&[("tokens", 5, 0)]) };
    let id = world.budget(create).await;
    world.act(usage(id, &[("tokens", 5)])).await;
    world.advance(9_999).await;
    assert_eq!(world.act(tick()).await.total(), 0);
    world.advance(1).await;
    let status = world.status(id).await.unwrap();
    assert_eq!((status.blocked_by, status.reset_count), (None, 1), "seen before the timer comes");
    let ticked = world.act(tick()).await;
    let more = "those whom it kept back are to be let go";
    assert_eq!((ticked.fired, ticked.more), (vec![(DueKind::BudgetReset, 1)], true), "{more}");
    assert_eq!(DueKind::BudgetReset.scanner(), "budget_reset");
    let next = world.now().await.after(10_000);
    assert_eq!(world.status(id).await.unwrap().next_reset_at, Some(next));
    world.pass(10_000).await;
    assert_eq!(world.status(id).await.unwrap().reset_count, 2);
    let kinds: Vec<_> = world.budget_events(id).await.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::BudgetReset; 2]);
}

pub async fn what_is_answered_does_not_depend_on_the_tick(world: &World) {
    let create = CreateBudget { reset_interval_ms: 1_000, ..budget(&[("tokens", 5, 0)]) };
    let id = world.budget(create).await;
    world.act(usage(id, &[("tokens", 5)])).await;
    world.advance(1_000).await;
    assert_eq!(world.act(usage(id, &[("tokens", 5)])).await, UsageReported::Ok);
    assert_eq!(world.act(tick()).await.total(), 0, "it was done");
    assert_eq!(world.used(id).await, amounts(&[("tokens", 5)]));
}

pub async fn keys_are_remembered_over_a_reset(world: &World) {
    let id = world.budget(budget(&[])).await;
    let report = || ReportUsageAdmin { dedup_key: key("r1"), ..usage(id, &[("tokens", 5)]) };
    world.act(report()).await;
    world.act(ResetBudget { budget_id: id }).await;
    assert_eq!(world.act(report()).await, UsageReported::AlreadyApplied);
    assert_eq!(world.used(id).await, amounts(&[("tokens", 0)]));
}

pub async fn a_deleted_budget_is_gone_and_its_id_is_free(world: &World) {
    let create = CreateBudget { reset_interval_ms: 1_000, ..budget(&[("tokens", 1, 0)]) };
    let id = world.budget(create.clone()).await;
    world.act(spend(id, world.somebody(), &[("tokens", 2)])).await;
    assert_eq!(world.act(DeleteBudget { budget_id: id }).await, Settled::Done);
    assert_eq!(world.status(id).await, None);
    world.refuses_on(id, DeleteBudget { budget_id: id }, Code::BudgetNotFound).await;
    world.pass(5_000).await;
    world.audit().await;
    assert_eq!(world.act(create).await, BudgetCreated::Created);
    world.audit().await;
    assert_eq!(world.used(id).await, amounts(&[("tokens", 0)]));
    world.act(ResetBudget { budget_id: id }).await;
    let seqs: Vec<_> = world.budget_events(id).await.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, [1, 1], "another history");
}

pub async fn a_budget_has_a_log_of_its_own(world: &World) {
    let id = world.budget(budget(&[])).await;
    world.act(ResetBudget { budget_id: id }).await;
    let [event] = world.budget_events(id).await.try_into().unwrap();
    let Home::Partition(home) = event.subject.home() else { panic!("{event:?}") };
    assert_eq!(home.index, id.partition(&world.backend.settings().partitions));
    assert!(event.id().to_string().starts_with(&format!("b{}-", home.index)), "{}", event.id());
    assert_eq!(event.namespace, Namespace::default());
}

pub async fn budgets_are_listed_newest_first_in_pages(world: &World) {
    let mut made = Vec::new();
    for _ in 0..7 {
        world.advance(1).await;
        made.insert(0, world.budget(budget(&[])).await);
    }
    let other = CreateBudget { namespace: namespace("other"), ..budget(&[]) };
    world.act(other).await;
    let filter = BudgetFilter::default();
    for limit in [1, 3, 7, 50] {
        let (mut seen, mut cursor) = (Vec::<BudgetId>::new(), None);
        loop {
            let list = ListBudgets { filter: filter.clone(), cursor, limit };
            let page = world.backend.ask(list).await.unwrap();
            seen.extend(page.items.iter().map(|status| status.budget_id));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, made, "{limit} a page");
    }
    let list = |cursor: Option<&str>, limit| ListBudgets {
        filter: filter.clone(),
        cursor: cursor.map(str::to_owned),
        limit,
    };
    assert_eq!(code(world.backend.ask(list(None, 0)).await), Code::InvalidInput);
    assert_eq!(code(world.backend.ask(list(Some("no"), 5)).await), Code::InvalidCursor);
}

pub async fn budgets_are_found_by_their_scope(world: &World) {
    let lane = BudgetScope::Lane(LaneId::new("mail").unwrap());
    let id = world.budget(CreateBudget { scope: lane.clone(), ..budget(&[]) }).await;
    world.budget(budget(&[])).await;
    let filter = BudgetFilter { scope: Some(lane), ..BudgetFilter::default() };
    let page = world.backend.ask(ListBudgets { filter, cursor: None, limit: 5 }).await.unwrap();
    assert_eq!(page.items.iter().map(|status| status.budget_id).collect::<Vec<_>>(), [id]);
}
