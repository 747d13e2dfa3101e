//! Budgets and quota policies on Valkey as a deployment has them: how many calls they take, callers
//! at once, other processes beside them.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use ff_backend_valkey::ValkeyStore;
use ff_core::backend::{Backend, BackendExt, Upkeep};
use ff_core::id::{BudgetId, ExecutionId, Kind, QuotaPolicyId};
use ff_core::operation::{
    Admission, AdmissionReleased, Attach, Claim, Confirmed, CreateBudget, Operation,
    ReleaseAdmission, ReleaseBudget, ReportUsage, SetLane, Submit, UpdateQuotaPolicy,
    UsageReported,
};
use ff_core::read::{Audit, BudgetFilter, Due, GetBudgetStatus, ListBudgets};
use ff_core::state::QuotaSpec;
use ff_test::limits::{
    budget, cap, check, confirm, dimension, first_lease, key, quota, rate, worked,
};
use ff_test::registered::registration_of;
use ff_test::servers::{Cluster, ClusterOptions, Server, ServerOptions};
use ff_test::workload;
use ff_test::world::PATIENCE;
use tokio::task::JoinSet;
use uuid::Uuid;

async fn open(url: &str) -> Arc<ValkeyStore> {
    Arc::new(ValkeyStore::open(url.parse().unwrap()).await.unwrap())
}

async fn make(store: &ValkeyStore) -> BudgetId {
    let create = CreateBudget { reset_interval_ms: 3_600_000, ..budget(&[("a", 0, 0)]) };
    let id = create.budget_id;
    store.call(create).await.unwrap();
    id
}

fn somebody(store: &ValkeyStore) -> ExecutionId {
    ExecutionId::solo(Uuid::now_v7(), &store.settings().partitions)
}

/// One unit, counted once for its key.
fn report(id: BudgetId, by: ExecutionId, name: &str) -> ReportUsage {
    ReportUsage { dedup_key: key(name), ..worked(id, by, &[("a", 1)]) }
}

async fn used(store: &ValkeyStore, budget_id: BudgetId) -> u64 {
    let status = store.ask(GetBudgetStatus { budget_id }).await.unwrap().unwrap();
    status.dimensions[&dimension("a")].used
}

async fn assert_sound(store: &ValkeyStore) {
    assert_eq!(store.ask(Audit).await.unwrap().violations, []);
}

/// How often functions were called, to write and to read.
fn calls(servers: &[&Server]) -> (usize, usize) {
    let count = |stats: &str, name: &str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(name));
        line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
    };
    servers.iter().fold((0, 0), |(writes, reads), server| {
        let stats = server.command(&["INFO", "commandstats"]).unwrap();
        let writes = writes + count(&stats, "cmdstat_fcall:calls=");
        (writes, reads + count(&stats, "cmdstat_fcall_ro:calls="))
    })
}

fn reset(servers: &[&Server]) {
    for server in servers {
        server.command(&["CONFIG", "RESETSTAT"]).unwrap();
    }
}

/// The process that wrote last needs one call for a report, whoever spends and whatever the key.
async fn a_report_is_one_call(store: &ValkeyStore, servers: &[&Server]) {
    const REPORTS: usize = 100;
    let id = make(store).await;
    let spender = somebody(store);
    store.call(report(id, spender, "first")).await.unwrap();
    reset(servers);
    for n in 0..REPORTS {
        let by = if n % 2 == 0 { spender } else { somebody(store) };
        let reported = store.call(report(id, by, &format!("k{n}"))).await.unwrap();
        assert_eq!(reported, UsageReported::Ok);
    }
    let (writes, reads) = calls(servers);
    assert_eq!(writes, REPORTS);
    // A page that is new cannot be remembered.
    assert!(reads <= REPORTS / 32, "{reads} reads for {REPORTS} reports");
    assert_eq!(used(store, id).await, REPORTS as u64 + 1);
    assert_sound(store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_node_counts_a_report_in_one_call() {
    let server = Server::start(ServerOptions::default());
    a_report_is_one_call(&*open(&server.url()).await, &[&server]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_counts_a_report_in_one_call() {
    let cluster = Cluster::start(&ClusterOptions::default());
    let servers: Vec<_> = cluster.nodes().iter().collect();
    a_report_is_one_call(&*open(&cluster.url()).await, &servers).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_at_once_go_together() {
    const REPORTS: usize = 200;
    let server = Server::start(ServerOptions::default());
    let store = open(&server.url()).await;
    let id = make(&store).await;
    reset(&[&server]);
    let mut reports = JoinSet::new();
    for n in 0..REPORTS {
        let (store, by) = (Arc::clone(&store), somebody(&store));
        reports.spawn(async move { store.call(report(id, by, &format!("k{n}"))).await });
    }
    for reported in reports.join_all().await {
        assert_eq!(reported, Ok(UsageReported::Ok));
    }
    let (writes, reads) = calls(&[&server]);
    assert!(writes + reads < REPORTS / 4, "{writes} writes, {reads} reads for {REPORTS} reports");
    assert_eq!(used(&store, id).await, REPORTS as u64);
    assert_sound(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_beside_each_other_count_exactly() {
    const REPORTS: usize = 120;
    let server = Server::start(ServerOptions::default());
    let stores = [open(&server.url()).await, open(&server.url()).await, open(&server.url()).await];
    let id = make(&stores[0]).await;
    let by = somebody(&stores[0]);
    let mut reports = JoinSet::new();
    // Every key comes from two processes.
    for n in 0..2 * REPORTS {
        let store = Arc::clone(&stores[n % 3]);
        let report = report(id, by, &format!("k{}", n % REPORTS));
        reports.spawn(async move { store.call(report).await });
    }
    let reported = reports.join_all().await.into_iter().map(Result::unwrap);
    let counted = reported.filter(|reported| *reported == UsageReported::Ok).count();
    assert_eq!(counted, REPORTS);
    assert_eq!(used(&stores[0], id).await, REPORTS as u64);
    assert_sound(&stores[0]).await;
}

/// What a process takes for new may have been written by another, long ago.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_another_process_brought_is_known() {
    let server = Server::start(ServerOptions::default());
    let (one, other) = (open(&server.url()).await, open(&server.url()).await);
    let id = make(&one).await;
    let by = somebody(&one);
    other.call(report(id, by, "theirs")).await.unwrap();
    let (ok, known) = (UsageReported::Ok, UsageReported::AlreadyApplied);
    for (name, expected) in [("ours", &ok), ("theirs", &known), ("ours", &known), ("more", &ok)] {
        assert_eq!(one.call(report(id, by, name)).await.unwrap(), *expected, "{name}");
    }
    assert_eq!(used(&one, id).await, 3);
    // The ledger of an execution that only the other knows.
    let stranger = somebody(&one);
    other.call(report(id, stranger, "a")).await.unwrap();
    one.call(report(id, by, "b")).await.unwrap();
    one.call(report(id, stranger, "c")).await.unwrap();
    let release = ReleaseBudget { budget_id: id, execution_id: stranger };
    one.call(release).await.unwrap();
    assert_eq!(used(&one, id).await, 4, "both reports were given back");
    assert_sound(&one).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admission_is_one_call() {
    const CLAIMS: usize = 100;
    let server = Server::start(ServerOptions::default());
    let store = open(&server.url()).await;
    let spec = QuotaSpec { max_concurrent: 1_000, ..rate(1_000, 60) };
    let create = quota(spec);
    let id: QuotaPolicyId = create.quota_policy_id;
    store.call(create).await.unwrap();
    store.call(check(id, first_lease(somebody(&store)))).await.unwrap();
    reset(&[&server]);
    let mut slots = Vec::new();
    for _ in 0..CLAIMS {
        let slot = first_lease(somebody(&store));
        let admitted = Admission::Admitted { keeps_place: true };
        assert_eq!(store.call(check(id, slot)).await, Ok(admitted));
        assert_eq!(store.call(confirm(id, slot)).await, Ok(Confirmed::Held));
        slots.push(slot);
    }
    let (writes, reads) = calls(&[&server]);
    assert_eq!(writes, 2 * CLAIMS, "one for the claim, and one for its lease");
    assert!(reads <= CLAIMS / 32, "{reads} reads for {CLAIMS} admissions");
    for slot in slots {
        let freed = store.call(ReleaseAdmission::of_lease(id, slot)).await;
        assert_eq!(freed, Ok(AdmissionReleased { freed: 1, wake: Vec::new() }));
    }
    assert_sound(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_raise_that_lets_many_come_is_a_few_calls() {
    let server = Server::start(ServerOptions::default());
    let store = open(&server.url()).await;
    let create = quota(cap(1));
    let id: QuotaPolicyId = create.quota_policy_id;
    store.call(create).await.unwrap();
    for _ in 0..70 {
        store.call(check(id, first_lease(somebody(&store)))).await.unwrap();
    }
    // Another process remembers nothing of those who wait.
    let other = open(&server.url()).await;
    reset(&[&server]);
    // The step alone: who comes is not told.
    let raise = UpdateQuotaPolicy::new(id, cap(1_000));
    let raised = other.apply(vec![raise.into()]).await.pop().unwrap();
    let raised = UpdateQuotaPolicy::reply(raised.unwrap()).unwrap();
    assert_eq!(raised.wake.len(), 64);
    let (writes, reads) = calls(&[&server]);
    assert!(writes == 1 && reads <= 5, "{writes} writes and {reads} reads");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_lists_budgets_anew() {
    let server = Server::start(ServerOptions::default());
    let store = open(&server.url()).await;
    let id = make(&store).await;
    let due = store.ask(Due).await.unwrap().items;
    assert_eq!(due.len(), 1);
    for pattern in ["*:idx:{b:*}:timers", "*:idx:{b:*}:list:*"] {
        let keys = server.command(&["KEYS", pattern]).unwrap();
        server.command(&["DEL", keys.lines().next().unwrap()]).unwrap();
    }
    let list = || async {
        let list = ListBudgets { filter: BudgetFilter::default(), cursor: None, limit: 9 };
        store.ask(list).await.unwrap().items.iter().map(|item| item.budget_id).collect::<Vec<_>>()
    };
    assert_eq!((list().await, store.ask(Due).await.unwrap().items), (vec![], vec![]));
    let repaired = store.repair().await.unwrap();
    assert!(repaired.found.violations.iter().any(|found| found.invariant == "I9"));
    assert_eq!(repaired.left.violations, []);
    assert_eq!((list().await, store.ask(Due).await.unwrap().items), (vec![id], due));
}

/// A process whose copy of a lane is a moment old keeps nothing back by a limit that is detached there.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_another_process_detached_keeps_nobody_back() {
    let server = Server::start(ServerOptions::default());
    let (one, other) = (open(&server.url()).await, open(&server.url()).await);
    let claim = workload::claim(0);
    one.call(registration_of(&claim)).await.unwrap();
    let policy = quota(rate(1, 3_600));
    let quota_policy_id = policy.quota_policy_id;
    one.call(policy).await.unwrap();
    let lane = claim.lanes[0].lane.clone();
    let attach = |id| SetLane {
        attach: Attach { budget_ids: None, quota_policy_id: Some(id) },
        ..SetLane::new(claim.namespace.clone(), lane.clone())
    };
    one.call(attach(Some(quota_policy_id))).await.unwrap();
    for _ in 0..2 {
        let kind = Kind::new("limited").unwrap();
        one.call(Submit::new(somebody(&one), lane.clone(), kind)).await.unwrap();
    }
    let claim = Claim { max: 2, ..claim.clone() };
    assert_eq!(other.claim(claim.clone(), Duration::ZERO).await.unwrap().len(), 1);
    let waiting = other.claim(claim, PATIENCE);
    let detach = async {
        one.call(attach(None)).await.unwrap();
        Instant::now()
    };
    let (tasks, detached) = tokio::join!(waiting, detach);
    assert_eq!(tasks.unwrap().len(), 1);
    assert!(detached.elapsed() < Duration::from_secs(2), "{:?}", detached.elapsed());
    assert_sound(&one).await;
}
