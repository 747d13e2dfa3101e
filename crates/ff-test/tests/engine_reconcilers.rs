//! Reconcilers: whatever lists or counts records wrongly is found, counted and made right while the
//! store is at work.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;
use std::time::Duration;

use ff_backend_sqlite::{SqliteOptions, SqliteStore};
use ff_backend_valkey::ValkeyStore;
use ff_core::backend::{Backend, BackendExt, Upkeep};
use ff_core::id::{BudgetId, ExecutionId, FlowId, Kind, Namespace};
use ff_core::limits;
use ff_core::operation::{
    Claim, GraphMember, Part, Reconcile, ReleaseAdmission, ScannerFilter, Submit, SubmitFlow,
};
use ff_core::policy::Policy;
use ff_core::read::{Audit, DescribeFlow, DescribeQuotaPolicy, GetBudgetStatus};
use ff_core::state::{Attached, MemberCounts};
use ff_engine::{Engine, EngineOptions, Intervals, Report, Shutdown, acts};
use ff_test::graphs::{create_flow, edge_of, name};
use ff_test::limits::{budget, cap, first_lease, quota, spend, usage};
use ff_test::registered::registration_of;
use ff_test::servers::{Server, ServerOptions};
use ff_test::{sound, workload};
use rusqlite::Connection;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(60);

/// What is there before it is spoiled: some that wait, one that runs, one with a delay, and a flow with
/// two members.
async fn fill(backend: &dyn Backend) -> FlowId {
    let claim = workload::claim(0);
    let lane = claim.lanes[0].lane.clone();
    backend.call(registration_of(&claim)).await.unwrap();
    let partitions = backend.settings().partitions;
    let submit = |id| Submit::new(id, lane.clone(), Kind::new("test").unwrap());
    let solo = || submit(ExecutionId::solo(Uuid::now_v7(), &partitions));
    backend.call(solo()).await.unwrap();
    assert_eq!(backend.claim(claim.clone(), Duration::ZERO).await.unwrap().len(), 1);
    for _ in 0..5 {
        backend.call(solo()).await.unwrap();
    }
    let later = Some(backend.server_time_ms().await.unwrap().after(3_600_000));
    backend.call(Submit { delay_until: later, ..solo() }).await.unwrap();
    let flow = create_flow();
    let flow_id = flow.flow_id;
    let member = |text| {
        let id = ExecutionId::for_flow(Uuid::now_v7(), flow_id, &partitions);
        GraphMember { name: name(text), submit: submit(id) }
    };
    let (members, edges) = (vec![member("a"), member("b")], vec![edge_of("a>b")]);
    let edge_seed = Uuid::now_v7();
    let graph = SubmitFlow { flow, members, edges, groups: Vec::new(), edge_seed };
    backend.submit_graph(graph).await.unwrap();
    flow_id
}

async fn counts(backend: &dyn Backend, flow_id: FlowId) -> MemberCounts {
    backend.ask(DescribeFlow { flow_id }).await.unwrap().unwrap().counts
}

/// How much a scanner has told of. It tells when it is done with a page: a moment after it was mended.
fn violations(report: &Report, scanner: &str) -> u64 {
    let status = report.status().into_iter().find(|status| status.name == scanner);
    status.map_or(0, |status| status.violations)
}

/// An engine at work: what it reports, and how it ends.
fn engine(backend: &Arc<dyn Backend>) -> (Arc<Report>, watch::Sender<bool>, JoinHandle<()>) {
    let intervals = Intervals::all(Duration::from_millis(100));
    let engine =
        Engine::new(Arc::clone(backend), EngineOptions { intervals, ..EngineOptions::default() });
    let (report, (stop, shutdown)) = (engine.report(), Shutdown::channel());
    (report, stop, tokio::spawn(engine.run(shutdown)))
}

/// An engine finds all of it and makes it right, without a word from anybody; so many entries name a flow
/// that is not there.
async fn is_made_right(backend: Arc<dyn Backend>, stale: u64) {
    assert_ne!(backend.ask(Audit).await.unwrap().violations, []);
    let (report, stop, engine) = engine(&backend);
    let mended = async {
        let told = || {
            let [_, completed, removed] = report.edge_cancels().map(|(_, count)| count);
            let of_flows = violations(&report, "flow_projector") >= 1 && completed >= 1;
            of_flows && removed >= stale && violations(&report, "index_reconciler") >= 2
        };
        while !told() || !backend.ask(Audit).await.unwrap().violations.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, mended).await.expect("it is made right and told");
    stop.send_replace(true);
    tokio::time::timeout(PATIENCE, engine).await.unwrap().unwrap();
    assert_eq!(sound::violations(&*backend).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_on_sqlite_is_made_right() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ff.db");
    let open = || Arc::new(SqliteStore::open(SqliteOptions::file(&path)).unwrap());
    let store = open();
    let flow_id = fill(&*store).await;
    assert_eq!(sound::violations(&*store).await.unwrap(), []);
    let before = counts(&*store, flow_id).await;
    store.shutdown_prepare(PATIENCE).await.unwrap();
    drop(store);
    let spoil = "DELETE FROM ready;
        DELETE FROM timer;
        INSERT INTO timer VALUES (5, zeroblob(18));
        INSERT INTO timer SELECT 7, id FROM execution LIMIT 1;
        DELETE FROM document_listing;
        DELETE FROM document_timer;
        INSERT INTO document_timer VALUES (5, 'flow:{fp:0}:nothing');
        INSERT INTO listing SELECT 'default', 2, 5, zeroblob(16), id FROM execution LIMIT 1;
        UPDATE tally SET count = count + 3;
        UPDATE execution SET state = 'skipped';";
    Connection::open(&path).unwrap().execute_batch(spoil).unwrap();
    let store = open();
    assert_ne!(counts(&*store, flow_id).await, before);
    is_made_right(Arc::clone(&store) as Arc<dyn Backend>, 1).await;
    assert_eq!(counts(&*store, flow_id).await, before);
    let found = store.claim(workload::claim(0), Duration::ZERO).await.unwrap();
    assert!(!found.is_empty(), "places in queues are back");
}

/// Every tick would stop at it.
#[tokio::test]
async fn a_timer_that_names_nothing_at_all_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ff.db");
    drop(SqliteStore::open(SqliteOptions::file(&path)).unwrap());
    let spoil = "INSERT INTO timer VALUES (6, x'00'); INSERT INTO document_timer VALUES (6, 'x');";
    Connection::open(&path).unwrap().execute_batch(spoil).unwrap();
    let store = SqliteStore::open(SqliteOptions::file(&path)).unwrap();
    assert!(store.ask(Audit).await.is_err());
    assert_eq!(sound::reconcile(&store, 10).await.unwrap().mended, 2);
    assert_eq!(sound::violations(&store).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_on_valkey_is_made_right() {
    let server = Server::start(ServerOptions::default());
    let store = Arc::new(ValkeyStore::open(server.url().parse().unwrap()).await.unwrap());
    let flow_id = fill(&*store).await;
    assert_eq!(sound::violations(&*store).await.unwrap(), []);
    let before = counts(&*store, flow_id).await;
    let keys = |pattern: &str| {
        let found = server.command(&["KEYS", pattern]).unwrap();
        found.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    // Queues and timers are lost, a list too; a timer of nothing is there, and counts are wrong.
    let lost = [keys("*:eligible"), keys("*}:timers"), keys("*}:leases"), keys("*:list:3:*")];
    for key in lost.concat() {
        server.command(&["DEL", &key]).unwrap();
    }
    let timers = keys("*:core").into_iter().find_map(|key| {
        let (home, _) = key.split_once("exec:")?.1.split_once('}')?;
        Some(format!("{}idx:{home}}}:timers", key.split_once("exec:")?.0))
    });
    server.command(&["ZADD", &timers.unwrap(), "5", "sixteen bytes it"]).unwrap();
    let tally = keys(&format!("*:{flow_id}:tally")).remove(0);
    server.command(&["HINCRBY", &tally, "0", "7"]).unwrap();
    assert_ne!(counts(&*store, flow_id).await, before);
    is_made_right(Arc::clone(&store) as Arc<dyn Backend>, 0).await;
    assert_eq!(counts(&*store, flow_id).await, before);
    let found = store.claim(workload::claim(0), Duration::ZERO).await.unwrap();
    assert!(!found.is_empty(), "places in queues are back");
}

/// A page looks at no more than it is asked for, and the next goes on behind it.
#[tokio::test]
async fn pages_are_small_and_go_on() {
    let store = SqliteStore::open(SqliteOptions::memory()).unwrap();
    fill(&store).await;
    let whole = sound::reconcile(&store, limits::PAGE_MAX).await.unwrap();
    assert!(whole.found.checked > 10, "{whole:?}");
    for limit in [1, 2, 3] {
        let pages = sound::reconcile(&store, limit).await.unwrap();
        assert_eq!(pages.found.checked, whole.found.checked, "pages of {limit}");
    }
    let page = |limit, cursor| Reconcile {
        part: Part::Executions,
        filter: ScannerFilter::default(),
        cursor,
        limit,
    };
    let first = store.reconcile(page(2, None)).await.unwrap();
    assert_eq!(first.found.checked, 2);
    for limit in [0, limits::PAGE_MAX + 1] {
        assert!(store.reconcile(page(limit, None)).await.is_err());
    }
    assert!(store.reconcile(page(2, Some("nonsense".to_owned()))).await.is_err());
    let elsewhere = Some(Namespace::new("elsewhere").unwrap());
    let filter = ScannerFilter { namespace: elsewhere, tag: None };
    let filtered = store.reconcile(Reconcile { filter, ..page(100, None) }).await.unwrap();
    assert_eq!(filtered.found.checked, 0);
}

/// A lease has lost its slot of a quota policy.
async fn a_lost_slot_is_taken_again(backend: Arc<dyn Backend>) {
    let claim = workload::claim(0);
    backend.call(registration_of(&claim)).await.unwrap();
    let create = quota(cap(1));
    let quota_policy_id = create.quota_policy_id;
    backend.call(create).await.unwrap();
    let attached = Attached::new([], Some(quota_policy_id));
    let policy = Arc::new(Policy { attached, ..Policy::default() });
    let id = ExecutionId::solo(Uuid::now_v7(), &backend.settings().partitions);
    let submit = Submit::new(id, claim.lanes[0].lane.clone(), Kind::new("test").unwrap());
    backend.call(Submit { policy, ..submit }).await.unwrap();
    let claim = Claim { lease_ttl_ms: 600_000, ..claim };
    assert_eq!(backend.claim(claim, Duration::ZERO).await.unwrap().len(), 1);
    let lost = ReleaseAdmission::of_lease(quota_policy_id, first_lease(id));
    assert_eq!(backend.call(lost).await.unwrap().freed, 1);
    let (report, stop, engine) = engine(&backend);
    let holders = async || {
        let limit = limits::PAGE_MAX;
        let question = DescribeQuotaPolicy { quota_policy_id, holders_from: 0, limit };
        backend.ask(question).await.unwrap().unwrap().holders
    };
    let restored = async {
        while holders().await.is_empty() || violations(&report, "quota_reconciler") == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, restored).await.expect("it is taken again");
    assert_eq!(holders().await[0].slot, first_lease(id));
    stop.send_replace(true);
    engine.await.unwrap();
    assert_eq!(violations(&report, "quota_reconciler"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_without_its_slot_gets_it_back_on_sqlite() {
    let store = SqliteStore::open(SqliteOptions::memory()).unwrap();
    a_lost_slot_is_taken_again(Arc::new(store)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_without_its_slot_gets_it_back_on_valkey() {
    let server = Server::start(ServerOptions::default());
    let store = ValkeyStore::open(server.url().parse().unwrap()).await.unwrap();
    a_lost_slot_is_taken_again(Arc::new(store)).await;
}

/// What an execution uses. No other number of a record has these bytes.
const SPENT: u64 = 1_234_567;

/// A budget of which an execution, and nobody in particular, has used something.
async fn spent(backend: &dyn Backend) -> BudgetId {
    backend.call(registration_of(&workload::claim(0))).await.unwrap();
    let create = budget(&[("tokens", 0, 0)]);
    let id = create.budget_id;
    backend.call(create).await.unwrap();
    let spender = ExecutionId::solo(Uuid::now_v7(), &backend.settings().partitions);
    backend.call(spend(id, spender, &[("tokens", SPENT)])).await.unwrap();
    backend.call(usage(id, &[("tokens", 2)])).await.unwrap();
    id
}

async fn used(backend: &dyn Backend, budget_id: BudgetId) -> u64 {
    let status = backend.ask(GetBudgetStatus { budget_id }).await.unwrap().unwrap();
    status.dimensions.values().next().unwrap().used
}

/// `ff doctor` tells of usage that its ledgers do not hold, and an engine makes it right.
async fn usage_is_made_right(backend: Arc<dyn Backend>, id: BudgetId, expected: u64) {
    let wrong = used(&*backend, id).await;
    assert_ne!(wrong, expected);
    let found = acts::audit(&*backend, false).await.unwrap().found.violations;
    let [violation] = &found[..] else { panic!("{found:?}") };
    let about = (violation.invariant, violation.subject.clone());
    assert_eq!(about, ("I21", Some(id.to_string())));
    assert_eq!(used(&*backend, id).await, wrong, "a look changes nothing");
    let (report, stop, engine) = engine(&backend);
    let mended = async {
        while used(&*backend, id).await != expected || violations(&report, "budget_reconciler") == 0
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, mended).await.expect("it is made right");
    stop.send_replace(true);
    engine.await.unwrap();
    assert_eq!(violations(&report, "budget_reconciler"), 1);
    assert_eq!(acts::audit(&*backend, false).await.unwrap().found.violations, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_that_its_ledgers_do_not_hold_is_made_right_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ff.db");
    let open = || Arc::new(SqliteStore::open(SqliteOptions::file(&path)).unwrap());
    let store = open();
    let id = spent(&*store).await;
    store.shutdown_prepare(PATIENCE).await.unwrap();
    drop(store);
    let database = Connection::open(&path).unwrap();
    let read = "SELECT record FROM document WHERE id LIKE 'budget:%'";
    let record: Vec<u8> = database.query_row(read, [], |row| row.get(0)).unwrap();
    // As postcard writes them: seven bits a byte, the lowest first. One is 8 less than the other.
    let varint = |n: u64| [n as u8 | 128, (n >> 7) as u8 | 128, (n >> 14) as u8];
    let (right, wrong) = (varint(SPENT + 2), varint(SPENT - 6));
    let at = record.windows(3).position(|bytes| bytes == right).expect("its usage");
    let record = [&record[..at], &wrong, &record[at + 3..]].concat();
    let write = "UPDATE document SET record = ?1 WHERE id LIKE 'budget:%'";
    database.execute(write, [record]).unwrap();
    drop(database);
    let store = open();
    assert_eq!(used(&*store, id).await, SPENT - 6);
    usage_is_made_right(store, id, SPENT + 2).await;
}

/// Ledgers decide: what was lost of them is not used.
#[tokio::test(flavor = "multi_thread")]
async fn usage_that_its_ledgers_do_not_hold_is_made_right_on_valkey() {
    let server = Server::start(ServerOptions::default());
    let open = async || ValkeyStore::open(server.url().parse().unwrap()).await.unwrap();
    let id = spent(&open().await).await;
    let rows = server.command(&["KEYS", &format!("*:{id}:beside")]).unwrap();
    server.command(&["DEL", rows.lines().next().unwrap()]).unwrap();
    // Another process: the one that wrote rows remembers them while their record is the same.
    usage_is_made_right(Arc::new(open().await), id, 2).await;
}
